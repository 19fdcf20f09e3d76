"""Between which two numbers an integer lies, as far as that is known while tracing.

The rows of ``arange(n)`` that a loop goes over, and what it adds to them, are not
known while the loop is traced, but that they stay within an array is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from aesara.graph.basic import Apply, Constant, Variable
from aesara.scalar import basic as aes
from aesara.tensor.basic import ScalarFromTensor, TensorFromScalar
from aesara.tensor.elemwise import DimShuffle, Elemwise
from aesara.tensor.shape import Reshape, SpecifyShape, Unbroadcast
from aesara.tensor.subtensor import Subtensor

from fixed_modes.jax.frame import Frame, is_concrete

#: Ops that only choose or move entries of their first input.
_MOVES = (DimShuffle, Reshape, ScalarFromTensor, SpecifyShape, Subtensor, TensorFromScalar)


class Range(NamedTuple):
    """All entries are at least `low` and at most `high`."""

    low: int
    high: int


def value_range(variable: Variable, frame: Frame) -> Range | None:
    """Find out between which numbers the entries of an integer variable lie.

    Returns
    -------
    None if nothing is known.
    """
    value = frame.values.get(variable)
    if isinstance(variable, Constant) or is_concrete(value):
        return _of_array(frame.value(variable))
    if variable in frame.origins and frame.outer is not None:
        return value_range(frame.origins[variable], frame.outer)
    if variable.owner is None or variable in frame.inputs:
        return None
    return _within_type(_of_node(variable.owner, frame), variable)


def _of_array(value: Any) -> Range | None:
    array = np.asarray(value)
    if array.dtype.kind not in "iub" or not array.size:
        return None
    return Range(int(array.min()), int(array.max()))


def _of_node(node: Apply, frame: Frame) -> Range | None:
    if isinstance(node.op, (*_MOVES, Unbroadcast)):
        return value_range(node.inputs[0], frame)
    scalar_op = node.op.scalar_op if isinstance(node.op, Elemwise) else node.op
    if not isinstance(scalar_op, aes.ScalarOp):
        return None
    return _apply(scalar_op, [value_range(variable, frame) for variable in node.inputs])


def _apply(op: aes.ScalarOp, args: Sequence[Range | None]) -> Range | None:
    if isinstance(op, aes.Composite):
        return _apply_composite(op, args)
    if isinstance(op, aes.Mod) and args[1] is not None and args[1].low > 0:
        return Range(0, args[1].high - 1)  # the sign is that of the divisor
    known = [arg for arg in args if arg is not None]
    if len(known) < len(args) or not known:
        return None
    first, *others = known
    if isinstance(op, (aes.Cast, aes.Identity)):
        return first
    if isinstance(op, aes.Add):
        return Range(sum(r.low for r in known), sum(r.high for r in known))
    if isinstance(op, aes.Sub):
        return Range(first.low - others[0].high, first.high - others[0].low)
    if isinstance(op, aes.Neg):
        return Range(-first.high, -first.low)
    if isinstance(op, aes.Mul):
        for other in others:
            corners = [a * b for a in first for b in other]
            first = Range(min(corners), max(corners))
        return first
    if isinstance(op, aes.ScalarMinimum):
        return Range(min(r.low for r in known), min(r.high for r in known))
    if isinstance(op, aes.ScalarMaximum):
        return Range(max(r.low for r in known), max(r.high for r in known))
    return None


def _apply_composite(op: aes.Composite, args: Sequence[Range | None]) -> Range | None:
    ranges: dict[Variable, Range | None] = dict(zip(op.fgraph.inputs, args))

    def of(variable: Variable) -> Range | None:
        return _of_array(variable.data) if isinstance(variable, Constant) else ranges[variable]

    for node in op.fgraph.toposort():
        found = _apply(node.op, [of(variable) for variable in node.inputs])
        ranges[node.outputs[0]] = _within_type(found, node.outputs[0])
    return of(op.fgraph.outputs[0])


def _within_type(found: Range | None, variable: Variable) -> Range | None:
    """Give the range if the variable's type can hold it: what it can't hold wraps."""
    dtype = np.dtype(getattr(variable.type, "dtype", "float64"))
    if found is None or dtype.kind not in "iu":
        return None
    limits = np.iinfo(dtype)
    return found if limits.min <= found.low and found.high <= limits.max else None
