"""Draws of single numbers that Numba's `Generator` has no method for.

Each function takes the same numbers from the generator's stream as NumPy's, and
makes the same of them.  The algorithms are published:

* binomial: inversion, and BTPE of V. Kachitvichyanukul and B. W. Schmeiser
  (1988), "Binomial random variate generation", Comm. ACM 31, 216;
* hypergeometric: an urn for few draws, and the ratio of uniforms HRUA of
  E. Stadlober (1990), "The ratio of uniforms approach for generating discrete
  random variates", J. Comput. Appl. Math. 31, 181;
* von Mises: rejection from a wrapped Cauchy distribution, D. J. Best and
  N. I. Fisher (1979), "Efficient simulation of the von Mises distribution",
  Appl. Statist. 28, 152;
* integers: D. Lemire (2019), "Fast random integer generation in an interval",
  ACM Trans. Model. Comput. Simul. 29, 3.

Numba 0.57 has no binomial draws, so all of them have their own here.
"""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np
from numba.np.random.generator_core import next_uint32, next_uint64

# Division by zero gives inf or nan in NumPy's C code.
compiled = numba.njit(error_model="numpy")

# Numba makes a float of an unsigned and a signed integer.
_ZERO, _ONE, _32 = np.uint64(0), np.uint64(1), np.uint64(32)
_LOW_32, _ALL = np.uint64(0xFFFFFFFF), np.uint64(0xFFFFFFFFFFFFFFFF)


@compiled
def _high_product(a: Any, b: Any) -> Any:
    """Give the upper half of the product of two 64-bit numbers."""
    a0, a1, b0, b1 = a & _LOW_32, a >> _32, b & _LOW_32, b >> _32
    middle = a1 * b0 + ((a0 * b0) >> _32)
    return a1 * b1 + (middle >> _32) + (((middle & _LOW_32) + a0 * b1) >> _32)


@compiled
def draw_below_or_at(rng: Any, top: Any) -> Any:
    """Draw an unsigned integer from 0 to `top`, inclusive."""
    bits, last = rng.bit_generator, np.uint64(top)
    count = last + _ONE
    if last == _ZERO:
        return _ZERO
    if last == _LOW_32:
        return np.uint64(next_uint32(bits))
    if last == _ALL:
        return np.uint64(next_uint64(bits))
    if last < _LOW_32:
        product = np.uint64(next_uint32(bits)) * count
        if (product & _LOW_32) < count:
            least = (_LOW_32 - last) % count
            while (product & _LOW_32) < least:
                product = np.uint64(next_uint32(bits)) * count
        return product >> _32
    word = np.uint64(next_uint64(bits))
    if word * count < count:
        least = (_ALL - last) % count
        while word * count < least:
            word = np.uint64(next_uint64(bits))
    return _high_product(word, count)


@compiled
def draw_masked(rng: Any, top: Any) -> Any:
    """Draw an integer from 0 to `top`, inclusive, as shuffles and urns do: by rejection."""
    bits, last = rng.bit_generator, np.uint64(top)
    mask = last
    for shift in (1, 2, 4, 8, 16, 32):
        mask |= mask >> np.uint64(shift)
    if last == _ZERO:
        return 0
    while True:
        if last <= _LOW_32:
            value = np.uint64(next_uint32(bits)) & mask
        else:
            value = np.uint64(next_uint64(bits)) & mask
        if value <= last:
            return np.int64(value)


@compiled
def draw_integer(rng: Any, low: Any, high: Any) -> Any:
    """Draw from ``low, ..., high - 1``."""
    # The difference of two signed numbers may not fit into a signed one.
    span = np.uint64(high) - np.uint64(low) - _ONE
    return np.int64(np.uint64(low) + draw_below_or_at(rng, span))


@compiled
def _binomial_by_inversion(rng: Any, n: Any, p: Any) -> Any:
    q = 1.0 - p
    none = math.exp(n * math.log(q))
    bound = min(n, n * p + 10.0 * math.sqrt(n * p * q + 1))
    count, mass, left = 0, none, rng.random()
    while left > mass:
        count += 1
        if count > bound:
            count, mass, left = 0, none, rng.random()
        else:
            left -= mass
            mass = ((n - count + 1) * p * mass) / (count * q)
    return count


@compiled
def _stirling(x: Any) -> Any:
    square = x * x
    series = (462.0 - (132.0 - (99.0 - 140.0 / square) / square) / square) / square
    return (13680.0 - series) / x / 166320.0


@compiled
def _is_accepted(n: Any, p: Any, mode: Any, y: Any, v: Any) -> Any:
    """Compare `v` with the binomial mass at `y` over that at the mode (step 5 of BTPE)."""
    q = 1.0 - p
    variance = n * p * q
    distance = abs(y - mode)
    if distance <= 20 or distance >= variance / 2.0 - 1:
        odds = p / q
        a, ratio = odds * (n + 1), 1.0
        for i in range(mode + 1, y + 1):
            ratio *= a / i - odds
        for i in range(y + 1, mode + 1):
            ratio /= a / i - odds
        return v <= ratio
    square = -distance * distance / (2 * variance)
    third = (distance * (distance / 3.0 + 0.625) + 0.16666666666666666) / variance + 0.5
    margin = (distance / variance) * third
    log_v = math.log(v)
    if log_v < square - margin:
        return True
    if log_v > square + margin:
        return False
    x, f = float(y + 1), float(mode + 1)
    z, w = float(n + 1 - mode), float(n - y + 1)
    limit = (mode + 0.5) * math.log(f / x) + (n - mode + 0.5) * math.log(z / w)
    limit += (y - mode) * math.log(w * p / (x * q))
    limit = limit + _stirling(f) + _stirling(z) + _stirling(x) + _stirling(w)
    return log_v <= limit


@compiled
def _binomial_btpe(rng: Any, n: Any, p: Any) -> Any:
    """Draw for p <= 1/2: a triangle, two parallelograms and two exponential tails."""
    q = 1.0 - p
    top = n * p + p
    mode = np.int64(math.floor(top))
    p1 = math.floor(2.195 * math.sqrt(n * p * q) - 4.6 * q) + 0.5
    middle = mode + 0.5
    left, right = middle - p1, middle + p1
    c = 0.134 + 20.5 / (15.3 + mode)
    slope = (top - left) / (top - left * p)
    left_rate = slope * (1.0 + slope / 2.0)
    slope = (right - top) / (right * q)
    right_rate = slope * (1.0 + slope / 2.0)
    p2 = p1 * (1.0 + 2.0 * c)
    p3 = p2 + c / left_rate
    p4 = p3 + c / right_rate
    while True:
        u, v = rng.random() * p4, rng.random()
        if u <= p1:
            return np.int64(math.floor(middle - p1 * v + u))
        if u <= p2:
            x = left + (u - p1) / c
            v = v * c + 1.0 - abs(mode - x + 0.5) / p1
            if v > 1.0:
                continue
            y = np.int64(math.floor(x))
        elif v == 0.0:
            continue
        elif u <= p3:
            y = np.int64(math.floor(left + math.log(v) / left_rate))
            if y < 0:
                continue
            v = v * (u - p2) * left_rate
        else:
            y = np.int64(math.floor(right - math.log(v) / right_rate))
            if y > n:
                continue
            v = v * (u - p3) * right_rate
        if _is_accepted(n, p, mode, y, v):
            return y


@compiled
def draw_binomial(rng: Any, n: Any, p: Any) -> Any:
    """Draw how many of `n` trials succeed, each with probability `p`."""
    if n == 0 or p == 0.0:
        return np.int64(0)
    less = p if p <= 0.5 else 1.0 - p
    if less * n <= 30.0:
        count = np.int64(_binomial_by_inversion(rng, n, less))
    else:
        count = _binomial_btpe(rng, n, less)
    return count if p <= 0.5 else n - count


# log(k!) for small k; Stirling's series above.
_LOG_FACTORIALS = np.array([math.log(math.factorial(k)) for k in range(126)])
_HALF_LOG_2_PI = 0.9189385332046728


@compiled
def _log_factorial(k: Any) -> Any:
    if k < 126:
        return _LOG_FACTORIALS[k]
    return (
        (k + 0.5) * math.log(k)
        - k
        + (_HALF_LOG_2_PI + (1.0 / k) * (1 / 12.0 - 1 / (360.0 * k * k)))
    )


@compiled
def _hypergeometric_by_urn(rng: Any, good: Any, bad: Any, sample: Any) -> Any:
    total = good + bad
    is_rest = sample > total // 2
    draws = total - sample if is_rest else sample
    left, good_left = total, good
    while draws > 0 and 0 < good_left < left:
        left -= 1
        if draw_masked(rng, left) < good_left:
            good_left -= 1
        draws -= 1
    if left == good_left:
        good_left -= draws
    return good_left if is_rest else good - good_left


@compiled
def _hypergeometric_hrua(rng: Any, good: Any, bad: Any, sample: Any) -> Any:
    total = good + bad
    draws = min(sample, total - sample)
    few, many = min(good, bad), max(good, bad)
    p, q = few / total, many / total
    a = draws * p + 0.5
    variance = float(total - draws) * draws * p * q / (total - 1)
    c = math.sqrt(variance + 0.5)
    # Stadlober's 2 sqrt(2 / e) and 3 - 2 sqrt(3 / e).
    h = 1.7155277699214135 * c + 0.8989161620588988
    mode = np.int64(math.floor(float(draws + 1) * (few + 1) / (total + 2)))
    bound = min(float(min(draws, few) + 1), math.floor(a + 16 * c))

    at_mode = _log_factorial(mode) + _log_factorial(few - mode)
    at_mode += _log_factorial(draws - mode) + _log_factorial(many - draws + mode)
    while True:
        u, v = rng.random(), rng.random()
        x = a + h * (v - 0.5) / u
        if not 0.0 <= x < bound:
            continue
        k = np.int64(math.floor(x))
        here = _log_factorial(k) + _log_factorial(few - k)
        here += _log_factorial(draws - k) + _log_factorial(many - draws + k)
        t = at_mode - here
        if u * (4.0 - u) - 3.0 <= t:
            break
        if u * (u - t) < 1 and 2.0 * math.log(u) <= t:
            break
    if good > bad:
        k = draws - k
    return good - k if draws < sample else k


@compiled
def draw_hypergeometric(rng: Any, good: Any, bad: Any, sample: Any) -> Any:
    """Draw how many of `sample` draws without replacement are good."""
    if 10 <= sample <= good + bad - 10:
        return _hypergeometric_hrua(rng, good, bad, sample)
    return _hypergeometric_by_urn(rng, good, bad, sample)


@compiled
def draw_von_mises(rng: Any, mu: Any, kappa: Any) -> Any:
    """Draw an angle around `mu` with concentration `kappa`."""
    if math.isnan(kappa):
        return np.nan
    if kappa < 1e-8:
        return math.pi * (2 * rng.random() - 1)
    if kappa > 1e6:  # a wrapped normal distribution
        angle = mu + math.sqrt(1.0 / kappa) * rng.standard_normal()
        if angle < -math.pi:
            angle += 2 * math.pi
        if angle > math.pi:
            angle -= 2 * math.pi
        return angle
    if kappa < 1e-5:
        s = 1.0 / kappa + kappa
    else:
        r = 1 + math.sqrt(1 + 4 * kappa * kappa)
        rho = (r - math.sqrt(2 * r)) / (2 * kappa)
        s = (1 + rho * rho) / (2 * rho)
    while True:
        z = math.cos(math.pi * rng.random())
        w = (1 + s * z) / (s + z)
        y = kappa * (s - w)
        v = rng.random()
        if y * (2 - y) - v >= 0 or math.log(y / v) + 1 - y >= 0:
            break
    angle = math.acos(w)
    if rng.random() < 0.5:
        angle = -angle
    angle += mu
    size = np.fmod(abs(angle) + math.pi, 2 * math.pi) - math.pi
    return -size if angle < 0 else size
