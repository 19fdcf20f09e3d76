"""Arithmetic on traced arrays that is quick to trace.

An operator of a traced array calls `jax.numpy`, which traces and lowers a function for
each; an operator of `Lanes` is one operation of XLA's.
"""

from __future__ import annotations

from typing import Any, Callable, Union

import numpy as np
from jax import lax

Operand = Union["Lanes", float, int]


class Lanes:
    """An array; what it is combined with is a number, or of the same shape and dtype.

    Parameters
    ----------
    array
        The array.
    """

    __slots__ = ("array",)
    # Comparisons are elementwise.
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, array: Any) -> None:
        self.array = array

    def filled(self, number: float) -> Lanes:
        """Give as many copies of a number."""
        return Lanes(lax.broadcast(self.array.dtype.type(number), self.array.shape))

    def bits(self) -> Lanes:
        """Give the bits of double precision numbers, as integers."""
        return Lanes(lax.bitcast_convert_type(self.array, np.int64))

    def as_floats(self) -> Lanes:
        """Give the double precision numbers that have such bits."""
        return Lanes(lax.bitcast_convert_type(self.array, np.float64))

    def rounded(self) -> Lanes:
        """Give the nearest integers, of two the even one."""
        return Lanes(lax.round(self.array, lax.RoundingMethod.TO_NEAREST_EVEN))

    def magnitude(self) -> Lanes:
        """Give the absolute values."""
        return Lanes(lax.abs(self.array))

    def _with(self, function: Callable[..., Any], other: Operand, swap: bool = False) -> Lanes:
        other = (other if isinstance(other, Lanes) else self.filled(other)).array
        return Lanes(function(other, self.array) if swap else function(self.array, other))

    def __add__(self, other: Operand) -> Lanes:
        return self._with(lax.add, other)

    def __radd__(self, other: Operand) -> Lanes:
        return self._with(lax.add, other, swap=True)

    def __sub__(self, other: Operand) -> Lanes:
        return self._with(lax.sub, other)

    def __rsub__(self, other: Operand) -> Lanes:
        return self._with(lax.sub, other, swap=True)

    def __mul__(self, other: Operand) -> Lanes:
        return self._with(lax.mul, other)

    def __rmul__(self, other: Operand) -> Lanes:
        return self._with(lax.mul, other, swap=True)

    def __truediv__(self, other: Operand) -> Lanes:
        return self._with(lax.div, other)

    def __rtruediv__(self, other: Operand) -> Lanes:
        return self._with(lax.div, other, swap=True)

    def __neg__(self) -> Lanes:
        return Lanes(lax.neg(self.array))

    def __and__(self, other: Operand) -> Lanes:
        return self._with(lax.bitwise_and, other)

    def __or__(self, other: Operand) -> Lanes:
        return self._with(lax.bitwise_or, other)

    def __xor__(self, other: Operand) -> Lanes:
        return self._with(lax.bitwise_xor, other)

    def __lshift__(self, other: Operand) -> Lanes:
        return self._with(lax.shift_left, other)

    def __rshift__(self, other: Operand) -> Lanes:
        return self._with(lax.shift_right_arithmetic, other)

    def __lt__(self, other: Operand) -> Lanes:
        return self._with(lax.lt, other)

    def __gt__(self, other: Operand) -> Lanes:
        return self._with(lax.gt, other)

    def __ge__(self, other: Operand) -> Lanes:
        return self._with(lax.ge, other)

    def __eq__(self, other: Operand) -> Lanes:  # type: ignore[override]
        return self._with(lax.eq, other)


def select(condition: Lanes, value: Operand, other: Operand) -> Lanes:
    """Choose one of two values, of which one at least is no number."""
    if not isinstance(value, Lanes):
        assert isinstance(other, Lanes)
        value = other.filled(value)
    elif not isinstance(other, Lanes):
        other = value.filled(other)
    return Lanes(lax.select(condition.array, value.array, other.array))
