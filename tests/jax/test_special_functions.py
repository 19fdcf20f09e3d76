"""Bessel functions, Owen's T function, least squares and Lyapunov equations: no Python."""

from __future__ import annotations

import warnings

import aesara
import aesara.tensor as at
import numpy as np
import pytest
import scipy.linalg
import scipy.special as sc
from aesara.tensor import nlinalg, slinalg

from fixed_modes.errors import FixedModesWarning
from fixed_modes.jax.slinalg import LARGEST_LYAPUNOV


@pytest.fixture(autouse=True)
def _nothing_runs_in_python():
    with warnings.catch_warnings():
        warnings.simplefilter("error", FixedModesWarning)
        yield


def evaluate(inputs, outputs, *values):
    return aesara.function(inputs, outputs, mode="JAX_FIXED")(*values)


WIDE = np.concatenate([np.linspace(-40, 40, 4001), np.geomspace(1e-9, 1e3, 500), [0.0, -0.0]])


@pytest.mark.parametrize(
    ("function", "want"),
    [
        (at.j0, sc.j0),
        (at.j1, sc.j1),
        *((lambda x, n=n: at.jv(n, x), lambda x, n=n: sc.jv(n, x)) for n in range(-3, 4)),
    ],
)
def test_bessel_functions_of_the_first_kind(function, want):
    x = at.dvector("x")
    np.testing.assert_allclose(evaluate([x], function(x), WIDE), want(WIDE), atol=2e-14)
    small = np.geomspace(1e-9, 1, 300)
    np.testing.assert_allclose(evaluate([x], function(x), small), want(small), rtol=3e-14)
    special = np.array([np.nan, 8.0, -8.0])
    np.testing.assert_allclose(evaluate([x], function(x), special), want(special), rtol=1e-13)
    y = at.fvector("y")
    single = evaluate([y], function(y), WIDE.astype("float32"))
    assert single.dtype == "float32"
    np.testing.assert_allclose(single, want(WIDE.astype("float32")), atol=2e-6)


@pytest.mark.parametrize(
    ("function", "want"),
    [
        (at.i0, sc.i0),
        (at.i1, sc.i1),
        *((lambda x, n=n: at.iv(n, x), lambda x, n=n: sc.iv(n, x)) for n in range(-3, 4)),
    ],
)
def test_modified_bessel_functions(function, want):
    x = at.dvector("x")
    values = np.concatenate([np.linspace(-709, 709, 3001), np.geomspace(1e-9, 10, 500)])
    np.testing.assert_allclose(evaluate([x], function(x), values), want(values), rtol=3e-13)
    special = np.array([0.0, np.nan, 800.0, -800.0])
    np.testing.assert_array_equal(evaluate([x], function(x), special), want(special))


def test_gradients_of_bessel_functions_in_a_loop():
    x = at.dvector("x")
    rows, _ = aesara.scan(
        lambda row, total: total + at.j1(row) * at.i1(row),
        sequences=[x],
        outputs_info=[np.float64(0)],
    )
    slope = evaluate([x], at.grad(rows[-1], x), WIDE[:50] / 10)
    v = WIDE[:50] / 10
    want = sc.jvp(1, v) * sc.i1(v) + sc.j1(v) * sc.ivp(1, v)
    np.testing.assert_allclose(slope, want, rtol=1e-12, atol=1e-13)


def test_owens_t():
    h, a = at.dvectors("h", "a")
    rng = np.random.default_rng(1)
    hs = np.concatenate([rng.normal(0, 3, 5000), rng.uniform(-30, 30, 1000)])
    slopes = np.concatenate([rng.normal(0, 2, 5000), rng.standard_cauchy(1000)])
    special = np.array([0, 1, np.inf, np.nan, -np.inf, -2.0, 1e-300, 1e300])
    pairs = np.array([(p, q) for p in special for q in special]).T
    f = aesara.function([h, a], at.owens_t(h, a), mode="JAX_FIXED")
    np.testing.assert_allclose(f(hs, slopes), sc.owens_t(hs, slopes), rtol=1e-9, atol=2e-16)
    np.testing.assert_allclose(f(*pairs), sc.owens_t(*pairs), rtol=1e-12, atol=1e-300)


@pytest.mark.parametrize("rcond", [-1.0, 0.0, 1e-8, 0.3, 1.0])
@pytest.mark.parametrize("shape", [(7, 3), (3, 7), (4, 4), (0, 3), (3, 0), (1, 1)])
@pytest.mark.parametrize("is_deficient", [False, True])
def test_least_squares(shape, rcond, is_deficient):
    x, y, limit = at.dmatrix("x"), at.dmatrix("y"), at.dscalar("limit")
    rng = np.random.default_rng(2)
    matrix, right = rng.normal(size=shape), rng.normal(size=(shape[0], 2))
    if is_deficient and min(shape):
        if rcond in (-1.0, 0.0, 1.0):
            matrix = np.zeros(shape)  # anything else has a rank that rounding decides
        else:
            matrix = np.outer(matrix[:, 0], np.arange(1.0, shape[1] + 1))
    found = evaluate([x, y, limit], nlinalg.lstsq(x, y, limit), matrix, right, rcond)
    for got, want in zip(found, np.linalg.lstsq(matrix, right, rcond)):
        assert got.shape == np.shape(want)
        np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-13)


def test_least_squares_in_a_loop():
    x, y = at.dtensor3("x"), at.dtensor3("y")
    out, _ = aesara.scan(lambda x, y: nlinalg.lstsq(x, y, 1e-10)[0], sequences=[x, y])
    rng = np.random.default_rng(3)
    matrices, rights = rng.normal(size=(4, 6, 3)), rng.normal(size=(4, 6, 1))
    got = evaluate([x, y], out, matrices, rights)
    for result, matrix, right in zip(got, matrices, rights):
        want = np.linalg.solve(matrix.T @ matrix, matrix.T @ right)
        np.testing.assert_allclose(result, want, rtol=1e-10)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("size", [0, 1, 2, 5, LARGEST_LYAPUNOV])
def test_lyapunov_equations(size, dtype):
    a, q = at.matrix("a", dtype=dtype), at.matrix("q", dtype=dtype)
    rng = np.random.default_rng(size)
    matrix, right = rng.normal(size=(2, size, size)).astype(dtype)
    if dtype == "complex128":
        matrix, right = matrix + 1j * right.T, right - 2j * matrix
    matrix = matrix / (2 * np.sqrt(size or 1)) - np.eye(size) / 4
    continuous = slinalg.solve_continuous_lyapunov(a, q)
    discrete = slinalg.solve_discrete_lyapunov(a, q, method="bilinear")
    first, second = evaluate([a, q], [continuous, discrete], matrix, right)
    assert first.dtype == second.dtype == dtype
    assert first.shape == second.shape == (size, size)
    adjoint = matrix.conj().T
    np.testing.assert_allclose(matrix @ first + first @ adjoint, right, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(second - matrix @ second @ adjoint, right, rtol=1e-8, atol=1e-10)
    if size:
        want = scipy.linalg.solve_continuous_lyapunov(matrix, right)
        np.testing.assert_allclose(first, want, rtol=1e-8, atol=1e-10)
        want = scipy.linalg.solve_discrete_lyapunov(matrix, right, method="bilinear")
        np.testing.assert_allclose(second, want, rtol=1e-8, atol=1e-10)


def test_lyapunov_equation_that_scipy_refuses():
    a, q = at.dmatrix("a"), at.dmatrix("q")
    f = aesara.function([a, q], slinalg.solve_continuous_lyapunov(a, q), mode="JAX_FIXED")
    with pytest.raises(ValueError, match="should be square"):
        f(np.ones((2, 3)), np.ones((2, 2)))
    with pytest.raises(ValueError, match="must not contain infs or NaNs"):
        f(np.full((2, 2), np.nan), np.ones((2, 2)))
    with pytest.raises(ValueError, match="should have the same shape"):
        f(np.eye(2), np.ones((3, 3)))
