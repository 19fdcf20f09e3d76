"""Arrays in the branches of an `IfElse` in a loop: changed in place, or written where they go."""

from __future__ import annotations

from typing import Any, Callable

import aesara
import aesara.tensor as at
import numpy as np
import pytest
from aesara.ifelse import ifelse
from aesara.scan.op import Scan

import fixed_modes
from fixed_modes.rewrites.branches import ChangingIfElse
from tests import changes

MODES = ["NUMBA_FIXED", "JAX_FIXED"]


class _Symbolic:
    """What steps are made of, on symbolic arrays."""

    put = staticmethod(lambda x, index, value: at.set_subtensor(x[index], value))
    add = staticmethod(lambda x, index, value: at.inc_subtensor(x[index], value))
    sin = staticmethod(at.sin)
    stack = staticmethod(at.stack)
    dot = staticmethod(at.dot)

    @staticmethod
    def choose(condition: Any, first: Callable[[], Any], second: Callable[[], Any]) -> Any:
        return ifelse(condition, first(), second())


class _Arrays:
    """The same on NumPy's, which are never changed."""

    put = staticmethod(changes.put)
    add = staticmethod(changes.add)
    sin = staticmethod(np.sin)
    stack = staticmethod(np.stack)
    dot = staticmethod(np.dot)

    @staticmethod
    def choose(condition: Any, first: Callable[[], Any], second: Callable[[], Any]) -> Any:
        return first() if condition else second()


#: Of a position, a number and a vector: what a step makes of the vector, and another result.
Step = Callable[[Any, Any, Any, Any], "tuple[Any, Any]"]

CHANGED: dict[str, Step] = {
    "an element": lambda lib, i, u, s: (
        lib.choose(u < 0.5, lambda: lib.put(s, i, u - s[0]), lambda: s),
        s[i],
    ),
    "an element else": lambda lib, i, u, s: (
        lib.choose(u < 0.5, lambda: s, lambda: lib.add(s, i, s[0] * u)),
        u,
    ),
    "two": lambda lib, i, u, s: (
        lib.choose(u < 0.5, lambda: lib.put(lib.put(s, i, s[0]), 0, s[i]), lambda: s),
        s[0],
    ),
    "chosen ones": lambda lib, i, u, s: (
        lib.choose(u < 0.5, lambda: lib.add(s, lib.stack([i, 0]), s[1]), lambda: s),
        s[i],
    ),
    "a part": lambda lib, i, u, s: (
        lib.choose(u < 0.5, lambda: lib.put(s, np.s_[2:], u), lambda: s),
        s[3],
    ),
    "with another": lambda lib, i, u, s: lib.choose(
        u < 0.5, lambda: [lib.put(s, i, u * 2), s[i] + s[1]], lambda: [s, s[0]]
    ),
    "with sums of itself": lambda lib, i, u, s: lib.choose(
        u < 0.5, lambda: [lib.put(s, i, u), s[1:3].sum()], lambda: [s, (s[2:4] * 2).sum()]
    ),
}

COPIED: dict[str, Step] = {
    "moved by one": lambda lib, i, u, s: (
        lib.choose(u < 0.5, lambda: lib.put(s, np.s_[1:], s[:-1]), lambda: s),
        s[0],
    ),
    "turned round": lambda lib, i, u, s: (
        lib.choose(u < 0.5, lambda: lib.put(s, np.s_[:], s[::-1]), lambda: s),
        s[0],
    ),
    "computed of what is overwritten": lambda lib, i, u, s: (
        lib.choose(u < 0.5, lambda: lib.put(s, np.s_[1:], s[:-1] * 2 - s[0]), lambda: s),
        s[0],
    ),
    "both branches": lambda lib, i, u, s: (
        lib.choose(u < 0.5, lambda: lib.put(s, i, u), lambda: lib.add(s, 0, s[i])),
        s[0],
    ),
    "with a part of itself": lambda lib, i, u, s: lib.choose(
        u < 0.5, lambda: [lib.put(s, i, u), s[1:3] * 2], lambda: [s, s[2:4]]
    ),
    "what is changed is read": lambda lib, i, u, s: lib.choose(
        u < 0.5, lambda: [lib.put(s, i, u), lib.put(s, i, u).sum()], lambda: [s, s[0]]
    ),
    "a view of what is changed": lambda lib, i, u, s: lib.choose(
        u < 0.5, lambda: [lib.put(s, i, u), s[1:4]], lambda: [s, s[:3]]
    ),
    "the whole of what is changed": lambda lib, i, u, s: lib.choose(
        u < 0.5, lambda: [lib.put(s, i, u), s], lambda: [s, s * 2]
    ),
    "new values": lambda lib, i, u, s: (
        lib.choose(u < 0.5, lambda: lib.sin(s) + u, lambda: s),
        s[i],
    ),
    "new values of both": lambda lib, i, u, s: (
        lib.choose(u < 0.5, lambda: lib.sin(s) + u, lambda: s[::-1] * 0.5),
        s[i],
    ),
    "a view": lambda lib, i, u, s: (lib.choose(u < 0.5, lambda: s[::-1], lambda: s), s[i]),
    "new values twice": lambda lib, i, u, s: lib.choose(
        u < 0.5,
        lambda: [lib.sin(s), lib.sin(s) * 2],
        lambda: [s + u, s],
    ),
    "in a branch of another": lambda lib, i, u, s: (
        lib.choose(
            u < 0.5,
            lambda: lib.choose(i > 1, lambda: lib.put(s, i, u), lambda: s),
            lambda: s,
        ),
        s[0],
    ),
    "lengths that differ": lambda lib, i, u, s: (
        s * 0.5 + u,
        lib.choose(u < 0.5, lambda: s[:2] * 2, lambda: s[1:4]).sum(),
    ),
    "a product": lambda lib, i, u, s: (
        lib.choose(u < 0.5, lambda: s * lib.dot(s, s) * 0.01, lambda: s),
        s[i],
    ),
}

ALL = {**CHANGED, **COPIED}
POSITIONS = np.array([3, 0, 2, 3, 4, 1, 0, 2])
NUMBERS = np.array([0.25, 0.75, 0.125, 0.375, 0.625, 0.0, 0.5, 0.4375])


def _graph(name: str, last: bool, dtype: str) -> tuple[list[Any], list[Any]]:
    positions, numbers = at.lvector("positions"), at.vector("numbers", dtype=dtype)
    start = at.vector("start", dtype=dtype)

    def step(i: Any, u: Any, s: Any) -> Any:
        new, other = ALL[name](_Symbolic, i, u, s)
        return [new, other]

    (states, others), _ = aesara.scan(
        step, sequences=[positions, numbers], outputs_info=[start, None]
    )
    return [positions, numbers, start], [states[-1] if last else states, others]


def _expected(name: str, start: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    states, others = [start], []
    for i, u in zip(POSITIONS, NUMBERS.astype(start.dtype)):
        new, other = ALL[name](_Arrays, int(i), u, states[-1])
        states.append(new)
        others.append(np.array(other))
    return np.array(states[1:]), np.array(others)


# JAX_FIXED warns that a loop with results of two shapes runs in Python.
@pytest.mark.filterwarnings("ignore:.*the branches have different shapes")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("last", [True, False], ids=["last", "all"])
@pytest.mark.parametrize("length", [5, 40])
@pytest.mark.parametrize("name", ALL)
def test_values(name: str, length: int, last: bool, mode: str) -> None:
    f = aesara.function(*_graph(name, last, "float64"), mode=mode)
    start = np.random.default_rng(3).normal(size=length)
    expected = _expected(name, start)
    for _ in range(2):
        kept = start.copy()
        states, others = f(POSITIONS, NUMBERS, start)
        np.testing.assert_allclose(states, expected[0][-1] if last else expected[0], rtol=1e-12)
        np.testing.assert_allclose(others, expected[1], rtol=1e-12)
        np.testing.assert_array_equal(start, kept)
        assert not np.shares_memory(states, start)


@pytest.mark.parametrize("name", ["an element", "two", "new values", "with another"])
def test_single_precision(name: str) -> None:
    f = aesara.function(*_graph(name, True, "float32"), mode="NUMBA_FIXED")
    start = np.random.default_rng(3).normal(size=5).astype("float32")
    found, _ = f(POSITIONS, NUMBERS.astype("float32"), start)
    assert found.dtype == "float32"
    np.testing.assert_allclose(found, _expected(name, start)[0][-1], rtol=1e-5)


@pytest.mark.parametrize("name", CHANGED)
def test_nothing_is_copied(name: str) -> None:
    f = aesara.function(*_graph(name, True, "float64"), mode="NUMBA_FIXED")
    (scan,) = (node for node in f.maker.fgraph.toposort() if isinstance(node.op, Scan))
    kinds = {type(node.op) for node in scan.op.fgraph.toposort()}
    assert ChangingIfElse in kinds
    f(POSITIONS, NUMBERS, np.ones(5))
    assert ".copy()" not in fixed_modes.numba_source(f)
    # The first dimension of the allocation.
    (buffer,) = scan.op.outer_sitsot(scan.inputs)
    assert buffer.owner.inputs[0].owner.inputs[0].data == 1


@pytest.mark.parametrize("length", [3, 5, 40])
@pytest.mark.parametrize("name", ["new values", "new values of both", "a view", "a product"])
def test_results_are_written_where_they_go(name: str, length: int) -> None:
    f = aesara.function(*_graph(name, False, "float64"), mode="NUMBA_FIXED")
    f(np.minimum(POSITIONS, length - 1), NUMBERS, np.ones(length))
    assert ".copy()" not in fixed_modes.numba_source(f)


@pytest.mark.parametrize("mode", MODES)
def test_an_index_out_of_bounds_raises_only_in_the_branch_that_is_taken(mode: str) -> None:
    positions, flags, start = at.lvector("positions"), at.lvector("flags"), at.dvector("start")
    states, _ = aesara.scan(
        lambda i, flag, s: ifelse(flag, at.set_subtensor(s[i], 7.0), s),
        sequences=[positions, flags],
        outputs_info=[start],
    )
    f = aesara.function([positions, flags, start], states[-1], mode=mode)
    np.testing.assert_array_equal(f(np.array([9, 1]), np.array([0, 1]), np.zeros(2)), [0.0, 7.0])
    with pytest.raises(IndexError):
        f(np.array([1, 9]), np.array([0, 1]), np.zeros(2))
    np.testing.assert_array_equal(f(np.array([0, -9]), np.array([0, 0]), np.zeros(0)), [])


@pytest.mark.parametrize("mode", MODES)
def test_two_states_that_change_each_other(mode: str) -> None:
    """What one of them gets is read before the other changes."""
    positions, starts = at.lvector("positions"), [at.dvector("a"), at.dvector("b")]

    def step(i: Any, a: Any, b: Any) -> Any:
        swapped = [at.set_subtensor(a[i], b[i]), at.set_subtensor(b[i], a[i])]
        return ifelse(at.gt(a[i], b[i]), swapped, [a, b])

    states, _ = aesara.scan(step, sequences=[positions], outputs_info=starts)
    f = aesara.function([positions, *starts], [s[-1] for s in states], mode=mode)
    a, b = np.array([3.0, 1.0, 2.0]), np.array([2.0, 5.0, 1.0])
    found = f(np.array([0, 1, 2, 2]), a, b)
    np.testing.assert_array_equal(found, [[2.0, 1.0, 1.0], [3.0, 5.0, 2.0]])
    np.testing.assert_array_equal(a, [3.0, 1.0, 2.0])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("flag", [0, 1])
def test_a_shared_variable_outside_of_a_loop(flag: int, mode: str) -> None:
    state = aesara.shared(np.arange(4.0), name="state")
    condition, i = at.lscalar("condition"), at.lscalar("i")
    new = ifelse(condition, at.inc_subtensor(state[i], 10.0), state)
    f = aesara.function([condition, i], new.sum(), updates={state: new}, mode=mode)
    expected = np.arange(4.0)
    for place in (1, 3, 1):
        expected[place] += 10.0 * flag
        np.testing.assert_allclose(f(flag, place), expected.sum())
        np.testing.assert_array_equal(state.get_value(), expected)


@pytest.mark.parametrize("mode", MODES)
def test_a_matrix_of_rows_that_change(mode: str) -> None:
    positions, start = at.lvector("positions"), at.dmatrix("start")
    states, _ = aesara.scan(
        lambda i, s: ifelse(at.gt(s[i].sum(), 0.0), at.set_subtensor(s[i], -s[0] * s[i, 1]), s),
        sequences=[positions],
        outputs_info=[start],
    )
    f = aesara.function([positions, start], states[-1], mode=mode)
    expected = np.random.default_rng(8).normal(size=(5, 3))
    start_value = expected.copy()
    for i in POSITIONS:
        if expected[i].sum() > 0:
            expected[i] = -expected[0] * expected[i, 1]
    np.testing.assert_allclose(f(POSITIONS, start_value), expected, rtol=1e-12)
