"""Steps that change a few elements of a large state: values, and that nothing is copied."""

from __future__ import annotations

import re
from typing import Any, Callable

import aesara
import aesara.tensor as at
import jax
import jax.experimental
import numpy as np
import pytest
from aesara.scan.op import Scan
from aesara.scan.utils import until
from aesara.tensor.subtensor import AdvancedIncSubtensor, AdvancedIncSubtensor1, IncSubtensor

import fixed_modes
from fixed_modes.jax.ties import barrier
from tests import changes
from tests.jax_versions import HAS_BARRIER, needs_barrier

MODES = ["NUMBA_FIXED", "JAX_FIXED"]
CHANGES = (IncSubtensor, AdvancedIncSubtensor, AdvancedIncSubtensor1)


class _Symbolic:
    """The functions that steps are made of, on symbolic arrays."""

    @staticmethod
    def put(x: Any, index: Any, value: Any) -> Any:
        return at.set_subtensor(x[index], value)

    @staticmethod
    def add(x: Any, index: Any, value: Any) -> Any:
        return at.inc_subtensor(x[index], value)

    choose = staticmethod(at.switch)

    @staticmethod
    def both(i: Any) -> Any:
        return at.stack([i, i // 2])


class _Arrays:
    """The same on NumPy's, which are never changed."""

    put = staticmethod(changes.put)
    add = staticmethod(changes.add)

    choose = staticmethod(np.where)

    @staticmethod
    def both(i: int) -> np.ndarray:
        return np.array([i, i // 2])


#: Of a vector: what a step makes of a state, and something else that it gives.
Step = Callable[[Any, Any, Any], "tuple[Any, Any]"]

STEPS: dict[str, Step] = {
    "what was there is a result": lambda lib, i, s: (lib.put(s, i, s[i - 1] + 1.0), s[i]),
    "what is there is a result": lambda lib, i, s: (
        lib.put(s, i, s[i - 1] + 1.0),
        lib.put(s, i, s[i - 1] + 1.0)[i],
    ),
    "swap": lambda lib, i, s: (lib.put(lib.put(s, i, s[0]), 0, s[i]), s[0] - s[i]),
    "added to another": lambda lib, i, s: (lib.add(s, i, s[0]), i),
    "one after the other": lambda lib, i, s: (
        lib.add(lib.put(s, i, s[0]), i // 2, lib.put(s, i, s[0])[i]),
        s[i // 2],
    ),
    "on a condition": lambda lib, i, s: (lib.choose(s[i] > 0.5, lib.put(s, i, -s[0]), s), s[i]),
    "but for a condition": lambda lib, i, s: (lib.choose(s[i] > 0.5, s, lib.add(s, i, s[0])), i),
    "two on a condition": lambda lib, i, s: (
        lib.choose(s[i] < s[0], lib.put(lib.put(s, i, s[0]), 0, s[i]), s),
        s[0],
    ),
    "the same twice on a condition": lambda lib, i, s: (
        lib.choose(i < 3, lib.add(lib.put(s, i, 2.0), i, s[i]), s),
        i,
    ),
    "chosen ones": lambda lib, i, s: (lib.add(s, lib.both(i), s[lib.both(0 * i)]), s[i]),
    "chosen ones on a condition": lambda lib, i, s: (
        lib.choose(s[0] < 2.0, lib.add(s, lib.both(i), s[i]), s),
        s[i],
    ),
    "chosen ones put on a condition": lambda lib, i, s: (
        lib.choose(i < 3, lib.put(s, lib.both(i), s[0]), s),
        s[i],
    ),
    "one or the other": lambda lib, i, s: (
        lib.choose(s[i] > 0, lib.put(s, i, s[0] - s[i]), lib.put(lib.add(s, 0, s[i]), i, s[0])),
        s[0],
    ),
    "one of two after a change": lambda lib, i, s: (
        lib.choose(
            s[i] > 0,
            lib.add(lib.put(s, 0, s[i]), i, 1.0),
            lib.add(lib.put(s, 0, s[i]), i // 2, s[1]),
        ),
        s[i],
    ),
    "an integer on a condition": lambda lib, i, s: (lib.choose(i > 2, lib.put(s, i, i), s), s[0]),
    "a part that moves": lambda lib, i, s: (
        lib.put(s, slice(i, i + 2), s[i // 2 : i // 2 + 2] * 0.5),
        s[i],
    ),
    "added to a part that moves": lambda lib, i, s: (lib.add(s, slice(i, i + 2), s[i]), s[0]),
}

ROWS: dict[str, Step] = {
    "rows swap": lambda lib, i, s: (lib.put(lib.put(s, i, s[0]), 0, s[i]), s[i]),
    "a row of another": lambda lib, i, s: (lib.put(s, i, s[i - 1]), s[0].sum()),
    "a row on a condition": lambda lib, i, s: (
        lib.choose(s[i, 0] > 0, lib.put(s, i, s[0]), s),
        s[i, 1],
    ),
    "an element of another": lambda lib, i, s: (lib.add(s, (i, 1), s[i - 1, 0]), s[0, 0]),
    "columns swap": lambda lib, i, s: (
        lib.put(lib.put(s, np.s_[:, 0], s[:, 1]), np.s_[:, 1], s[:, 0]),
        i,
    ),
}

ALL = {**STEPS, **ROWS}
CHOSEN = np.array([3, 0, 2, 3, 4, 1, 0])


def _start(name: str, dtype: str = "float64") -> np.ndarray:
    shape = (6, 2) if name in ROWS else (6,)
    return np.random.default_rng(3).normal(size=shape).astype(dtype)


def _graph(name: str, ends: bool, dtype: str = "float64") -> tuple[list[Any], list[Any]]:
    indices = at.lvector("indices")
    start = (at.matrix if name in ROWS else at.vector)("start", dtype=dtype)

    def step(i: Any, s: Any) -> Any:
        new, other = ALL[name](_Symbolic, i, s)
        # Steps of float32 numbers and integers are to stay float32.
        results = [at.cast(new, dtype), other]
        return (results, until(at.eq(i, 1))) if ends else results

    (states, others), _ = aesara.scan(step, sequences=[indices], outputs_info=[start, None])
    return [indices, start], [states[-1], others]


def _expected(name: str, start: np.ndarray, ends: bool) -> tuple[np.ndarray, np.ndarray]:
    state, others = start.copy(), []
    for i in CHOSEN:
        state, other = ALL[name](_Arrays, int(i), state)
        state = state.astype(start.dtype)
        others.append(np.array(other))
        if ends and i == 1:
            break
    return state, np.array(others)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("ends", [False, True], ids=["for", "until"])
@pytest.mark.parametrize("name", ALL)
def test_values(name: str, ends: bool, mode: str) -> None:
    inputs, outputs = _graph(name, ends)
    f = aesara.function(inputs, outputs, mode=mode)
    start = _start(name)
    expected = _expected(name, start, ends)
    for _ in range(2):
        kept = start.copy()
        found = f(CHOSEN, start)
        for result, wanted in zip(found, expected):
            np.testing.assert_allclose(result, wanted, rtol=1e-12)
        np.testing.assert_array_equal(start, kept)
        assert not any(np.shares_memory(result, start) for result in found)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["on a condition", "an integer on a condition", "swap"])
def test_single_precision(name: str, mode: str) -> None:
    f = aesara.function(*_graph(name, False, "float32"), mode=mode)
    start = _start(name, "float32")
    found, _ = f(CHOSEN, start)
    assert found.dtype == "float32"
    np.testing.assert_allclose(found, _expected(name, start, False)[0], rtol=1e-6)


@pytest.mark.parametrize("ends", [False, True], ids=["for", "until"])
@pytest.mark.parametrize("name", ALL)
def test_nothing_is_copied(name: str, ends: bool) -> None:
    f = aesara.function(*_graph(name, ends), mode="NUMBA_FIXED")
    _assert_changed_in_place(f)


def _assert_changed_in_place(f: Any) -> None:
    """See that a step only changes its state, which has a buffer of one row."""
    (scan,) = (node for node in f.maker.fgraph.toposort() if isinstance(node.op, Scan))
    (state,) = scan.op.inner_sitsot(scan.op.fgraph.inputs)
    (result,) = scan.op.inner_sitsot_outs(scan.op.fgraph.outputs)
    assert result is not state
    while result is not state:
        assert isinstance(result.owner.op, CHANGES)
        assert result.owner.op.inplace
        result = result.owner.inputs[0]
    # The first dimension of the allocation.
    (buffer,) = scan.op.outer_sitsot(scan.inputs)
    assert buffer.owner.inputs[0].owner.inputs[0].data == 1


def test_a_jax_with_a_barrier_has_one_that_is_used() -> None:
    assert (barrier() is not None) == HAS_BARRIER


@needs_barrier
@pytest.mark.parametrize("ends", [False, True], ids=["for", "until"])
@pytest.mark.parametrize("name", ALL)
def test_no_step_copies_in_jax(name: str, ends: bool) -> None:
    inputs, outputs = _graph(name, ends)
    function = fixed_modes.jax_function(inputs, [outputs[0]])
    rows = 1000
    shape = (rows, 2) if name in ROWS else (rows,)
    with jax.experimental.enable_x64():
        args = (np.arange(rows), np.ones(shape))
        program = jax.jit(function).lower(*args).compile().as_text()
    array = f"f64[{','.join(map(str, shape))}]"
    entry = program[program.index("\nENTRY") :]
    steps = program[: program.index("\nENTRY")]
    # The start is copied once, since it stays the caller's.
    assert re.search(rf"{re.escape(array)}\S* copy\(", entry)
    assert not re.search(rf"{re.escape(array)}\S* copy\(", steps)


def test_a_swap_can_be_differentiated_and_vectorised_by_jax() -> None:
    inputs, outputs = _graph("swap", False)
    function = fixed_modes.jax_function(inputs, [outputs[0]])
    with jax.experimental.enable_x64():
        start = _start("swap")
        # The end is a permutation of the start.
        slopes = jax.jacobian(lambda x: function(CHOSEN, x)[0])(start)
        np.testing.assert_array_equal(
            np.asarray(slopes) @ start, _expected("swap", start, False)[0]
        )
        starts = np.stack([start, start[::-1]])
        ends = np.asarray(jax.vmap(lambda x: function(CHOSEN, x)[0])(starts))
    for end, begun in zip(ends, starts):
        np.testing.assert_array_equal(end, _expected("swap", begun, False)[0])


def test_a_number_of_steps_that_is_computed_copies_nothing_either() -> None:
    start = at.dmatrix("start")
    n = start.shape[0]

    def site(k: Any, s: Any) -> Any:
        i, j = k // n, k % n
        return at.set_subtensor(s[i, j], 0.5 * (s[i - 1, j] + s[i, j - 1]))

    states, _ = aesara.scan(site, sequences=[at.arange(n * n)], outputs_info=[start])
    f = aesara.function([start], states[-1], mode="NUMBA_FIXED")
    expected = np.random.default_rng(5).normal(size=(4, 4))
    found = f(expected.copy())
    assert ".copy()" not in fixed_modes.numba_source(f)
    for i in range(4):
        for j in range(4):
            expected[i, j] = 0.5 * (expected[i - 1, j] + expected[i, j - 1])
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_a_part_that_is_turned_round() -> None:
    """What is written is a view of what is overwritten."""
    indices, start = at.lvector("indices"), at.dvector("start")
    states, _ = aesara.scan(
        lambda i, s: at.set_subtensor(s[i : i + 3], s[i : i + 3][::-1]),
        sequences=[indices],
        outputs_info=[start],
    )
    f = aesara.function([indices, start], states[-1], mode="NUMBA_FIXED")
    _assert_changed_in_place(f)
    expected = np.arange(6.0)
    for i in (2, 0, 1, 3):
        expected[i : i + 3] = expected[i : i + 3][::-1].copy()
    np.testing.assert_array_equal(f(np.array([2, 0, 1, 3]), np.arange(6.0)), expected)


@pytest.mark.parametrize("mode", MODES)
def test_an_until_loop_that_takes_no_step_has_no_last_row(mode: str) -> None:
    inputs, outputs = _graph("swap", True)
    f = aesara.function(inputs, outputs[0], mode=mode)
    with pytest.raises(IndexError):
        f(np.array([], "int64"), _start("swap"))


@pytest.mark.parametrize("mode", MODES)
def test_minus_zero_stays_where_nothing_is_added(mode: str) -> None:
    x, condition = at.dvector("x"), at.bscalar("condition")
    changed = at.switch(condition, at.inc_subtensor(x[1], 5.0), x)
    f = aesara.function([x, condition], changed, mode=mode)
    found = f(np.array([-0.0, -0.0]), 0)
    np.testing.assert_array_equal(np.signbit(found), [True, True])
    np.testing.assert_array_equal(f(np.array([-0.0, -0.0]), 1), [0.0, 5.0])


@pytest.mark.parametrize("mode", MODES)
def test_an_index_out_of_bounds_raises_also_where_the_condition_is_false(mode: str) -> None:
    """Both branches of a ``switch`` are computed."""
    x, condition, i = at.dvector("x"), at.bscalar("condition"), at.lscalar("i")
    f = aesara.function(
        [x, condition, i], at.switch(condition, at.set_subtensor(x[i], 1.0), x), mode=mode
    )
    np.testing.assert_array_equal(f(np.zeros(2), 0, 1), [0.0, 0.0])
    with pytest.raises(IndexError):
        f(np.zeros(2), 0, 2)


@pytest.mark.parametrize("mode", MODES)
def test_arrays_of_two_lengths_are_still_refused(mode: str) -> None:
    x, y, condition = at.dvector("x"), at.dvector("y"), at.bscalar("condition")
    f = aesara.function(
        [x, y, condition], at.switch(condition, at.set_subtensor(x[0], 1.0), y), mode=mode
    )
    np.testing.assert_array_equal(f(np.zeros(2), np.ones(2), 1), [1.0, 0.0])
    with pytest.raises(ValueError, match="dimension"):
        f(np.zeros(2), np.ones(3), 1)
