"""Functions of arrays with many short rows, which are computed before the nest that needs them."""

from __future__ import annotations

from typing import Any

import aesara
import aesara.tensor as at
import numpy as np
import pytest

import fixed_modes

SHAPES = [(6, 6), (2, 7), (16, 1), (3, 5), (5, 4, 3), (2, 20), (0, 5)]
FORMULAS = {
    "terms of sums": lambda lib, row, a: lib.exp(row + a).sum(axis=0),
    "terms of one sum": lambda lib, row, a: lib.exp(row + a).sum(),
    "terms along rows": lambda lib, row, a: (a - lib.exp(row - a)).sum(axis=-1),
    "whole": lambda lib, row, a: lib.exp(row * a),
    "inside": lambda lib, row, a: row - lib.log1p(a * a) * row,
    "of each other": lambda lib, row, a: lib.log1p(lib.exp(row * a)) * lib.tanh(a - row),
    "of each other, whole": lambda lib, row, a: lib.log(lib.exp(lib.tanh(a)) + lib.expm1(row**2)),
    "used twice": lambda lib, row, a: lib.exp(row + a) * (1.0 + lib.exp(row + a)),
    "two results": lambda lib, row, a: (lib.exp(row + a) - a).sum(axis=0) * lib.exp(row),
}


def _arrays(shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    return rng.normal(size=(3, *shape[1:])), rng.normal(size=shape)


def _function(formula: Any, ndim: int, dtype: str = "float64") -> Any:
    """Give a function of rows and an array; the array is halved from step to step."""
    rows, array = (at.TensorType(dtype, (None,) * ndim)(name) for name in ("rows", "array"))
    half = np.asarray(0.5, dtype)
    (result, _), _ = aesara.scan(
        # What depends on rows and arrays alone would be computed before the loop.
        lambda row, factor, a: (formula(at, row, a * factor), factor * half),
        sequences=[rows],
        outputs_info=[None, at.constant(np.asarray(1.0, dtype))],
        non_sequences=[array],
    )
    return aesara.function([rows, array], result, mode="NUMBA_FIXED")


def _expected(formula: Any, rows: np.ndarray, array: np.ndarray) -> np.ndarray:
    factors = np.asarray([1.0, 0.5, 0.25], array.dtype)
    return np.array([formula(np, row, array * factor) for row, factor in zip(rows, factors)])


@pytest.mark.parametrize("name", FORMULAS)
def test_in_a_loop(name: str) -> None:
    functions = {ndim: _function(FORMULAS[name], ndim) for ndim in (2, 3)}
    # One function for all shapes: the code for one must not be used for another.
    for shape in SHAPES:
        rows, array = _arrays(shape)
        result = functions[len(shape)](rows, array)
        right = _expected(FORMULAS[name], rows, array)
        np.testing.assert_allclose(result, right, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("name", FORMULAS)
def test_in_single_precision(name: str) -> None:
    rows, array = (x.astype("float32") for x in _arrays((6, 6)))
    result = _function(FORMULAS[name], 2, "float32")(rows, array)
    assert result.dtype == np.float32
    right = _expected(FORMULAS[name], rows, array)
    np.testing.assert_allclose(result, right, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("shape", SHAPES)
def test_outside_of_loops(shape: tuple[int, ...]) -> None:
    row = at.TensorType("float64", (None,) * (len(shape) - 1))("row")
    array = at.TensorType("float64", (None,) * len(shape))("array")
    f = aesara.function([row, array], at.exp(row + array), mode="NUMBA_FIXED")
    rows, values = _arrays(shape)
    np.testing.assert_allclose(f(rows[0], values), np.exp(rows[0] + values), rtol=1e-13)
    # Not in C order.
    turned = np.asfortranarray(values)
    np.testing.assert_allclose(f(rows[0], turned), np.exp(rows[0] + values), rtol=1e-13)


def test_special_values() -> None:
    special = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 710.0, -750.0, 1e-310])
    array = np.stack([np.roll(special, n)[:5] for n in range(8)])
    with np.errstate(all="ignore"):
        for name in ("whole", "inside", "terms along rows"):
            rows = np.ones((2, 5))
            result = _function(FORMULAS[name], 2)(rows, array)
            right = _expected(FORMULAS[name], rows, array)
            np.testing.assert_allclose(result, right, rtol=1e-13)


def test_it_is_one_loop() -> None:
    f = _function(FORMULAS["terms of sums"], 2)
    f(*_arrays((6, 6)))
    source = fixed_modes.numba_source(f)
    assert "vector_exp(" in source
    assert "math.exp" not in source
