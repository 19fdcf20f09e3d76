"""Scalar ops as expressions; what a fused loop or a line of flat code is made of.

An expression gets operands that are names or literals of known dtypes and has
exactly the dtype that Aesara gives the result: operands are converted first
where Numba would compute in another type, and the result is converted where
Numba would widen it.  Integer division and the NaN rules of ``maximum`` follow
the C code of Aesara's ops.
"""

from __future__ import annotations

import math
from functools import singledispatch
from typing import Any, Callable

import aesara.scalar.basic as aes
import aesara.scalar.math as aes_math
import numpy as np
from aesara.graph.basic import Apply, Constant
from aesara.scalar.basic import ScalarOp
from aesara.tensor.math import MulWithoutZeros

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
        return Operand(f"np.{dtype}({self})", dtype)


def _number(value: Any, dtype: str) -> str:
    """Give the text of a constant in one of the dtypes that Python has numbers of."""
    converted = np.asarray(value).astype(dtype)[()]
    if not np.isfinite(converted):
        return "np.nan" if np.isnan(converted) else ("np.inf" if converted > 0 else "(-np.inf)")
    text = repr(converted.item())
    return f"({text})" if text.startswith("-") else text


def write_scalar_op(
    op: ScalarOp, node: Apply, operands: list[Operand], writer: Writer
) -> list[Operand]:
    """Write the statements of a scalar op.

    Parameters
    ----------
    op
        The scalar op; a `Composite` gives one statement for each op in it.
    node
        A node of `op`, or of an `Elemwise` with it, for the output dtypes.
    operands
        The inputs, scalars each.

    Raises
    ------
    NoExpression
        If the op, or an op inside, has no expression here.
    """
    dtypes = [out.type.dtype for out in node.outputs]
    if any(o.dtype == "float16" for o in operands) or "float16" in dtypes:
        raise NoExpression("float16")
    if isinstance(op, aes.Composite):
        return _write_composite(op, operands, writer)
    if len(dtypes) > 1:
        raise NoExpression(f"{op} has several outputs")
    text = expression(op, operands, dtypes[0], writer)
    name = writer.fresh(node.outputs[0].name or type(op).__name__.lower())
    writer.emit(f"{name} = {text}")
    return [Operand(name, dtypes[0])]


def _write_composite(op: aes.Composite, operands: list[Operand], writer: Writer) -> list[Operand]:
    values = dict(zip(op.fgraph.inputs, operands))

    def value(variable: object) -> Operand:
        if isinstance(variable, Constant):
            dtype = variable.type.dtype
            return Operand(writer.literal(np.asarray(variable.data, dtype)[()]), dtype)
        return values[variable]

    for inner in op.fgraph.toposort():
        arguments = [value(i) for i in inner.inputs]
        values.update(zip(inner.outputs, write_scalar_op(inner.op, inner, arguments, writer)))
    return [value(out) for out in op.fgraph.outputs]


@singledispatch
def expression(op: ScalarOp, x: list[Operand], dtype: str, writer: Writer) -> str:
    """Give an expression of `dtype` for the value of a scalar op.

    Checks that the value needs (a divisor that may be zero) are written first.
    """
    raise NoExpression(str(op))


def _register(*ops: type) -> Callable:
    def decorate(function: Callable) -> Callable:
        for op in ops:
            expression.register(op)(function)
        return function

    return decorate


def _closed(text: str, dtype: str) -> str:
    return text if dtype in _CLOSED else f"np.{dtype}({text})"


def _literal(value: float, dtype: str) -> str:
    return _closed(repr(value), dtype) if dtype != "float64" else repr(value)


# -- arithmetic -----------------------------------------------------------


@_register(aes.Add, aes.Mul, aes.Sub)
def _arithmetic(op: ScalarOp, x: list[Operand], dtype: str, writer: Writer) -> str:
    symbol = {aes.Add: "+", aes.Mul: "*", aes.Sub: "-"}[type(op)]
    if dtype == "bool":
        symbol = {"+": "|", "*": "&"}[symbol]
    return _closed(f" {symbol} ".join(v.to(dtype) for v in x), dtype)


@_register(aes.TrueDivide)
def _true_divide(op: ScalarOp, x: list[Operand], dtype: str, writer: Writer) -> str:
    return _closed(f"{x[0].to(dtype)} / {x[1].to(dtype)}", dtype)


@_register(aes.FloorDivide, aes.Mod)
def _floor_divide(op: ScalarOp, x: list[Operand], dtype: str, writer: Writer) -> str:
    a, b = (v.to(dtype) for v in x)
    is_mod = isinstance(op, aes.Mod)
    if np.dtype(dtype).kind == "f":
        if is_mod:
            return _closed(f"{a} % {b}", dtype)
        writer.globals["math"] = math
        same_sign = f"({a} < 0) == ({b} < 0) or {b} == 0"
        text = (
            f"np.floor({a} / {b}) if {same_sign} "
            f"else -np.floor({a} / -{b}) - (1.0 if np.fmod({a}, -{b}) != 0 else 0.0)"
        )
        return _closed(f"({text})", dtype)
    if np.dtype(dtype).kind not in "iu":
        raise NoExpression(f"{op} of {dtype}")
    what = "modulo" if is_mod else "division"
    with writer.block(f"if {x[1]} == 0:"):
        writer.emit_failure(ZeroDivisionError, _message(f"integer {what} by zero"))
    return _closed(f"{a} {'%' if is_mod else '//'} {b}", dtype)


def _message(text: str) -> Callable[..., str]:
    return lambda: text


@_register(aes.Pow)
def _pow(op: ScalarOp, x: list[Operand], dtype: str, writer: Writer) -> str:
    # In floating point also for integers, as in C; an integer exponent is
    # converted, since LLVM's power for those is missing for some widths.
    computed = dtype if np.dtype(dtype).kind in "fc" else "float64"
    text = f"{x[0].to(computed)} ** {x[1].to(computed)}"
    return text if dtype == computed == "float64" else f"np.{dtype}({text})"


@_register(aes.Neg)
def _neg(op: ScalarOp, x: list[Operand], dtype: str, writer: Writer) -> str:
    if np.dtype(dtype).kind == "u":  # Numba negates in a signed type
        return _closed(f"np.{dtype}(0) - {x[0].to(dtype)}", dtype)
    return _closed(f"-{x[0].to(dtype)}", dtype)


@_register(aes.Reciprocal)
def _reciprocal(op: ScalarOp, x: list[Operand], dtype: str, writer: Writer) -> str:
    return _closed(f"{_literal(1.0, dtype)} / {x[0].to(dtype)}", dtype)


@_register(aes.Sqr)
def _sqr(op: ScalarOp, x: list[Operand], dtype: str, writer: Writer) -> str:
    if dtype == "bool":
        return x[0]
    return _closed(f"{x[0].to(dtype)} * {x[0].to(dtype)}", dtype)


@_register(aes.Abs)
def _abs(op: ScalarOp, x: list[Operand], dtype: str, writer: Writer) -> str:
    return x[0] if x[0].kind in "bu" else _closed(f"abs({x[0]})", dtype)


@_register(aes.Sgn)
def _sgn(op: ScalarOp, x: list[Operand], dtype: str, writer: Writer) -> str:
    a = x[0].to(dtype)
    # a - a keeps a NaN and makes both zeros positive.
    return _closed(f"(1 if {a} > 0 else (-1 if {a} < 0 else {a} - {a}))", dtype)


@_register(MulWithoutZeros)
def _mul_without_zeros(op: ScalarOp, x: list[Operand], dtype: str, writer: Writer) -> str:
    a, b = (v.to(dtype) for v in x)
    return _closed(f"({b} if {a} == 0 else ({a} if {b} == 0 else {a} * {b}))", dtype)


# -- choices and comparisons ----------------------------------------------


@_register(aes.ScalarMaximum, aes.ScalarMinimum)
def _extremum(op: ScalarOp, x: list[Operand], dtype: str, writer: Writer) -> str:
    if np.dtype(dtype).kind == "c":
        raise NoExpression(f"{op} of complex values")
    sign = ">" if isinstance(op, aes.ScalarMaximum) else "<"
    result: str = x[0].to(dtype)
    for other in x[1:]:
        b = other.to(dtype)
        # Neither comparison holds when one is a NaN; their sum is one then.
        tail = f"({result} if {result} {sign}= {b} else {result} + {b})"
        result = (
            f"({b} if {b} {sign} {result} else {tail if np.dtype(dtype).kind == 'f' else result})"
        )
    return _closed(result, dtype)


@_register(aes.LT, aes.GT, aes.LE, aes.GE, aes.EQ, aes.NEQ)
def _compare(op: ScalarOp, x: list[Operand], dtype: str, writer: Writer) -> str:
    symbols = {aes.LT: "<", aes.GT: ">", aes.LE: "<=", aes.GE: ">=", aes.EQ: "==", aes.NEQ: "!="}
    a, b = x
    if "c" in a.kind + b.kind and not isinstance(op, (aes.EQ, aes.NEQ)):
        raise NoExpression(f"{op} of complex values")
    if {a.kind, b.kind} == {"f", "i"} or {a.kind, b.kind} == {"f", "u"}:
        common = str(np.result_type(a.dtype, b.dtype))
        a, b = a.to(common), b.to(common)
    return f"{a} {symbols[type(op)]} {b}"


@_register(aes.IsNan)
def _isnan(op: ScalarOp, x: list[Operand], dtype: str, writer: Writer) -> str:
    return f"{x[0]} != {x[0]}" if x[0].kind in "fc" else "False"


@_register(aes.IsInf)
def _isinf(op: ScalarOp, x: list[Operand], dtype: str, writer: Writer) -> str:
    if x[0].kind == "c":
        return f"abs({x[0]}.real) == np.inf or abs({x[0]}.imag) == np.inf"
    return f"abs({x[0]}) == np.inf" if x[0].kind == "f" else "False"


@_register(aes.InRange)
def _in_range(op: aes.InRange, x: list[Operand], dtype: str, writer: Writer) -> str:
    low = "<" if op.openlow else "<="
    high = "<" if op.openhi else "<="
    return f"{x[1]} {low} {x[0]} and {x[0]} {high} {x[2]}"


@_register(aes.Switch)
def _switch(op: ScalarOp, x: list[Operand], dtype: str, writer: Writer) -> str:
    return f"{x[1].to(dtype)} if {x[0].to('bool')} else {x[2].to(dtype)}"


@_register(aes.Clip)
def _clip(op: ScalarOp, x: list[Operand], dtype: str, writer: Writer) -> str:
    a, low, high = (v.to(dtype) for v in x)
    return f"{low} if {a} < {low} else ({high} if {a} > {high} else {a})"


@_register(aes.AND, aes.OR, aes.XOR)
def _bitwise(op: ScalarOp, x: list[Operand], dtype: str, writer: Writer) -> str:
    symbol = {aes.AND: "&", aes.OR: "|", aes.XOR: "^"}[type(op)]
    return _closed(f" {symbol} ".join(v.to(dtype) for v in x), dtype)


@_register(aes.Invert)
def _invert(op: ScalarOp, x: list[Operand], dtype: str, writer: Writer) -> str:
    return f"not {x[0]}" if dtype == "bool" else _closed(f"~{x[0].to(dtype)}", dtype)


# -- conversions ----------------------------------------------------------


@_register(aes.Cast, aes.Identity)
def _cast(op: ScalarOp, x: list[Operand], dtype: str, writer: Writer) -> str:
    return x[0].to(dtype)


@_register(aes.Second)
def _second(op: ScalarOp, x: list[Operand], dtype: str, writer: Writer) -> str:
    return x[1].to(dtype)


@_register(aes.Real, aes.Imag)
def _part(op: ScalarOp, x: list[Operand], dtype: str, writer: Writer) -> str:
    if x[0].kind == "c":
        return f"{x[0]}.{'real' if isinstance(op, aes.Real) else 'imag'}"
    return x[0].to(dtype) if isinstance(op, aes.Real) else Operand("0", "int64").to(dtype)


@_register(aes.Conj)
def _conj(op: ScalarOp, x: list[Operand], dtype: str, writer: Writer) -> str:
    return f"{x[0]}.conjugate()" if x[0].kind == "c" else x[0].to(dtype)


@_register(aes.Angle)
def _angle(op: ScalarOp, x: list[Operand], dtype: str, writer: Writer) -> str:
    writer.globals["math"] = math
    if x[0].kind == "c":
        return _closed(f"math.atan2({x[0]}.imag, {x[0]}.real)", dtype)
    return _closed(f"(np.pi if {x[0]} < 0 else 0.0)", dtype)


@_register(aes.Complex)
def _complex(op: ScalarOp, x: list[Operand], dtype: str, writer: Writer) -> str:
    return _closed(f"complex({x[0].to('float64')}, {x[1].to('float64')})", dtype)


@_register(aes.ComplexFromPolar)
def _complex_from_polar(op: ScalarOp, x: list[Operand], dtype: str, writer: Writer) -> str:
    writer.globals["math"] = math
    r, angle = (v.to("float64") for v in x)
    return _closed(f"complex({r} * math.cos({angle}), {r} * math.sin({angle}))", dtype)


# -- functions ------------------------------------------------------------

# The function of `math`, and NumPy's for complex values where there is one.
_FUNCTIONS: dict[type, tuple[str, str]] = {
    aes.Exp: ("math.exp", "np.exp"),
    aes.Expm1: ("math.expm1", ""),
    aes.Log: ("math.log", "np.log"),
    aes.Log2: ("np.log2", ""),
    aes.Log10: ("math.log10", "np.log10"),
    aes.Log1p: ("math.log1p", ""),
    aes.Sqrt: ("math.sqrt", "np.sqrt"),
    aes.Sin: ("math.sin", "np.sin"),
    aes.Cos: ("math.cos", "np.cos"),
    aes.Tan: ("math.tan", "np.tan"),
    aes.ArcSin: ("math.asin", "np.arcsin"),
    aes.ArcCos: ("math.acos", "np.arccos"),
    aes.ArcTan: ("math.atan", "np.arctan"),
    aes.Sinh: ("math.sinh", "np.sinh"),
    aes.Cosh: ("math.cosh", "np.cosh"),
    aes.Tanh: ("math.tanh", "np.tanh"),
    aes.ArcSinh: ("math.asinh", "np.arcsinh"),
    aes.ArcCosh: ("math.acosh", "np.arccosh"),
    aes.ArcTanh: ("math.atanh", "np.arctanh"),
    aes.Ceil: ("np.ceil", ""),
    aes.Floor: ("np.floor", ""),
    aes.Trunc: ("np.trunc", ""),
    aes.RoundHalfToEven: ("np.rint", ""),
    aes_math.Erf: ("math.erf", ""),
    aes_math.Erfc: ("math.erfc", ""),
    aes_math.Gamma: ("math.gamma", ""),
    aes_math.GammaLn: ("math.lgamma", ""),
}


@_register(*_FUNCTIONS)
def _function(op: ScalarOp, x: list[Operand], dtype: str, writer: Writer) -> str:
    real, of_complex = _FUNCTIONS[type(op)]
    kind = np.dtype(dtype).kind
    function = real if kind == "f" else of_complex
    if not function or kind not in "fc":
        raise NoExpression(f"{op} of {dtype}")
    writer.globals["math"] = math
    return _closed(f"{function}({x[0].to(dtype)})", dtype)


@_register(aes.ArcTan2)
def _arctan2(op: ScalarOp, x: list[Operand], dtype: str, writer: Writer) -> str:
    writer.globals["math"] = math
    return _closed(f"math.atan2({x[0].to(dtype)}, {x[1].to(dtype)})", dtype)


@_register(aes.Exp2)
def _exp2(op: ScalarOp, x: list[Operand], dtype: str, writer: Writer) -> str:
    return _closed(f"{_literal(2.0, dtype)} ** {x[0].to(dtype)}", dtype)


@_register(aes.Deg2Rad, aes.Rad2Deg)
def _degrees(op: ScalarOp, x: list[Operand], dtype: str, writer: Writer) -> str:
    factor = np.pi / 180 if isinstance(op, aes.Deg2Rad) else 180 / np.pi
    return _closed(f"{x[0].to(dtype)} * {_literal(float(factor), dtype)}", dtype)


@_register(aes.RoundHalfAwayFromZero)
def _round_away(op: ScalarOp, x: list[Operand], dtype: str, writer: Writer) -> str:
    writer.globals["math"] = math
    a = x[0].to(dtype)
    whole = f"np.trunc({a})"
    text = f"({whole} + math.copysign(1.0, {a}) if abs({a} - {whole}) >= 0.5 else {whole})"
    return _closed(text, dtype)


@_register(aes_math.Sigmoid)
def _sigmoid(op: ScalarOp, x: list[Operand], dtype: str, writer: Writer) -> str:
    writer.globals["math"] = math
    one = _literal(1.0, dtype)
    return _closed(f"{one} / ({one} + math.exp(-{x[0].to(dtype)}))", dtype)


# The limits between the forms of the next two are those of M. Maechler (2012),
# "Accurately computing log(1 - exp(-|a|))", as in Aesara's C code.


@_register(aes_math.Softplus)
def _softplus(op: ScalarOp, x: list[Operand], dtype: str, writer: Writer) -> str:
    writer.globals["math"] = math
    a = x[0].to(dtype)
    return _closed(
        f"(math.exp({a}) if {a} < -37.0 else (math.log1p(math.exp({a})) if {a} < 18.0 "
        f"else ({a} + math.exp(-{a}) if {a} < 33.3 else {a})))",
        dtype,
    )


@_register(aes_math.Log1mexp)
def _log1mexp(op: ScalarOp, x: list[Operand], dtype: str, writer: Writer) -> str:
    writer.globals["math"] = math
    a = x[0].to(dtype)
    limit = repr(math.log(0.5))
    return _closed(
        f"(math.log1p(-math.exp({a})) if {a} < {limit} else math.log(-math.expm1({a})))", dtype
    )
