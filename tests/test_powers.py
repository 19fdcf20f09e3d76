"""Powers with a constant exponent, which are computed by a root."""

import aesara
import aesara.tensor as at
import jax
import numpy as np
import pytest
from jax.experimental import enable_x64

import fixed_modes

MODES = ["NUMBA_FIXED", "JAX_FIXED"]
EXPONENTS = [1.5, -1.5]
SPECIAL = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -1.0, 1.0])
RANGE = np.array([1e-200, 1e-190, 3e-12, 0.3, 2.3, 9.0, 7e55, 1e200, 1e300])


def power(x, exponent):
    with np.errstate(all="ignore"):
        return np.power(x, exponent)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("exponent", EXPONENTS)
def test_values_and_slopes(mode, exponent):
    x = at.dvector("x")
    y = x**exponent
    values, slopes = aesara.function([x], [y, at.grad(y.sum(), x)], mode=mode)(RANGE)
    np.testing.assert_allclose(values, power(RANGE, exponent), rtol=1e-15)
    np.testing.assert_allclose(slopes, exponent * power(RANGE, exponent - 1), rtol=2e-15)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("exponent", EXPONENTS)
def test_zeros_infinities_and_nan(mode, exponent):
    x = at.dvector("x")
    found = aesara.function([x], x**exponent, mode=mode)(SPECIAL)
    expected = power(SPECIAL, exponent)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(np.signbit(found[~np.isnan(found)]), False)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("exponent", EXPONENTS)
@pytest.mark.parametrize("dtype", ["int8", "int64", "float32", "float64", "complex128"])
def test_dtypes_in_a_loop(mode, exponent, dtype):
    x = at.TensorType(dtype, (None,))("x")
    rows, _ = aesara.map(lambda r: r ** np.array(exponent, "float64"), [x])
    values = np.array([1, 2, 3, 100], dtype)
    found = aesara.function([x], rows, mode=mode)(values)
    expected = power(values.astype(rows.dtype), exponent)
    rtol = 4 * np.finfo(found.dtype).eps
    np.testing.assert_allclose(found, expected, rtol=rtol)
    assert found.dtype == rows.dtype


@pytest.mark.parametrize("mode", MODES)
def test_exponents_with_axes_broadcast(mode):
    x = at.dvector("x")
    y = x ** at.constant(np.full((1, 1), 1.5))
    found = aesara.function([x], y, mode=mode)(RANGE)
    np.testing.assert_allclose(found, power(RANGE, 1.5)[None, :], rtol=1e-15)


@pytest.mark.parametrize("exponent", EXPONENTS)
def test_derivatives_through_the_jax_function(exponent):
    x = at.dscalar("x")
    function = fixed_modes.jax_function([x], x**exponent)
    with enable_x64():
        first = jax.grad(function)
        for value in (0.25, 3.0):
            slope, curvature = first(value), jax.grad(first)(value)
            np.testing.assert_allclose(slope, exponent * value ** (exponent - 1), rtol=1e-14)
            expected = exponent * (exponent - 1) * value ** (exponent - 2)
            np.testing.assert_allclose(curvature, expected, rtol=1e-14)
        assert exponent < 0 or first(0.0) == 0
