"""Code that is written for the lengths of a call, and calls with other lengths."""

from __future__ import annotations

import os
import subprocess
import sys

import aesara
import aesara.tensor as at
import numpy as np
import pytest

import fixed_modes

MODE = "NUMBA_FIXED"


def variants(f: aesara.compile.function.types.Function) -> int:
    return len(f.vm.jit_fn._variants)


def test_one_function_serves_many_lengths_and_every_number_of_steps() -> None:
    x, n = at.dvector("x"), at.lscalar("n")
    trace, _ = aesara.scan(lambda s: 0.5 * s + 1.0, outputs_info=[x[0]], n_steps=n)
    f = aesara.function([x, n], [trace, trace[-1], x.sum()], mode=MODE)
    for length in (1, 2, 5):
        data = np.arange(1.0, 1.0 + length)
        for steps in (1, 2, 3, 7, 50):
            expected, state = [], data[0]
            for _ in range(steps):
                state = 0.5 * state + 1.0
                expected.append(state)
            got = f(data, steps)
            np.testing.assert_allclose(got[0], expected)
            np.testing.assert_allclose(got[1], expected[-1])
            np.testing.assert_allclose(got[2], data.sum())
    # One for any number of steps, and one each for a buffer of one and of two rows.
    assert variants(f) <= 3


def test_lengths_of_one_are_stretched_in_one_call_and_not_in_the_next() -> None:
    a, b = at.dvector("a"), at.dvector("b")
    f = aesara.function([a, b], [a + b, (a * b).sum()], mode=MODE)
    for shapes in ((3, 3), (1, 3), (3, 1), (1, 1), (0, 0), (0, 1), (4, 4)):
        u, v = (np.arange(1.0, 1.0 + n) for n in shapes)
        got = f(u, v)
        np.testing.assert_allclose(got[0], u + v)
        np.testing.assert_allclose(got[1], (u * v).sum())
    with pytest.raises(ValueError, match="dimension mismatch"):
        f(np.ones(2), np.ones(3))
    np.testing.assert_allclose(f(np.ones(2), np.ones(2))[0], [2.0, 2.0])


def test_after_many_variants_the_code_knows_nothing_of_lengths() -> None:
    xs = [at.dvector(f"x{k}") for k in range(4)]
    f = aesara.function(xs, sum(xs[1:], xs[0]), mode=MODE)
    rng = np.random.default_rng(3)
    for pattern in range(15):
        values = [rng.normal(size=1 if pattern >> k & 1 else 3) for k in range(4)]
        np.testing.assert_allclose(f(*values), sum(values[1:], values[0]))
    assert variants(f) <= 14


def test_integers_wrap_around_as_in_numpy() -> None:
    a, b = at.lscalar("a"), at.lscalar("b")
    f = aesara.function([a, b], [a * b, a + b], mode=MODE)
    with np.errstate(over="ignore"):
        for u, v in ((3, 4), (2**62, 8), (-(2**63), -1), (2**62 + 5, 2**62 + 9)):
            u64, v64 = np.int64(u), np.int64(v)
            got = f(u, v)
            assert got[0] == u64 * v64
            assert got[1] == u64 + v64


def test_an_index_that_is_inside_at_one_call_and_outside_at_the_next() -> None:
    x, k = at.dvector("x"), at.lscalar("k")
    f = aesara.function([x, k], [x[k], x[k:], x[:k], x[::k]], mode=MODE)
    data = np.arange(5.0)
    for index in (0, 2, 4, -1, -5):
        if index == 0:
            continue
        got = f(data, index)
        np.testing.assert_allclose(got[0], data[index])
        np.testing.assert_allclose(got[1], data[index:])
        np.testing.assert_allclose(got[2], data[:index])
        np.testing.assert_allclose(got[3], data[::index])
    for index in (5, -6):
        with pytest.raises(IndexError, match="out of bounds"):
            f(data, index)


@pytest.mark.parametrize("size", [2, 3, 4, 5, 11])
def test_a_vector_state_of_any_size(size: int) -> None:
    h0, w, n = at.dvector("h0"), at.dmatrix("w"), at.lscalar("n")

    def step(h, w):
        new = at.tanh(at.dot(w, h) + 0.1 * h[::-1])
        return at.set_subtensor(new[0], new[0] + h.sum())

    trace, _ = aesara.scan(step, outputs_info=[h0], non_sequences=[w], n_steps=n)
    f = aesara.function([h0, w, n], [trace, trace[-1], trace[-1].max()], mode=MODE)
    rng = np.random.default_rng(size)
    start, weights = rng.normal(size=size), rng.normal(size=(size, size)) / size
    for steps in (1, 2, 6):
        rows, h = [], start
        for _ in range(steps):
            new = np.tanh(weights @ h + 0.1 * h[::-1])
            new[0] += h.sum()
            rows.append(new)
            h = new
        got = f(start, weights, steps)
        np.testing.assert_allclose(got[0], rows)
        np.testing.assert_allclose(got[1], rows[-1])
        np.testing.assert_allclose(got[2], rows[-1].max())


def test_one_function_for_states_of_several_sizes() -> None:
    h0, n = at.dvector("h0"), at.lscalar("n")
    trace, _ = aesara.scan(lambda h: h * 0.5 + h.sum(), outputs_info=[h0], n_steps=n)
    f = aesara.function([h0, n], trace, mode=MODE)
    for size in (1, 2, 3, 6, 0, 2, 9):
        start, rows = np.arange(1.0, 1.0 + size), []
        h = start
        for _ in range(3):
            h = h * 0.5 + h.sum()
            rows.append(h)
        np.testing.assert_allclose(f(start, 3), np.array(rows).reshape(3, size))


def test_small_matrices_with_taps_and_a_last_value() -> None:
    a0 = at.dtensor3("a0")
    n = at.lscalar("n")

    def step(before, now, total):
        new = at.dot(now, before.T) * 0.3 + at.eye(2)
        return new, total + at.outer(new[0], new[:, 1])

    (states, totals), _ = aesara.scan(
        step, outputs_info=[dict(initial=a0, taps=[-2, -1]), at.zeros((2, 2))], n_steps=n
    )
    f = aesara.function([a0, n], [states, totals[-1]], mode=MODE)
    start = np.arange(8.0).reshape(2, 2, 2) / 8
    for steps in (1, 2, 5):
        before, now, total, rows = start[0], start[1], np.zeros((2, 2)), []
        for _ in range(steps):
            new = now @ before.T * 0.3 + np.eye(2)
            total = total + np.outer(new[0], new[:, 1])
            rows.append(new)
            before, now = now, new
        got = f(start, steps)
        np.testing.assert_allclose(got[0], rows)
        np.testing.assert_allclose(got[1], total)


def test_swapped_and_repeated_small_states() -> None:
    a, b, n = at.dvector("a"), at.dvector("b"), at.lscalar("n")
    (u, v, w), _ = aesara.scan(lambda u, v, w: [v, u, u + 0 * w], outputs_info=[a, b, a], n_steps=n)
    f = aesara.function([a, b, n], [u, v, w, u[-1]], mode=MODE)
    for size in (2, 7):
        x, y = np.arange(1.0, 1.0 + size), -np.arange(1.0, 1.0 + size)
        p, q, r, rows = x, y, x, []
        for _ in range(4):
            p, q, r = q, p, p
            rows.append((p, q, r))
        got = f(x, y, 4)
        for k in range(3):
            np.testing.assert_allclose(got[k], [row[k] for row in rows])
        np.testing.assert_allclose(got[3], rows[-1][0])
        assert (x > 0).all()
        assert (y < 0).all()


def test_an_expression_read_by_one_loop_sees_its_inputs_as_they_were() -> None:
    x = at.dvector("x")
    sequence = x * 2.0 + 1.0
    trace, _ = aesara.scan(lambda e, s: s + e, sequences=[sequence], outputs_info=[at.zeros(())])
    changed = at.inc_subtensor(x[1:], trace[:-1])
    f = aesara.function([x], [trace, changed, (x - 3.0).sum(), (x**2).max()], mode=MODE)
    for size in (2, 6):
        data = np.arange(size) + 0.5
        expected = np.cumsum(2 * data + 1)
        got = f(data)
        np.testing.assert_allclose(got[0], expected)
        after = data.copy()
        after[1:] += expected[:-1]
        np.testing.assert_allclose(got[1], after)
        np.testing.assert_allclose(got[2], (data - 3).sum())
        np.testing.assert_allclose(got[3], (data**2).max())


def test_outer_products_are_computed_where_they_are_used() -> None:
    xs, ys = at.dmatrices("xs", "ys")
    total, _ = aesara.scan(
        lambda x, y, s: s + at.outer(x, y),
        sequences=[xs, ys],
        outputs_info=[at.zeros((xs.shape[1], ys.shape[1]))],
    )
    f = aesara.function([xs, ys], total[-1], mode=MODE)
    rng = np.random.default_rng(5)
    for rows, left, right in ((3, 5, 7), (1, 2, 2), (6, 12, 1)):
        a, b = rng.normal(size=(rows, left)), rng.normal(size=(rows, right))
        np.testing.assert_allclose(f(a, b), np.einsum("ti,tj->ij", a, b))


def test_a_shared_vector_carried_by_a_loop_keeps_each_step_apart() -> None:
    shared = aesara.shared(np.zeros(3), name="total")
    xs = at.dmatrix("xs")
    rows, updates = aesara.scan(
        lambda x: (shared * 1.0, {shared: at.tanh(shared) + x}), sequences=[xs]
    )
    f = aesara.function([xs], rows, updates=updates, mode=MODE)
    data = np.arange(12.0).reshape(4, 3) / 10
    total, expected = np.zeros(3), []
    for _ in range(2):
        for x in data:
            expected.append(total)
            total = np.tanh(total) + x
    got = [f(data), f(data)]
    np.testing.assert_allclose(np.concatenate(got), expected)
    np.testing.assert_allclose(shared.get_value(), total)


def test_the_source_is_readable_before_and_after_a_call() -> None:
    x = at.dvector("x")
    f = aesara.function([x], (x * 2.0).sum(), mode=MODE)
    assert "def graph(error, plan, x" in fixed_modes.numba_source(f)
    assert ".shape[0]" in fixed_modes.numba_source(f)
    assert f(np.ones(3)) == 6.0
    # The length is a number that the code is given.
    assert ".shape[0]" not in fixed_modes.numba_source(f)


def test_a_type_whose_lengths_are_arrays():
    x, kernel = at.dvector("x"), at.dvector("kernel")
    full = at.convolve(at.specify_shape(x, (4,)), at.specify_shape(kernel, (3,)), mode="full")
    assert isinstance(full.type.shape[0], np.ndarray)
    a, b = np.array([1.0, -2.0, 0.5, 3.0]), np.array([0.25, 1.0, -1.0])
    with pytest.warns(match="Python"):
        f = aesara.function([x, kernel], [full, full[::-2], full.sum()], mode="NUMBA_FIXED")
    results = f(a, b)
    expected = np.convolve(a, b)
    for result, wanted in zip(results, (expected, expected[::-2], expected.sum())):
        np.testing.assert_allclose(result, wanted, rtol=1e-14)


_OPTIMISED = """
import aesara, numpy as np
import aesara.tensor as at
import fixed_modes

x = at.dmatrix("x")
maps, _ = aesara.scan(lambda r: (r[::-1] * 2 + r).cumsum().sum() + at.dot(r, r), [x])
sums, _ = aesara.scan(lambda r, a: a + at.dot(r, r[::-1]), [x], [at.constant(np.float64(0))])
f = aesara.function([x], [maps, sums], mode="NUMBA_FIXED")
for n in (3, 2, 4, 1, 3, 7):
    rows = np.arange(4.0 * n).reshape(4, n)
    one = [np.cumsum(r[::-1] * 2 + r).sum() + r @ r for r in rows]
    other = np.cumsum([r @ r[::-1] for r in rows])
    for got, expected in zip(f(rows), (one, other)):
        np.testing.assert_allclose(got, expected, rtol=1e-12)
print(__debug__)
"""


def test_python_without_assertions_notes_the_same_decisions() -> None:
    """Code for rows of three elements would serve rows of two otherwise."""
    done = subprocess.run(
        [sys.executable, "-O", "-c", _OPTIMISED],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
    )
    assert (done.returncode, done.stdout.strip()) == (0, "False"), done.stderr


@pytest.mark.parametrize("size", [5, 16])
def test_memory_for_a_trace_is_taken_once(size: int) -> None:
    """Of the buffer that Aesara allocates the initial rows alone are left, where another is used.

    Twice the memory of a trace would go back to the system after each call, whose pages it
    would have to provide anew.
    """
    x, start = at.dmatrix("x"), at.dvector("start")
    states, _ = aesara.scan(lambda r, s: 0.5 * s + r, sequences=[x], outputs_info=[start])
    f = aesara.function([x, start], states, mode=MODE)
    rows, state = np.random.default_rng(2).normal(size=(9, size)), np.arange(float(size))
    expected = []
    for row in rows:
        expected.append(0.5 * (expected[-1] if expected else state) + row)
    np.testing.assert_allclose(f(rows, state), expected, rtol=1e-12)
    allocations = [n for n in fixed_modes.numba_source(f).splitlines() if "np.empty((" in n]
    assert len(allocations) == 2
    assert sum("np.empty((1, " in n for n in allocations) == 1
    # What is read of the buffer beside the trace is in a buffer of its own.
    more = aesara.function([x, start], [states, states.owner.inputs[0]], mode=MODE)
    found, whole = more(rows, state)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    np.testing.assert_allclose(whole, [state, *expected], rtol=1e-12)


@pytest.mark.parametrize("size", [5, 16])
def test_the_compiler_does_not_know_of_short_rows(size: int) -> None:
    """LLVM makes no vector instructions for them, since it has to check for overlaps."""
    x = at.dmatrix("x")
    states, _ = aesara.scan(
        lambda r, s: 0.5 * s + at.outer(r, r), sequences=[x], outputs_info=[at.eye(size)]
    )
    f = aesara.function([x], states[-1], mode=MODE)
    rows, expected = np.random.default_rng(3).normal(size=(7, size)), np.eye(size)
    for row in rows:
        expected = 0.5 * expected + np.outer(row, row)
    np.testing.assert_allclose(f(rows), expected, rtol=1e-12)
    step = fixed_modes.numba_source(f).partition("for step in range(")[2]
    # An outer loop may be known, and is as long as the inner one.
    assert step.count(f"in range({size}):") <= 1
    assert "state_buffer" in step
