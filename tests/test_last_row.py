"""States of which only the last row is read: values, and what a step may overwrite."""

from __future__ import annotations

from typing import Any, Callable

import aesara
import aesara.tensor as at
import numpy as np
import pytest
from aesara.scan.op import Scan

MODES = ["NUMBA_FIXED", "JAX_FIXED"]

#: For each the step on symbolic values, and the same on NumPy's, with copies.
Step = Callable[..., Any]


def _set(lib: Any, x: Any, index: Any, value: Any, add: bool = False) -> Any:
    """Give a copy of `x` with other values at an index."""
    if lib is at:
        return (at.inc_subtensor if add else at.set_subtensor)(x[index], value)
    x = x.copy()
    x[index] = x[index] + value if add else value
    return x


STEPS: dict[str, Step] = {
    "one element": lambda lib, i, s, t: [_set(lib, s, i, s[i - 1] + 2.0), t],
    "added to an element": lambda lib, i, s, t: [_set(lib, s, i, s[-1], add=True), t],
    "elementwise": lambda lib, i, s, t: [s * 0.5 + i, t - s],
    "accumulated": lambda lib, i, s, t: [s + i * t, t],
    "swapped": lambda lib, i, s, t: [t, s],
    "swapped and changed": lambda lib, i, s, t: [t + 1.0, s * 0.5],
    "the other as it was": lambda lib, i, s, t: [s + 1.0, t + s],
    "the other as it is": lambda lib, i, s, t: [s + 1.0, t + (s + 1.0) * s],
    "read again behind": lambda lib, i, s, t: [s + 1.0, t + s[::-1]],
    "of its own reverse": lambda lib, i, s, t: [s + s[::-1], t],
    "of its own sum": lambda lib, i, s, t: [s / (1.0 + abs(s).sum()), t + s.sum()],
    "most of it": lambda lib, i, s, t: [
        _set(lib, s, slice(1, -1), s[2:] + s[:-2] - 2 * s[1:-1]),
        t,
    ],
    "added to most of it": lambda lib, i, s, t: [
        _set(lib, s, slice(1, -1), s[2:] - s[:-2], add=True),
        _set(lib, t, slice(1, 4), i + 0.5, add=True),
    ],
    "two elements": lambda lib, i, s, t: [
        _set(lib, _set(lib, s, i, s[0]), 0, s[i]),
        _set(lib, t, i, s[i]),
    ],
    "twice the same": lambda lib, i, s, t: [s + t, s + t],
}


def _function(step: Step, mode: str) -> Any:
    start, other = at.dvectors("start", "other")
    indices = at.lvector("indices")
    (s, t), _ = aesara.scan(
        lambda i, s, t: step(at, i, s, t), sequences=[indices], outputs_info=[start, other]
    )
    return aesara.function([indices, start, other], [s[-1], t[-1]], mode=mode)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", STEPS)
def test_values(name: str, mode: str) -> None:
    f = _function(STEPS[name], mode)
    start, other = np.arange(6.0) - 2.0, np.linspace(0.1, 0.9, 6)
    for indices in ([3], [1, 4], [5, 0, 2, 2, 3]):
        s, t = start.copy(), other.copy()
        for i in indices:
            s, t = STEPS[name](np, i, s, t)
        kept = start.copy(), other.copy()
        for _ in range(2):
            results = f(np.array(indices), start, other)
            np.testing.assert_allclose(results[0], s, rtol=1e-12)
            np.testing.assert_allclose(results[1], t, rtol=1e-12)
            assert not np.shares_memory(*results)
        np.testing.assert_array_equal((start, other), kept)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("taps", [(-1, -2), (-2,), (-1, -3)])
def test_several_initial_rows(taps: tuple[int, ...], mode: str) -> None:
    start, n = at.dmatrix("start"), at.lscalar("n")
    result, _ = aesara.scan(
        lambda *rows: rows[-1] + 0.5 * rows[0],
        outputs_info=[{"initial": start, "taps": list(taps)}],
        n_steps=n,
    )
    f = aesara.function([start, n], [result[-1], result[-1, 0]], mode=mode)
    rows = list(np.random.default_rng(3).normal(size=(-min(taps), 5)))
    for steps in (1, 2, 7):
        expected = list(rows)
        for _ in range(steps):
            expected.append(expected[min(taps)] + 0.5 * expected[max(taps)])
        last, first = f(np.array(rows), steps)
        np.testing.assert_allclose(last, expected[-1], rtol=1e-12)
        np.testing.assert_allclose(first, expected[-1][0], rtol=1e-12)


@pytest.mark.parametrize("mode", MODES)
def test_other_rows_are_there_where_they_are_read(mode: str) -> None:
    start, n = at.dvector("start"), at.lscalar("n")
    result, _ = aesara.scan(lambda s: s + 1.0, outputs_info=[start], n_steps=n)
    f = aesara.function(
        [start, n], [result[-1], result[-2], result[0], result[1:].sum()], mode=mode
    )
    np.testing.assert_allclose(f(np.zeros(3), 4)[0], [4.0] * 3)
    np.testing.assert_allclose(f(np.zeros(3), 4)[1], [3.0] * 3)
    np.testing.assert_allclose(f(np.zeros(3), 4)[2], [1.0] * 3)
    np.testing.assert_allclose(f(np.zeros(3), 4)[3], 3 * (2 + 3 + 4))


def test_one_row_is_kept_and_changed_in_place() -> None:
    start, indices = at.dvector("start"), at.lvector("indices")
    result, _ = aesara.scan(
        lambda i, s: at.set_subtensor(s[i], s[i - 1] + 1.0),
        sequences=[indices],
        outputs_info=[start],
    )
    f = aesara.function([indices, start], result[-1], mode="NUMBA_FIXED")
    (scan,) = [n for n in f.maker.fgraph.toposort() if isinstance(n.op, Scan)]
    (update,) = scan.op.fgraph.outputs
    assert update.owner.op.inplace
    # The state has no second row, to which the elements that stay would have to be copied.
    (buffer,) = scan.op.outer_sitsot(scan.inputs)
    assert buffer.owner.inputs[0].owner.inputs[0].data == 1


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("steps", [0, 1, 3])
@pytest.mark.parametrize("kind", ["elementwise", "product"])
def test_last_row_beside_the_whole_trace(kind: str, steps: int, mode: str) -> None:
    """Without a step it is the initial row, as in FAST_RUN."""
    xs, n = at.dmatrix("xs"), at.lscalar("n")
    start = at.dvector("start")
    matrix = np.array([[0.5, 1.0], [-1.0, 0.25]])

    def step(x: Any, s: Any) -> Any:
        return (at.dot(matrix, s) if kind == "product" else 0.5 * s) + x

    trace, _ = aesara.scan(step, sequences=[xs], outputs_info=[start])
    counted, _ = aesara.scan(lambda s: step(1.0, s), outputs_info=[start], n_steps=n)
    outputs = [trace, trace[-1], counted, counted[-1]]
    f = aesara.function([xs, start, n], outputs, mode=mode)
    last_alone = aesara.function([start, n], counted[-1], mode=mode)
    first = np.array([2.0, 3.0])
    rows = np.arange(2.0 * steps).reshape(steps, 2)
    expected: list[list[np.ndarray]] = []
    for values in (rows, np.ones((steps, 2))):
        states = [first]
        for row in values:
            s = states[-1]
            states.append((matrix @ s if kind == "product" else 0.5 * s) + row)
        expected.append(states)
    found = f(rows, first, steps)
    for index, states in enumerate(expected):
        np.testing.assert_allclose(found[2 * index], np.reshape(states[1:], (steps, 2)))
        np.testing.assert_allclose(found[2 * index + 1], states[-1])
    np.testing.assert_allclose(last_alone(first, steps), expected[1][-1])


@pytest.mark.parametrize("mode", MODES)
def test_a_loop_that_never_takes_a_step_has_no_last_row(mode: str) -> None:
    start = at.dvector("start")
    trace, _ = aesara.scan(lambda s: s + 1.0, outputs_info=[start], n_steps=0)
    with pytest.raises(IndexError):
        aesara.function([start], trace[-1], mode=mode)(np.zeros(2))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("taps", [(-1,), (-1, -2)])
def test_without_a_step_a_state_that_is_no_function_of_itself_stays(
    taps: tuple[int, ...], mode: str
) -> None:
    """The new state is not made of the old one, and gets a row to spare."""
    start, other, n = at.dmatrix("start"), at.dvector("other"), at.lscalar("n")
    initial = {"initial": start, "taps": list(taps)} if len(taps) > 1 else start[0]
    (states, others), _ = aesara.scan(
        lambda *rows: [at.constant(np.array([2.0, 3.0])), rows[-1] + 1.0],
        outputs_info=[initial, other],
        n_steps=n,
    )
    f = aesara.function([start, other, n], [states[-1], others], mode=mode)
    first = np.array([[5.0, 6.0], [7.0, 8.0]])[: len(taps)]
    for steps, expected in ((0, first[-1]), (1, [2.0, 3.0]), (4, [2.0, 3.0])):
        last, rows = f(first, np.zeros(2), steps)
        np.testing.assert_array_equal(last, expected)
        assert len(rows) == steps
