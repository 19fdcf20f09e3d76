"""`until` scans of which the last rows are read keep only those."""

from __future__ import annotations

import re

import aesara
import aesara.tensor as at
import numpy as np
import pytest
from aesara.scan.op import Scan
from aesara.scan.utils import until

import fixed_modes

MODES = ["NUMBA_FIXED", "JAX_FIXED"]

#: So many rows fit into no memory.
BOUND = 10**13


def halvings(start: float, least: float) -> list[float]:
    """Give the values of a state that is halved until it is below `least`."""
    rows = [start / 2]
    while rows[-1] >= least:
        rows.append(rows[-1] / 2)
    return rows


def inner_scans(f: aesara.compile.function.types.Function) -> list[Scan]:
    return [n.op for n in f.maker.fgraph.toposort() if isinstance(n.op, Scan)]


@pytest.mark.parametrize("mode", MODES)
def test_last_values_need_no_buffer_as_long_as_the_bound(mode: str) -> None:
    x = at.dscalar("x")
    (state, mapped), _ = aesara.scan(
        lambda s: ([s / 2, s + 1], until(s / 2 < 0.01)), outputs_info=[x, None], n_steps=BOUND
    )
    f = aesara.function([x], [state[-1], mapped[-1]], mode=mode)
    for start in (3.0, 0.001):
        rows = halvings(start, 0.01)
        np.testing.assert_allclose(f(start), [rows[-1], 2 * rows[-1] + 1])


@pytest.mark.parametrize("mode", MODES)
def test_bound_may_be_symbolic(mode: str) -> None:
    x, n = at.dvector("x"), at.lscalar("n")
    state, _ = aesara.scan(
        lambda s: (s / 2, until((s / 2).sum() < 0.01)), outputs_info=x, n_steps=n
    )
    f = aesara.function([x, n], state[-1], mode=mode)
    start = np.array([1.0, 2.0, 5.0])
    stopped = halvings(start.sum(), 0.01)
    np.testing.assert_allclose(f(start, BOUND), start * stopped[-1] / start.sum())
    np.testing.assert_allclose(f(start, 2), start / 4)
    np.testing.assert_allclose(f(start, 1), start / 2)
    with pytest.raises(IndexError):
        f(start, 0)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("last", [3, 1, 2, 9])
def test_states_with_several_taps(mode: str, last: int) -> None:
    start, bound = at.dvector("start"), at.dscalar("bound")
    state, _ = aesara.scan(
        lambda a, b, most: (a + b, until(a + b > most)),
        outputs_info={"initial": start, "taps": [-3, -1]},
        non_sequences=bound,
        n_steps=BOUND,
    )
    f = aesara.function([start, bound], state[-1], mode=mode)
    rows = [1.0, 2.0, 4.0]
    for _ in range(last):
        rows.append(rows[-3] + rows[-1])
    assert f(np.array([1.0, 2.0, 4.0]), rows[-1] - 0.5) == rows[-1]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("start", [0.001, 0.03, 5.0])
def test_more_rows_than_a_step_fills_are_read_from_a_whole_trace(mode: str, start: float) -> None:
    x = at.dscalar("x")
    (state, mapped), _ = aesara.scan(
        lambda s: ([s / 2, s + 1], until(s / 2 < 0.01)), outputs_info=[x, None], n_steps=100
    )
    f = aesara.function([x], [state[-2:], mapped[-3:], mapped[::-1][:1]], mode=mode)
    rows = np.array(halvings(start, 0.01))
    for value, expected in zip(f(start), (rows[-2:], 2 * rows[-3:] + 1, 2 * rows[-1:] + 1)):
        np.testing.assert_allclose(value, expected)


@pytest.mark.parametrize("mode", MODES)
def test_traces_that_nothing_reads_are_not_computed(mode: str) -> None:
    x = at.dscalar("x")
    (state, _), _ = aesara.scan(
        lambda s: ([s / 2, at.exp(s)], until(s / 2 < 0.01)), outputs_info=[x, None], n_steps=100
    )
    f = aesara.function([x], state[-1], mode=mode)
    (op,) = inner_scans(f)
    assert op.info.n_nit_sot == 0
    assert f(1.0) == halvings(1.0, 0.01)[-1]


@pytest.mark.parametrize("mode", MODES)
def test_inside_of_another_scan(mode: str) -> None:
    """Newton's method for square roots, over a vector."""
    numbers = at.dvector("numbers")

    def root(a: at.TensorVariable) -> at.TensorVariable:
        steps, _ = aesara.scan(
            lambda y, a: ((y + a / y) / 2, until(abs(y * y - a) < 1e-10 * a)),
            outputs_info=a,
            non_sequences=a,
            n_steps=BOUND,
        )
        return steps[-1]

    roots, _ = aesara.scan(root, sequences=numbers)
    f = aesara.function([numbers], roots, mode=mode)
    values = np.array([1.0, 2.0, 9.0, 1e6])
    np.testing.assert_allclose(f(values), np.sqrt(values))
    assert f(np.zeros(0)).shape == (0,)


@pytest.mark.parametrize("mode", MODES)
def test_whole_traces_stay_whole(mode: str) -> None:
    x = at.dscalar("x")
    state, _ = aesara.scan(lambda s: (s / 2, until(s / 2 < 0.01)), outputs_info=x, n_steps=100)
    f = aesara.function([x], [state, state[-1], state.shape[0]], mode=mode)
    rows = halvings(4.0, 0.01)
    trace, last, count = f(4.0)
    np.testing.assert_allclose(trace, rows)
    assert last == rows[-1]
    assert count == len(rows)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("ends", [True, np.int8(3), 0.5, "computed"])
def test_what_a_step_works_with_lasts_as_long_as_the_step(ends: object, mode: str) -> None:
    """Also where it is known that there is one step."""
    start, other = at.imatrix("start"), at.bmatrix("other")

    def step(o: object, s: object) -> object:
        row = at.alloc(at.constant(-2, dtype="int32"), 1, 5)
        new = at.set_subtensor(row[::-1][:2], s).sum(axis=0)
        is_last = at.gt(at.constant(2.0) * 2, 3.0) if ends == "computed" else at.constant(ends)
        return [o, at.cast(new, "int32")], until(is_last)

    (_, states), _ = aesara.scan(
        step,
        outputs_info=[dict(initial=other, taps=[-2]), dict(initial=start, taps=[-2])],
        n_steps=3,
    )
    f = aesara.function([start, other], states, mode=mode)
    if mode == "NUMBA_FIXED":
        # Of a loop that is known to end Numba makes none, and memory is taken back in it.
        lines = fixed_modes.numba_source(f).splitlines()
        (condition,) = (
            a for a, b in zip(lines, lines[1:]) if b.lstrip().startswith("steps_done = step")
        )
        assert re.match(r"\s*if n\w* != 0 and .*:", condition)
    rows = np.arange(10, dtype="int32").reshape(2, 5)
    for _ in range(3):
        found = f(rows, np.full((2, 9), 7, "int8"))
        np.testing.assert_array_equal(found, rows[:1])
