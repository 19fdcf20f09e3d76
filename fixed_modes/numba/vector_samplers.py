"""Draws of vectors, and draws from vectors, from the numbers that NumPy takes.

The functions write into an array that they are given, and return 0, or the
number of the condition that NumPy refuses.
"""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np
from numba import types

from fixed_modes.numba.samplers import (
    compiled,
    draw_below_or_at,
    draw_binomial,
    draw_masked,
)


@compiled
def _sum_of(values: Any, count: Any) -> Any:
    """Sum the first `count` values with compensation (W. Kahan, 1965)."""
    total, lost = float(values[0]), 0.0
    for i in range(1, count):
        y = values[i] - lost
        t = total + y
        lost = (t - total) - y
        total = t
    return total


@compiled
def multinomial_into(rng: Any, n: Any, p: Any, out: Any) -> Any:
    """Draw how many of `n` trials give each outcome, one binomial draw after the other."""
    count = len(p)
    if count == 0:
        return 1
    for j in range(count):
        if not 0.0 <= p[j] <= 1.0:
            return 2
    if count > 1 and _sum_of(p, count - 1) > 1.0 + 1e-12:
        return 3
    if n < 0:
        return 4
    left, mass = np.int64(n), 1.0
    for j in range(count):
        out[j] = 0
    for j in range(count - 1):
        drawn = draw_binomial(rng, left, float(p[j] / mass))
        out[j] = drawn
        left -= drawn
        if left <= 0:
            return 0
        mass -= p[j]
    out[count - 1] = left
    return 0


MULTINOMIAL_REFUSALS = (
    "pvals must have at least 1 dimension and the last dimension of pvals must be greater than 0.",
    "pvals < 0, pvals > 1 or pvals contains NaNs",
    "sum(pvals[:-1]) > 1.0",
    "n < 0",
)


@compiled
def _beta(rng: Any, a: Any, b: Any) -> Any:
    """Draw from a beta distribution, of which a parameter may be 0."""
    if a == 0 or b == 0:
        rng.random()
        rng.random()
        return 0.0 if a == 0 else 1.0
    return rng.beta(a, b)


# NumPy takes a concentration of 0 since 1.25.
_NUMPY_VERSION = tuple(int(part) for part in np.__version__.split(".")[:2])
_ZERO_IS_REFUSED = _NUMPY_VERSION < (1, 25)
DIRICHLET_REFUSALS = ("alpha <= 0" if _ZERO_IS_REFUSED else "alpha < 0",)


@compiled
def dirichlet_into(rng: Any, alpha: Any, out: Any) -> Any:
    """Draw proportions: gamma draws over their sum, or broken sticks for small `alpha`."""
    count, largest = len(alpha), -np.inf
    for j in range(count):
        if alpha[j] < 0 or (_ZERO_IS_REFUSED and alpha[j] == 0):
            return 1
        # As NumPy's maximum, this keeps a NaN.
        if alpha[j] > largest or alpha[j] != alpha[j]:
            largest = float(alpha[j])
    for j in range(count):
        out[j] = 0.0
    if count > 0 and largest < 0.1:
        _break_sticks(rng, alpha, out)
        return 0
    total = 0.0
    draws = np.empty(count)
    for j in range(count):
        draws[j] = rng.standard_gamma(float(alpha[j]))
        total += draws[j]
    inverse = 1.0 / total
    for j in range(count):
        out[j] = draws[j] * inverse
    return 0


@compiled
def _break_sticks(rng: Any, alpha: Any, out: Any) -> None:
    count = len(alpha)
    rest = np.zeros(count)
    total = 0.0
    for j in range(count - 1, 0, -1):
        total += alpha[j]
        rest[j - 1] = total
    if total + alpha[0] == 0:
        return
    stick = 1.0
    for j in range(count - 1):
        part = _beta(rng, float(alpha[j]), rest[j])
        out[j] = stick * part
        stick *= 1.0 - part
        if rest[j] == 0:
            return
    out[count - 1] = stick


@compiled
def draw_category(rng: Any, p: Any) -> Any:
    """Draw a position with the probabilities `p`, by searching their running sums."""
    u = rng.random()
    total = np.zeros(1, p.dtype)[0]
    for j in range(len(p)):
        total += p[j]
        if not total < u:
            return j
    return len(p)


@compiled
def shuffled_positions(rng: Any, count: Any) -> Any:
    """Shuffle ``0, ..., count - 1``."""
    positions = np.arange(max(count, 0))
    for i in range(count - 1, 0, -1):
        j = draw_masked(rng, i)
        positions[i], positions[j] = positions[j], positions[i]
    return positions


@compiled
def _shuffle_tail(rng: Any, positions: Any, first: Any) -> None:
    for i in range(len(positions) - 1, first - 1, -1):
        j = np.int64(draw_below_or_at(rng, i))
        positions[i], positions[j] = positions[j], positions[i]


@compiled
def _is_new(table: Any, value: Any) -> Any:
    """Put `value` into an open hash table; False if it was there."""
    mask = len(table) - 1
    place = value & mask
    while table[place] != -1:
        if table[place] == value:
            return False
        place = (place + 1) & mask
    table[place] = value
    return True


@compiled
def _sample_by_set(rng: Any, count: Any, size: Any, out: Any) -> None:
    """Sample without replacement (R. W. Floyd, in Comm. ACM 30 (1987), 754), then shuffle."""
    length = 2
    while length < 1.2 * size + 1:
        length *= 2
    table = np.full(length, -1)
    for k in range(size):
        j = count - size + k
        value = np.int64(draw_below_or_at(rng, j))
        if not _is_new(table, value):
            value = np.int64(j)
            _is_new(table, value)
        out[k] = value
    _shuffle_tail(rng, out, 1)


CHOICE_REFUSALS = (
    "a cannot be empty unless no samples are taken",
    "a and p must have same size",
    "probabilities contain NaN",
    "probabilities are not non-negative",
    "probabilities do not sum to 1",
    "Cannot take a larger sample than population when replace is False",
    "Fewer non-zero entries in p than size",
)


@compiled
def choose_positions(rng: Any, count: Any, size: Any, replace: Any, out: Any) -> Any:
    """Draw `size` positions below `count`, all equally likely."""
    if count == 0 and size > 0:
        return 1
    if replace:
        for k in range(size):
            out[k] = draw_below_or_at(rng, count - 1)
        return 0
    if size > count:
        return 6
    if count > 10000 and size > count // 50:
        positions = np.arange(count)
        _shuffle_tail(rng, positions, max(count - size, 1))
        for k in range(size):
            out[k] = positions[count - size + k]
    else:
        _sample_by_set(rng, count, size, out)
    return 0


@compiled
def _probability_fault(p: Any, count: Any, size: Any, tolerance: Any) -> Any:
    if count == 0 and size > 0:
        return 1
    if len(p) != count:
        return 2
    total = _sum_of(p, count) if count > 0 else 0.0
    if math.isnan(total):
        return 3
    for j in range(count):
        if p[j] < 0:
            return 4
    return 5 if abs(total - 1.0) > tolerance else 0


@compiled
def _cumulated(p: Any) -> Any:
    sums = np.empty(len(p))
    total = 0.0
    for j in range(len(p)):
        total += p[j]
        sums[j] = total
    for j in range(len(p)):
        sums[j] /= total
    return sums


@compiled
def _find(sums: Any, u: Any) -> Any:
    """Count the sums that are at most `u`."""
    low, high = 0, len(sums)
    while low < high:
        middle = (low + high) // 2
        if sums[middle] <= u:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def choose_positions_by(
    rng: Any, count: Any, size: Any, replace: Any, out: Any, p: Any, tolerance: Any
) -> Any:
    """Draw `size` positions below `count` with the probabilities `p`."""
    fault = _probability_fault(p, count, size, tolerance)
    if fault:
        return fault
    if replace:
        sums = _cumulated(p)
        for k in range(size):
            out[k] = _find(sums, rng.random())
        return 0
    if size > count:
        return 6
    left = np.empty(count)
    possible = 0
    for j in range(count):
        left[j] = p[j]
        possible += p[j] > 0
    if possible < size:
        return 7
    found = 0
    while found < size:
        # A round draws for all that are missing; the first of equal ones counts.
        sums = _cumulated(left)
        for _ in range(size - found):
            position = _find(sums, rng.random())
            if left[position] != 0:
                left[position] = 0.0
                out[found] = position
                found += 1
    return 0


def _normal_factor(mean: np.ndarray, cov: np.ndarray) -> np.ndarray:
    """Give the factor that makes a vector of `cov` from one of independent normal draws.

    The checks are those of SciPy's ``multivariate_normal(allow_singular=True)``,
    the factor is that of NumPy's ``Generator.multivariate_normal``.
    """
    dim = len(mean)
    if cov.shape != (dim, dim):
        raise ValueError(
            f"Dimension mismatch: the covariance has shape {cov.shape}, the mean length {dim}."
        )
    cov = np.asarray(cov, np.float64)
    if not np.isfinite(cov).all():
        raise ValueError("array must not contain infs or NaNs")
    if dim == 0:
        return np.zeros((0, 0))
    eigenvalues = np.linalg.eigvalsh(cov)
    if eigenvalues.min() < -1e6 * np.finfo(np.float64).eps * abs(eigenvalues).max():
        raise ValueError("The input matrix must be symmetric positive semidefinite.")
    vectors, values, _ = np.linalg.svd(cov)
    return np.ascontiguousarray(vectors * np.sqrt(values))


_MATRIX = types.float64[:, ::1]


@numba.njit
def normal_factor(mean, cov):  # type: ignore[no-untyped-def]
    """Call `_normal_factor`: in equal cases the vectors must be those of NumPy's own LAPACK."""
    with numba.objmode(result=_MATRIX):
        result = _normal_factor(mean, cov)
    return result  # noqa: RET504


@compiled
def normal_into(rng: Any, mean: Any, factor: Any, out: Any) -> Any:
    """Draw a vector with the mean `mean`; `factor` is what `normal_factor` gives."""
    count = len(mean)
    draws = np.empty(count)
    for j in range(count):
        draws[j] = rng.standard_normal()
    for i in range(count):
        total = 0.0
        for j in range(count):
            total += draws[j] * factor[i, j]
        out[i] = mean[i] + total
    return 0
