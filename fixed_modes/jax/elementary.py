"""Elementary functions in double precision that XLA turns into vector instructions.

Those of XLA's CPU back end call the C library for each element, all but `exp`: a
recurrent network of 16 units spends four fifths of its time in `tanh`.  The functions
here are arithmetic without branches.  The largest error seen against exact values is
below 1 unit in the last place for `exp`, `log`, `sin` and `cos`, below 1.5 for `log1p`,
below 2 for `expm1` and below 3 for `tanh` and `sigmoid`.

Each is a primitive, so that a traced loop stays short.  JAX's own functions take over
on platforms other than the CPU, in other dtypes, and for sizes at which they were
measured to be faster.  XLA computes again whatever is cheap, wherever it is used, and
takes a division for dear: that is why functions end with one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any, Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.interpreters import ad, batching, mlir

from fixed_modes.jax.lanes import Lanes, select
from fixed_modes.polynomials import (
    BIAS,
    COS,
    EXP,
    HALF_PI,
    LOG,
    LOG2,
    MANTISSA,
    SHIFT,
    SHIFT_BITS,
    SIN,
)

try:
    from jax.extend.core import Primitive
except ImportError:  # before JAX 0.4.36
    from jax.core import Primitive

#: XLA shares so many elements of this kind of arithmetic among threads, in each step of
#: a loop.  That takes longer than to call the C library, up to several thousand elements.
TOO_LONG = 512

#: Beyond it the argument of sine and cosine is left to the C library.
LARGEST_ANGLE = 1e6


def _power_of_two(k: Lanes) -> Lanes:
    """Give ``2.0**k`` for integers from -1022 to 1023."""
    return ((k + BIAS) << MANTISSA).as_floats()


def _rounded(x: Lanes) -> tuple[Lanes, Lanes]:
    """Give the nearest integers, as floats and as integers."""
    # Not by adding and subtracting a large number: XLA drops both.
    whole = x.rounded()
    return whole, (whole + SHIFT).bits() - SHIFT_BITS


def _polynomial(x: Lanes, coefficients: Sequence[float]) -> Lanes:
    """Evaluate by Estrin's scheme, the constant term first; there are two at least."""
    terms: list[Any] = list(coefficients)
    while len(terms) > 1:
        terms = [
            terms[n + 1] * x + terms[n] if n + 1 < len(terms) else terms[n]
            for n in range(0, len(terms), 2)
        ]
        x = x * x
    found: Lanes = terms[0]
    return found


def _reduced(x: Lanes) -> tuple[Lanes, Lanes]:
    """Give ``k``, an integer, and ``exp(r) - 1`` for ``x = k log(2) + r``."""
    k, whole = _rounded(x * 1.4426950408889634)
    r = x - k * LOG2[0]
    r = r - k * LOG2[1]
    return whole, r * r * _polynomial(r, EXP) + r


def _halves(k: Lanes) -> tuple[Lanes, Lanes]:
    """Give two integers, about equal, of the sum `k`; it is above -2048."""
    half = ((k + 2048) >> 1) - 1024
    return half, k - half


def _limited(x: Lanes, low: float, high: float) -> Lanes:
    """Limit, but leave NaN."""
    x = select(x > high, high, x)
    return select(x < low, low, x)


def _exp(x: Lanes) -> Lanes:
    k, tail = _reduced(_limited(x, -746.0, 710.0))
    # In two factors: 2**k itself need not be a normal number.
    half, other = _halves(k)
    return (tail + 1.0) * _power_of_two(half) / _power_of_two(-other)


def _expm1(x: Lanes) -> Lanes:
    k, tail = _reduced(_limited(x, -50.0, 710.0))
    half, other = _halves(k)
    inverse = _power_of_two(-half)
    power = _power_of_two(other)
    # Zero, with its sign, and nothing else has a tail of zero and k = 0.
    grown = power * tail + (power - inverse)
    return select(x == 0.0, x, grown) / inverse


def _tanh(x: Lanes) -> Lanes:
    size = x.magnitude()
    # Where the result is 1.
    twice = select(size > 22.0, 44.0, size + size)
    k, tail = _reduced(twice)
    power = _power_of_two(k)
    grown = power * tail + (power - 1.0)
    sign = x.bits() & -(1 << 63)
    return (grown.bits() | sign).as_floats() / (grown + 2.0)


def _sigmoid(x: Lanes) -> Lanes:
    return 1.0 / (1.0 + _exp(-x))


def _log_parts(x: Lanes) -> tuple[Lanes, Lanes]:
    """Give the logarithm of a number, and what to divide it by: 0 where it is infinite."""
    # Numbers that are not normal get 54 bits more.
    tiny = x < 2.0**-1022
    bits = select(tiny, x * 2.0**54, x).bits()
    # k and the mantissa from the square root of 1/2 on.
    k = (bits - 0x3FE6A09E667F3BCD) >> MANTISSA
    exponent = (k + SHIFT_BITS).as_floats() - SHIFT
    exponent = select(tiny, exponent - 54.0, exponent)
    f = (bits - (k << MANTISSA)).as_floats() - 1.0
    s = f / (f + 2.0)
    z = s * s
    half_square = 0.5 * f * f
    small = exponent * LOG2[1] + s * (half_square + z * _polynomial(z, LOG))
    value = exponent * LOG2[0] - ((half_square - small) - f)
    infinite = (x == 0.0) | (x == np.inf)
    value = select(x == 0.0, -1.0, value)
    value = select(x >= 0.0, value, np.nan)
    return value, select(infinite, x.filled(0.0), 1.0)


def _log(x: Lanes) -> Lanes:
    value, divisor = _log_parts(x)
    return value / divisor


def _log1p(x: Lanes) -> Lanes:
    # The maximum keeps XLA from taking `u - 1` for `x`.
    u = Lanes(lax.max((x + 1.0).array, x.filled(-1.0).array))
    value, divisor = _log_parts(u)
    # What the sum has lost.
    lost = (x - (u - 1.0)) / select(divisor == 0.0, 1.0, u)
    value = select(divisor == 0.0, value, value + lost)
    return select(x == 0.0, x, value) / divisor


def _sine_of(x: Lanes, quarters: int) -> Lanes:
    """Give ``sin(x + quarters * pi / 2)`` for a number up to `LARGEST_ANGLE`."""
    n, quadrant = _rounded(x * (2.0 / np.pi))
    first = x - n * HALF_PI[0]
    second = n * HALF_PI[1]
    whole = first - second
    rest = ((first - whole) - second) - n * HALF_PI[2]
    r = whole + rest
    low = (whole - r) + rest
    z = r * r
    sine = r + (r * z * _polynomial(z, SIN) + low)
    near = 1.0 - 0.5 * z
    cosine = near + (((1.0 - near) - 0.5 * z) + (z * z * _polynomial(z, COS) - r * low))
    quadrant = quadrant + quarters
    value = select((quadrant & 1) == 0, sine, cosine)
    # The second bit becomes the sign.
    return (value.bits() ^ ((quadrant & 2) << 62)).as_floats()


def _with_large_angles(library: Callable[[Any], Any], quarters: int) -> Callable[[Lanes], Lanes]:
    def function(x: Lanes) -> Lanes:
        size = x.magnitude()
        is_large = (size > LARGEST_ANGLE) & (size < np.inf)
        axes = tuple(range(is_large.array.ndim))
        any_is = lax.reduce(is_large.array, False, lax.bitwise_or, axes)
        value = Lanes(
            lax.cond(any_is, library, lambda x: _sine_of(Lanes(x), quarters).array, x.array)
        )
        return value if quarters else select(x == 0.0, x, value)

    return function


def _make(
    name: str,
    library: Callable[[Any], Any],
    on_cpu: Callable[[Lanes], Lanes],
    slope: Callable[[Any, Any], Any],
    is_faster: Callable[[tuple[int, ...]], bool],
) -> Callable[[Any], Any]:
    """Make a function of an array.

    Parameters
    ----------
    name
        Of the function.
    library
        JAX's own function.
    on_cpu
        For float64.
    slope
        The derivative, of the argument and the value.
    is_faster
        Says for which shapes `on_cpu` is faster.
    """
    primitive = Primitive(f"fixed_modes_{name}")

    def choose(x: Any) -> Any:
        return on_cpu(Lanes(x)).array if is_faster(x.shape) else library(x)

    def function(x: Any) -> Any:
        x = jnp.asarray(x)
        return primitive.bind(x) if x.dtype == np.float64 else library(x)

    compiled = jax.jit(primitive.bind)
    primitive.def_impl(lambda x: compiled(x))
    primitive.def_abstract_eval(lambda x: jax.core.ShapedArray(x.shape, x.dtype))
    batching.defvectorized(primitive)
    ad.defjvp2(primitive, lambda tangent, value, x: tangent * slope(x, value))
    mlir.register_lowering(primitive, mlir.lower_fun(library, multiple_results=False))
    lowering = mlir.lower_fun(choose, multiple_results=False)
    mlir.register_lowering(primitive, lowering, platform="cpu")
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Do what JAX's own `{name}` does."
    return function


def _always(shape: tuple[int, ...]) -> bool:
    return True


def _from(smallest: int, worth_a_thread: int = 1 << 12) -> Callable[[tuple[int, ...]], bool]:
    return lambda shape: (
        smallest <= math.prod(shape) < TOO_LONG or math.prod(shape) >= worth_a_thread
    )


def _short_rows(shape: tuple[int, ...]) -> bool:
    """Say whether XLA's own vector code takes an element at a time."""
    return math.prod(shape) < 64 or (shape[-1] < 16 and _from(1)(shape))


def _slope_of_sin(x: Any, value: Any) -> Any:
    return cos(x)


def _slope_of_cos(x: Any, value: Any) -> Any:
    return -sin(x)


_sin, _cos = _with_large_angles(jnp.sin, 0), _with_large_angles(jnp.cos, 1)

exp = _make("exp", jnp.exp, _exp, lambda x, value: value, _short_rows)
sigmoid = _make(
    "sigmoid", jax.nn.sigmoid, _sigmoid, lambda x, value: value * (1.0 - value), _short_rows
)
expm1 = _make("expm1", jnp.expm1, _expm1, lambda x, value: value + 1.0, _from(1))
tanh = _make("tanh", jnp.tanh, _tanh, lambda x, value: 1.0 - value * value, _from(1))
log = _make("log", jnp.log, _log, lambda x, value: 1.0 / x, _from(32, 1 << 15))
# JAX's own has errors of 100 units in the last place around -0.4.
log1p = _make("log1p", jnp.log1p, _log1p, lambda x, value: 1.0 / (x + 1.0), _always)
sin: Callable[[Any], Any] = _make("sin", jnp.sin, _sin, _slope_of_sin, _from(4))
cos: Callable[[Any], Any] = _make("cos", jnp.cos, _cos, _slope_of_cos, _from(4))


def exp2(x: Any) -> Any:
    """Give ``2**x``; that of XLA rounds ``x log(2)``, which costs large results digits."""
    x = jnp.asarray(x)
    if x.dtype not in (np.float32, np.float64):
        return jnp.exp2(x)
    is_double = x.dtype == np.float64
    integer, largest = (np.int64, 1100.0) if is_double else (np.int32, 160.0)
    x = _limited(Lanes(x), -largest, largest).array
    whole = lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN)
    # In two factors: 2**whole itself need not be a number of this type.
    half = lax.floor(whole * 0.5)
    result = exp((x - whole) * math.log(2.0))
    for power in (half, whole - half):
        bits = power.astype(integer) + np.array(BIAS if is_double else 127, integer)
        shifted = lax.shift_left(bits, jnp.full_like(bits, MANTISSA if is_double else 23))
        result = result * lax.bitcast_convert_type(shifted, x.dtype)
    return result


@jax.custom_jvp
def cosh(x: Any) -> Any:
    """Give the hyperbolic cosine; XLA adds ``log(0.5)`` to `x`, which is then rounded."""
    root = exp(x * 0.5)  # its square, but not half of it, may be too large
    return 0.5 * root * root + 0.5 / root / root


@jax.custom_jvp
def sinh(x: Any) -> Any:
    """Give the hyperbolic sine."""
    is_small = lax.abs(x) < 1.0
    tail = expm1(lax.select(is_small, x, jnp.full_like(x, 0.5)))
    root = exp(x * 0.5)
    large = 0.5 * root * root - 0.5 / root / root
    return lax.select(is_small, 0.5 * (tail + tail / (tail + 1.0)), large)


cosh.defjvps(lambda tangent, value, x: tangent * sinh(x))
sinh.defjvps(lambda tangent, value, x: tangent * cosh(x))


@partial(jax.custom_jvp, nondiff_argnums=(1,))
def power_of_one_and_a_half(x: Any, is_inverse: bool) -> Any:
    """Give ``x ** 1.5``, or ``x ** -1.5``, by a root, which is vector code.

    Both lose 1.5 units in the last place at most.
    """
    base = 1.0 / x if is_inverse else x
    value = base * lax.sqrt(base)
    return jnp.where(base == -np.inf, np.inf, value)  # as the power has it


@power_of_one_and_a_half.defjvp
def _slope_of_power(is_inverse: bool, primals: Any, tangents: Any) -> Any:
    (x,), (tangent,) = primals, tangents
    slope = -1.5 * x**-2.5 if is_inverse else 1.5 * lax.sqrt(x)
    return power_of_one_and_a_half(x, is_inverse), slope * tangent
