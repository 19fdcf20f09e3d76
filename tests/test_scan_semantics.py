"""Every kind of scan gives, in both modes, what a plain Python loop gives."""

from __future__ import annotations

import aesara
import aesara.tensor as at
import numpy as np
import pytest
from aesara.gradient import Rop
from aesara.scan.utils import until


def evaluate(mode, inputs, outputs, *values, **kwargs):
    """Call a compiled function twice: nothing may be left over from the first call."""
    f = aesara.function(inputs, outputs, mode=mode, **kwargs)
    before = [np.array(v) for v in values]
    first = f(*values)
    second = f(*values)
    for value, old in zip(values, before):
        np.testing.assert_array_equal(value, old)
    for a, b in zip(first, second):
        np.testing.assert_array_equal(a, b)
    return first


def test_taps_of_states_and_sequences(mode):
    x, y0 = at.dvector("x"), at.dvector("y0")
    out, _ = aesara.scan(
        lambda x0, x2, y1, y3: 0.5 * y1 - 0.25 * y3 + x0 * x2,
        sequences=[dict(input=x, taps=[0, 2])],
        outputs_info=[dict(initial=y0, taps=[-1, -3])],
    )
    xs, ys = np.array([1.0, -1.0, 0.5, 2.0, 3.0, -2.0]), np.array([0.1, 0.2, 0.3])
    expected = list(ys)
    for t in range(4):
        expected.append(0.5 * expected[-1] - 0.25 * expected[-3] + xs[t] * xs[t + 2])
    (got,) = evaluate(mode, [x, y0], [out], xs, ys)
    np.testing.assert_allclose(got, expected[3:])


def test_backwards_over_a_sequence_of_matrices(mode):
    x = at.tensor3("x", dtype="float64")
    out, _ = aesara.scan(
        lambda m, s: s * 0.5 + m, sequences=[x], outputs_info=[at.zeros((2, 2))], go_backwards=True
    )
    values = np.arange(12.0).reshape(3, 2, 2)
    state, expected = np.zeros((2, 2)), []
    for m in values[::-1]:
        state = state * 0.5 + m
        expected.append(state)
    (got,) = evaluate(mode, [x], [out], values)
    np.testing.assert_allclose(got, expected)


@pytest.mark.parametrize("steps", [0, 1, 2, 7])
def test_symbolic_number_of_steps(mode, steps):
    n, x0 = at.lscalar("n"), at.dvector("x0")
    (states, mapped), _ = aesara.scan(
        lambda x: (x * 2.0, x.sum()), outputs_info=[x0, None], n_steps=n
    )
    value = np.array([1.0, -3.0])
    got_states, got_mapped = evaluate(mode, [n, x0], [states, mapped], np.int64(steps), value)
    powers = 2.0 ** np.arange(1, steps + 1)
    np.testing.assert_allclose(got_states, powers[:, None] * value)
    np.testing.assert_allclose(got_mapped, powers / 2.0 * value.sum())


def test_one_function_takes_any_number_of_steps(mode):
    n, x0 = at.lscalar("n"), at.dscalar("x0")
    states, _ = aesara.scan(lambda x: x + 1.0, outputs_info=[x0], n_steps=n)
    f = aesara.function([n, x0], [states, states[-1]], mode=mode)
    for steps in (3, 1, 5, 3):
        trace, last = f(steps, 0.5)
        np.testing.assert_allclose(trace, 0.5 + np.arange(1, steps + 1))
        assert last == 0.5 + steps


def test_negative_number_of_steps_is_an_error(mode):
    n = at.lscalar("n")
    out, _ = aesara.scan(lambda x: x + 1.0, outputs_info=[at.zeros(())], n_steps=n)
    f = aesara.function([n], out, mode=mode)
    with pytest.raises(IndexError, match="negative number of step -2"):
        f(-2)


def test_a_sequence_that_is_too_short_is_an_error(mode):
    n, x = at.lscalar("n"), at.dmatrix("x")
    out, _ = aesara.scan(lambda row: row.sum(), sequences=[x], n_steps=n)
    f = aesara.function([n, x], out, mode=mode)
    np.testing.assert_allclose(f(2, np.ones((2, 3))), [3.0, 3.0])
    message = r"Sequence 0 has shape \(2, 3\) but the Scan's required number of steps is 4"
    with pytest.raises(ValueError, match=message):
        f(4, np.ones((2, 3)))


def test_empty_sequence(mode):
    x = at.dmatrix("x")
    (s, m), _ = aesara.scan(
        lambda row, s: (s + row, row * 2.0), sequences=[x], outputs_info=[at.zeros(2), None]
    )
    got_states, got_mapped = evaluate(mode, [x], [s, m], np.zeros((0, 2)))
    assert got_states.shape == (0, 2)
    assert got_mapped.shape[0] == 0


def doubling_until_large(limit):
    x0 = at.dscalar("x0")
    (x, count), _ = aesara.scan(
        lambda x, c: ((x * 2.0, c + 1), until(x * 2.0 > limit)),
        outputs_info=[x0, at.zeros((), "int64")],
        n_steps=20,
    )
    return x0, x, count


def test_until_cuts_the_trace(mode):
    x0, x, count = doubling_until_large(50.0)
    got, last, counted = evaluate(mode, [x0], [x, x[-1], count[-1]], np.float64(3.0))
    np.testing.assert_array_equal(got, [6.0, 12.0, 24.0, 48.0, 96.0])
    assert last == 96.0
    assert counted == 5


def test_until_that_never_holds_runs_to_the_bound(mode):
    x0, x, count = doubling_until_large(1e9)
    got, counted = evaluate(mode, [x0], [x, count[-1]], np.float64(1.0))
    np.testing.assert_array_equal(got, 2.0 ** np.arange(1, 21))
    assert counted == 20


def test_until_of_which_only_the_last_value_is_read(mode):
    x0, x, count = doubling_until_large(50.0)
    last, counted = evaluate(mode, [x0], [x[-1], count[-1]], np.float64(3.0))
    assert last == 96.0
    assert counted == 5


@pytest.mark.parametrize(
    "read",
    [lambda t: t[-1], lambda t: t[-2:], lambda t: t[1:], lambda t: t[::-2], lambda t: t[2]],
    ids=["last", "last two", "but the first", "every second backwards", "third"],
)
def test_reading_a_part_of_the_trace(mode, read):
    x = at.dmatrix("x")
    out, _ = aesara.scan(lambda r, s: at.tanh(s + r), sequences=[x], outputs_info=[at.zeros(2)])
    values = np.linspace(-1.0, 1.0, 10).reshape(5, 2)
    state, trace = np.zeros(2), []
    for row in values:
        state = np.tanh(state + row)
        trace.append(state)
    (got,) = evaluate(mode, [x], [read(out)], values)
    np.testing.assert_allclose(got, read(np.array(trace)))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "float32", "complex64", "complex128"])
def test_states_keep_their_dtype(mode, dtype):
    x0, c = at.vector("x0", dtype=dtype), at.scalar("c", dtype=dtype)
    out, _ = aesara.scan(lambda x, c: x * c + x, outputs_info=[x0], non_sequences=[c], n_steps=3)
    assert out.dtype == dtype
    value, factor = np.array([1, 3]).astype(dtype), np.array(2).astype(dtype)
    expected = [value * np.array(3, dtype) ** np.array(k, dtype) for k in (1, 2, 3)]
    (got,) = evaluate(mode, [x0, c], [out], value, factor)
    assert got.dtype == dtype
    np.testing.assert_allclose(got, np.array(expected).astype(dtype))


def test_boolean_state(mode):
    x = at.vector("x", dtype="bool")
    out, _ = aesara.scan(
        lambda v, s: at.xor(v, s), sequences=[x], outputs_info=[at.zeros((), "bool")]
    )
    values = np.array([True, False, True, True])
    (got,) = evaluate(mode, [x], [out], values)
    assert got.dtype == np.bool_
    np.testing.assert_array_equal(got, np.logical_xor.accumulate(values))


def test_nested_scans(mode):
    m, c = at.dmatrix("m"), at.dscalar("c")

    def row_power(row):
        inner, _ = aesara.scan(
            lambda v, s, c: s * c + v, sequences=[row], outputs_info=[at.zeros(())], non_sequences=c
        )
        return inner[-1]

    out, _ = aesara.scan(row_power, sequences=[m])
    value = np.arange(6.0).reshape(2, 3)
    (got,) = evaluate(mode, [m, c], [out], value, np.float64(0.5))
    np.testing.assert_allclose(got, value @ np.array([0.25, 0.5, 1.0]))


def test_gradient_of_nested_scans(mode):
    m, c = at.dmatrix("m"), at.dscalar("c")

    def row_power(row, total, c):
        inner, _ = aesara.scan(
            lambda v, s, c: s * c + v, sequences=[row], outputs_info=[total], non_sequences=c
        )
        return inner[-1]

    out, _ = aesara.scan(row_power, sequences=[m], outputs_info=[at.zeros(())], non_sequences=c)
    value = np.arange(1.0, 7.0).reshape(2, 3)
    by_m, by_c = evaluate(mode, [m, c], aesara.grad(out[-1], [m, c]), value, np.float64(0.5))
    # The last state is sum_k v_k c**(5 - k).
    powers = np.arange(5, -1, -1)
    np.testing.assert_allclose(by_m.ravel(), 0.5**powers)
    np.testing.assert_allclose(
        by_c, np.sum(value.ravel()[:-1] * powers[:-1] * 0.5 ** (powers[:-1] - 1))
    )


def test_first_and_second_derivative(mode):
    x = at.dscalar("x")
    out, _ = aesara.scan(lambda s, x: s * x, outputs_info=[x], non_sequences=[x], n_steps=4)
    first = aesara.grad(out[-1], x)
    second = aesara.grad(first, x)
    got = evaluate(mode, [x], [out[-1], first, second], np.float64(1.3))
    np.testing.assert_allclose(got, [1.3**5, 5 * 1.3**4, 20 * 1.3**3])


def test_derivative_in_a_direction(mode):
    x, v = at.dvector("x"), at.dvector("v")
    out, _ = aesara.scan(lambda s: s * s, outputs_info=[x], n_steps=3)
    value, direction = np.array([0.9, 1.1]), np.array([1.0, -2.0])
    (got,) = evaluate(mode, [x, v], [Rop(out[-1], x, v)], value, direction)
    np.testing.assert_allclose(got, 8 * value**7 * direction)


def test_truncated_gradient(mode):
    x = at.dvector("x")
    out, _ = aesara.scan(
        lambda v, s: 0.5 * s + v,
        sequences=[x],
        outputs_info=[at.zeros(())],
        truncate_gradient=2,
    )
    (got,) = evaluate(mode, [x], [aesara.grad(out[-1], x)], np.ones(5))
    np.testing.assert_allclose(got, [0.0, 0.0, 0.0, 0.5, 1.0])


def test_shared_variable_that_the_step_updates(mode):
    total = aesara.shared(np.float64(1.0), name="total")
    x = at.dvector("x")
    out, updates = aesara.scan(lambda v: (total * v, {total: total + v}), sequences=[x])
    f = aesara.function([x], out, updates=updates, mode=mode)
    np.testing.assert_allclose(f(np.array([2.0, 3.0])), [2.0, 9.0])
    assert total.get_value() == 6.0
    np.testing.assert_allclose(f(np.array([1.0])), [6.0])
    assert total.get_value() == 7.0


def test_two_shared_variables_with_one_new_value_stay_apart(mode):
    a = aesara.shared(np.zeros(2), name="a")
    b = aesara.shared(np.ones(2), name="b")
    x = at.dmatrix("x")

    def step(row):
        new = a + row
        return new.sum(), {a: new, b: new}

    out, updates = aesara.scan(step, sequences=[x])
    f = aesara.function([x], out, updates=updates, mode=mode)
    np.testing.assert_allclose(f(np.ones((2, 2))), [2.0, 4.0])
    values = [v.get_value(borrow=True) for v in (a, b)]
    np.testing.assert_array_equal(values, [[2.0, 2.0], [2.0, 2.0]])
    assert not np.may_share_memory(*values)


def test_state_whose_length_is_known_only_at_run_time(mode):
    n, x = at.lscalar("n"), at.dvector("x")
    out, _ = aesara.scan(lambda s: s[::-1] + 1.0, outputs_info=[x[:n]], n_steps=3)
    (got,) = evaluate(mode, [n, x], [out], np.int64(2), np.array([1.0, 5.0, 9.0]))
    np.testing.assert_allclose(got, [[6.0, 2.0], [3.0, 7.0], [8.0, 4.0]])


def test_a_map_with_matrices_as_results(mode):
    x, w = at.dmatrix("x"), at.dvector("w")
    out, _ = aesara.scan(lambda r, w: at.outer(r, w), sequences=[x], non_sequences=[w])
    x_value, w_value = np.arange(6.0).reshape(3, 2), np.array([1.0, -1.0, 2.0])
    (got,) = evaluate(mode, [x, w], [out], x_value, w_value)
    np.testing.assert_allclose(got, x_value[:, :, None] * w_value)


def test_missing_values_and_infinity(mode):
    x = at.dvector("x")
    (level, best), _ = aesara.scan(
        lambda v, s, b: (at.switch(at.isnan(v), s, s + v), at.maximum(b, v)),
        sequences=[x],
        outputs_info=[at.zeros(()), at.constant(np.array(-np.inf))],
    )
    got_level, got_best = evaluate(mode, [x], [level, best], np.array([1.0, np.nan, np.inf]))
    np.testing.assert_array_equal(got_level, [1.0, 1.0, np.inf])
    np.testing.assert_array_equal(got_best, [1.0, np.nan, np.nan])


def test_arrays_in_any_layout(mode):
    x, y = at.dmatrix("x"), at.dmatrix("y")
    out, _ = aesara.scan(lambda a, b, s: s + a * b, sequences=[x, y], outputs_info=[at.zeros(3)])
    base = np.arange(24.0).reshape(4, 6)
    fortran = np.asfortranarray(base[:, :3])
    read_only = np.broadcast_to(np.array([1.0, 2.0, 3.0]), (4, 3))
    (got,) = evaluate(mode, [x, y], [out], base[:, ::2], read_only)
    np.testing.assert_allclose(got, np.cumsum(base[:, ::2] * read_only, axis=0))
    (got,) = evaluate(mode, [x, y], [out], fortran, fortran)
    np.testing.assert_allclose(got, np.cumsum(fortran**2, axis=0))


@pytest.mark.parametrize("mode", ["NUMBA_FIXED", "JAX_FIXED"])
@pytest.mark.parametrize("steps", [1, 2, 3, 5])
def test_part_that_begins_after_the_last_step_is_empty(mode: str, steps: int) -> None:
    x = at.dvector("x")
    (squares, rows), _ = aesara.scan(lambda a: [a * a, at.stack([a, a])], sequences=x)
    f = aesara.function([x], [squares[2:], rows[3:]], mode=mode)
    values = np.arange(1.0, steps + 1)
    parts = f(values)
    np.testing.assert_array_equal(parts[0], (values**2)[2:])
    np.testing.assert_array_equal(parts[1], np.stack([values, values], axis=1)[3:])


@pytest.mark.parametrize("mode", ["NUMBA_FIXED", "JAX_FIXED"])
def test_no_step_is_taken_where_the_sequences_are_empty(mode: str) -> None:
    """What is read decides how many steps are taken, but never more than there are."""
    x, w = at.dmatrices("x", "w")
    states, _ = aesara.scan(
        lambda row, h, w: at.tanh(w.dot(h) + row),
        sequences=x,
        outputs_info=at.zeros_like(w[0]),
        non_sequences=w,
    )
    outputs = [states[:2], aesara.grad(states[:2].sum(), w)]
    f = aesara.function([x, w], outputs, mode=mode)
    part, gradient = f(np.zeros((0, 3)), np.ones((3, 3)))
    assert part.shape == (0, 3)
    np.testing.assert_array_equal(gradient, np.zeros((3, 3)))
    rows = np.random.default_rng(9).normal(size=(4, 3))
    first = np.tanh(rows[0])
    second = np.tanh(first.sum() + rows[1])
    part, gradient = f(rows, np.ones((3, 3)))
    np.testing.assert_allclose(part, [first, second])
    np.testing.assert_allclose(gradient, np.outer(1 - second**2, first))


@pytest.mark.parametrize("mode", ["NUMBA_FIXED", "JAX_FIXED"])
def test_last_row_of_a_loop_over_nothing_is_an_error(mode: str) -> None:
    x, v = at.dscalar("x"), at.dvector("v")
    sums, _ = aesara.scan(lambda r, s: s + r, sequences=v, outputs_info=x)
    f = aesara.function([x, v], sums[-1], mode=mode)
    assert f(1.0, np.array([2.0, 3.0])) == 6.0
    with pytest.raises((IndexError, ValueError), match=r"shape|index"):
        f(1.0, np.zeros(0))


@pytest.mark.parametrize("columns", [1, 3])
def test_gradient_by_a_sequence_without_rows(columns: int, mode: str) -> None:
    xs, weights = at.dmatrix("xs"), at.dvector("weights")
    sums, _ = aesara.scan(lambda x, w: (x * w).sum(), sequences=[xs], non_sequences=[weights])
    f = aesara.function([xs, weights], aesara.grad(sums.sum(), [xs, weights]), mode=mode)
    by_xs, by_weights = f(np.ones((0, columns)), np.ones(columns))
    assert by_xs.shape == (0, columns)
    np.testing.assert_array_equal(by_weights, np.zeros(columns))
    by_xs, by_weights = f(np.full((2, columns), 5.0), np.full(columns, 3.0))
    np.testing.assert_array_equal(by_xs, np.full((2, columns), 3.0))
    np.testing.assert_array_equal(by_weights, np.full(columns, 10.0))
