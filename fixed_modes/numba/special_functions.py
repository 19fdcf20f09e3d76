"""Special functions that SciPy does not hand out to compiled code, and derivatives of some.

Sources of the formulas, by function:

* trigamma: NIST DLMF 5.15.1, 5.15.6 and 5.15.8;
* incomplete gamma functions: DLMF 8.7.1 (series) and 8.11.2 (for large arguments),
  each differentiated term by term;
* incomplete beta function: the continued fraction of R. J. Boik and J. F. Robison-Cox
  (1998), "Derivatives of the incomplete beta function", J. Stat. Softw. 3(1);
* hypergeometric function: DLMF 15.2.1, differentiated term by term.
"""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np

from fixed_modes.numba.scipy_functions import (
    betaln,
    chdtrc,
    gamma,
    gammainc,
    gammaincc,
    gammaln,
    psi,
)

# Division by zero gives inf or nan, as in C.
compiled = numba.njit(error_model="numpy")


@compiled
def trigamma(x: Any) -> Any:
    """Give the second derivative of the logarithm of the gamma function."""
    if x <= 0 and x == math.floor(x):
        return np.inf
    if x < -10:
        sine = math.sin(math.pi * (x - 2 * math.floor(x / 2)))
        return (math.pi / sine) ** 2 - trigamma(1 - x)
    total = 0.0
    while x < 10:
        total += 1 / (x * x)
        x += 1
    y = 1 / (x * x)
    # Bernoulli numbers 1/6, -1/30, 1/42, -1/30, 5/66, -691/2730, 7/6.
    series = 1 / 42 + y * (-1 / 30 + y * (5 / 66 + y * (-691 / 2730 + y * 7 / 6)))
    return total + 1 / x + y * (0.5 + (1 / 6 + y * (-1 / 30 + y * series)) / x)


@compiled
def chi2sf(x: Any, k: Any) -> Any:
    """Give the probability that a chi-squared variable with `k` degrees of freedom exceeds `x`."""
    if math.isnan(x) or not k > 0:
        return np.nan
    return 1.0 if x <= 0 else chdtrc(k, x)


@compiled
def upper_gamma(k: Any, x: Any) -> Any:
    """Give the upper incomplete gamma function."""
    return gammaincc(k, x) * gamma(k)


@compiled
def lower_gamma(k: Any, x: Any) -> Any:
    """Give the lower incomplete gamma function."""
    return gammainc(k, x) * gamma(k)


@compiled
def _gammainc_der_series(k: Any, x: Any) -> Any:
    log_x = math.log(x)
    term = math.exp(k * log_x - x - gammaln(k + 1))
    log_slope = psi(k + 1)
    total, n = 0.0, 0
    while n < 100000:
        part = term * (log_x - log_slope)
        total += part
        n += 1
        # The terms grow up to n + k = x, and change sign there.
        if n + k > x + 1 and abs(part) <= 1e-17 * abs(total) + 1e-300:
            return total
        term *= x / (k + n)
        log_slope += 1 / (k + n)
    return np.nan


@compiled
def _gammaincc_der_asymptotic(k: Any, x: Any) -> Any:
    log_x = math.log(x)
    # (k - 1) ... (k - n), and its derivative by k.
    product, slope, power, total = 1.0, 0.0, 1.0, 0.0
    for n in range(1, 10):
        slope = slope * (k - n) + product
        product *= k - n
        power *= x
        total += slope / power
    scale = math.exp(-x + (k - 1) * log_x) / gamma(k)
    return gammaincc(k, x) * (log_x - psi(k)) + scale * total


@compiled
def gammaincc_der(k: Any, x: Any) -> Any:
    """Give the derivative of the regularised upper incomplete gamma function by `k`."""
    if math.isnan(k) or math.isnan(x):
        return np.nan
    if x >= k and x >= 8:
        return _gammaincc_der_asymptotic(k, x)
    return -_gammainc_der_series(k, x)


@compiled
def gammainc_der(k: Any, x: Any) -> Any:
    """Give the derivative of the regularised lower incomplete gamma function by `k`."""
    if x == 0:
        return 0.0
    if math.isnan(k) or math.isnan(x):
        return np.nan
    # Where the series would lose what the tail is.
    middle = 60 * x - 756 - x * x
    is_tail = (k < 0.8 and x > 15) or (k < 12 and x > 30)
    if is_tail or (middle > 0 and k < math.sqrt(middle)):
        return -gammaincc_der(k, x)
    return _gammainc_der_series(k, x)


@compiled
def betainc_der(p: Any, q: Any, x: Any, by_p: Any) -> Any:
    """Give the derivative of the regularised incomplete beta function by `p`, or else by `q`."""
    if not (0 <= x <= 1 and p >= 0 and q >= 0):
        return np.nan
    if x > p / (p + q):
        return -_betainc_der(q, p, 1 - x, by_p == 0)
    return _betainc_der(p, q, x, by_p != 0)


@compiled
def _betainc_der(p: Any, q: Any, x: Any, by_p: Any) -> Any:
    w = x / (1 - x)
    log_x, log_y = math.log(x), math.log1p(-x)
    factor = math.exp(p * log_x + (q - 1) * log_y - math.log(p) - betaln(p, q))
    log_slope = psi(p + q) + (log_x - 1 / p - psi(p) if by_p else log_y - psi(q))
    # Numerators and denominators of the last two approximants, and their derivatives.
    a1, a0, b1, b0 = 1.0, 1.0, 1.0, 0.0
    da1, da0, db1, db0 = 0.0, 0.0, 0.0, 0.0
    old = 0.0
    for n in range(1, 201):
        over, under, d_over, d_under = _approximant(p, q, w, n, by_p)
        a2, b2 = over * a0 + under * a1, over * b0 + under * b1
        da2 = d_over * a0 + over * da0 + d_under * a1 + under * da1
        db2 = d_over * b0 + over * db0 + d_under * b1 + under * db1
        a0, a1, b0, b1, da0, da1, db0, db1 = a1, a2, b1, b2, da1, da2, db1, db2
        if n > 1:
            ratio = a2 / b2
            value = factor * (ratio * log_slope + (da2 - ratio * db2) / b2)
            if abs(old - value) <= 1e-12 * max(1e-12, abs(value)):
                return value
            old = value
    return np.nan


@compiled
def _approximant(p: Any, q: Any, w: Any, n: Any, by_p: Any) -> Any:
    """Give step `n` of the continued fraction, a_n and b_n, and their derivatives."""
    m = p + 2 * n
    if n == 1:
        over = w * (q - 1) / (p + 1)
        d_over = -over / (p + 1) if by_p else w / (p + 1)
    else:
        rest = w * w * (n - 1) * (p + n - 1) / ((m - 3) * (m - 2) * (m - 2) * (m - 1))
        over = rest * (p + q + n - 2) * (q - n)
        if by_p:
            logs = 1 / (p + q + n - 2) + 1 / (p + n - 1)
            d_over = over * (logs - 1 / (m - 3) - 2 / (m - 2) - 1 / (m - 1))
        else:
            d_over = rest * (p + 2 * q - 2)
    scale = (m - 2) * m
    under = (2 * (w + 2) * n * (n + p - 1) + p * (p - 2 - q * w)) / scale
    if by_p:
        d_under = (2 * (w + 2) * n + 2 * p - 2 - q * w - under * (2 * m - 2)) / scale
    else:
        d_under = -p * w / scale
    return over, under, d_over, d_under


@compiled
def _is_pole(x: Any) -> Any:
    return x <= 0 and x == math.floor(x)


@compiled
def hyp2f1_der(a: Any, b: Any, c: Any, z: Any, position: Any) -> Any:
    """Give the derivative of the hypergeometric function by its parameter `position`, 0 to 2.

    It is NaN where the series does not converge.  A series that ends, since `a`
    or `b` is a non-positive integer, is taken as it is.
    """
    degree = 0.0
    is_polynomial = _is_pole(a) or _is_pole(b)
    if _is_pole(a):
        degree = -a
    if _is_pole(b):
        degree = max(degree, -b)
    if _is_pole(c) and -c <= degree:
        return np.nan
    if not (is_polynomial or abs(z) < 1 or (abs(z) == 1 and c > a + b)):
        return np.nan
    if z == 0:
        return 0.0
    term, slope, total = 1.0, 0.0, 0.0
    for k in range(1000000):
        ratio = (a + k) * (b + k) / ((c + k) * (k + 1)) * z
        if ratio == 0:
            return total
        if position == 0:
            logarithmic = 1 / (a + k)
        elif position == 1:
            logarithmic = 1 / (b + k)
        else:
            logarithmic = -1 / (c + k)
        slope = ratio * (slope + term * logarithmic)
        term *= ratio
        total += slope
        if k >= 10 and abs(slope) <= 1e-14:
            return total
    return np.nan
