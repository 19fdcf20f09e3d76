"""Products with vectors, of matrices in any layout and of any size."""

from __future__ import annotations

import aesara
import aesara.tensor as at
import numpy as np
import pytest

SIZES = [(3, 4), (40, 70), (130, 128), (300, 301), (0, 3), (3, 0), (1, 9)]


@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128", "int64"])
def test_products_of_rows_and_columns(dtype: str) -> None:
    w = at.matrix("w", dtype=dtype)
    a, b = at.vector("a", dtype=dtype), at.vector("b", dtype=dtype)
    products = [w.dot(a), b.dot(w), w.T.dot(b), a.dot(w.T), a.dot(a), w.T.T.dot(a)]
    products += [w[::-1].dot(a), b.dot(w[:, ::-1])]
    f = aesara.function([w, a, b], products, mode="NUMBA_FIXED")
    rng = np.random.default_rng(5)
    relative, absolute = (1e-4, 1e-2) if dtype == "float32" else (1e-11, 1e-10)
    for rows, columns in SIZES:
        m, x, y = (
            (5 * rng.normal(size=shape)).astype(dtype) for shape in ((rows, columns), columns, rows)
        )
        expected = [m @ x, y @ m, m.T @ y, x @ m.T, x @ x, m @ x, m[::-1] @ x, y @ m[:, ::-1]]
        for matrix in (m, np.asfortranarray(m)):
            for result, value in zip(f(matrix, x, y), expected):
                assert result.dtype == value.dtype
                np.testing.assert_allclose(result, value, rtol=relative, atol=absolute)


@pytest.mark.parametrize("size", [5, 33, 100])
def test_transposed_matrix_in_a_loop(size: int) -> None:
    w, x = at.dmatrix("w"), at.dvector("x")
    states, _ = aesara.scan(
        lambda h, w: at.tanh(w.T.dot(h) + w.dot(h)), outputs_info=x, non_sequences=w, n_steps=3
    )
    f = aesara.function([w, x], states, mode="NUMBA_FIXED")
    rng = np.random.default_rng(8)
    matrix, state = rng.normal(size=(size, size)) / size, rng.normal(size=size)
    rows = []
    given = state
    for _ in range(3):
        state = np.tanh(matrix.T @ state + matrix @ state)
        rows.append(state)
    np.testing.assert_allclose(f(matrix, given), rows, rtol=1e-11)
