"""Loops with a known number of steps: every kind of tap, and buffers of every length."""

from __future__ import annotations

import aesara
import aesara.tensor as at
import numpy as np
import pytest
from aesara.scan.op import Scan, ScanInfo
from aesara.scan.utils import until

from fixed_modes.errors import FixedModesWarning


def ring(first, taps, length, steps):
    """Run x = 1 + sum(taps) as a Scan does that keeps `length` rows."""
    depth = -min(taps)
    trace = list(first)
    for step in range(steps):
        trace.append(1.0 + sum(trace[depth + step + tap] for tap in taps))
    kept = trace[max(0, len(trace) - length) :]
    return np.array(kept + [0.0] * (length - len(kept)))


def scan_of_one_state(taps, length, steps, buffer):
    """Make a Scan with one state by hand, with a buffer of any length."""
    rows = [at.dscalar() for _ in taps]
    kind = dict(mit_sot_in_slices=(), sit_sot_in_slices=(tuple(taps),))
    if len(taps) > 1:
        kind = dict(mit_sot_in_slices=(tuple(taps),), sit_sot_in_slices=())
    info = ScanInfo(
        n_seqs=0,
        mit_mot_in_slices=(),
        mit_mot_out_slices=(),
        n_nit_sot=0,
        n_shared_outs=0,
        n_non_seqs=0,
        as_while=False,
        **kind,
    )
    return Scan(rows, [1.0 + sum(rows)], info)(steps, buffer)


@pytest.mark.parametrize("taps", [(-1,), (-2, -1), (-3, -1)])
@pytest.mark.parametrize("steps", [1, 3, 12])
@pytest.mark.parametrize("extra", ["depth", "one_more", "many", "exact", "longer"])
def test_buffer_of_any_length(evaluate, taps, steps, extra):
    depth = -min(taps)
    length = {
        "depth": depth,
        "one_more": depth + 1,
        "many": depth + 9,
        "exact": depth + steps,
        "longer": depth + steps + 2,
    }[extra]
    buffer = at.dvector("buffer")
    start = np.full(length, 77.0)
    start[:depth] = np.arange(depth) + 0.5
    out = scan_of_one_state(taps, length, at.constant(steps), buffer)
    result = evaluate([buffer], out, start)
    np.testing.assert_allclose(result, ring(start[:depth], taps, length, steps))
    assert start[-1] == (77.0 if length > depth else depth - 0.5)


@pytest.mark.parametrize("steps", [0, 1, 2, 12])
@pytest.mark.parametrize("length", [2, 3, 20])
def test_number_of_steps_that_no_shape_depends_on_is_no_static_value(evaluate, steps, length):
    buffer, n = at.dvector("buffer"), at.lscalar("n")
    out = scan_of_one_state((-2, -1), length, n, buffer)
    f = aesara.function([buffer, n], out, mode="JAX_FIXED")
    start = np.full(length, 77.0)
    start[:2] = 0.5, 1.5
    expected = ring(start[:2], (-2, -1), length, steps) if steps else start
    np.testing.assert_allclose(f(start, steps), expected)
    assert f.vm.jit_fn.variants.needs is None


def test_negative_traced_number_of_steps_raises(evaluate):
    buffer, n = at.dvector("buffer"), at.lscalar("n")
    with pytest.raises(IndexError, match="negative number of step"):
        evaluate([buffer, n], scan_of_one_state((-1,), 1, n, buffer), np.ones(1), -1)


def test_sequences_states_maps_and_non_sequences_together(evaluate, data):
    xs, w = at.dmatrix("xs"), at.dvector("w")

    def step(x, before, last, w):
        now = before * 0.5 + last * w + x
        return now, now.sum(), x[::-1]

    (trace, sums, flipped), _ = aesara.scan(
        step,
        sequences=[xs],
        outputs_info=[dict(initial=at.ones((2, 3)), taps=[-2, -1]), None, None],
        non_sequences=[w],
    )
    x, v = data.normal(size=(5, 3)), data.normal(size=3)
    states = [np.ones(3), np.ones(3)]
    for row in x:
        states.append(states[-2] * 0.5 + states[-1] * v + row)
    expected = np.array(states[2:])
    results = evaluate([xs, w], [trace, sums, flipped], x, v)
    for result, want in zip(results, [expected, expected.sum(1), x[:, ::-1]]):
        np.testing.assert_allclose(result, want)


def test_map_of_a_single_step(evaluate):
    x = at.dvector("x")
    out, _ = aesara.scan(lambda v, s: s + at.sin(v), sequences=[x], outputs_info=[at.zeros(())])
    np.testing.assert_allclose(evaluate([x], out, np.array([2.0])), [np.sin(2.0)])


@pytest.mark.parametrize("dtype", ["float32", "int8", "bool", "complex64"])
def test_states_keep_their_dtype(evaluate, dtype):
    x = at.vector("x", dtype=dtype)

    def step(v, s):
        mixed = at.or_(v, s) if dtype == "bool" else v + s * at.constant(2, dtype="int8")
        return at.cast(mixed, dtype)

    start = at.constant(np.zeros((), dtype))
    out, _ = aesara.scan(step, sequences=[x], outputs_info=[start])
    value = np.array([1, 0, 1]).astype(dtype)
    result = evaluate([x], out, value)
    assert result.dtype == dtype
    expected = [1, 1, 1] if dtype == "bool" else [1, 2, 5]
    np.testing.assert_array_equal(result, np.array(expected).astype(dtype))


def test_sequence_that_is_too_short_raises_as_in_fast_run(evaluate):
    x = at.dvector("x")
    out, _ = aesara.scan(lambda v, s: v * s, sequences=[x], outputs_info=[at.ones(())], n_steps=4)
    node = _scan_node(out)
    short = node.op(node.inputs[0], x, *node.inputs[2:])
    with pytest.raises(ValueError, match=r"Sequence 0 has shape .*required number of steps is 4"):
        evaluate([x], short, np.ones(3))


def test_longer_sequence_is_cut(evaluate):
    x = at.dvector("x")
    out, _ = aesara.scan(lambda v, s: v + s, sequences=[x], outputs_info=[at.zeros(())], n_steps=3)
    np.testing.assert_allclose(evaluate([x], out, np.arange(1.0, 7.0)), [1.0, 3.0, 6.0])


def test_negative_number_of_steps_raises(evaluate):
    n = at.lscalar("n")
    info = ScanInfo(0, (), (), (), ((-1,),), 0, 0, 0, False)
    row = at.dscalar()
    out = Scan([row], [row + 1.0], info)(n, at.alloc(0.0, at.abs(n) + 1))
    with pytest.raises(IndexError, match="negative number of step -2"):
        evaluate([n], out, -2)


def test_row_that_changes_its_shape_raises(evaluate):
    x = at.dmatrix("x")
    out, _ = aesara.scan(
        lambda s, x: at.specify_shape(at.concatenate([s, s]), (None,)),
        outputs_info=[x[0]],
        non_sequences=[x],
        n_steps=2,
    )
    with pytest.raises(ValueError, match="changed shape"):
        evaluate([x], out, np.ones((2, 3)))


def test_nested_loops(evaluate, data):
    x = at.dmatrix("x")

    def outer(row, total):
        inner, _ = aesara.scan(
            lambda v, s: s * 0.5 + v * total, sequences=[row], outputs_info=[at.zeros(())]
        )
        return inner[-1] + total, inner

    (totals, inners), _ = aesara.scan(outer, sequences=[x], outputs_info=[at.ones(()), None])
    value = data.normal(size=(3, 4))
    total, want_totals, want_inners = 1.0, [], []
    for row in value:
        s, rows = 0.0, []
        for v in row:
            s = s * 0.5 + v * total
            rows.append(s)
        want_inners.append(rows)
        total = rows[-1] + total
        want_totals.append(total)
    results = evaluate([x], [totals, inners], value)
    np.testing.assert_allclose(results[0], want_totals)
    np.testing.assert_allclose(results[1], want_inners)


def test_shape_that_fused_scalar_nodes_compute_in_the_step(evaluate):
    v, w, b = at.dmatrix("v"), at.dmatrix("w"), at.dvector("b")

    def step(v, w, b):
        summed = at.dot(v, w) + b
        filled = at.alloc(1.0, *at.broadcast_shape(at.dot(v, w), b))
        return at.tanh(summed) * filled.sum()

    out, _ = aesara.scan(step, outputs_info=[v], non_sequences=[w, b], n_steps=2)
    start, want = np.full((3, 2), 0.1), np.full((3, 2), 0.1)
    for _ in range(2):
        want = np.tanh(want @ np.eye(2) + 0.5) * 6.0
    np.testing.assert_allclose(
        evaluate([v, w, b], out[-1], start, np.eye(2), np.full(2, 0.5)), want
    )


def test_gradients_of_states_with_two_taps(evaluate, data):
    x, w = at.dvector("x"), at.dscalar("w")
    out, _ = aesara.scan(
        lambda v, a, b, w: at.tanh(v + w * a - 0.3 * b),
        sequences=[x],
        outputs_info=[dict(initial=at.zeros(2), taps=[-2, -1])],
        non_sequences=[w],
    )
    loss = (out**2).sum()
    value = data.normal(size=6)

    def numpy_loss(x, w):
        trace = [0.0, 0.0]
        for v in x:
            trace.append(np.tanh(v + w * trace[-2] - 0.3 * trace[-1]))
        return (np.array(trace) ** 2).sum()

    gx, gw = evaluate([x, w], aesara.grad(loss, [x, w]), value, 0.7)
    h = 1e-6
    want_w = (numpy_loss(value, 0.7 + h) - numpy_loss(value, 0.7 - h)) / (2 * h)
    np.testing.assert_allclose(gw, want_w, rtol=1e-7)
    for i in range(6):
        e = h * np.eye(6)[i]
        want = (numpy_loss(value + e, 0.7) - numpy_loss(value - e, 0.7)) / (2 * h)
        np.testing.assert_allclose(gx[i], want, rtol=1e-6, atol=1e-9)


def test_second_derivative(evaluate):
    x = at.dscalar("x")
    out, _ = aesara.scan(
        lambda s, x: s * x, outputs_info=[at.ones(())], non_sequences=[x], n_steps=4
    )
    second = aesara.grad(aesara.grad(out[-1], x), x)
    np.testing.assert_allclose(evaluate([x], second, 1.5), 12 * 1.5**2)


def test_mit_mot_that_wraps_around(evaluate):
    # Read at 0 and 1, written at 1, in a buffer of three rows, for four steps.
    a, b = at.dscalar(), at.dscalar()
    info = ScanInfo(0, ((0, 1),), ((1,),), (), (), 0, 0, 0, False)
    buffer = at.dvector("buffer")
    out = Scan([a, b], [a + 2.0 * b], info)(at.constant(4), buffer)
    values = np.array([1.0, 10.0, 100.0])
    want = values.copy()
    for step in range(4):
        position = step % 3
        want[(position + 1) % 3] = want[position] + 2 * want[(position + 1) % 3]
    np.testing.assert_allclose(evaluate([buffer], out, values), want)


def test_no_steps_give_empty_traces_and_unchanged_states(evaluate):
    n, x = at.lscalar("n"), at.dvector("x")
    (states, maps), _ = aesara.scan(lambda s: (s * 2.0, s.sum()), outputs_info=[x, None], n_steps=n)
    total = aesara.shared(np.float64(3.0))
    result = evaluate([n, x], [states, maps], 0, np.ones(2), updates={total: total + maps.sum()})
    assert result[0].shape == (0, 2)
    assert result[1].shape == (0,)
    assert total.get_value() == 3.0


def test_error_names_the_scan_and_the_line(evaluate):
    x = at.dvector("x")

    class Strange(aesara.graph.op.Op):
        __props__ = ()

        def make_node(self, v):
            return aesara.graph.basic.Apply(self, [v], [v.type()])

        def perform(self, node, inputs, outputs):
            outputs[0][0] = inputs[0]

    out, _ = aesara.scan(
        lambda v, s: Strange()(v) + s, sequences=[x], outputs_info=[at.zeros(())], name="walk"
    )
    with pytest.warns(FixedModesWarning) as caught:
        got = evaluate([x], out, np.array([1.0, 2.0, 4.0]))
    np.testing.assert_array_equal(got, [1.0, 3.0, 7.0])
    (warning,) = caught
    message = str(warning.message)
    assert "Strange" in message
    assert "Inside: walk" in message
    assert "test_scan.py" in message


def _scan_node(variable):
    while not isinstance(variable.owner.op, Scan):
        variable = variable.owner.inputs[0]
    return variable.owner


# Loops with a condition


def halve_until(limit, start, bound=20):
    out, _ = aesara.scan(
        lambda s, limit: (s / 2.0, until(s < limit)),
        outputs_info=[start],
        non_sequences=[limit],
        n_steps=bound,
    )
    return out


@pytest.mark.parametrize("length", [1, 2, 3, 4, 6])
@pytest.mark.parametrize("done", [1, 2, 3])
def test_until_loop_with_a_buffer_of_any_length(evaluate, length, done):
    # Three steps at most; with `done` below 3 the buffer loses a row for each step left out.
    row, stop_at = at.dscalar(), at.dscalar()
    info = ScanInfo(0, (), (), (), ((-1,),), 0, 0, 1, True)
    buffer, limit = at.dvector("buffer"), at.dscalar("limit")
    op = Scan([row, stop_at], [row + 1.0, at.ge(row + 1.0, stop_at)], info)
    start = np.zeros(length)
    want = np.zeros(length)
    for step in range(done):
        want[(1 + step) % length] = step + 1.0
    if length < done + 1:
        want = np.roll(want, -((1 + done) % length))
    elif length > done + 1 and done < 3:
        want = want[: -(3 - done)]
    out = op(at.constant(3), buffer, limit)
    np.testing.assert_array_equal(evaluate([buffer, limit], out, start, float(done)), want)


def test_traced_number_of_steps_over_an_empty_sequence(evaluate):
    n, x = at.lscalar("n"), at.dvector("x")
    row, state = at.dscalar(), at.dscalar()
    info = ScanInfo(1, (), (), (), ((-1,),), 0, 0, 0, False)
    out = Scan([row, state], [row + state], info)(n, x, at.ones(1))
    assert evaluate([n, x], out, 0, np.zeros(0)).tolist() == [1.0]
    with pytest.raises(ValueError, match="Sequence 0 has shape"):
        evaluate([n, x], out, 3, np.ones(2))


def test_last_value_of_an_until_loop_needs_no_recompilation():
    start, limit = at.dscalar("start"), at.dscalar("limit")
    f = aesara.function([start, limit], halve_until(limit, start)[-1], mode="JAX_FIXED")
    assert f(8.0, 3.0) == 1.0  # 4, 2, then the step from 2 stops after 1
    assert f(8.0, 5.0) == 2.0
    assert f(8.0, -1.0) == 8.0 / 2**20
    assert f.vm.jit_fn.variants.needs is None


def test_trace_of_an_until_loop_has_the_length_of_what_was_run():
    start, limit = at.dscalar("start"), at.dscalar("limit")
    f = aesara.function([start, limit], halve_until(limit, start), mode="JAX_FIXED")
    np.testing.assert_allclose(f(8.0, 3.0), [4.0, 2.0, 1.0])
    np.testing.assert_allclose(f(8.0, 5.0), [4.0, 2.0])
    assert f(8.0, -1.0).shape == (20,)
    assert f.vm.jit_fn.variants.needs is None


def test_trace_of_an_until_loop_is_used_further(evaluate):
    start, limit = at.dscalar("start"), at.dscalar("limit")
    trace = halve_until(limit, start)
    outputs = [trace.sum(), trace.shape[0], at.exp(trace), aesara.grad(trace.sum(), start)]
    f = aesara.function([start, limit], outputs, mode="JAX_FIXED")
    for limit_value, want in [(3.0, [4.0, 2.0, 1.0]), (5.0, [4.0, 2.0]), (3.0, [4.0, 2.0, 1.0])]:
        total, length, powers, slope = f(8.0, limit_value)
        assert total == sum(want)
        assert length == len(want)
        np.testing.assert_allclose(powers, np.exp(want))
        np.testing.assert_allclose(slope, sum(want) / 8.0)


def test_until_loop_inside_a_loop(evaluate):
    starts = at.dvector("starts")
    out, _ = aesara.scan(lambda s: halve_until(at.constant(1.0), s)[-1], sequences=[starts])
    np.testing.assert_allclose(evaluate([starts], out, np.array([8.0, 3.0])), [0.25, 0.375])
