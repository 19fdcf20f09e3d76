"""Loops over rows so short that they are written out, and the same code with longer ones."""

import aesara
import aesara.tensor as at
import numpy as np
import pytest

import fixed_modes


def forces():
    """Differences, sums over the last axis and over one in the middle, in a loop."""
    x, v = at.dmatrix("x"), at.dmatrix("v")

    def step(x, v):
        differences = x[None] - x[:, None]
        distances = (differences**2).sum(axis=-1) + 0.5
        v = v + (differences / distances[:, :, None]).sum(axis=1)
        return x + 0.01 * v, v

    (xs, vs), _ = aesara.scan(step, outputs_info=[x, v], n_steps=4)
    return aesara.function([x, v], [xs, vs[-1]], mode="NUMBA_FIXED")


def forces_by_numpy(x, v):
    xs = []
    for _ in range(4):
        differences = x[None] - x[:, None]
        distances = (differences**2).sum(axis=-1) + 0.5
        v = v + (differences / distances[:, :, None]).sum(axis=1)
        x = x + 0.01 * v
        xs.append(x)
    return np.stack(xs), v


def test_one_function_for_all_lengths():
    function = forces()
    rng = np.random.default_rng(4)
    for columns in (3, 0, 1, 4, 5, 2, 9, 3, 17, 4):
        for rows in (1, 5, 0):
            x, v = rng.normal(size=(rows, columns)), rng.normal(size=(rows, columns))
            for found, expected in zip(function(x, v), forces_by_numpy(x, v)):
                assert found.shape == expected.shape
                np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)


def test_short_rows_are_written_out():
    function = forces()
    short, long = np.ones((5, 3)), np.ones((5, 9))
    function(short, short)
    assert ", 4))" in fixed_modes.numba_source(function)
    assert "plus(" not in fixed_modes.numba_source(function)
    function(long, long)
    assert ", 4))" not in fixed_modes.numba_source(function)
    assert "plus(" in fixed_modes.numba_source(function)


@pytest.mark.parametrize("dtype", ["float32", "int8", "uint16", "bool", "complex128"])
@pytest.mark.parametrize("columns", [0, 1, 2, 3, 4, 5])
def test_dtypes(dtype, columns):
    x = at.TensorType(dtype, (None, None, None))("x")
    results, _ = aesara.map(lambda rows: (rows.sum(axis=1), rows.prod(axis=0), rows + rows), [x])
    function = aesara.function([x], results, mode="NUMBA_FIXED")
    values = np.random.default_rng(columns).integers(0, 4, (6, 3, columns)).astype(dtype)
    sums, products, doubled = function(values)
    np.testing.assert_allclose(sums, values.sum(axis=2).astype(sums.dtype), rtol=1e-6)
    np.testing.assert_allclose(products, values.prod(axis=1).astype(products.dtype), rtol=1e-6)
    np.testing.assert_array_equal(doubled, values + values)
