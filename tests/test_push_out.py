"""What is larger than the rows of a loop's sequences stays in the loop."""

from __future__ import annotations

from typing import Any, Callable

import aesara
import aesara.tensor as at
import numpy as np
import pytest
from aesara.scan.op import Scan

import fixed_modes  # noqa: F401
from fixed_modes.rewrites.push_out import Stay

MODES = ["NUMBA_FIXED", "JAX_FIXED"]
X = np.random.default_rng(7).normal(size=5)
Y = np.random.default_rng(8).normal(size=4)
M = np.random.default_rng(9).normal(size=(4, 5))

Step = Callable[..., Any]

#: A step of a number, a row and a vector that stays.
STEPS: dict[str, Step] = {
    "a sum": lambda y, r, x: at.exp(-((x - y) ** 2)).sum(),
    "the largest": lambda y, r, x: (x * y + y).max(),
    "a product": lambda y, r, x: at.dot(x * y + 1.0, x),
    "an outer product": lambda y, r, x: (r[:, None] * x[None, :]).sum(axis=0),
    "an entry": lambda y, r, x: (x * y)[2],
    "softmax": lambda y, r, x: (at.exp(x * y) / at.exp(x * y).sum())[1:].sum(),
}
EXPECTED: dict[str, Step] = {
    "a sum": lambda y, r, x: np.exp(-((x - y) ** 2)).sum(),
    "the largest": lambda y, r, x: (x * y + y).max(),
    "a product": lambda y, r, x: np.dot(x * y + 1.0, x),
    "an outer product": lambda y, r, x: np.outer(r, x).sum(axis=0),
    "an entry": lambda y, r, x: x[2] * y,
    "softmax": lambda y, r, x: (np.exp(x * y) / np.exp(x * y).sum())[1:].sum(),
}


def _scans(f: Any) -> list[Any]:
    return [node for node in f.maker.fgraph.toposort() if isinstance(node.op, Scan)]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", STEPS)
def test_values_of_a_map_that_stays_a_loop(name: str, mode: str) -> None:
    y, m, x = at.dvector("y"), at.dmatrix("m"), at.dvector("x")
    rows, _ = aesara.scan(STEPS[name], sequences=[y, m], non_sequences=[x])
    f = aesara.function([y, m, x], rows, mode=mode, on_unused_input="ignore")
    expected = [EXPECTED[name](*row, X) for row in zip(Y, M)]
    np.testing.assert_allclose(f(Y, M, X), expected, rtol=1e-12)
    (scan,) = _scans(f)
    # The rows go in as they are: nothing has been made of them ahead of the loop.
    assert all(
        rows.owner is None or not _makes_more(rows) for rows in scan.op.outer_seqs(scan.inputs)
    )
    assert not any(isinstance(node.op, Stay) for node in scan.op.fgraph.apply_nodes)


def _makes_more(variable: Any) -> bool:
    """Say whether it has more axes that may have several entries than what it is made of."""
    if variable.owner is None:
        return False
    sources = [i.type for i in variable.owner.inputs if hasattr(i.type, "broadcastable")]
    ranks = [source.broadcastable.count(False) for source in sources]
    return variable.type.broadcastable.count(False) > max(ranks)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", STEPS)
def test_values_and_slopes_beside_a_state(name: str, mode: str) -> None:
    y, m, x = at.dvector("y"), at.dmatrix("m"), at.dvector("x")
    states, _ = aesara.scan(
        lambda y, r, s, x: 0.5 * s + at.sum(STEPS[name](y, r, x)),
        sequences=[y, m],
        outputs_info=[at.constant(1.0, dtype="float64")],
        non_sequences=[x],
    )
    slope = aesara.grad(states[-1], x)
    f = aesara.function([y, m, x], [states, slope], mode=mode, on_unused_input="ignore")
    found, found_slope = f(Y, M, X)

    def run(x: np.ndarray) -> list[float]:
        state, expected = 1.0, []
        for y, r in zip(Y, M):
            state = 0.5 * state + float(np.sum(EXPECTED[name](y, r, x)))
            expected.append(state)
        return expected

    np.testing.assert_allclose(found, run(X), rtol=1e-12)
    differences = [(run(X + h)[-1] - run(X - h)[-1]) / 2e-6 for h in 1e-6 * np.eye(5)]
    np.testing.assert_allclose(found_slope, differences, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("mode", MODES)
def test_what_is_no_larger_is_computed_ahead(mode: str) -> None:
    m, start = at.dmatrix("m"), at.dvector("start")
    states, _ = aesara.scan(lambda r, s: s * 0.5 + at.exp(r), sequences=[m], outputs_info=[start])
    f = aesara.function([m, start], states, mode=mode)
    (scan,) = _scans(f)
    assert any(rows.owner is not None for rows in scan.op.outer_seqs(scan.inputs))
    state, expected = X, []
    for row in M:
        state = state * 0.5 + np.exp(row)
        expected.append(state)
    np.testing.assert_allclose(f(M, X), expected, rtol=1e-12)


@pytest.mark.parametrize("mode", MODES)
def test_a_map_whose_rows_are_wanted_needs_no_loop(mode: str) -> None:
    y, x = at.dvector("y"), at.dvector("x")
    rows, _ = aesara.scan(lambda y, x: at.exp(x * y), sequences=[y], non_sequences=[x])
    f = aesara.function([y, x], rows, mode=mode)
    assert not _scans(f)
    np.testing.assert_allclose(f(Y, X), np.exp(np.outer(Y, X)), rtol=1e-12)


@pytest.mark.parametrize("mode", MODES)
def test_exponentials_of_matrices_are_computed_ahead(mode: str) -> None:
    m, x = at.dmatrix("m"), at.dvector("x")
    rows, _ = aesara.scan(
        lambda r, x: at.log(at.exp(r[:, None] + x[None, :]).sum(axis=0)).sum(),
        sequences=[m],
        non_sequences=[x],
    )
    f = aesara.function([m, x], rows, mode=mode)
    # A matrix for each step.
    sequences = [rows for scan in _scans(f) for rows in scan.op.outer_seqs(scan.inputs)]
    assert all(rows.type.broadcastable.count(False) == 3 for rows in sequences)
    expected = [np.log(np.exp(np.add.outer(r, X)).sum(axis=0)).sum() for r in M]
    np.testing.assert_allclose(f(M, X), expected, rtol=1e-12)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("size", [3, 5, 8, 17])
def test_new_axes_of_rows_stay_in_the_loop(size: int, mode: str) -> None:
    """So that a loop over a row knows that its elements stand side by side."""
    x = at.dmatrix("x")
    states, _ = aesara.scan(
        lambda r, s: 0.5 * s + r[:, None] * at.exp(r)[None, :],
        sequences=[x],
        outputs_info=[at.eye(size)],
    )
    f = aesara.function([x], states, mode=mode)
    rows = np.random.default_rng(4).normal(size=(6, size))
    state, expected = np.eye(size), []
    for row in rows:
        state = 0.5 * state + np.outer(row, np.exp(row))
        expected.append(state)
    np.testing.assert_allclose(f(rows), expected, rtol=1e-12)
    (scan,) = _scans(f)
    # The exponentials are computed ahead of the loop, for all steps at once.
    assert not any(rows.type.ndim > 2 for rows in scan.op.outer_seqs(scan.inputs))
    kinds = [str(node.op) for node in scan.op.fgraph.apply_nodes]
    assert not any("exp" in kind for kind in kinds)
