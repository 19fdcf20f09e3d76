"""Polynomials behind elementary functions, for float64; both back ends use them.

The reductions of the argument are those of W. J. Cody and W. Waite, *Software Manual
for the Elementary Functions* (1980): ``x = k log(2) + r`` for the exponential,
``x = 2**k (1 + f)``, ``s = f / (2 + f)`` for the logarithm, ``x = k pi / 2 + r`` for sine
and cosine.  All are Chebyshev interpolants, the constant term first.
"""

#: ``(exp(r) - 1 - r) / r**2`` on [-0.347, 0.347].
EXP = (
    0.5, 0.1666666666666667, 0.04166666666666667, 0.008333333333326112,
    0.001388888888888373, 0.0001984126987490126, 2.4801587325605324e-05,
    2.7557255297969643e-06, 2.755727357010214e-07, 2.5105259538448494e-08,
    2.0914717341716378e-09,
)  # fmt: skip

#: ``(log((1 + s) / (1 - s)) / s - 2) / s**2`` by ``s**2`` on [0, 0.0295].
LOG = (
    0.666666666666667, 0.3999999999989889, 0.28571428626253836, 0.22222211089379496,
    0.1818289243253687, 0.15331611722055008, 0.14617807153417325,
)  # fmt: skip

#: ``(sin(r) / r - 1) / r**2`` by ``r**2`` on [0, 0.618].
SIN = (
    -0.16666666666666666, 0.008333333333330925, -0.00019841269836722437,
    2.755731608382574e-06, -2.505112794596564e-08, 1.591784866512194e-10,
)  # fmt: skip

#: ``(cos(r) - 1 + r**2 / 2) / r**4`` by ``r**2`` on [0, 0.618].
COS = (
    0.041666666666666664, -0.0013888888888887382, 2.480158729874308e-05,
    -2.755731726001471e-07, 2.0876143829213935e-09, -1.1382456865840483e-11,
)  # fmt: skip

#: log(2) in two parts; the first has 28 zeros at its end, so that multiples of it are exact.
LOG2 = (float.fromhex("0x1.62e42f0000000p-1"), float.fromhex("0x1.df473de6af279p-26"))

#: pi / 2 in three parts, of which multiples up to 2**20 of the first two are exact.
HALF_PI = (
    float.fromhex("0x1.921fb54400000p+0"),
    float.fromhex("0x1.0b4611a600000p-34"),
    float.fromhex("0x1.3198a2e037073p-69"),
)

#: Adding it rounds to an integer, which then stands in the low bits.
SHIFT = 1.5 * 2.0**52
SHIFT_BITS = 0x4338000000000000

BIAS, MANTISSA = 1023, 52
