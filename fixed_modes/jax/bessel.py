"""Bessel functions of small whole orders, and Owen's T function.

JAX has none of them but the modified ones of order 0 and 1.  Where they are smooth, they
are polynomials here, fitted to SciPy's values when one is first needed.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, Callable

import jax.numpy as jnp
import jax.scipy.special as jsp
import numpy as np
import scipy.special as sc
from aesara.graph.basic import Apply
from aesara.scalar import math as aesm

from fixed_modes.jax.frame import is_concrete
from fixed_modes.jax.scalar import as_dtype, out_dtype, scalar_lower

#: Where one approximation takes over from the other.
CROSSING = 8.0

#: Of larger orders the approximations lose digits.
LARGEST_ORDER = 3

#: Where a function is sampled to fit it.
N_NODES = 40

#: Beyond, the integrand of Owen's T function adds nothing any more.
WIDTH = 8.7


class _Fit:
    """A polynomial that is a smooth function on an interval.

    Its absolute error is some 1e-15 times the largest value of the function, or times
    `scale` if that is larger.
    """

    def __init__(
        self, function: Callable[[Any], Any], low: float, high: float, scale: float = 0.0
    ) -> None:
        self.middle, self.scale = (low + high) / 2, 2 / (high - low)
        # Not `Chebyshev.interpolate`, which rounds more.
        angles = (np.arange(N_NODES) + 0.5) * np.pi / N_NODES
        values = function(self.middle + np.cos(angles) / self.scale)
        series = np.cos(np.outer(np.arange(N_NODES), angles)) @ values * (2 / N_NODES)
        series[0] /= 2
        # From where two coefficients in a row are that small, they are noise.
        is_noise = np.abs(series) < 1e-15 * max(scale, np.abs(series).max())
        end = np.flatnonzero(is_noise[:-1] & is_noise[1:])[0]
        self.coefficients = np.polynomial.chebyshev.cheb2poly(series[:end]).tolist()

    def __call__(self, x: Any) -> Any:
        # Powers of what is between -1 and 1: Clenshaw's sums lose two digits at the ends.
        x = (x - self.middle) * self.scale
        value = jnp.full_like(x, self.coefficients[-1])
        for coefficient in self.coefficients[-2::-1]:
            value = value * x + coefficient
        return value


@functools.cache
def _fits_of_j(order: int) -> tuple[_Fit, _Fit, _Fit]:
    """Fit ``J(x) / x**order`` near zero, and what multiplies the waves far from it."""

    def near(square: Any) -> Any:
        x = np.sqrt(square)
        return sc.jv(order, x) / x**order

    def waves(inverse: Any) -> Any:
        x = CROSSING / inverse
        both = sc.jv(order, x) + 1j * sc.yv(order, x)
        turned = np.sqrt(np.pi * x / 2) * both * np.exp(-1j * x) * 1j ** (order + 0.5)
        # The asymptotic series, where a phase would be rounded more (DLMF 10.17.5).
        term = series = np.ones_like(turned)
        for k in range(1, 20):
            term = term * 1j * (4 * order**2 - (2 * k - 1) ** 2) / (8 * k * x)
            series = series + term
        return np.where(x > 20, series, turned)

    return (
        _Fit(near, 0.0, CROSSING**2),
        _Fit(lambda inverse: waves(inverse).real, 0.0, 1.0, 1.0),
        _Fit(lambda inverse: waves(inverse).imag, 0.0, 1.0, 1.0),
    )


def bessel_j(order: int, x: Any) -> Any:
    """Compute the Bessel function of the first kind; the order is at most `LARGEST_ORDER`."""
    near, real, imaginary = _fits_of_j(order)
    small = jnp.minimum(jnp.abs(x), CROSSING)
    large = jnp.maximum(jnp.abs(x), CROSSING)
    inverse = CROSSING / large
    # Not the cosine of a difference, which loses digits where x is large.
    turn = np.sqrt(0.5) * np.array([1, -1, -1, 1])[[order % 4, (order + 3) % 4]]
    cos, sin = jnp.cos(large), jnp.sin(large)
    cos, sin = turn[0] * cos + turn[1] * sin, turn[0] * sin - turn[1] * cos
    far = real(inverse) * cos - imaginary(inverse) * sin
    far = far * jnp.sqrt(2 / (np.pi * large))
    value = jnp.where(jnp.abs(x) < CROSSING, small**order * near(small * small), far)
    return jnp.where(x < 0, -value, value) if order % 2 else value


@functools.cache
def _fits_of_i(order: int) -> tuple[_Fit, _Fit]:
    def near(x: Any) -> Any:
        return sc.ive(order, x) * (1 / x + 1) ** order

    def far(inverse: Any) -> Any:
        x = CROSSING / inverse
        return sc.ive(order, x) * np.sqrt(x)

    return _Fit(near, 0.0, CROSSING), _Fit(far, 0.0, 1.0)


def bessel_i(order: int, x: Any) -> Any:
    """Compute the modified Bessel function of the first kind; the order is small as well."""
    # In two factors, of which neither is infinite before the product is.
    half = jnp.exp(jnp.abs(x) / 2)
    if order < 2:
        return half * (jsp.i0e, jsp.i1e)[order](x) * half
    near, far = _fits_of_i(order)
    small = jnp.minimum(jnp.abs(x), CROSSING)
    large = jnp.maximum(jnp.abs(x), CROSSING)
    value = jnp.where(
        jnp.abs(x) < CROSSING,
        (small / (1 + small)) ** order * near(small) * jnp.exp(small),
        half * (far(CROSSING / large) / jnp.sqrt(large)) * half,
    )
    return jnp.where(x < 0, -value, value) if order % 2 else value


@scalar_lower.register(aesm.J0)
def _j0(op: aesm.J0, node: Apply, values: Sequence[Any]) -> Any:
    return bessel_j(0, as_dtype(values[0], out_dtype(node)))


@scalar_lower.register(aesm.J1)
def _j1(op: aesm.J1, node: Apply, values: Sequence[Any]) -> Any:
    return bessel_j(1, as_dtype(values[0], out_dtype(node)))


@scalar_lower.register(aesm.I0)
def _i0(op: aesm.I0, node: Apply, values: Sequence[Any]) -> Any:
    return bessel_i(0, as_dtype(values[0], out_dtype(node)))


@scalar_lower.register(aesm.I1)
def _i1(op: aesm.I1, node: Apply, values: Sequence[Any]) -> Any:
    return bessel_i(1, as_dtype(values[0], out_dtype(node)))


@scalar_lower.register(aesm.Jv)
def _jv(op: aesm.Jv, node: Apply, values: Sequence[Any]) -> Any:
    order = _known_order(values[0])
    found = bessel_j(abs(order), as_dtype(values[1], out_dtype(node)))
    return -found if order < 0 and order % 2 else found


@scalar_lower.register(aesm.Iv)
def _iv(op: aesm.Iv, node: Apply, values: Sequence[Any]) -> Any:
    return bessel_i(abs(_known_order(values[0])), as_dtype(values[1], out_dtype(node)))


def _known_order(order: Any) -> int:
    if is_concrete(order) and np.size(order) == 1:
        number = float(np.reshape(order, ()))
        if number == round(number) and abs(number) <= LARGEST_ORDER:
            return int(number)
    raise NotImplementedError("Bessel functions of other orders than small, known, whole ones")


def owens_t(h: Any, a: Any) -> Any:
    """Compute Owen's T function by Gauss-Legendre quadrature of its integral."""
    h, steep = jnp.abs(h), jnp.abs(a)
    # The integral over a long interval follows from that over a short one (Owen 1956).
    is_long = steep > 1
    short = jnp.where(is_long, 1 / jnp.maximum(steep, 1), steep)
    finite = jnp.where(jnp.isinf(steep), 0, steep)
    found = _integral(jnp.where(is_long, h * finite, h), short)
    tail, far_tail = (jsp.erfc(v / np.sqrt(2)) / 2 for v in (h, h * finite))
    long = (tail + far_tail) / 2 - tail * far_tail - found
    long = jnp.where(jnp.isinf(steep), tail / 2, long)
    found = jnp.where(is_long, long, found)
    return jnp.where(a < 0, -found, found)


def _integral(h: Any, a: Any) -> Any:
    nodes, weights = np.polynomial.legendre.leggauss(32)
    end = jnp.minimum(a, WIDTH / jnp.maximum(h, 1e-6))
    total = jnp.zeros_like(end)
    for node, weight in zip(((nodes + 1) / 2).tolist(), (weights / 2).tolist()):
        square = 1 + (node * end) ** 2
        total = total + weight * jnp.exp(-h * h * square / 2) / square
    return total * end / (2 * np.pi)


@scalar_lower.register(aesm.Owens_t)
def _owens_t(op: aesm.Owens_t, node: Apply, values: Sequence[Any]) -> Any:
    h, a = jnp.broadcast_arrays(*(as_dtype(value, out_dtype(node)) for value in values))
    return owens_t(h, a)
