"""Scalar ops, applied to whole arrays.

``scalar_lower(op, node, values)`` computes the single output of a scalar op on
arrays that broadcast.  Operands are first brought to the output's dtype where
NumPy would do the same, since JAX promotes differently (int64 with float32
gives float32 there, float64 here).
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from functools import singledispatch
from typing import Any, Callable

import jax
import jax.numpy as jnp
import jax.scipy.special as jsp
import numpy as np
from aesara.graph.basic import Apply
from aesara.scalar import basic as aes
from aesara.scalar import math as aesm
from aesara.tensor.xlogx import XlogX, XlogY0

from fixed_modes.jax import elementary
from fixed_modes.jax.fallback import scalar_in_python
from fixed_modes.jax.frame import Frame, is_concrete
from fixed_modes.jax.late import load_conversions_for


@singledispatch
def scalar_lower(op: aes.ScalarOp, node: Apply, values: Sequence[Any]) -> Any:
    """Compute a scalar op elementwise; the caller casts the result.

    Raises
    ------
    NotImplementedError
        If there is no conversion.
    """
    if load_conversions_for(op):
        return scalar_lower(op, node, values)
    raise NotImplementedError(f"No JAX conversion for the scalar op {op}")


def out_dtype(node: Apply) -> np.dtype[Any]:
    return np.dtype(node.outputs[0].type.dtype)


def as_dtype(value: Any, dtype: Any) -> Any:
    """Cast as NumPy casts: a complex number loses its imaginary part silently."""
    value = jnp.asarray(value)
    if value.dtype.kind == "c" and np.dtype(dtype).kind != "c":
        value = value.real
    if value.dtype.kind == "f" and np.dtype(dtype).kind in "iu":
        return _truncated(value, np.dtype(dtype))
    if value.dtype.kind == "b" and np.dtype(dtype).kind in "fc":
        # XLA makes a choice between y and 0 of the product of a boolean and y, even where
        # y is infinite or NaN; of the product of an integer it doesn't.
        value = value.astype("int8")
    return value.astype(dtype)


def _truncated(value: Any, dtype: np.dtype[Any]) -> Any:
    """Cut off the fraction as the C code does where the result is not in range.

    JAX gives the nearest integer of the dtype there, and 0 for NaN.  Compiled C code goes
    through int32 or int64, takes the lowest number of these for what they don't have, and
    the last bits of that: 300.0 is 44 as int8, and -1.0 is 255 as uint8.
    """
    if dtype == np.uint64:
        wrapped = _truncated(value, np.dtype("int64")).astype(dtype)
        return jnp.where((value >= 0) & (value < 2.0**64), value.astype(dtype), wrapped)
    wide = np.dtype("int64" if dtype.itemsize == 8 or dtype == np.uint32 else "int32")
    lowest = np.iinfo(wide).min
    # The bounds are exact in float32 too; a float64 may have a fraction below the lower one.
    is_in_range = (value < -float(lowest)) & (jnp.trunc(value) >= float(lowest))
    return jnp.where(is_in_range, value.astype(wide), lowest).astype(dtype)


def _register_in_output_dtype(op_class: type, function: Callable[..., Any]) -> None:
    """Register a function whose operands are cast to the output's dtype first."""

    @scalar_lower.register(op_class)
    def lower(op: Any, node: Apply, values: Sequence[Any]) -> Any:
        return function(*(as_dtype(value, out_dtype(node)) for value in values))


def _register_in_common_dtype(op_class: type, function: Callable[..., Any]) -> None:
    """Register a function whose operands are cast to the dtype NumPy finds for them."""

    @scalar_lower.register(op_class)
    def lower(op: Any, node: Apply, values: Sequence[Any]) -> Any:
        common = np.result_type(*(variable.type.dtype for variable in node.inputs))
        return function(*(as_dtype(value, common) for value in values))


def _sum(*terms: Any) -> Any:
    if terms and terms[0].dtype == bool:
        return functools.reduce(jnp.logical_or, terms)
    return functools.reduce(jnp.add, terms) if terms else jnp.zeros(())


def _product(*factors: Any) -> Any:
    if factors and factors[0].dtype == bool:
        return functools.reduce(jnp.logical_and, factors)
    return functools.reduce(jnp.multiply, factors) if factors else jnp.ones(())


def _real_or(function: Callable[[Any], Any], of_complex: Callable[[Any], Any]) -> Any:
    def choose(x: Any) -> Any:
        x = jnp.asarray(x)
        return (of_complex if x.dtype.kind == "c" else function)(x)

    return choose


def _round_half_away(x: Any) -> Any:
    return jnp.where(x >= 0, jnp.floor(x + 0.5), jnp.ceil(x - 0.5))


def _softplus(x: Any) -> Any:
    # The limits are those of Aesara, for equal results in both modes.
    small = elementary.exp(jnp.minimum(x, 18.0))
    middle = elementary.log1p(small)
    upper = jnp.where(x < 33.3, x + elementary.exp(-x), x)
    return jnp.where(x < -37.0, small, jnp.where(x < 18.0, middle, upper))


def _log1mexp(x: Any) -> Any:
    return jnp.where(x < np.log(0.5), jnp.log1p(-jnp.exp(x)), jnp.log(-jnp.expm1(x)))


def _gamma(x: Any) -> Any:
    # Older versions of JAX have no `gamma`.  Left of zero the sign alternates.
    magnitude = jnp.exp(jsp.gammaln(x))
    negative = (x < 0) & (jnp.mod(jnp.floor(x), 2) != 0)
    at_pole = (x < 0) & (x == jnp.floor(x))
    return jnp.where(at_pole, jnp.nan, jnp.where(negative, -magnitude, magnitude))


def _trigamma(x: Any) -> Any:
    # Not `polygamma`, which older versions of JAX compute to seven digits only.
    # The recurrence leads to where the asymptotic series has full precision.
    reflected = jnp.where(x < 0, 1 - x, x)
    large = reflected + 10
    square = 1 / (large * large)
    series = 1 / 42 - square * (1 / 30 - square * (5 / 66 - square * 691 / 2730))
    series = 1 + square * (1 / 6 - square * (1 / 30 - square * series))
    total = series / large + square / 2
    for step in range(10):
        total += 1 / (reflected + step) ** 2
    return jnp.where(x < 0, (np.pi / jnp.sin(np.pi * x)) ** 2 - total, total)


def _erfcx(x: Any) -> Any:
    # Beyond 25 `erfc` loses its digits, and three terms of its series are exact.
    small = jnp.minimum(x, 25.0)
    large = jnp.maximum(x, 25.0)
    inverse_square = 1.0 / (large * large)
    series = 1.0 - 0.5 * inverse_square * (1.0 - 1.5 * inverse_square * (1 - 2.5 * inverse_square))
    return jnp.where(
        x < 25.0,
        jnp.exp(small * small) * jsp.erfc(small),
        series / (large * np.sqrt(np.pi)),
    )


def _gammainc_slope(k: Any, x: Any) -> Any:
    return jax.lax.igamma_grad_a(*jnp.broadcast_arrays(k, x))


def _x_log_y(x: Any, y: Any) -> Any:
    return jnp.where(x == 0, 0, x * elementary.log(jnp.where(x == 0, 1, y)))


def _floor_divide(x: Any, y: Any) -> Any:
    if x.dtype.kind != "f":
        return jnp.floor_divide(x, y)
    # As in Aesara's C code; `jnp.floor_divide` gives nan for a division by zero.
    ratio = x / y
    opposite = ((x < 0) != (y < 0)) & (y != 0)
    return jnp.where(opposite, jnp.ceil(ratio) - (jnp.fmod(x, y) != 0), jnp.floor(ratio))


def _power(x: Any, y: Any) -> Any:
    if x.dtype.kind not in "iu":
        return jnp.power(x, y)
    # As in Aesara's C code, which computes in float64 and cuts off: 2 to the -1 is 0.
    inverse = jnp.where(x == 1, 1, jnp.where(x == -1, jnp.where(y % 2 == 0, 1, -1), 0))
    inverse = jnp.where(x == 0, as_dtype(np.inf, x.dtype), inverse)
    return jnp.where(y < 0, inverse.astype(x.dtype), jnp.power(x, jnp.maximum(y, 0)))


_IN_OUTPUT_DTYPE: dict[type, Callable[..., Any]] = {
    aes.Add: _sum,
    aes.Mul: _product,
    aes.Sub: jnp.subtract,
    aes.TrueDivide: jnp.true_divide,
    aes.FloorDivide: _floor_divide,
    aes.Mod: jnp.mod,
    aes.ScalarMaximum: jnp.maximum,
    aes.ScalarMinimum: jnp.minimum,
    aes.OR: jnp.bitwise_or,
    aes.XOR: jnp.bitwise_xor,
    aes.AND: jnp.bitwise_and,
    aes.Invert: jnp.invert,
    aes.Identity: lambda x: x,
    aes.Sgn: jnp.sign,
    aes.Ceil: jnp.ceil,
    aes.Floor: jnp.floor,
    aes.Trunc: jnp.trunc,
    aes.RoundHalfToEven: jnp.round,
    aes.RoundHalfAwayFromZero: _round_half_away,
    aes.Neg: jnp.negative,
    aes.Reciprocal: lambda x: 1 / x,
    aes.Log: elementary.log,
    aes.Log2: jnp.log2,
    aes.Log10: jnp.log10,
    aes.Log1p: elementary.log1p,
    aes.Exp: elementary.exp,
    aes.Exp2: elementary.exp2,
    aes.Expm1: elementary.expm1,
    aes.Sqr: lambda x: x * x,
    aes.Sqrt: jnp.sqrt,
    aes.Deg2Rad: jnp.deg2rad,
    aes.Rad2Deg: jnp.rad2deg,
    aes.Cos: elementary.cos,
    aes.ArcCos: jnp.arccos,
    aes.Sin: elementary.sin,
    aes.ArcSin: jnp.arcsin,
    aes.Tan: jnp.tan,
    aes.ArcTan: jnp.arctan,
    aes.ArcTan2: jnp.arctan2,
    aes.Cosh: _real_or(elementary.cosh, jnp.cosh),
    aes.ArcCosh: jnp.arccosh,
    aes.Sinh: _real_or(elementary.sinh, jnp.sinh),
    aes.ArcSinh: jnp.arcsinh,
    aes.Tanh: elementary.tanh,
    aes.ArcTanh: jnp.arctanh,
    aes.Conj: jnp.conj,
    aesm.Erf: jsp.erf,
    aesm.Erfc: jsp.erfc,
    aesm.Erfcx: _erfcx,
    aesm.Erfinv: jsp.erfinv,
    aesm.Erfcinv: lambda x: jsp.erfinv(1 - x),
    aesm.Gamma: _gamma,
    aesm.GammaLn: jsp.gammaln,
    aesm.Psi: jsp.digamma,
    aesm.TriGamma: _trigamma,
    aesm.Chi2SF: lambda x, k: jsp.gammaincc(k / 2, x / 2),
    aesm.GammaInc: jsp.gammainc,
    aesm.GammaIncC: jsp.gammaincc,
    aesm.GammaIncDer: _gammainc_slope,
    aesm.GammaU: lambda k, x: jsp.gammaincc(k, x) * _gamma(k),
    aesm.GammaL: lambda k, x: jsp.gammainc(k, x) * _gamma(k),
    aesm.Sigmoid: elementary.sigmoid,
    aesm.Softplus: _softplus,
    aesm.Log1mexp: _log1mexp,
    aesm.BetaInc: jsp.betainc,
    XlogX: lambda x: _x_log_y(x, x),
    XlogY0: _x_log_y,
}

_IN_COMMON_DTYPE: dict[type, Callable[..., Any]] = {
    aes.LT: jnp.less,
    aes.GT: jnp.greater,
    aes.LE: jnp.less_equal,
    aes.GE: jnp.greater_equal,
    aes.EQ: jnp.equal,
    aes.NEQ: jnp.not_equal,
    aes.IsNan: jnp.isnan,
    aes.IsInf: jnp.isinf,
    aes.Abs: jnp.abs,
    aes.Real: jnp.real,
    aes.Imag: jnp.imag,
    aes.Angle: jnp.angle,
}

for _class, _function in _IN_OUTPUT_DTYPE.items():
    _register_in_output_dtype(_class, _function)
for _class, _function in _IN_COMMON_DTYPE.items():
    _register_in_common_dtype(_class, _function)


@scalar_lower.register(aes.Pow)
def _pow(op: aes.Pow, node: Apply, values: Sequence[Any]) -> Any:
    dtype = out_dtype(node)
    x, y = values
    if dtype == "float64" and is_concrete(y) and np.size(y) == 1:
        exponent = float(np.ravel(y)[0])
        if abs(exponent) == 1.5:
            value = elementary.power_of_one_and_a_half(as_dtype(x, dtype), exponent < 0)
            return value.reshape(np.broadcast_shapes(np.shape(x), np.shape(y)))
    return _power(as_dtype(x, dtype), as_dtype(y, dtype))


@scalar_lower.register(aes.InRange)
def _in_range(op: aes.InRange, node: Apply, values: Sequence[Any]) -> Any:
    x, low, high = values
    above = (x > low) if op.openlow else (x >= low)
    below = (x < high) if op.openhi else (x <= high)
    return above & below


@scalar_lower.register(aes.Switch)
def _switch(op: aes.Switch, node: Apply, values: Sequence[Any]) -> Any:
    condition, then, otherwise = values
    dtype = out_dtype(node)
    if is_concrete(condition) and np.ndim(condition) == 0:
        shape = jnp.broadcast_shapes(np.shape(then), np.shape(otherwise))
        return jnp.broadcast_to(as_dtype(then if condition else otherwise, dtype), shape)
    return jnp.where(jnp.asarray(condition) != 0, as_dtype(then, dtype), as_dtype(otherwise, dtype))


@scalar_lower.register(aes.Clip)
def _clip(op: aes.Clip, node: Apply, values: Sequence[Any]) -> Any:
    # Not `jnp.clip`: the lower bound wins here where the bounds are crossed.
    x, low, high = (as_dtype(value, out_dtype(node)) for value in values)
    return jnp.where(x < low, low, jnp.where(x > high, high, x))


@scalar_lower.register(aes.Second)
def _second(op: aes.Second, node: Apply, values: Sequence[Any]) -> Any:
    return as_dtype(values[1], out_dtype(node))


@scalar_lower.register(aes.Cast)
def _cast(op: aes.Cast, node: Apply, values: Sequence[Any]) -> Any:
    (x,) = values
    if op.o_type.dtype == "bool":
        return jnp.asarray(x) != 0
    return as_dtype(x, op.o_type.dtype)


@scalar_lower.register(aes.Complex)
def _complex(op: aes.Complex, node: Apply, values: Sequence[Any]) -> Any:
    part = np.float32 if out_dtype(node) == np.complex64 else np.float64
    real, imag = jnp.broadcast_arrays(*(as_dtype(value, part) for value in values))
    return jax.lax.complex(real, imag)


@scalar_lower.register(aes.ComplexFromPolar)
def _complex_from_polar(op: aes.ComplexFromPolar, node: Apply, values: Sequence[Any]) -> Any:
    radius, angle = values
    return _complex(aes.complex, node, [radius * jnp.cos(angle), radius * jnp.sin(angle)])


@scalar_lower.register(aes.Mean)
def _mean(op: aes.Mean, node: Apply, values: Sequence[Any]) -> Any:
    return _sum(*(as_dtype(value, out_dtype(node)) for value in values)) / len(values)


def check_division(node: Apply, scalar_op: Any, values: Sequence[Any], frame: Frame) -> None:
    """See to it that an integer division by zero raises, now or after the run.

    Raises
    ------
    ZeroDivisionError
        If the divisor is known and has a zero.
    """
    if not isinstance(scalar_op, (aes.FloorDivide, aes.Mod)) or out_dtype(node).kind not in "iu":
        return
    divisor = values[1]
    what = "modulo" if isinstance(scalar_op, aes.Mod) else "division"
    message = f"integer {what} by zero"
    if not is_concrete(divisor):
        frame.checks.add((divisor == 0).any(), lambda: ZeroDivisionError(message))
    elif not np.all(divisor):
        raise ZeroDivisionError(message)


def _lower_or_call(node: Apply, values: Sequence[Any], frame: Frame) -> list[Any]:
    try:
        return [scalar_lower(node.op, node, values)]
    except NotImplementedError:
        return scalar_in_python(node, values, frame)


def lower_composite(op: aes.Composite, values: Sequence[Any], frame: Frame) -> list[Any]:
    """Compute every output of a fused scalar graph elementwise."""
    fgraph = op.fgraph
    found: dict[Any, Any] = dict(zip(fgraph.inputs, values))

    def value_of(variable: Any) -> Any:
        return found.get(variable, getattr(variable, "data", None))

    for node in fgraph.toposort():
        inputs = [value_of(variable) for variable in node.inputs]
        if isinstance(node.op, aes.Composite):
            outputs = lower_composite(node.op, inputs, frame)
        else:
            check_division(node, node.op, inputs, frame)
            outputs = _lower_or_call(node, inputs, frame)
        for variable, value in zip(node.outputs, outputs):
            found[variable] = as_dtype(value, variable.type.dtype)
    return [value_of(variable) for variable in fgraph.outputs]
