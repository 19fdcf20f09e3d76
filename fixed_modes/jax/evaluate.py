"""Evaluates a graph while JAX traces: at once what is known, traced what is data.

There is no generated source: the walk over the nodes happens once for each
compilation, in Python, and JAX records what it does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from aesara.compile.ops import DeepCopyOp, ViewOp
from aesara.graph.basic import Apply, Variable
from aesara.graph.op import HasInnerGraph
from aesara.ifelse import IfElse
from aesara.scalar.basic import Composite, ScalarType
from aesara.tensor.elemwise import DimShuffle, Elemwise
from aesara.tensor.random.type import RandomType
from aesara.tensor.shape import Shape, Shape_i
from aesara.tensor.subtensor import Subtensor

from fixed_modes.errors import UnsupportedOpError, describe_node, origin_of
from fixed_modes.jax import concrete
from fixed_modes.jax.dispatch import jax_lower
from fixed_modes.jax.fallback import run_in_python
from fixed_modes.jax.frame import Frame, NeedsConcrete, NeedsEager, described, is_concrete
from fixed_modes.jax.ifelse import lower_ifelse
from fixed_modes.jax.kinds import is_array, is_foreign
from fixed_modes.jax.lazy import Schedule, schedule
from fixed_modes.jax.lazy_rows import LazyRows, map_rows, takes_lazy_rows
from fixed_modes.jax.padded import PaddedTrace
from fixed_modes.jax.perform import as_declared, perform
from fixed_modes.jax.ragged import Ragged, array_of, rows_of
from fixed_modes.jax.ragged_dispatch import lower_ragged
from fixed_modes.jax.rng import key_from_rng
from fixed_modes.jax.ties import tie

#: What a conversion raises that doesn't exist, or not for values that are traced.
CANT_TRACE = (
    NotImplementedError,
    jax.errors.ConcretizationTypeError,
    jax.errors.TracerArrayConversionError,
    jax.errors.TracerIntegerConversionError,
    jax.errors.NonConcreteBooleanIndexError,
)

#: Ops that know what to do with a trace of which the length is traced.
TAKES_PADDED = (DeepCopyOp, Shape, Shape_i, Subtensor, ViewOp)


def evaluate(frame: Frame, targets: Sequence[Variable]) -> list[Any]:
    """Evaluate variables of the frame's graph.

    Returns
    -------
    The values of `targets`: concrete (NumPy) where they depend on no traced
    value, else traced, with exactly the dtype that the variable's type names.

    Raises
    ------
    NeedsConcrete
        If tracing can go on only with the value of a variable of this graph.
    NeedsEager
        If a node can't be traced at all.
    UnsupportedOpError
        If a node can't be converted, and the flag ``fixed_modes__strict`` is set.
    """
    for variable, value in frame.known.items():
        if variable in frame.values:
            frame.values[variable] = value
    plan = schedule(frame.inputs, targets, is_step=frame.outer is not None)
    run_nodes(frame, plan.always, plan)
    return [frame.value(variable) for variable in targets]


def run_nodes(frame: Frame, nodes: Sequence[Apply], plan: Schedule) -> None:
    """Evaluate nodes in order; `frame` gets the values of their outputs."""
    for node in nodes:
        frame.values.update(zip(node.outputs, _run_node(frame, node, plan)))


def _run_node(frame: Frame, node: Apply, plan: Schedule) -> list[Any]:
    n_checks = len(frame.checks.errors)
    try:
        if isinstance(node.op, IfElse):
            outputs = lower_ifelse(frame, node, plan, run_nodes)
        else:
            values = [_input_value(frame, node, index) for index in range(len(node.inputs))]
            _check_padded(node, values)
            if isinstance(node.op, (DimShuffle, Elemwise)) and _has(LazyRows, values):
                outputs = _map_lazy_rows(frame, node, values)
            elif _has(Ragged, values):
                outputs = _lower_ragged(frame, node, values)
            elif concrete.can_perform(node, values):
                outputs = perform(node, values)
            else:
                tied = plan.ties.get(node)
                if tied:
                    dtype = node.inputs[0].type.dtype
                    values[1] = tie(tied, values[1], dtype, frame.values)
                outputs = _lower(node, values, frame)
        frame.checks.locate(n_checks, node, frame.scans)
        return [conform(variable, value) for variable, value in zip(node.outputs, outputs)]
    except (NeedsConcrete, NeedsEager) as need:
        need.where = need.where or describe_node(node, frame.scans)
        need.node = node
        raise
    except UnsupportedOpError:
        raise
    except Exception as exc:
        if origin_of(exc) is not None:
            raise
        raise _explained(exc, node, frame) from exc


def _input_value(frame: Frame, node: Apply, position: int) -> Any:
    variable = node.inputs[position]
    value = frame.values.get(variable)
    if isinstance(value, Ragged):
        if not isinstance(node.op, HasInnerGraph):
            return value
        if takes_lazy_rows(node, position) and all(n is None for n in value.lengths[1:]):
            return rows_of(value.packed())
    if isinstance(value, LazyRows):
        if takes_lazy_rows(node, position):
            return value
        array = None if isinstance(node.op, HasInnerGraph) else array_of(value)
        if array is not None:
            return array
    return frame.value(variable)


def _lower_ragged(frame: Frame, node: Apply, values: list[Any]) -> list[Any]:
    """Trace a node with arrays that have room; the loop runs in Python if that fails."""
    n_checks = len(frame.checks.errors)
    try:
        return lower_ragged(node, values, frame)
    except (*CANT_TRACE, ValueError, IndexError) as exc:
        # What is wrong, if anything is, the step will say.
        frame.checks.cut(n_checks)
        found = [(v, value) for v, value in zip(node.inputs, values) if isinstance(value, Ragged)]
        raise NeedsConcrete([v for v, _ in found], found[0][1].reason) from exc


def _has(kind: type, values: Sequence[Any]) -> bool:
    return any(isinstance(value, kind) for value in values)


def _map_lazy_rows(frame: Frame, node: Apply, values: list[Any]) -> list[Any]:
    """Put off an elementwise op until the loop asks for a row, if that can be done."""
    local = frame.branch()

    def compute(rows: list[Any]) -> Any:
        (value,) = _lower(node, rows, local)
        return conform(node.outputs[0], jnp.asarray(value))

    mapped = None if _has(Ragged, values) else map_rows(values, compute)
    if mapped is not None:
        jax.eval_shape(mapped.row, 0)
        if not local.checks.failed and local.last_call is None:
            return [mapped]
    arrays = [array_of(value) if isinstance(value, LazyRows) else value for value in values]
    if any(array is None and isinstance(v, LazyRows) for array, v in zip(arrays, values)):
        lazy = [v for v, value in zip(node.inputs, values) if isinstance(value, LazyRows)]
        raise NeedsConcrete(lazy, "the bounds of an arange")
    return _lower_ragged(frame, node, arrays)


def _lower(node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    """Trace a node; one that JAX can't trace runs in Python."""
    if any(is_foreign(v.type) for v in (*node.inputs, *node.outputs)):
        raise NeedsEager("it takes or gives something that is no array")
    n_checks = len(frame.checks.errors)
    try:
        return jax_lower(node.op, node, values, frame)
    except UnsupportedOpError:
        raise
    except CANT_TRACE as exc:
        frame.checks.cut(n_checks)
        if isinstance(node.op, HasInnerGraph) and not isinstance(node.op, Composite):
            raise NeedsEager(f"JAX can't trace it ({exc})") from exc
        return run_in_python(node, values, frame)


def _check_padded(node: Apply, values: Sequence[Any]) -> None:
    padded = [v for v, value in zip(node.inputs, values) if isinstance(value, PaddedTrace)]
    if padded and not isinstance(node.op, TAKES_PADDED):
        raise NeedsConcrete(padded, "the number of steps that an until loop has run")


def conform(variable: Variable, value: Any) -> Any:
    """Give a value the dtype that the variable's type names, exactly."""
    kind = variable.type
    if isinstance(kind, RandomType):
        is_rng = isinstance(value, (np.random.Generator, np.random.RandomState))
        return key_from_rng(value) if is_rng else value
    if isinstance(value, Ragged):
        return value.with_data(conform(variable, value.data))
    if isinstance(value, (PaddedTrace, LazyRows)) or not (
        is_array(kind) or isinstance(kind, ScalarType)
    ):
        return value
    if is_concrete(value):
        return as_declared(variable, value)
    ndim = getattr(kind, "ndim", 0)
    if value.ndim != ndim:
        raise ValueError(f"A value with {value.ndim} dimensions stands for {kind}")
    if ndim > np.MAXDIMS:
        # JAX has no such limit, but results are NumPy arrays.
        raise ValueError(f"An array of {ndim} dimensions: NumPy allows {np.MAXDIMS}")
    if value.dtype != np.dtype(kind.dtype) or getattr(value, "weak_type", False):
        if np.dtype(kind.dtype).kind != "c" and value.dtype.kind == "c":
            value = jnp.real(value)
        value = jax.lax.convert_element_type(value, np.dtype(kind.dtype))
    return value


def _explained(exc: Exception, node: Apply, frame: Frame) -> Exception:
    """Make an error of the type that FAST_RUN would raise, which names the node."""
    if isinstance(exc, TypeError):
        # Aesara has checked the types; JAX also says so where shapes mismatch.
        exc = ValueError(str(exc))
    return described(exc, node, frame.scans)
