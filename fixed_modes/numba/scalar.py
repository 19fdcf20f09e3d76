"""Scalar ops as expressions; what a fused loop or a line of flat code is made of.

Integer division and the NaN rules of ``maximum`` follow the C code of Aesara's ops.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence

import aesara.scalar.basic as aes
import numpy as np
from aesara.graph.basic import Apply, Constant, Variable
from aesara.scalar.basic import ScalarOp
from aesara.tensor.math import MulWithoutZeros

from fixed_modes.numba import scalar_functions  # noqa: F401 (registers its expressions)
from fixed_modes.numba.scalar_base import (
    NoExpression,
    Operand,
    closed,
    converted,
    expression,
    literal,
    message,
    refuse_complex,
    register,
)
from fixed_modes.numba.writer import Writer

# The names that Aesara gives inside a `Composite` are others in each process.
_NUMBERED = re.compile(r"t\d+")

__all__ = ["NoExpression", "Operand", "expression", "write_scalar_nodes", "write_scalar_op"]


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
    hint = node.outputs[0].name
    if hint is None or _NUMBERED.fullmatch(hint):
        hint = type(op).__name__.lower()
    name = writer.fresh(hint)
    writer.emit(f"{name} = {text}")
    return [Operand(name, dtypes[0])]


def _write_composite(op: aes.Composite, operands: list[Operand], writer: Writer) -> list[Operand]:
    graph = op.fgraph
    values = dict(zip(graph.inputs, operands))
    return write_scalar_nodes(graph.toposort(), values, graph.outputs, writer)


def write_scalar_nodes(
    nodes: Iterable[Apply],
    values: dict[Variable, Operand],
    wanted: Sequence[Variable],
    writer: Writer,
) -> list[Operand]:
    """Write the statements of some scalar nodes, in order, and give the `wanted` results.

    Parameters
    ----------
    values
        What the variables are that no constant and none of the nodes gives; the
        results are added.
    """

    def value(variable: Variable) -> Operand:
        if isinstance(variable, Constant):
            dtype = variable.type.dtype
            return Operand(writer.literal(np.asarray(variable.data, dtype)[()]), dtype)
        return values[variable]

    for node in nodes:
        arguments = [value(i) for i in node.inputs]
        values.update(zip(node.outputs, write_scalar_op(node.op, node, arguments, writer)))
    return [value(variable) for variable in wanted]


# -- arithmetic -----------------------------------------------------------


@register(aes.Add, aes.Mul, aes.Sub)
def _arithmetic(op: ScalarOp, x: list[Operand], dtype: str, writer: Writer) -> str:
    symbol = {aes.Add: "+", aes.Mul: "*", aes.Sub: "-"}[type(op)]
    if dtype == "bool":
        symbol = {"+": "|", "*": "&"}[symbol]
    return closed(f" {symbol} ".join(v.to(dtype) for v in x), dtype)


@register(aes.TrueDivide)
def _true_divide(op: ScalarOp, x: list[Operand], dtype: str, writer: Writer) -> str:
    return closed(f"{x[0].to(dtype)} / {x[1].to(dtype)}", dtype)


@register(aes.FloorDivide, aes.Mod)
def _floor_divide(op: ScalarOp, x: list[Operand], dtype: str, writer: Writer) -> str:
    a, b = (v.to(dtype) for v in x)
    is_mod = isinstance(op, aes.Mod)
    if np.dtype(dtype).kind == "f":
        if is_mod:
            return closed(f"{a} % {b}", dtype)
        writer.globals["math"] = math
        same_sign = f"({a} < 0) == ({b} < 0) or {b} == 0"
        text = (
            f"np.floor({a} / {b}) if {same_sign} "
            f"else -np.floor({a} / -{b}) - (1.0 if np.fmod({a}, -{b}) != 0 else 0.0)"
        )
        return closed(f"({text})", dtype)
    if np.dtype(dtype).kind not in "iu":
        raise NoExpression(f"{op} of {dtype}")
    what = "modulo" if is_mod else "division"
    with writer.block(f"if {x[1]} == 0:"):
        writer.emit_failure(ZeroDivisionError, message(f"integer {what} by zero"))
    if not is_mod and dtype == "int64" and x[1].value in (None, -1):
        # The least integer over -1 is itself, as in NumPy; Numba has 0.
        return f"(-{a} if {b} == -1 else {a} // {b})"
    return closed(f"{a} {'%' if is_mod else '//'} {b}", dtype)


@register(aes.Pow)
def _pow(op: ScalarOp, x: list[Operand], dtype: str, writer: Writer) -> str:
    # In floating point also for integers, as in C; an integer exponent is
    # converted, since LLVM's power for those is missing for some widths.
    computed = dtype if np.dtype(dtype).kind in "fc" else "float64"
    if dtype == computed == "float64" and x[1].value is not None and abs(x[1].value) == 1.5:
        return _power_of_one_and_a_half(x[0].to(dtype), x[1].value < 0, writer)
    text = f"{x[0].to(computed)} ** {x[1].to(computed)}"
    return (
        text if dtype == computed == "float64" else converted(text, np.dtype(computed).kind, dtype)
    )


def _power_of_one_and_a_half(base: Operand, is_inverse: bool, writer: Writer) -> str:
    """Write a root and a product, which are vector code where a power is a call."""
    name = writer.fresh("base")
    writer.emit(f"{name} = {f'1.0 / {base}' if is_inverse else base}")
    writer.globals["math"] = math
    # The power of minus infinity is infinity.
    return f"(np.inf if {name} == -np.inf else {name} * math.sqrt({name}))"


@register(aes.Neg)
def _neg(op: ScalarOp, x: list[Operand], dtype: str, writer: Writer) -> str:
    if np.dtype(dtype).kind == "u":  # Numba negates in a signed type
        return closed(f"np.{dtype}(0) - {x[0].to(dtype)}", dtype)
    return closed(f"-{x[0].to(dtype)}", dtype)


@register(aes.Reciprocal)
def _reciprocal(op: ScalarOp, x: list[Operand], dtype: str, writer: Writer) -> str:
    return closed(f"{literal(1.0, dtype)} / {x[0].to(dtype)}", dtype)


@register(aes.Sqr)
def _sqr(op: ScalarOp, x: list[Operand], dtype: str, writer: Writer) -> str:
    if dtype == "bool":
        return x[0]
    return closed(f"{x[0].to(dtype)} * {x[0].to(dtype)}", dtype)


@register(aes.Abs)
def _abs(op: ScalarOp, x: list[Operand], dtype: str, writer: Writer) -> str:
    return x[0] if x[0].kind in "bu" else closed(f"abs({x[0]})", dtype)


@register(aes.Sgn)
def _sgn(op: ScalarOp, x: list[Operand], dtype: str, writer: Writer) -> str:
    refuse_complex(op, x)
    a = x[0].to(dtype)
    # a - a keeps a NaN and makes both zeros positive.
    return closed(f"(1 if {a} > 0 else (-1 if {a} < 0 else {a} - {a}))", dtype)


@register(MulWithoutZeros)
def _mul_without_zeros(op: ScalarOp, x: list[Operand], dtype: str, writer: Writer) -> str:
    a, b = (v.to(dtype) for v in x)
    return closed(f"({b} if {a} == 0 else ({a} if {b} == 0 else {a} * {b}))", dtype)


# -- choices and comparisons ----------------------------------------------


@register(aes.ScalarMaximum, aes.ScalarMinimum)
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
    return closed(result, dtype)


@register(aes.LT, aes.GT, aes.LE, aes.GE, aes.EQ, aes.NEQ)
def _compare(op: ScalarOp, x: list[Operand], dtype: str, writer: Writer) -> str:
    symbols = {aes.LT: "<", aes.GT: ">", aes.LE: "<=", aes.GE: ">=", aes.EQ: "==", aes.NEQ: "!="}
    a, b = x
    if "c" in a.kind + b.kind and not isinstance(op, (aes.EQ, aes.NEQ)):
        raise NoExpression(f"{op} of complex values")
    if {a.kind, b.kind} == {"f", "i"} or {a.kind, b.kind} == {"f", "u"}:
        common = str(np.result_type(a.dtype, b.dtype))
        a, b = a.to(common), b.to(common)
    return f"{a} {symbols[type(op)]} {b}"


@register(aes.IsNan)
def _isnan(op: ScalarOp, x: list[Operand], dtype: str, writer: Writer) -> str:
    return f"{x[0]} != {x[0]}" if x[0].kind in "fc" else "False"


@register(aes.IsInf)
def _isinf(op: ScalarOp, x: list[Operand], dtype: str, writer: Writer) -> str:
    if x[0].kind == "c":
        return f"abs({x[0]}.real) == np.inf or abs({x[0]}.imag) == np.inf"
    return f"abs({x[0]}) == np.inf" if x[0].kind == "f" else "False"


@register(aes.InRange)
def _in_range(op: aes.InRange, x: list[Operand], dtype: str, writer: Writer) -> str:
    refuse_complex(op, x)
    low = "<" if op.openlow else "<="
    high = "<" if op.openhi else "<="
    return f"{x[1]} {low} {x[0]} and {x[0]} {high} {x[2]}"


@register(aes.Switch)
def _switch(op: ScalarOp, x: list[Operand], dtype: str, writer: Writer) -> str:
    return f"{x[1].to(dtype)} if {x[0].to('bool')} else {x[2].to(dtype)}"


@register(aes.Clip)
def _clip(op: ScalarOp, x: list[Operand], dtype: str, writer: Writer) -> str:
    refuse_complex(op, x)
    a, low, high = (v.to(dtype) for v in x)
    return f"{low} if {a} < {low} else ({high} if {a} > {high} else {a})"


@register(aes.AND, aes.OR, aes.XOR)
def _bitwise(op: ScalarOp, x: list[Operand], dtype: str, writer: Writer) -> str:
    symbol = {aes.AND: "&", aes.OR: "|", aes.XOR: "^"}[type(op)]
    return closed(f" {symbol} ".join(v.to(dtype) for v in x), dtype)


@register(aes.Invert)
def _invert(op: ScalarOp, x: list[Operand], dtype: str, writer: Writer) -> str:
    return f"not {x[0]}" if dtype == "bool" else closed(f"~{x[0].to(dtype)}", dtype)


# -- conversions ----------------------------------------------------------


@register(aes.Cast, aes.Identity)
def _cast(op: ScalarOp, x: list[Operand], dtype: str, writer: Writer) -> str:
    return x[0].to(dtype)


@register(aes.Second)
def _second(op: ScalarOp, x: list[Operand], dtype: str, writer: Writer) -> str:
    return x[1].to(dtype)


@register(aes.Real, aes.Imag)
def _part(op: ScalarOp, x: list[Operand], dtype: str, writer: Writer) -> str:
    if x[0].kind == "c":
        return f"{x[0]}.{'real' if isinstance(op, aes.Real) else 'imag'}"
    return x[0].to(dtype) if isinstance(op, aes.Real) else Operand("0", "int64").to(dtype)


@register(aes.Conj)
def _conj(op: ScalarOp, x: list[Operand], dtype: str, writer: Writer) -> str:
    return f"{x[0]}.conjugate()" if x[0].kind == "c" else x[0].to(dtype)


@register(aes.Angle)
def _angle(op: ScalarOp, x: list[Operand], dtype: str, writer: Writer) -> str:
    writer.globals["math"] = math
    if x[0].kind == "c":
        return closed(f"math.atan2({x[0]}.imag, {x[0]}.real)", dtype)
    # Also pi for -0.0, and NaN for NaN.
    return closed(f"math.atan2(0.0, {x[0].to('float64')})", dtype)


@register(aes.Complex)
def _complex(op: ScalarOp, x: list[Operand], dtype: str, writer: Writer) -> str:
    return closed(f"complex({x[0].to('float64')}, {x[1].to('float64')})", dtype)


@register(aes.ComplexFromPolar)
def _complex_from_polar(op: ScalarOp, x: list[Operand], dtype: str, writer: Writer) -> str:
    writer.globals["math"] = math
    r, angle = (v.to("float64") for v in x)
    with writer.block(f"if {r} < 0:"):
        writer.emit_failure(ValueError, message("polar radius must be non-negative"))
    return closed(f"complex({r} * math.cos({angle}), {r} * math.sin({angle}))", dtype)
