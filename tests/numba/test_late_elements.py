"""What is computed where it is read has the values that it had where it stands."""

from __future__ import annotations

from typing import Any

import aesara
import aesara.tensor as at
import numpy as np
import pytest


def graph(library: Any, v: Any, x: Any, a: Any, b: Any) -> list[Any]:
    """Give outer products of an array that other results overwrite."""
    g = library.exp(v)
    product = library.outer(g, x)
    return [
        product + a,
        g + b,
        library.tanh(g) * b,
        (product * a).sum(axis=0),
        (product * 2.0 - a).sum(),
    ]


def values() -> list[np.ndarray]:
    rng = np.random.default_rng(12)
    return [rng.normal(size=shape) for shape in (7, 12, (7, 12), 7)]


@pytest.mark.parametrize("order", [(0, 1), (1, 0), (3, 1), (1, 3), (1, 4), (2, 1, 0), (1, 2, 4)])
def test_outer_product_of_what_is_overwritten(order: tuple[int, ...]) -> None:
    inputs = [at.dvector("v"), at.dvector("x"), at.dmatrix("a"), at.dvector("b")]
    outputs = graph(at, *inputs)
    f = aesara.function(inputs, [outputs[n] for n in order], mode="NUMBA_FIXED")
    expected = graph(np, *values())
    for result, n in zip(f(*values()), order):
        np.testing.assert_allclose(result, expected[n], rtol=1e-12)


@pytest.mark.parametrize("order", [(0, 1), (1, 0), (3, 1), (1, 4)])
def test_outer_product_in_a_loop(order: tuple[int, ...]) -> None:
    """Sums of such products, as gradients by weights are."""
    inputs = [at.dmatrix("v"), at.dvector("x"), at.dmatrix("a"), at.dvector("b")]
    v, *fixed = inputs
    starts = [at.zeros_like(out) for out in graph(at, v[0], *fixed)]

    def step(row: Any, *states_and_fixed: Any) -> list[Any]:
        states, given = states_and_fixed[: len(order)], states_and_fixed[len(order) :]
        outputs = graph(at, row, *given)
        return [state + outputs[n] for state, n in zip(states, order)]

    states, _ = aesara.scan(
        step,
        sequences=v,
        outputs_info=[starts[n] for n in order],
        non_sequences=fixed,
    )
    f = aesara.function(inputs, [s[-1] for s in states], mode="NUMBA_FIXED")
    _, x, a, b = values()
    rows = np.random.default_rng(13).normal(size=(5, 7))
    sums = [sum(parts) for parts in zip(*(graph(np, row, x, a, b) for row in rows))]
    for result, n in zip(f(rows, x, a, b), order):
        np.testing.assert_allclose(result, sums[n], rtol=1e-12)


def test_gradient_of_a_gated_loop_by_its_weights() -> None:
    """Central differences, for a loop whose gates are parts of one vector."""
    x, w, u = at.dmatrix("x"), at.dmatrix("w"), at.dmatrix("u")

    def step(row: Any, h: Any, c: Any, w: Any, u: Any) -> tuple[Any, Any]:
        gates = w.dot(row) + u.dot(h)
        n = h.shape[0]
        c = at.sigmoid(gates[:n]) * c + at.sigmoid(gates[n : 2 * n]) * at.tanh(gates[2 * n :])
        return at.tanh(c), c

    (h, _), _ = aesara.scan(
        step,
        sequences=x,
        outputs_info=[at.zeros(x.shape[1]), at.zeros(x.shape[1])],
        non_sequences=[w, u],
    )
    cost = (h**2).mean()
    f = aesara.function([x, w, u], [cost, *aesara.grad(cost, [w, u])], mode="NUMBA_FIXED")
    rng = np.random.default_rng(3)
    xs = rng.normal(size=(6, 5))
    weights = [rng.normal(size=(15, 5)) / 2 for _ in range(2)]
    _, *gradients = f(xs, *weights)
    for which, gradient in enumerate(gradients):
        for place in [(0, 0), (4, 2), (7, 1), (14, 4)]:
            costs = []
            for change in (1e-6, -1e-6):
                moved = [m.copy() for m in weights]
                moved[which][place] += change
                costs.append(f(xs, *moved)[0])
            slope = (costs[0] - costs[1]) / 2e-6
            np.testing.assert_allclose(gradient[place], slope, rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("read", ["mean", "sum", "max", "assign", "increment"])
def test_an_expression_of_an_array_whose_length_is_not_known(read: str) -> None:
    """The result is small, since a constant is; the state is not known to be."""
    table = np.array([[1.0, -2.0, 0.5], [3.0, 0.25, -1.0], [2.0, 4.0, -0.5]])
    start = at.dmatrix("start")

    def new_state(library: Any, s: Any) -> Any:
        product = at.constant(table) * s.dimshuffle(0, "x") if library is at else table * s[:, None]
        if read in ("mean", "sum", "max"):
            return getattr(product, read)(axis=0)
        target = library.ones((3, 3))
        if library is at:
            change = at.set_subtensor if read == "assign" else at.inc_subtensor
            return change(target[:3], product)[0] + at.zeros_like(s)
        return (product if read == "assign" else target + product)[0] + 0 * s

    trace, _ = aesara.scan(
        lambda old, last: new_state(at, last) + 0.0 * old[:1],
        outputs_info=[{"initial": start, "taps": [-2, -1]}],
        n_steps=2,
    )
    f = aesara.function([start], trace, mode="NUMBA_FIXED")
    rows = np.random.default_rng(1).normal(size=(2, 3))
    expected = list(rows)
    for _ in range(2):
        expected.append(new_state(np, expected[-1]))
    np.testing.assert_allclose(f(rows), expected[2:], rtol=1e-13)
