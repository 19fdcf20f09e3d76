"""The exponential functions of loops over vectors, against extended precision and C's."""

from __future__ import annotations

import math
from typing import Any

import aesara
import aesara.tensor as at
import numpy as np
import pytest

from tests.precision import arguments, units_apart

#: What NumPy computes with 64 bits of mantissa (where the platform has them), and the
#: error that is allowed, in units in the last place.
FUNCTIONS: dict[str, tuple[Any, Any, float]] = {
    "exp": (at.exp, np.exp, 1.0),
    "expm1": (at.expm1, np.expm1, 2.0),
    "log": (at.log, np.log, 1.0),
    "log1p": (at.log1p, np.log1p, 1.5),
    "tanh": (at.tanh, np.tanh, 2.5),
    "sigmoid": (at.sigmoid, lambda x: 1 / (1 + np.exp(-x)), 2.5),
    "softplus": (at.softplus, lambda x: np.log1p(np.exp(x)), 2.5),
}

SPECIAL = [
    0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 709.78, 709.79, -745.13, -745.14, 5e-324,
    -5e-324, 1e-300, -1e-300, 1e308, -1e308, np.nextafter(-1.0, 0.0), -1.5, 37.0, 20.0,
]  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_error_is_within_the_last_places(name: str) -> None:
    symbolic, exact, allowed = FUNCTIONS[name]
    x = at.dvector("x")
    values = arguments()
    with np.errstate(all="ignore"):
        expected = exact(values.astype("longdouble"))
    inside = np.isfinite(expected.astype("float64")) & (np.abs(expected) > 1e-300)
    result = aesara.function([x], symbolic(x), mode="NUMBA_FIXED")(values)
    # Half a unit more where NumPy's extended precision is not more than double.
    slack = 0.0 if np.finfo("longdouble").nmant > 52 else 1.5
    assert np.max(units_apart(result, expected)[inside]) <= allowed + slack


@pytest.mark.parametrize("name", FUNCTIONS)
def test_special_values(name: str) -> None:
    symbolic, exact, _ = FUNCTIONS[name]
    x = at.dvector("x")
    values = np.array(SPECIAL)
    with np.errstate(all="ignore"):
        expected = exact(values.astype("longdouble")).astype("float64")
        if name == "softplus":
            expected = np.logaddexp(0.0, values)  # no overflow on the way
        if name == "sigmoid":
            expected = exact(values)
    result = aesara.function([x], symbolic(x), mode="NUMBA_FIXED")(values)
    np.testing.assert_allclose(result, expected, rtol=1e-15, atol=0)
    zeros = expected == 0
    np.testing.assert_array_equal(np.signbit(result[zeros]), np.signbit(expected[zeros]))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_scalars_short_vectors_and_single_precision_agree(name: str) -> None:
    symbolic, exact, _ = FUNCTIONS[name]
    values = np.array([0.25, 1.5, 3.0])
    x, scalar, single = at.dvector("x"), at.dscalar("scalar"), at.fmatrix("single")
    outputs = [symbolic(v) for v in (x, scalar, single)]
    f = aesara.function([x, scalar, single], outputs, mode="NUMBA_FIXED")
    floats = np.linspace(0.1, 4, 60, dtype="float32").reshape(3, 20)
    short, one, matrix = f(values, 0.25, floats)
    np.testing.assert_allclose(short, exact(values), rtol=1e-15)
    np.testing.assert_allclose(one, exact(0.25), rtol=1e-15)
    assert matrix.dtype == "float32"
    np.testing.assert_allclose(matrix, exact(floats.astype("float64")), rtol=1e-7)


def test_integers_become_floats() -> None:
    x = at.lvector("x")
    values = np.arange(-9, 10)
    f = aesara.function([x], [at.exp(x), at.tanh(x)], mode="NUMBA_FIXED")
    exponential, tangent = f(values)
    np.testing.assert_allclose(exponential, [math.exp(v) for v in values], rtol=1e-15)
    np.testing.assert_allclose(tangent, [math.tanh(v) for v in values], rtol=1e-15)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", ["max", "min"])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_extremes_keep_nan_whatever_its_sign(name: str, axis: int | None, dtype: str) -> None:
    x = at.matrix("x", dtype=dtype)
    f = aesara.function([x], getattr(at, name)(x, axis=axis), mode="NUMBA_FIXED")
    values = np.random.default_rng(2).normal(size=(5, 21)).astype(dtype)
    values[1, 3], values[2, 0], values[3] = np.inf, -np.inf, -np.inf
    for nan in (None, np.nan, -np.nan):
        if nan is not None:
            values[4, 20] = nan
        expected = getattr(np, name)(values, axis=axis)
        result = f(values)
        assert result.dtype == dtype
        np.testing.assert_array_equal(result, expected)


def test_sums_keep_nan_and_infinity() -> None:
    x = at.dmatrix("x")
    f = aesara.function([x], [x.sum(), x.sum(axis=1), x.dot(x[0])], mode="NUMBA_FIXED")
    values = np.ones((4, 33))
    values[1, 7], values[2, 8] = np.nan, np.inf
    total, rows, products = f(values)
    assert np.isnan(total)
    np.testing.assert_array_equal(rows, [33, np.nan, np.inf, 33])
    np.testing.assert_array_equal(products, [33, np.nan, np.inf, 33])
