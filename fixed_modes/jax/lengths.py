"""What is known about numbers that are computed from the length of an ``until`` loop's trace.

Aesara writes ``x[-1]`` as ``x[shape(x)[0] - 1]``, wrapped in comparisons that
decide for every length what NumPy would do.  The length is known only when the
function runs, but that it lies between two numbers is known before, and that
settles the comparisons.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Union

import numpy as np
from aesara.graph.basic import Apply, Constant, Variable
from aesara.scalar import basic as aes
from aesara.tensor.basic import ScalarFromTensor, TensorFromScalar
from aesara.tensor.elemwise import Elemwise
from aesara.tensor.shape import Shape_i

from fixed_modes.jax.frame import Frame, is_concrete
from fixed_modes.jax.padded import PaddedTrace


class Extent(NamedTuple):
    """The length of `trace` plus `offset`; the sum lies between `low` and `high`."""

    trace: PaddedTrace
    offset: int
    low: int
    high: int

    def plus(self, number: int) -> Extent:
        return Extent(self.trace, self.offset + number, self.low + number, self.high + number)


#: None: nothing is known.
Number = Union[int, bool, Extent, None]


def as_extent(variable: Variable, frame: Frame) -> Number:
    """Work out what an integer of the frame's graph is, as far as lengths go."""
    value = None if isinstance(variable, Constant) else frame.values.get(variable)
    if isinstance(variable, Constant) or is_concrete(value):
        return _integer(frame.value(variable))
    if variable.owner is None or variable in frame.inputs:
        return None
    return _of_node(variable.owner, frame)


def _integer(value: Any) -> int | None:
    array = np.asarray(value)
    return int(array.reshape(())) if array.size == 1 and array.dtype.kind in "iub" else None


def _of_node(node: Apply, frame: Frame) -> Number:
    op = node.op
    if isinstance(op, Shape_i):
        trace = frame.values.get(node.inputs[0])
        if not isinstance(trace, PaddedTrace) or op.i != 0:
            return None
        return Extent(trace, 0, trace.least, trace.buffer.shape[0])
    if isinstance(op, (ScalarFromTensor, TensorFromScalar)):
        return as_extent(node.inputs[0], frame)
    scalar_op = op.scalar_op if isinstance(op, Elemwise) else op
    if not isinstance(scalar_op, aes.ScalarOp) or node.outputs[0].type.ndim:
        return None
    return _apply(scalar_op, [as_extent(variable, frame) for variable in node.inputs])


def _apply(op: aes.ScalarOp, args: Sequence[Number]) -> Number:
    if isinstance(op, aes.Composite):
        return _apply_composite(op, args)
    if isinstance(op, aes.Switch):
        condition, *branches = args
        known = condition is not None and not isinstance(condition, Extent)
        return branches[0 if condition else 1] if known else None
    if any(arg is None for arg in args):
        return None
    if isinstance(op, aes.Add):
        return _sum(args)
    if isinstance(op, aes.Sub):
        return _difference(*args)
    if isinstance(op, aes.Identity) or (isinstance(op, aes.Cast) and op.o_type.dtype == "int64"):
        return args[0]
    if isinstance(op, (aes.LT, aes.GE, aes.GT, aes.LE)):
        return _compare(op, *args)
    if isinstance(op, (aes.ScalarMinimum, aes.ScalarMaximum)) and len(args) == 2:
        first_is_less = _compare(aes.le, *args)
        if first_is_less is None:
            return None
        return args[0] if first_is_less == isinstance(op, aes.ScalarMinimum) else args[1]
    return None


def _apply_composite(op: aes.Composite, args: Sequence[Number]) -> Number:
    values: dict[Variable, Number] = dict(zip(op.fgraph.inputs, args))

    def value(variable: Variable) -> Number:
        return _integer(variable.data) if isinstance(variable, Constant) else values[variable]

    for node in op.fgraph.toposort():
        values[node.outputs[0]] = _apply(node.op, [value(variable) for variable in node.inputs])
    return value(op.fgraph.outputs[0])


def _sum(args: Sequence[Any]) -> Number:
    extents = [arg for arg in args if isinstance(arg, Extent)]
    total = sum(int(arg) for arg in args if not isinstance(arg, Extent))
    if not extents:
        return total
    return extents[0].plus(total) if len(extents) == 1 else None


def _difference(first: Any, second: Any) -> Number:
    if not isinstance(second, Extent):
        return _sum([first, -int(second)])
    same = isinstance(first, Extent) and first.trace is second.trace
    return first.offset - second.offset if same else None


def _compare(op: aes.ScalarOp, first: Any, second: Any) -> bool | None:
    """Settle ``<``, ``<=``, ``>`` or ``>=`` by the sign of the difference."""
    if isinstance(op, (aes.GT, aes.LE)):
        first, second = second, first
    # Now it is ``first < second``, or its opposite ``first >= second``.
    opposite = isinstance(op, (aes.GE, aes.LE))
    both = _difference(first, second)
    if isinstance(both, int):
        is_less: bool | None = both < 0
    else:
        low, high = _range(first), _range(second)
        is_less = True if low[1] < high[0] else False if low[0] >= high[1] else None
    return None if is_less is None else is_less != opposite


def _range(number: Any) -> tuple[int, int]:
    if isinstance(number, Extent):
        return number.low, number.high
    return int(number), int(number)
