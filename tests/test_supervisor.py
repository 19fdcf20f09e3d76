"""What a step may destroy, and that it changes nothing that somebody else reads."""

from __future__ import annotations

import aesara
import aesara.tensor as at
import numpy as np
import pytest
from aesara.graph.fg import FunctionGraph
from aesara.scan.op import Scan
from aesara.tensor.basic import AllocEmpty
from aesara.tensor.random.type import RandomType

from fixed_modes.supervisor import destroyable_inner_inputs, known_length, supervise


def scan_node(variable):
    (node,) = [
        v.owner
        for v in aesara.graph.basic.ancestors([variable])
        if v.owner and isinstance(v.owner.op, Scan)
    ]
    return node


def test_a_carried_generator_is_destroyable_and_nothing_else():
    stream = at.random.RandomStream(1)
    x = at.dvector("x")
    c = at.dscalar("c")
    out, _ = aesara.scan(
        lambda x_t, s, c: s + x_t * c + stream.normal(),
        sequences=[x],
        outputs_info=[at.zeros((), "float64")],
        non_sequences=[c],
    )
    node = scan_node(out)
    (rng,) = destroyable_inner_inputs(node, node.op.inner_inputs)
    assert isinstance(rng.type, RandomType)


def test_a_mit_mot_tap_is_destroyable_where_the_step_writes_it():
    x0 = at.dvector("x0")
    out, _ = aesara.scan(lambda x: at.sin(x), outputs_info=[x0], n_steps=3)
    node = next(
        v.owner
        for v in aesara.graph.basic.ancestors([aesara.grad(out[-1].sum(), x0)])
        if v.owner and isinstance(v.owner.op, Scan) and v.owner.op.info.n_mit_mot
    )
    op = node.op
    written = op.info.mit_mot_out_slices[0]
    expected = [
        tap
        for tap, at_row in zip(op.inner_mitmot(op.inner_inputs), op.info.mit_mot_in_slices[0])
        if at_row in written
    ]
    assert expected
    assert destroyable_inner_inputs(node, op.inner_inputs) == expected


@pytest.mark.parametrize(("length", "is_free"), [(1, True), (2, False), (3, False)])
def test_a_state_is_destroyable_where_its_buffer_has_one_row_for_each_tap(length, is_free):
    node = single_state_scan(length)
    states = node.op.inner_sitsot(node.op.inner_inputs)
    assert destroyable_inner_inputs(node, node.op.inner_inputs) == (states if is_free else [])


def single_state_scan(length: int):
    """Make a scan whose buffer has a length that its static shape does not tell."""
    n = at.lscalar("n")
    x0 = at.dvector("x0")
    out, _ = aesara.scan(lambda x: x * 2.0, outputs_info=[x0], n_steps=n)
    node = scan_node(out)
    empty = AllocEmpty("float64")(at.constant(length), x0.shape[0])
    inputs = list(node.inputs)
    position = inputs.index(node.op.outer_sitsot(inputs)[0])
    inputs[position] = at.set_subtensor(empty[:1], x0)
    return node.op.make_node(*inputs)


def test_known_length_looks_through_the_write_of_the_initial_state():
    node = single_state_scan(5)
    assert known_length(node.op.outer_sitsot(node.inputs)[0]) == 5
    assert known_length(at.dvector()) is None
    assert known_length(at.alloc(0.0, at.lscalar(), 3)) is None


def test_an_input_that_is_an_output_is_protected():
    x = at.dvector("x")
    fgraph = FunctionGraph([x], [x], clone=False)
    supervise(fgraph, [x])
    assert fgraph._supervisor_protected == {x}


# -- no write reaches a second name ---------------------------------------------


def run(mode, inputs, outputs, *values):
    f = aesara.function(inputs, outputs, mode=mode)
    kept = [np.array(v) for v in values]
    first = f(*values)
    for value, before in zip(values, kept):
        np.testing.assert_array_equal(value, before)
    second = f(*values)
    for a, b in zip(first, second):
        np.testing.assert_array_equal(a, b)
        assert not np.may_share_memory(a, b)
    return first


def test_swapped_states(mode):
    a0, b0 = at.dvector("a0"), at.dvector("b0")
    (a, b), _ = aesara.scan(lambda a, b: (b, a), outputs_info=[a0, b0], n_steps=3)
    a_value, b_value = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    trace_a, last_b = run(mode, [a0, b0], [a, b[-1]], a_value, b_value)
    np.testing.assert_array_equal(trace_a, [b_value, a_value, b_value])
    np.testing.assert_array_equal(last_b, a_value)


def test_swapped_states_of_which_only_the_last_is_kept(mode):
    a0, b0 = at.dvector("a0"), at.dvector("b0")
    (a, b), _ = aesara.scan(lambda a, b: (b, a + b), outputs_info=[a0, b0], n_steps=4)
    a_value, b_value = np.array([1.0, 2.0]), np.array([3.0, 5.0])
    expected_a, expected_b = a_value, b_value
    for _ in range(4):
        expected_a, expected_b = expected_b, expected_a + expected_b
    last_a, last_b = run(mode, [a0, b0], [a[-1], b[-1]], a_value, b_value)
    np.testing.assert_allclose(last_a, expected_a)
    np.testing.assert_allclose(last_b, expected_b)


def test_state_returned_unchanged_beside_one_that_changes(mode):
    a0 = at.dvector("a0")
    (a, b), _ = aesara.scan(
        lambda a, b: (a, b + a), outputs_info=[a0, at.zeros_like(a0)], n_steps=3
    )
    value = np.array([1.0, -2.0])
    last_a, trace_b = run(mode, [a0], [a[-1], b], value)
    np.testing.assert_array_equal(last_a, value)
    np.testing.assert_allclose(trace_b, [value, 2 * value, 3 * value])


def test_reversed_state(mode):
    a0 = at.dvector("a0")
    out, _ = aesara.scan(lambda a: a[::-1], outputs_info=[a0], n_steps=3)
    value = np.array([1.0, 2.0, 3.0])
    trace, last = run(mode, [a0], [out, out[-1]], value)
    np.testing.assert_array_equal(trace, [value[::-1], value, value[::-1]])
    np.testing.assert_array_equal(last, value[::-1])


def test_two_outputs_that_are_one_variable(mode):
    a0, b0 = at.dvector("a0"), at.dvector("b0")

    def step(a, b):
        new = a + 2.0 * b
        return new, new, new

    (a, b, c), _ = aesara.scan(step, outputs_info=[a0, b0, None], n_steps=3)
    a_value, b_value = np.array([1.0, 2.0]), np.array([0.5, -1.0])
    expected = []
    x, y = a_value, b_value
    for _ in range(3):
        x = y = x + 2.0 * y
        expected.append(x)
    for got in run(mode, [a0, b0], [a, b, c], a_value, b_value):
        np.testing.assert_allclose(got, expected)


def test_gradient_leaves_its_inputs_alone(mode):
    x0 = at.dvector("x0")
    out, _ = aesara.scan(lambda x: x**2, outputs_info=[x0], n_steps=3)
    value = np.array([0.9, 1.1])
    (gradient,) = run(mode, [x0], [aesara.grad(out[-1].sum(), x0)], value)
    np.testing.assert_allclose(gradient, 8 * value**7)


def test_shared_state_changes_only_through_its_update(mode):
    state = aesara.shared(np.array([1.0, 2.0]), name="state")
    out, _ = aesara.scan(lambda s: s * 2.0, outputs_info=[state], n_steps=2)
    f = aesara.function([], out[-1], mode=mode)
    np.testing.assert_array_equal(f(), [4.0, 8.0])
    np.testing.assert_array_equal(state.get_value(), [1.0, 2.0])
    g = aesara.function([], out[-1], updates={state: out[-1]}, mode=mode)
    np.testing.assert_array_equal(g(), [4.0, 8.0])
    np.testing.assert_array_equal(state.get_value(), [4.0, 8.0])


# -- generators -----------------------------------------------------------------


def generators(n):
    return [aesara.shared(np.random.default_rng(seed), name=f"rng_{seed}") for seed in range(n)]


def draw(rng):
    return at.random.normal(rng=rng).owner.outputs


def test_two_loops_on_one_generator_start_from_the_same_state():
    rng = aesara.shared(np.random.default_rng(11), name="rng")

    def loop(n):
        def step():
            new_rng, value = draw(rng)
            return value, {rng: new_rng}

        values, updates = aesara.scan(step, n_steps=n)
        return values, updates

    (three, _), (five, updates) = loop(3), loop(5)
    f = aesara.function([], [three, five], updates=updates, mode="NUMBA_FIXED")
    expected = np.random.default_rng(11)
    reference = expected.normal(size=5)
    got_three, got_five = f()
    np.testing.assert_array_equal(got_three, reference[:3])
    np.testing.assert_array_equal(got_five, reference)
    np.testing.assert_array_equal(f()[1], expected.normal(size=5))


def test_two_generators_that_become_one_are_kept_apart():
    first, second = generators(2)

    def step():
        new, value = draw(first)
        # Both states get the generator that one draw left.
        other_value = draw(second)[1]
        return (value, other_value), {first: new, second: new}

    (values, others), updates = aesara.scan(step, n_steps=4)
    f = aesara.function([], [values, others], updates=updates, mode="NUMBA_FIXED")
    a, b = (np.random.default_rng(seed) for seed in range(2))
    expected, expected_others = [], []
    for _ in range(4):
        expected_others.append(copy_of(b).normal())
        expected.append(a.normal())
        b = copy_of(a)
    got, got_others = f()
    np.testing.assert_array_equal(got, expected)
    np.testing.assert_array_equal(got_others, expected_others)


def test_two_generators_that_change_places():
    first, second = generators(2)

    def step():
        new_first, a = draw(first)
        new_second, b = draw(second)
        return (a, b), {first: new_second, second: new_first}

    (a, b), updates = aesara.scan(step, n_steps=4)
    f = aesara.function([], [a, b], updates=updates, mode="NUMBA_FIXED")
    x, y = (np.random.default_rng(seed) for seed in range(2))
    expected = []
    for _ in range(4):
        expected.append((x.normal(), y.normal()))
        x, y = y, x
    np.testing.assert_array_equal(np.transpose(f()), expected)


def copy_of(rng: np.random.Generator) -> np.random.Generator:
    copied = np.random.default_rng(0)
    copied.bit_generator.state = rng.bit_generator.state
    return copied
