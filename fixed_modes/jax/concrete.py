"""Evaluates nodes whose inputs are known while tracing, with NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from aesara.graph.basic import Apply, Variable
from aesara.graph.op import HasInnerGraph
from aesara.graph.utils import MethodNotDefined
from aesara.scalar.basic import Composite, FloorDivide, Mod, ScalarType
from aesara.tensor.basic import Alloc, AllocEmpty
from aesara.tensor.elemwise import Elemwise
from aesara.tensor.random.op import RandomVariable
from aesara.tensor.type import TensorType

from fixed_modes.jax.frame import is_concrete

#: An allocation with more elements is traced: it would end up as a literal in
#: the compiled program.
LARGEST_LITERAL = 1024

#: NumPy's ufuncs take no more operands, and `Elemwise.perform` then wants C code.
MOST_UFUNC_OPERANDS = 31


def can_perform(node: Apply, values: Sequence[Any]) -> bool:
    """Say whether a node is to be evaluated at once by its op's ``perform``."""
    op = node.op
    if not all(is_concrete(value) for value in values):
        return False
    if isinstance(op, HasInnerGraph) and not isinstance(op, Composite):
        return False  # scans and the like would compile their inner graph
    if isinstance(op, (RandomVariable, AllocEmpty)):
        return False  # not a function of the inputs alone
    if type(op).__name__ == "JAXShapeTuple":
        return False  # Aesara's stand-in for a tuple, without a usable `perform`
    if isinstance(op, Alloc):
        return bool(np.prod([int(size) for size in values[1:]]) <= LARGEST_LITERAL)
    scalar_op = getattr(op, "scalar_op", op)
    if isinstance(scalar_op, (FloorDivide, Mod)) and not np.all(values[1]):
        return False  # NumPy gives 0 for an integer division by zero, not an error
    if isinstance(scalar_op, FloorDivide) and not _divides_as_in_c(*values):
        return False
    if isinstance(op, Elemwise):
        return len(values) <= MOST_UFUNC_OPERANDS
    return True


def _divides_as_in_c(x: Any, y: Any) -> bool:
    """Say whether NumPy's ``x // y`` is what Aesara's C code gives, also for inf."""
    if np.result_type(x, y).kind != "f":
        return True
    with np.errstate(all="ignore"):
        return np.array_equal(np.floor(np.true_divide(x, y)), np.floor_divide(x, y))


def perform(node: Apply, values: Sequence[Any]) -> list[Any]:
    """Run a node's ``perform``.

    `values` are not changed, even if the op works in place.
    """
    destroyed = {i for places in node.op.destroy_map.values() for i in places}
    inputs = [
        as_declared(variable, value, copy=index in destroyed)
        for index, (variable, value) in enumerate(zip(node.inputs, values))
    ]
    storage: list[list[Any]] = [[None] for _ in node.outputs]
    with np.errstate(all="ignore"):
        params = _params(node)
        if params is None:
            node.op.perform(node, inputs, storage)
        else:
            node.op.perform(node, inputs, storage, params)
    return [cell[0] for cell in storage]


def as_declared(variable: Variable, value: Any, copy: bool = False) -> Any:
    """Give a concrete value the type that Aesara expects of the variable's values."""
    kind = variable.type
    if isinstance(kind, TensorType):
        return np.array(value, dtype=kind.dtype) if copy else np.asarray(value, kind.dtype)
    if isinstance(kind, ScalarType):
        return np.dtype(kind.dtype).type(value)
    return value


def _params(node: Apply) -> Any:
    try:
        return node.op.get_params(node)
    except MethodNotDefined:
        return None
