"""Linear equations in loops: of few rows, and without Python."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import aesara
import aesara.tensor as at
import jax
import jax.experimental
import numpy as np
import pytest
import scipy.linalg
from aesara.tensor import nlinalg, slinalg

import fixed_modes
from fixed_modes.errors import FixedModesWarning

MODES = ["NUMBA_FIXED", "JAX_FIXED"]
SIZES = [1, 2, 5, 17, 60]
STEPS = 4


@pytest.fixture(autouse=True)
def compiled() -> Iterator[None]:
    """See that nothing runs in Python: that is warned of."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", FixedModesWarning)
        yield


def _matrix(size: int, kind: str) -> np.ndarray:
    a = np.random.default_rng(size).normal(size=(size, size))
    return a + 0.1 * np.eye(size) if kind == "gen" else a @ a.T / size + np.eye(size)


def _loop(step: Any, a: Any, b: Any) -> Any:
    states, _ = aesara.scan(step, outputs_info=[b], non_sequences=[a], n_steps=STEPS)
    return states[-1]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("kind", ["gen", "sym", "pos"])
def test_solve(kind: str, lower: bool, size: int, mode: str) -> None:
    a, b, c = at.dmatrix("a"), at.dvector("b"), at.dmatrix("c")
    outputs = [
        _loop(lambda x, a: slinalg.solve(a, x, assume_a=kind, lower=lower), a, b),
        slinalg.solve(a, c, assume_a=kind, lower=lower),
    ]
    f = aesara.function([a, b, c], outputs, mode=mode)
    matrix, sides = _matrix(size, kind), np.random.default_rng(0).normal(size=(size, 3))
    # Of a symmetric matrix one triangle is read.
    given = matrix if kind == "gen" else np.tril(matrix) if lower else np.triu(matrix)
    found, single = f(given, sides[:, 0], sides)
    expected = sides[:, 0]
    for _ in range(STEPS):
        expected = np.linalg.solve(matrix, expected)
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(single, np.linalg.solve(matrix, sides), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("size", SIZES)
def test_factors_inverses_and_triangles(size: int, mode: str) -> None:
    a = at.dmatrix("a")
    results, _ = aesara.scan(
        lambda k, a: [
            slinalg.cholesky(a * k),
            nlinalg.matrix_inverse(a + k),
            slinalg.solve_triangular(a, a[:, 0], lower=True, trans=1),
            slinalg.solve_triangular(a, a * k, lower=False),
            slinalg.cho_solve((a, False), a[0]),
            slinalg.cho_solve((a, True), a),
        ],
        sequences=[at.arange(1.0, 3.0)],
        non_sequences=[a],
    )
    matrix = _matrix(size, "pos")
    found = aesara.function([a], results, mode=mode)(matrix)
    for n, k in enumerate((1.0, 2.0)):
        expected = [
            np.linalg.cholesky(matrix * k),
            np.linalg.inv(matrix + k),
            scipy.linalg.solve_triangular(matrix, matrix[:, 0], lower=True, trans=1),
            scipy.linalg.solve_triangular(matrix, matrix * k),
            scipy.linalg.cho_solve((matrix, False), matrix[0]),
            scipy.linalg.cho_solve((matrix, True), matrix),
        ]
        for value, wanted in zip(found, expected):
            np.testing.assert_allclose(value[n], wanted, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("mode", MODES)
def test_rows_have_to_change_places(mode: str) -> None:
    a, b = at.dmatrix("a"), at.dvector("b")
    f = aesara.function([a, b], _loop(lambda x, a: slinalg.solve(a, x), a, b), mode=mode)
    matrix = np.array([[0.0, 2.0, 0.0], [0.0, 0.0, -4.0], [0.5, 0.0, 0.0]])
    expected = np.array([1.0, 2.0, 3.0])
    for _ in range(STEPS):
        expected = np.linalg.solve(matrix, expected)
    np.testing.assert_allclose(f(matrix, np.array([1.0, 2.0, 3.0])), expected, rtol=1e-14)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ["gen", "sym", "pos"])
def test_what_has_no_solution(kind: str, mode: str) -> None:
    a, b = at.dmatrix("a"), at.dvector("b")
    f = aesara.function(
        [a, b], _loop(lambda x, a: slinalg.solve(a, x, assume_a=kind), a, b), mode=mode
    )
    for matrix in (np.zeros((2, 2)), np.ones((3, 3))):
        with pytest.raises(np.linalg.LinAlgError):
            f(matrix, np.ones(len(matrix)))
    for matrix, sides in ((np.ones((2, 3)), 2), (np.eye(2), 3), (np.eye(2) * np.nan, 2)):
        with pytest.raises(ValueError, match=r"square|incompatible|infs or NaNs|dimensions"):
            f(matrix, np.ones(sides))
    np.testing.assert_array_equal(f(np.eye(2), np.ones(2)), np.ones(2))


@pytest.mark.parametrize("mode", MODES)
def test_single_precision_and_integers(mode: str) -> None:
    a, b = at.fmatrix("a"), at.fvector("b")
    matrix, sides = _matrix(4, "gen").astype("float32"), np.arange(4, dtype="float32")
    found = aesara.function([a, b], slinalg.solve(a, b), mode=mode)(matrix, sides)
    assert found.dtype == "float32"
    np.testing.assert_allclose(found, np.linalg.solve(matrix, sides), rtol=1e-4)
    k, c = at.lmatrix("k"), at.dvector("c")
    solved = aesara.function([k, c], slinalg.solve(k, c), mode=mode)
    np.testing.assert_allclose(solved(np.array([[2, 1], [1, 3]]), np.ones(2)), [0.4, 0.2])


def test_jax_differentiates_and_vectorises_small_equations() -> None:
    a, b = at.dmatrix("a"), at.dvector("b")
    function = fixed_modes.jax_function([a, b], [slinalg.solve(a, b), slinalg.cholesky(a)])
    matrix, sides = _matrix(3, "pos"), np.array([1.0, -2.0, 0.5])
    with jax.experimental.enable_x64():
        slope = jax.grad(lambda a: function(a, sides)[0].sum())(matrix)
        many, _ = jax.vmap(function)(np.stack([matrix, 2 * matrix]), np.stack([sides, sides]))
        factor = jax.jacobian(lambda k: function(k * matrix, sides)[1])(4.0)
    x = np.linalg.solve(matrix, sides)
    expected = -np.outer(np.linalg.solve(matrix.T, np.ones(3)), x)
    np.testing.assert_allclose(slope, expected, rtol=1e-10)
    np.testing.assert_allclose(many, [x, x / 2], rtol=1e-12)
    # The factor grows with the root.
    np.testing.assert_allclose(factor, np.linalg.cholesky(matrix) / 4, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize(("size", "is_called"), [(2, False), (48, False), (60, True)])
def test_lapack_is_called_for_large_matrices_alone(size: int, is_called: bool) -> None:
    a, b = at.dmatrix("a"), at.dvector("b")
    outputs = [
        slinalg.solve(a, b),
        nlinalg.matrix_inverse(a),
        slinalg.solve(a, b, assume_a="pos"),
        slinalg.solve_triangular(a, b, lower=True),
        slinalg.cho_solve((a, True), b),
        slinalg.cholesky(a),
    ]
    for output in outputs:
        function = fixed_modes.jax_function([a, b], [output])
        with jax.experimental.enable_x64():
            text = jax.jit(function).lower(np.eye(size), np.ones(size)).compile().as_text()
        assert ("custom-call" in text) == is_called
