"""Positions of largest entries, by each way of searching."""

import aesara
import aesara.tensor as at
import jax
import numpy as np
import pytest
from jax.experimental import enable_x64

from fixed_modes.jax import extremes

SHAPES = [
    ((3,), 0), ((16,), 0), ((17,), 0), ((64,), 0), ((1003,), 0), ((8, 8), 0), ((8, 8), 1),
    ((40, 9), 0), ((9, 40), 1), ((2, 70), 1), ((70, 2), 0), ((16, 300), 0), ((5, 6, 7), 1),
    ((1, 8), 0), ((4, 1), 0),
]  # fmt: skip

DTYPES = ["float64", "float32", "int8", "uint8", "int64", "bool"]


def entries(shape, dtype, seed=3):
    """Few different numbers, so that the largest one is there more than once."""
    rng = np.random.default_rng(seed)
    return rng.integers(-3, 4, shape).astype(dtype)


def both(x, axis):
    variable = at.TensorType(str(x.dtype), (None,) * x.ndim)("x")
    function = aesara.function(
        [variable], list(at.max_and_argmax(variable, axis)), mode="JAX_FIXED"
    )
    return function(x)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("shape", "axis"), SHAPES)
def test_finds_the_first_of_equal_ones(shape, axis, dtype):
    x = entries(shape, dtype)
    largest, position = both(x, axis)
    np.testing.assert_array_equal(largest, x.max(axis))
    np.testing.assert_array_equal(position, x.argmax(axis))
    assert largest.dtype == dtype


@pytest.mark.parametrize(("shape", "axis"), SHAPES)
def test_the_first_nan_is_the_largest(shape, axis):
    x = entries(shape, "float64")
    x[np.random.default_rng(5).random(shape) < 0.2] = np.nan
    x[np.random.default_rng(6).random(shape) < 0.1] = np.inf
    largest, position = both(x, axis)
    np.testing.assert_array_equal(largest, x.max(axis))
    np.testing.assert_array_equal(position, x.argmax(axis))
    assert position.dtype == "int64"


@pytest.mark.parametrize("shape", [(8, 9), (40, 9), (200,)])
@pytest.mark.parametrize("value", [-np.inf, np.nan])
def test_nothing_is_larger_than_the_first_entry(shape, value):
    largest, position = both(np.full(shape, value), 0)
    np.testing.assert_array_equal(largest, np.full(shape[1:], value))
    np.testing.assert_array_equal(position, np.zeros(shape[1:]))


@pytest.mark.parametrize("axis", [None, (0, 2), (2, 1)])
def test_several_axes_count_as_one(axis):
    x = entries((4, 9, 6), "float64")
    largest, position = both(x, axis)
    axes = tuple(range(3)) if axis is None else tuple(sorted(axis))
    kept = [a for a in range(3) if a not in axes]
    flat = x.transpose((*kept, *axes)).reshape((*(x.shape[a] for a in kept), -1))
    np.testing.assert_array_equal(largest, flat.max(-1))
    np.testing.assert_array_equal(position, flat.argmax(-1))


@pytest.mark.parametrize("shape", [(0,), (0, 9)])
def test_nothing_to_search_raises(shape):
    with pytest.raises(ValueError, match=r"empty|zero-size"):
        both(np.zeros(shape), 0)


@pytest.mark.parametrize(("shape", "axis"), SHAPES)
def test_derivatives_are_those_of_the_maximum(shape, axis):
    x = np.random.default_rng(7).random(shape)
    with enable_x64():
        found = jax.grad(lambda x: (extremes.max_and_argmax(x, (axis,))[0] ** 2).sum())(x)
    expected = np.where(x == x.max(axis, keepdims=True), 2 * x, 0)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_a_map_and_a_loop_of_positions():
    x = entries((30, 20, 9), "float64")
    variable = at.tensor3("x")

    def step(rows, state):
        largest, position = at.max_and_argmax(rows + state, axis=0)
        return largest - 2 * state, position

    results, _ = aesara.scan(step, sequences=[variable], outputs_info=[at.zeros(9), None])
    states, positions = aesara.function([variable], results, mode="JAX_FIXED")(x)
    state = np.zeros(9)
    for t in range(30):
        rows = x[t] + state
        state = rows.max(0) - 2 * state
        np.testing.assert_array_equal(states[t], state)
        np.testing.assert_array_equal(positions[t], rows.argmax(0))
    mapped, _ = aesara.map(lambda rows: at.argmax(rows, axis=1), [variable])
    found = aesara.function([variable], mapped, mode="JAX_FIXED")(x)
    np.testing.assert_array_equal(found, x.argmax(2))
