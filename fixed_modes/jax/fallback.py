"""Ops without a conversion: compiled code calls back to Python for them.

An error in such a call can't pass through compiled code.  It is kept, a flag
says so, and the flag is one of the run-time checks.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any, Callable

import aesara.tensor as at
import jax
import jax.numpy as jnp
import numpy as np
from aesara.graph.basic import Apply, Constant, Variable, io_toposort
from aesara.scalar.basic import ScalarOp, ScalarType
from aesara.tensor.shape import Shape, Shape_i

from fixed_modes.errors import describe_node
from fixed_modes.jax.frame import Frame, NeedsEager, is_concrete
from fixed_modes.jax.host_call import host_call
from fixed_modes.jax.kinds import is_array
from fixed_modes.jax.notices import say_slow
from fixed_modes.jax.perform import apply_scalar_op, perform
from fixed_modes.jax.rng import RandomKey

#: Computes the outputs of a node from the values of its inputs.
Compute = Callable[[list[Any]], list[Any]]

Sizes = tuple[int, ...]


def run_in_python(node: Apply, values: Sequence[Any], frame: Frame) -> list[Any]:
    """Run the op of a node in Python, at every run of the compiled code.

    Raises
    ------
    NeedsEager
        If a shape of an output is not known while tracing.
    """
    _warn(node, frame)
    known = [v for v, value in zip(node.inputs, values) if is_concrete(value)]
    if not all(
        v in known or is_array(v.type) or isinstance(v.type, ScalarType)
        for v in (*node.inputs, *node.outputs)
    ):
        raise NeedsEager("it takes or gives something that is no array")
    shapes = output_shapes(node, values, frame)
    if shapes is None:
        raise NeedsEager("the shape of what it gives is known only when it has run")
    return call_back(node, lambda inputs: perform(node, inputs), shapes, values, frame)


def scalar_in_python(node: Apply, values: Sequence[Any], frame: Frame) -> list[Any]:
    """Run a scalar op on whole arrays in Python, at every run of the compiled code."""
    op: ScalarOp = node.op
    _warn(node, frame)
    dtypes = [out.type.dtype for out in node.outputs]
    types = [variable.type.dtype for variable in node.inputs]

    def compute(inputs: list[Any]) -> list[Any]:
        return apply_scalar_op(op, [np.asarray(*pair) for pair in zip(inputs, types)], dtypes)

    shape = np.broadcast_shapes(*map(np.shape, values))
    return call_back(node, compute, [shape] * len(dtypes), values, frame)


def draw_in_python(node: Apply, key: Any, values: Sequence[Any], frame: Frame) -> Any:
    """Draw with the op of a random variable itself, from a generator seeded with a JAX key.

    Parameters
    ----------
    key
        A typed JAX key.
    values
        Those of the node's inputs; the first one, the state, is not used.

    Raises
    ------
    NeedsEager
        If the shape of the draw is not known while tracing.
    """
    shapes = output_shapes(node, values, frame)
    _warn(node, frame)
    if shapes is None:
        raise NeedsEager("the shape of what it draws is known only when it has run")

    def compute(inputs: list[Any]) -> list[Any]:
        data, *others = inputs
        return perform(node, [RandomKey(data, np.random.PCG64, legacy=False), *others])[1:]

    operands = [jax.random.key_data(key), *values[1:]]
    (found,) = call_back(node, compute, shapes[1:], operands, frame, outputs=node.outputs[1:])
    return found


def _warn(node: Apply, frame: Frame) -> None:
    text = "JAX_FIXED has no conversion for this op, or not for these values, and runs it in Python"
    say_slow(node, frame.settings, f"{text}.\n{describe_node(node, frame.scans)}")


def call_back(
    node: Apply,
    compute: Compute,
    shapes: Sequence[Sizes],
    values: Sequence[Any],
    frame: Frame,
    outputs: Sequence[Variable] | None = None,
) -> list[Any]:
    """Let compiled code call `compute`.

    Parameters
    ----------
    node
        What it stands for.
    shapes
        Of what it gives.
    values
        What it is called with: concrete values, and traced ones as NumPy arrays.
    frame
        Gets the check that it raised no error.
    outputs
        Variables with the types of what it gives, if it is not all outputs of `node`.
    """
    outputs = node.outputs if outputs is None else outputs
    # A node is traced more than once; any of these calls may be the one that runs.
    errors = frame.failures.setdefault(node, deque())
    call = _Call(compute, outputs, shapes, values, errors)
    results = [jax.ShapeDtypeStruct(s, v.type.dtype) for s, v in zip(shapes, outputs)]
    # The last flag goes in so that the calls are made in the order of the graph.
    operands = [values[i] for i in call.traced]
    operands.append(jnp.zeros((), bool) if frame.last_call is None else frame.last_call)
    *found, failed = host_call(
        call, [*results, jax.ShapeDtypeStruct((), bool)], operands, has_effect=True
    )
    frame.last_call = failed
    frame.checks.add(failed, call.error)
    return found


class _Call:
    """The function that compiled code calls."""

    def __init__(
        self,
        compute: Compute,
        outputs: Sequence[Variable],
        shapes: Sequence[Sizes],
        values: Sequence[Any],
        errors: deque[Exception],
    ) -> None:
        self.compute, self.outputs, self.shapes, self.errors = compute, outputs, shapes, errors
        self.traced = [i for i, value in enumerate(values) if not is_concrete(value)]
        self.fixed = [value if is_concrete(value) else None for value in values]

    def __call__(self, *arrays: Any) -> list[Any]:
        try:
            inputs = list(self.fixed)
            for position, array in zip(self.traced, arrays):
                # A copy: the memory belongs to the compiled code.
                inputs[position] = np.array(array)
            found = [
                _checked(*each) for each in zip(self.outputs, self.shapes, self.compute(inputs))
            ]
        except Exception as exc:
            self.errors.append(exc)
            zeros = [np.zeros(s, v.type.dtype) for s, v in zip(self.shapes, self.outputs)]
            return [*zeros, np.array(True)]
        return [*found, np.array(False)]

    def error(self) -> Exception:
        """Give the first error since the last time, which only the raised flag asks for."""
        first = self.errors.popleft() if self.errors else RuntimeError("An op has failed")
        self.errors.clear()
        return first


def _checked(variable: Variable, shape: Sizes, value: Any) -> Any:
    if is_array(variable.type):
        value = variable.type.filter(value, allow_downcast=True)
    value = np.asarray(value, variable.type.dtype)
    if value.shape != shape:
        raise ValueError(f"An output has shape {value.shape}, but its op foretold {shape}")
    return value


def output_shapes(node: Apply, values: Sequence[Any], frame: Frame) -> list[Sizes] | None:
    """Find the shapes of a node's outputs while tracing; None: that can't be done."""
    static = [getattr(out.type, "shape", ()) for out in node.outputs]
    if all(size is not None for shape in static for size in shape):
        return [tuple(shape) for shape in static]
    try:
        inferred = _symbolic_shapes(node, values)
    except Exception:  # an op may be asked for what it can't say
        return None
    targets = [
        at.as_tensor_variable(size)
        for out, sizes in zip(node.outputs, inferred)
        if is_array(out.type)
        for size in sizes or ()
    ]
    found = _known_values(node, values, targets)
    shapes: list[Sizes] = []
    for out, known, symbolic in zip(node.outputs, static, inferred):
        if not is_array(out.type):
            shapes.append(())
            continue
        if symbolic is None or len(symbolic) != out.type.ndim:
            return None
        sizes = [found.get(target) for target in targets[: len(symbolic)]]
        del targets[: len(symbolic)]
        if any(size is None for size in sizes):
            return None
        numbers = np.array(sizes, "int64")
        shapes.append(tuple(int(s) if k is None else k for k, s in zip(known, numbers)))
    return shapes


def _known_values(
    node: Apply, values: Sequence[Any], targets: Sequence[Variable]
) -> dict[Variable, Any]:
    """Evaluate what depends on shapes and known values only."""
    found = {v: value for v, value in zip(node.inputs, values) if is_concrete(value)}
    found.update((v, v.data) for v in targets if isinstance(v, Constant))
    shapes = {
        v: np.array(np.shape(value), "int64")
        for v, value in zip(node.inputs, values)
        if is_array(v.type)
    }
    for part in io_toposort(node.inputs, targets):
        source = part.inputs[0] if part.inputs else None
        if isinstance(part.op, (Shape, Shape_i)) and source in shapes:
            shape = shapes[source]
            found[part.outputs[0]] = shape if isinstance(part.op, Shape) else shape[part.op.i]
            continue
        inputs = [v.data if isinstance(v, Constant) else found.get(v) for v in part.inputs]
        if all(value is not None for value in inputs):
            found.update(zip(part.outputs, perform(part, inputs)))
    return found


def _symbolic_shapes(node: Apply, values: Sequence[Any]) -> Any:
    shapes = [
        tuple(at.constant(size, dtype="int64") for size in np.shape(value))
        if is_array(variable.type)
        else None
        for variable, value in zip(node.inputs, values)
    ]
    return node.op.infer_shape(None, node, shapes)
