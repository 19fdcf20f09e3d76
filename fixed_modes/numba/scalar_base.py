"""What the expressions of scalar ops are made with.

An expression gets operands that are names or literals of known dtypes and has
exactly the dtype that Aesara gives the result: operands are converted first
where Numba would compute in another type, and the result is converted where
Numba would widen it.
"""

from __future__ import annotations

from functools import singledispatch
from typing import Any, Callable

import numpy as np
from aesara.scalar.basic import ScalarOp

from fixed_modes.numba.writer import Writer

# What Numba computes with operands of these dtypes has that same dtype.
_CLOSED = ("float64", "int64", "bool", "complex128")


class NoExpression(NotImplementedError):
    """There is no expression for a scalar op with these dtypes."""


class Operand(str):
    """A name or literal, with the dtype of its value."""

    dtype: str
    value: Any

    def __new__(cls, text: str, dtype: str) -> Operand:
        operand = super().__new__(cls, text)
        operand.dtype = dtype
        # Known for a constant only.
        operand.value = getattr(text, "value", None)
        return operand

    @property
    def kind(self) -> str:
        """One of NumPy's letters for kinds of dtypes: b, i, u, f or c."""
        return np.dtype(self.dtype).kind

    def to(self, dtype: str) -> Operand:
        """Give an expression for this value converted to `dtype`."""
        if dtype == self.dtype:
            return self
        if self.value is not None and dtype in ("float64", "int64", "bool") and self.kind != "c":
            return Operand(_number(self.value, dtype), dtype)
        if dtype == "bool":
            return Operand(f"({self} != 0)", dtype)
        if self.kind == "c" and np.dtype(dtype).kind != "c":
            raise NoExpression("a complex value can't become real")
        return Operand(converted(self, self.kind, dtype), dtype)


def converted(text: str, kind: str, dtype: str) -> str:
    """Give the conversion of a value of a kind of dtypes to `dtype`.

    A negative or large number becomes an unsigned integer as in C on common
    processors, where LLVM leaves it open: modulo the range of the integer.
    """
    if kind == "f" and dtype in ("uint8", "uint16", "uint32"):
        return f"np.{dtype}(np.int64({text}))"
    return f"np.{dtype}({text})"


def _number(value: Any, dtype: str) -> str:
    """Give the text of a constant in one of the dtypes that Python has numbers of."""
    converted = np.asarray(value).astype(dtype)[()]
    if not np.isfinite(converted):
        return "np.nan" if np.isnan(converted) else ("np.inf" if converted > 0 else "(-np.inf)")
    text = repr(converted.item())
    return f"({text})" if text.startswith("-") else text


@singledispatch
def expression(op: ScalarOp, x: list[Operand], dtype: str, writer: Writer) -> str:
    """Give an expression of `dtype` for the value of a scalar op.

    Checks that the value needs (a divisor that may be zero) are written first.
    """
    raise NoExpression(str(op))


def register(*ops: type) -> Callable:
    """Register an expression for scalar ops."""

    def decorate(function: Callable) -> Callable:
        for op in ops:
            expression.register(op)(function)
        return function

    return decorate


def closed(text: str, dtype: str) -> str:
    """Convert what Numba computes for operands of `dtype` back to it."""
    return text if dtype in _CLOSED else f"np.{dtype}({text})"


def literal(value: float, dtype: str) -> str:
    """Give the text of a number of `dtype`."""
    return closed(repr(value), dtype) if dtype != "float64" else repr(value)


def message(text: str) -> Callable[..., str]:
    """Give a builder of a message without numbers."""
    return lambda: text


def refuse_complex(op: ScalarOp, x: list[Operand]) -> None:
    """Leave complex values to the op itself, where NumPy orders them."""
    if any(v.kind == "c" for v in x):
        raise NoExpression(f"{op} of complex values")
