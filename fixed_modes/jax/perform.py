"""Runs single nodes on NumPy values: through ``perform``, or what stands in for it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial, reduce
from importlib import import_module
from typing import Any

import numpy as np
from aesara.configdefaults import config
from aesara.graph.basic import Apply, Variable
from aesara.graph.op import Op
from aesara.graph.utils import MethodNotDefined
from aesara.link.c.op import COp
from aesara.scalar.basic import Composite, FloorDivide, Mod, Pow, ScalarOp, ScalarType
from aesara.tensor.elemwise import Elemwise
from aesara.tensor.random.type import RandomType

from fixed_modes.jax.kinds import is_array
from fixed_modes.jax.rng import RandomKey, key_from_rng, rng_from_key


def perform(node: Apply, values: Sequence[Any]) -> list[Any]:
    """Compute the outputs of a node that has no inner graph, but for a `Composite`.

    Random states come and go as keys.  `values` are not changed, even if the op
    works in place.

    Raises
    ------
    Exception
        What the op raises.
    """
    op = node.op
    destroyed = {i for places in op.destroy_map.values() for i in places}
    inputs = [
        as_declared(variable, value, copy=index in destroyed)
        for index, (variable, value) in enumerate(zip(node.inputs, values))
    ]
    with np.errstate(all="ignore"):
        if isinstance(op, (Elemwise, Composite)):
            scalar_op = op.scalar_op if isinstance(op, Elemwise) else op
            outputs = apply_scalar_op(scalar_op, inputs, [v.type.dtype for v in node.outputs])
        elif type(op).make_thunk not in (Op.make_thunk, COp.make_thunk):
            outputs = _run_thunk(node, inputs, "py")
        else:
            outputs = _perform(node, inputs)
    return [_given_back(*pair) for pair in zip(node.outputs, outputs)]


def as_declared(variable: Variable, value: Any, copy: bool = False) -> Any:
    """Give a concrete value the type that Aesara expects of the variable's values."""
    kind = variable.type
    if is_array(kind):
        return np.array(value, dtype=kind.dtype) if copy else np.asarray(value, kind.dtype)
    if isinstance(kind, ScalarType):
        return np.dtype(kind.dtype).type(value)
    if isinstance(value, RandomKey):
        return rng_from_key(value, {})
    return value.copy() if copy and hasattr(value, "copy") else value


def _given_back(variable: Variable, value: Any) -> Any:
    return key_from_rng(value) if isinstance(variable.type, RandomType) else value


def _perform(node: Apply, inputs: list[Any]) -> list[Any]:
    storage: list[list[Any]] = [[None] for _ in node.outputs]
    params = _params(node)
    _prepare(node)
    try:
        if params is None:
            node.op.perform(node, inputs, storage)
        else:
            node.op.perform(node, inputs, storage, params)
    except (NotImplementedError, MethodNotDefined):
        if isinstance(node.op, COp) and config.cxx:  # an op that has C code only
            return _run_thunk(node, inputs, "c")
        raise
    return [cell[0] for cell in storage]


def _prepare(node: Apply) -> None:
    """Let an op note on its node what its `perform` needs; some ops do."""
    if type(node.op).prepare_node is not Op.prepare_node:
        variables = [*node.inputs, *node.outputs]
        computed = {variable: [False] for variable in variables}
        node.op.prepare_node(node, {variable: [None] for variable in variables}, computed, "py")


def _run_thunk(node: Apply, inputs: list[Any], impl: str) -> list[Any]:
    variables = [*node.inputs, *node.outputs]
    storage: dict[Variable, list[Any]] = {variable: [None] for variable in variables}
    computed = {variable: [variable in node.inputs] for variable in variables}
    for variable, value in zip(node.inputs, inputs):
        storage[variable][0] = value
    node.op.prepare_node(node, storage, computed, impl)
    node.op.make_thunk(node, storage, computed, [], impl=impl)()
    return [storage[variable][0] for variable in node.outputs]


def apply_scalar_op(op: ScalarOp, inputs: Sequence[Any], dtypes: Sequence[str]) -> list[Any]:
    """Apply a scalar op to arrays that broadcast.

    Parameters
    ----------
    inputs
        Of the dtypes that the op is made for.
    dtypes
        Those of the outputs.

    Returns
    -------
    For each output an array of its own, of the operands' common shape.
    """
    shape = np.broadcast_shapes(*map(np.shape, inputs))
    if isinstance(op, Composite):
        results = _composite(op, inputs)
    elif isinstance(op, (FloorDivide, Mod)) and np.dtype(dtypes[0]).kind != "c":
        x, y = inputs
        results = [_divide(op, x, y, np.dtype(dtypes[0]))]
    elif isinstance(op, Pow) and np.dtype(dtypes[0]).kind in "iu":
        results = [_integer_power(*(np.asarray(x, dtypes[0]) for x in inputs))]
    else:
        results = _function(op, inputs, dtypes)(*inputs)
        results = [results] if len(dtypes) == 1 else results
    # An output need not depend on every operand, but it has the shape of all.
    return [
        np.broadcast_to(np.asarray(result).astype(dtype), shape).copy()
        for result, dtype in zip(results, dtypes)
    ]


def _divide(op: ScalarOp, x: Any, y: Any, dtype: np.dtype[Any]) -> Any:
    """Divide as Aesara's C code does: NumPy gives 0 for integers divided by zero.

    Raises
    ------
    ZeroDivisionError
        If an integer is divided by zero.
    """
    x, y = np.asarray(x, dtype), np.asarray(y, dtype)
    if dtype.kind in "iu" and not np.all(y) and x.size:
        what = "modulo" if isinstance(op, Mod) else "division"
        raise ZeroDivisionError(f"integer {what} by zero")
    if isinstance(op, Mod):
        return np.mod(x, y)
    if dtype.kind != "f":
        return np.floor_divide(x, y)
    ratio = x / y
    opposite = ((x < 0) != (y < 0)) & (y != 0)
    return np.where(opposite, np.ceil(ratio) - (np.fmod(x, y) != 0), np.floor(ratio))


def _integer_power(x: Any, y: Any) -> Any:
    """Raise integers to a power as Aesara's C code does: NumPy refuses negative exponents."""
    inverse = np.where(x == 1, 1, np.where(x == -1, np.where(y % 2 == 0, 1, -1), 0))
    return np.where(y < 0, inverse, np.power(x, np.maximum(y, 0)))


def _composite(op: Composite, inputs: Sequence[Any]) -> list[Any]:
    """Compute a fused scalar graph op by op, each on whole arrays.

    `Composite.perform` would go through the arrays entry by entry.
    """
    fgraph = op.fgraph
    found: dict[Variable, Any] = dict(zip(fgraph.inputs, inputs))

    def value_of(variable: Variable) -> Any:
        if variable in found:
            return found[variable]
        return np.asarray(variable.data, variable.type.dtype)

    for node in fgraph.toposort():
        arrays = [value_of(variable) for variable in node.inputs]
        outputs = apply_scalar_op(node.op, arrays, [v.type.dtype for v in node.outputs])
        found.update(zip(node.outputs, outputs))
    return [value_of(out) for out in fgraph.outputs]


def _function(op: ScalarOp, inputs: Sequence[Any], dtypes: Sequence[str]) -> Any:
    """Find NumPy's or SciPy's function for an op, as `Elemwise.perform` does.

    Unlike there it serves a sum or a product of many operands too.
    """
    per_entry = np.frompyfunc(op.impl, len(inputs), len(dtypes))
    name, n_inputs, _ = getattr(op, "nfunc_spec", None) or ("", -1, 1)
    if len(dtypes) != 1 or not inputs:
        return per_entry
    module, _, attribute = f"numpy.{name}".rpartition(".")
    if name.startswith("scipy."):
        module, _, attribute = name.rpartition(".")
    try:
        function = getattr(_resolved(module), attribute)
    except (ImportError, AttributeError):
        return per_entry
    if n_inputs != len(inputs):
        is_chain = n_inputs == 2 and getattr(op, "associative", False)
        return (lambda *arrays: reduce(function, arrays)) if is_chain else per_entry
    # NumPy would compute with int8 in float16.
    out = np.dtype(dtypes[0])
    if (
        isinstance(function, np.ufunc)
        and out.kind == "f"
        and np.dtype(inputs[0].dtype).kind in "iub"
    ):
        return partial(function, dtype=out)
    return function


def _resolved(path: str) -> Any:
    """Import a module, or get an object in one, by its dotted name."""
    module, _, attribute = path.rpartition(".")
    try:
        return import_module(path)
    except ImportError:
        return getattr(_resolved(module), attribute)


def _params(node: Apply) -> Any:
    try:
        return node.op.get_params(node)
    except MethodNotDefined:
        return None
