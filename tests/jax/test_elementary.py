"""Elementary functions in double precision, against extended precision."""

from __future__ import annotations

from typing import Any

import aesara
import aesara.tensor as at
import numpy as np
import pytest

import fixed_modes
from tests.precision import arguments, units_apart

#: What NumPy computes with 64 bits of mantissa (where the platform has them), and the
#: error that is allowed, in units in the last place.
FUNCTIONS: dict[str, tuple[Any, Any, float]] = {
    "exp": (at.exp, np.exp, 2.0),
    "exp2": (at.exp2, np.exp2, 2.0),
    "expm1": (at.expm1, np.expm1, 3.0),
    "log": (at.log, np.log, 1.0),
    "log1p": (at.log1p, np.log1p, 1.5),
    "tanh": (at.tanh, np.tanh, 3.0),
    "cosh": (at.cosh, np.cosh, 4.0),
    "sinh": (at.sinh, np.sinh, 4.0),
    "sigmoid": (at.sigmoid, lambda x: 1 / (1 + np.exp(-x)), 3.0),
    "sin": (at.sin, np.sin, 1.5),
    "cos": (at.cos, np.cos, 1.5),
}

#: At each size JAX's functions and our own may take turns.
SIZES = [1, 6, 40, 300, 1000, 9000]

SPECIAL = [
    0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 709.78, 709.79, -700.0, -745.14, 1e-300,
    -1e-300, 1e308, -1e308, np.nextafter(-1.0, 0.0), -1.5, 37.0, 20.0, 1e6, 1.1e6, -1e22,
]  # fmt: skip


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_error_is_within_the_last_places(name: str, size: int) -> None:
    symbolic, exact, allowed = FUNCTIONS[name]
    x = at.dmatrix("x")
    values = arguments()[: 9000 - 9000 % size]
    with np.errstate(all="ignore"):
        expected = exact(values.astype("longdouble"))
    inside = np.isfinite(expected.astype("float64")) & (np.abs(expected) > 1e-300)
    # One row a step, so that the functions see so many elements at a time.
    start = at.dvector("start")
    rows, _ = aesara.scan(
        lambda row, before: symbolic(row) + 0 * before.sum(),
        sequences=[x],
        outputs_info=[start],
    )
    f = aesara.function([start, x], rows, mode="JAX_FIXED")
    chosen = values.reshape(-1, size)[:200]
    safe = np.where(inside.reshape(-1, size)[:200], chosen, 0.5)
    result = f(np.zeros(size), safe).ravel()
    inside, expected = inside[: result.size], expected[: result.size]
    # Half a unit more where NumPy's extended precision is not more than double.
    slack = 0.0 if np.finfo("longdouble").nmant > 52 else 1.5
    assert inside.sum() > 0.4 * result.size
    assert np.max(units_apart(result, expected)[inside]) <= allowed + slack


@pytest.mark.parametrize("repeats", [1, 3, 400])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_special_values(name: str, repeats: int) -> None:
    symbolic, exact, _ = FUNCTIONS[name]
    x = at.dvector("x")
    values = np.tile(SPECIAL, repeats)
    with np.errstate(all="ignore"):
        expected = exact(values.astype("longdouble")).astype("float64")
        if name == "sigmoid":
            expected = exact(values)
    result = aesara.function([x], symbolic(x), mode="JAX_FIXED")(values)
    # XLA takes numbers that are not normal for zero.
    np.testing.assert_allclose(result, expected, rtol=2e-15, atol=3e-308)
    zeros = (expected == 0) & (result == 0)
    np.testing.assert_array_equal(np.signbit(result[zeros]), np.signbit(expected[zeros]))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_scalars_and_single_precision_agree(name: str) -> None:
    symbolic, exact, _ = FUNCTIONS[name]
    values = np.array([0.25, 1.5, 3.0])
    scalar, single = at.dscalar("scalar"), at.fmatrix("single")
    f = aesara.function([scalar, single], [symbolic(scalar), symbolic(single)], mode="JAX_FIXED")
    for value in values:
        of_scalar, of_single = f(value, values.astype("float32")[:, None])
        np.testing.assert_allclose(of_scalar, exact(value), rtol=1e-15)
        assert of_single.dtype == np.float32
        np.testing.assert_allclose(of_single[:, 0], exact(values), rtol=2e-6)


def test_large_results_in_single_precision() -> None:
    x = at.fvector("x")
    values = np.array([-88.5, -63.0, -20.3, 7.7, 44.1, 88.0, 89.1], "float32")
    for symbolic, exact in ((at.cosh, np.cosh), (at.sinh, np.sinh), (at.exp2, np.exp2)):
        result = aesara.function([x], symbolic(x), mode="JAX_FIXED")(values)
        expected = exact(values.astype("float64"))
        assert result.dtype == np.float32
        np.testing.assert_allclose(result, expected, rtol=5e-7)


def test_powers_of_two_are_exact_in_both_precisions() -> None:
    double, single = at.dvector("double"), at.fvector("single")
    f = aesara.function([double, single], [at.exp2(double), at.exp2(single)], mode="JAX_FIXED")
    exponents, short = np.arange(-1022.0, 1026.0), np.arange(-126, 130, dtype="float32")
    of_double, of_single = f(exponents, short)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(of_double, np.ldexp(1.0, exponents.astype(int)))
        np.testing.assert_array_equal(of_single, np.ldexp(np.float32(1), short.astype(int)))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives_by_jax(name: str) -> None:
    import jax

    jax.config.update("jax_enable_x64", True)
    symbolic = FUNCTIONS[name][0]
    x = at.dvector("x")
    values = np.linspace(0.3, 2.0, 50)
    total = symbolic(x).sum()
    slope = aesara.grad(total, x)
    curvature = aesara.grad(slope.sum(), x)
    expected = aesara.function([x], [slope, curvature], mode="FAST_COMPILE")(values)
    f = fixed_modes.jax_function([x], total)
    np.testing.assert_allclose(jax.jit(jax.grad(f))(values), expected[0], rtol=1e-12)
    second = jax.grad(lambda v: jax.grad(f)(v).sum())
    np.testing.assert_allclose(second(values), expected[1], rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(jax.jvp(f, (values,), (values,))[1], expected[0] @ values)
    rows = np.stack([values, values + 1])
    np.testing.assert_allclose(jax.vmap(f)(rows), [f(rows[0]), f(rows[1])], rtol=1e-14)


def test_a_large_angle_among_small_ones() -> None:
    x = at.dvector("x")
    f = aesara.function([x], [at.sin(x), at.cos(x)], mode="JAX_FIXED")
    values = np.linspace(-3, 3, 30)
    for large in (1.5e6, -3e15, 1e300):
        values[7] = large
        sines, cosines = f(values)
        np.testing.assert_allclose(sines, np.sin(values), rtol=1e-15)
        np.testing.assert_allclose(cosines, np.cos(values), rtol=1e-14)


def test_near_multiples_of_a_quarter_turn() -> None:
    # The difference to a multiple of pi / 2 is what counts there.
    x = at.dvector("x")
    values = np.arange(1, 5000) * (np.pi / 2)
    exact = values.astype("longdouble")
    sines, cosines = aesara.function([x], [at.sin(x), at.cos(x)], mode="JAX_FIXED")(values)
    if np.finfo("longdouble").nmant > 52:
        assert np.max(units_apart(sines, np.sin(exact))) < 1.5
        assert np.max(units_apart(cosines, np.cos(exact))) < 1.5
    np.testing.assert_allclose(sines, np.sin(values), rtol=1e-15)
    np.testing.assert_allclose(cosines, np.cos(values), rtol=1e-15)
