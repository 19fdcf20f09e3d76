"""Between which two numbers an integer lies, as far as that is known while tracing.

The rows of ``arange(n)`` that a loop goes over, and what it adds to them, are not
known while the loop is traced, but that they stay within an array is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from aesara.graph.basic import Apply, Constant, Variable
from aesara.raise_op import CheckAndRaise
from aesara.scalar import basic as aes
from aesara.tensor.basic import (
    Alloc,
    Join,
    MakeVector,
    ScalarFromTensor,
    TensorFromScalar,
)
from aesara.tensor.elemwise import DimShuffle, Elemwise
from aesara.tensor.math import Argmax, MaxAndArgmax
from aesara.tensor.random import basic as aer
from aesara.tensor.random.op import RandomVariable
from aesara.tensor.shape import Reshape, Shape_i, SpecifyShape, Unbroadcast
from aesara.tensor.sort import ArgSortOp
from aesara.tensor.subtensor import AdvancedSubtensor, AdvancedSubtensor1, Subtensor

from fixed_modes.jax.frame import Frame, is_concrete
from fixed_modes.jax.ragged import Ragged

#: Ops that only choose, move or repeat entries of their first input.
_MOVES = (
    CheckAndRaise,
    AdvancedSubtensor,
    AdvancedSubtensor1,
    Alloc,
    DimShuffle,
    Reshape,
    ScalarFromTensor,
    SpecifyShape,
    Subtensor,
    TensorFromScalar,
    Unbroadcast,
)


class Range(NamedTuple):
    """All entries are at least `low` and at most `high`."""

    low: int
    high: int


def value_range(variable: Variable, frame: Frame) -> Range | None:
    """Find out between which numbers the entries of an integer variable lie.

    Returns
    -------
    What the dtype holds if nothing else is known; None if it is no dtype of integers.
    """
    return _Search().of(variable, frame)


class _Search:
    """Goes back from a variable; each one on the way is looked at once."""

    def __init__(self) -> None:
        self.found: dict[tuple[int, Variable], Range | None] = {}

    def of(self, variable: Variable, frame: Frame) -> Range | None:
        key = (id(frame), variable)
        if key not in self.found:
            self.found[key] = _within_type(self._look(variable, frame), variable)
        return self.found[key]

    def _look(self, variable: Variable, frame: Frame) -> Range | None:
        value = frame.values.get(variable)
        if isinstance(variable, Constant) or is_concrete(value):
            return _of_array(frame.value(variable))
        if variable in frame.origins and frame.outer is not None:
            return self.of(frame.origins[variable], frame.outer)
        if variable.owner is None or variable in frame.inputs:
            return None
        return self._of_node(variable.owner, variable, frame)

    def _of_node(self, node: Apply, variable: Variable, frame: Frame) -> Range | None:
        op, inputs = node.op, node.inputs
        if isinstance(op, _MOVES):
            return self.of(inputs[0], frame)
        if isinstance(op, Shape_i):
            array = frame.values.get(inputs[0])
            return Range(0, array.data.shape[op.i]) if isinstance(array, Ragged) else None
        if isinstance(op, (Join, MakeVector)):
            parts = inputs[1:] if isinstance(op, Join) else inputs
            return _union(self.of(part, frame) for part in parts)
        if isinstance(op, (Argmax, ArgSortOp)) or (
            isinstance(op, MaxAndArgmax) and variable is node.outputs[1]
        ):
            size = int(np.prod(getattr(frame.values.get(inputs[0]), "shape", (0,))))
            return Range(0, size - 1) if size else None
        if isinstance(op, RandomVariable) and variable is node.outputs[1]:
            return _of_draws(op, [self.of(v, frame) for v in inputs[3:]], inputs[3:], frame)
        scalar_op = op.scalar_op if isinstance(op, Elemwise) else op
        if not isinstance(scalar_op, aes.ScalarOp):
            return None
        return _apply(scalar_op, [self.of(v, frame) for v in inputs])


def _of_array(value: Any) -> Range | None:
    array = np.asarray(value)
    if array.dtype.kind not in "iub" or not array.size:
        return None
    return Range(int(array.min()), int(array.max()))


def _of_draws(
    op: RandomVariable, args: Sequence[Range | None], parameters: Sequence[Variable], frame: Frame
) -> Range | None:
    if isinstance(op, aer.BernoulliRV):
        return Range(0, 1)
    if isinstance(op, aer.CategoricalRV):
        shape = getattr(frame.values.get(parameters[0]), "shape", None)
        return Range(0, shape[-1] - 1) if shape and shape[-1] else None
    if isinstance(op, (aer.IntegersRV, aer.RandIntRV)) and len(args) == 2 and None not in args:
        low, high = args
        # Other limits are refused.
        return Range(low.low, high.high - 1) if low.low < high.high else None  # type: ignore[union-attr]
    return None


def _union(parts: Iterable[Range | None]) -> Range | None:
    known = list(parts)
    if not known or None in known:
        return None
    return Range(min(r.low for r in known if r), max(r.high for r in known if r))


def _apply(op: aes.ScalarOp, args: Sequence[Range | None]) -> Range | None:
    if isinstance(op, aes.Composite):
        return _apply_composite(op, args)
    if isinstance(op, aes.Switch):
        return _union(args[1:])
    if isinstance(op, aes.Sgn):
        return Range(-1, 1)
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
    if isinstance(op, aes.Abs):
        return _magnitude(first)
    if isinstance(op, aes.Sqr):
        least, most = _magnitude(first)
        return Range(least**2, most**2)
    if isinstance(op, aes.Mul):
        for other in others:
            corners = [a * b for a in first for b in other]
            first = Range(min(corners), max(corners))
        return first
    if isinstance(op, aes.Mod):
        return _modulo(first, others[0])
    if isinstance(op, aes.FloorDivide) and others[0].low > 0:
        corners = [a // b for a in first for b in others[0]]
        return Range(min(corners), max(corners))
    if isinstance(op, aes.ScalarMinimum):
        return Range(min(r.low for r in known), min(r.high for r in known))
    if isinstance(op, aes.ScalarMaximum):
        return Range(max(r.low for r in known), max(r.high for r in known))
    if isinstance(op, aes.Clip):
        low, high = others
        # The lower bound wins where the bounds are crossed.
        inside = Range(min(first.low, high.low), min(first.high, high.high))
        return Range(max(inside.low, low.low), max(inside.high, low.high))
    if isinstance(op, aes.AND):
        masks = [r.high for r in known if r.low >= 0]
        return Range(0, min(masks)) if masks else None
    return None


def _magnitude(arg: Range) -> Range:
    sizes = abs(arg.low), abs(arg.high)
    return Range(0 if arg.low <= 0 <= arg.high else min(sizes), max(sizes))


def _modulo(arg: Range, divisor: Range) -> Range | None:
    # The sign is that of the divisor.
    if divisor.low > 0:
        if arg.low >= 0 and arg.high < divisor.low:
            return arg
        return Range(0, min(arg.high, divisor.high - 1) if arg.low >= 0 else divisor.high - 1)
    return Range(divisor.low + 1, 0) if divisor.high < 0 else None


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
    dtype = np.dtype(getattr(variable.type, "dtype", None) or "float64")
    if dtype.kind not in "iub":
        return None
    limits = Range(0, 1)
    if dtype.kind != "b":
        limits = Range(int(np.iinfo(dtype).min), int(np.iinfo(dtype).max))
    fits = found is not None and limits.low <= found.low and found.high <= limits.high
    return found if fits else limits
