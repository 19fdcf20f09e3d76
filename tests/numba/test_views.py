"""Rows of reversed arrays, and arrays with their axes in another order."""

from __future__ import annotations

import aesara
import aesara.tensor as at
import numpy as np
import pytest


@pytest.mark.parametrize("order", [(0, 2, 1), (2, 0, 1), (1, 2, 0), (2, 1, 0)])
@pytest.mark.parametrize("dtype", ["float64", "bool", "complex64", "int8"])
def test_axes_in_another_order(order: tuple[int, ...], dtype: str) -> None:
    x = at.TensorType(dtype, (None, None, None))("x")
    f = aesara.function([x], [x.transpose(order), x[::2].transpose(order)], mode="NUMBA_FIXED")
    values = (np.arange(60) % 7).reshape(5, 4, 3).astype(dtype)
    whole, part = f(values)
    np.testing.assert_array_equal(whole, values.transpose(order))
    np.testing.assert_array_equal(part, values[::2].transpose(order))
    assert f(values[:0])[0].shape == values[:0].transpose(order).shape


@pytest.mark.parametrize(
    "part",
    [
        slice(None, None, -1),
        slice(None, None, -2),
        slice(None, None, 3),
        slice(1, -1, 2),
        slice(-2, 0, -1),
    ],
)
@pytest.mark.parametrize("layout", ["C", "F", "sliced"])
def test_rows_of_a_view_in_another_order(part: slice, layout: str) -> None:
    x = at.dmatrix("x")
    sums, _ = aesara.scan(
        lambda row, total: (total + at.tanh(row), total.sum()),
        sequences=x[part][::-1],
        outputs_info=[at.zeros_like(x[0]), None],
    )
    f = aesara.function([x], sums, mode="NUMBA_FIXED")
    values = np.linspace(-2, 2, 8 * 19).reshape(8, 19)
    given = np.asfortranarray(values) if layout == "F" else values
    if layout == "sliced":
        wide = np.zeros((8, 38))
        wide[:, ::2] = values
        given = wide[:, ::2]
    totals = np.cumsum(np.tanh(values[part][::-1]), axis=0)
    traces, before = f(given)
    np.testing.assert_allclose(traces, totals, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(before, [0, *totals.sum(axis=1)[:-1]], rtol=1e-12, atol=1e-13)


def test_gradient_of_a_loop_over_rows_backwards() -> None:
    """The gradient of sum(tanh(h_t)) with h_t = a h_(t-1) + x_t, by hand."""
    x, a = at.dmatrix("x"), at.dscalar("a")
    states, _ = aesara.scan(
        lambda row, h: a * h + row, sequences=x, outputs_info=at.zeros_like(x[0])
    )
    f = aesara.function([x, a], aesara.grad(at.tanh(states).sum(), x), mode="NUMBA_FIXED")
    values, factor = np.random.default_rng(4).normal(size=(6, 17)), 0.7
    h, trace = np.zeros(17), []
    for row in values:
        h = factor * h + row
        trace.append(h)
    expected, following = np.empty_like(values), np.zeros(17)
    for t in range(5, -1, -1):
        following = 1 - np.tanh(trace[t]) ** 2 + factor * following
        expected[t] = following
    np.testing.assert_allclose(f(values, factor), expected, rtol=1e-12)
