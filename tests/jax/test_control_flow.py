"""`IfElse`, `OpFromGraph`, checks, and the making of arrays."""

from __future__ import annotations

import aesara
import aesara.tensor as at
import numpy as np
import pytest
from aesara.compile.builders import OpFromGraph
from aesara.ifelse import ifelse
from aesara.raise_op import Assert

from fixed_modes.errors import FixedModesWarning
from fixed_modes.jax.lazy import schedule


def test_only_the_taken_branch_runs(evaluate):
    x, c = at.dvector("x"), at.lscalar("c")
    fails = Assert("not positive")(x, at.all(x > 0))
    out = ifelse(c, at.exp(fails) + at.log(fails).sum(), x * 2.0)
    f = aesara.function([x, c], out, mode="JAX_FIXED")
    np.testing.assert_array_equal(f(-np.ones(2), 0), [-2.0, -2.0])
    np.testing.assert_allclose(f(np.ones(2), 1), [np.e, np.e])
    with pytest.raises(AssertionError, match="not positive"):
        f(-np.ones(2), 1)


def test_known_condition_needs_no_equal_shapes(evaluate):
    x = at.dvector("x")
    out = ifelse(at.gt(x.shape[0], 2), x[:1], x)
    f = aesara.function([x], out, mode="JAX_FIXED")
    assert f(np.ones(3)).shape == (1,)
    assert f(np.ones(2)).shape == (2,)


def test_traced_condition_and_different_shapes(evaluate):
    x = at.dvector("x")
    f = aesara.function([x], ifelse(at.gt(x.sum(), 2.0), x[:1], x), mode="JAX_FIXED")
    assert f(np.ones(3)).shape == (1,)
    assert f(np.zeros(3)).shape == (3,)
    out, _ = aesara.scan(
        lambda v, x: ifelse(at.gt(v, 0.0), x[:1], x).sum(), sequences=[x], non_sequences=[x]
    )
    with pytest.warns(FixedModesWarning, match="branches have different shapes"):
        got = evaluate([x], out, np.array([1.0, -1.0, 5.0]))
    np.testing.assert_array_equal(got, [1.0, 5.0, 1.0])


def test_nodes_are_assigned_to_the_innermost_branch_that_needs_them():
    x, c = at.dscalar("x"), at.lscalar("c")
    shared, both, first, second = at.exp(x), at.sin(x), at.cos(x), at.tan(x)
    inner = ifelse(c, first + both, both * 2.0)
    out = ifelse(c, inner, second + shared)
    plan = schedule([x, c], [out, shared])
    outer_node, inner_node = out.owner, inner.owner
    assert shared.owner in plan.always
    assert first.owner in plan.branches[inner_node, 0]
    assert both.owner in plan.branches[outer_node, 0]
    assert second.owner in plan.branches[outer_node, 1]


def test_nested_conditions_in_a_loop(evaluate):
    x = at.dvector("x")

    def step(v, s):
        return ifelse(v > 0, ifelse(s > 1.0, s / 2.0, s + v), s * v)

    out, _ = aesara.scan(step, sequences=[x], outputs_info=[at.ones(())])
    s, want = 1.0, []
    values = np.array([2.0, 1.0, -3.0, 0.5])
    for v in values:
        s = (s / 2 if s > 1 else s + v) if v > 0 else s * v
        want.append(s)
    np.testing.assert_allclose(evaluate([x], out, values), want)


@pytest.mark.parametrize("inline", [True, False])
def test_op_from_graph_in_and_out_of_a_loop(evaluate, inline):
    a, b = at.dscalars("a", "b")
    op = OpFromGraph([a, b], [a * at.exp(b), a - b], inline=inline)
    x = at.dvector("x")
    (first, second), _ = aesara.scan(lambda v: op(v, v * 2.0), sequences=[x])
    outside = op(x[0], x[1])
    value = np.array([0.5, -1.0])
    results = evaluate([x], [first, second, *outside], value)
    wants = [value * np.exp(2 * value), -value, 0.5 * np.exp(-1.0), 1.5]
    for result, want in zip(results, wants):
        np.testing.assert_allclose(result, want)


def test_op_from_graph_with_a_number_that_must_be_known(evaluate):
    k, v = at.lscalar("k"), at.dvector("v")
    op = OpFromGraph([k, v], [v[:k].sum()])
    x, n = at.dvector("x"), at.lscalar("n")
    assert evaluate([x, n], op(n + 1, x), np.arange(5.0), 2) == 3.0


def test_failed_check_in_a_loop_raises(evaluate):
    x = at.dvector("x")
    out, _ = aesara.scan(
        lambda v, s: s + Assert("negative step")(v, v >= 0.0),
        sequences=[x],
        outputs_info=[at.zeros(())],
    )
    f = aesara.function([x], out, mode="JAX_FIXED")
    np.testing.assert_array_equal(f(np.ones(3)), [1.0, 2.0, 3.0])
    with pytest.raises(AssertionError, match="negative step"):
        f(np.array([1.0, -1.0, 1.0]))


@pytest.mark.parametrize("place", ["index", "assert", "loop", "known index"])
def test_error_at_run_time_names_its_node(place):
    x, k, v = at.dvector("x"), at.lscalar("k"), at.lvector("v")
    start = at.constant(np.int64(9))
    looped, _ = aesara.scan(lambda i, s: (s + 1) % i, [v], [start], name="my_loop")
    out, error, texts = {
        "index": (x[k] * 2.0, IndexError, ["out of bounds", "Op: Subtensor", "Inputs: x"]),
        "assert": (Assert("negative")(x, k > 0), AssertionError, ["negative", "Op: Assert"]),
        "loop": (looped, ZeroDivisionError, ["integer modulo by zero", "Inside: my_loop"]),
        "known index": (x[5] * 2.0, IndexError, ["index 5 is out", "Op: Subtensor"]),
    }[place]
    f = aesara.function([x, k, v], out, mode="JAX_FIXED", on_unused_input="ignore")
    with pytest.raises(error) as caught:
        f(np.ones(3), -9, np.array([1, 0]))
    message = str(caught.value)
    for text in [*texts, "Apply node that caused the error"]:
        assert text in message


def test_shape_that_is_asserted(evaluate):
    x, k = at.dvector("x"), at.lscalar("k")
    out = at.specify_shape(x, (k,)) * 2.0
    np.testing.assert_array_equal(evaluate([x, k], out, np.ones(2), 2), [2.0, 2.0])
    with pytest.raises(AssertionError, match="SpecifyShape"):
        evaluate([x, k], out, np.ones(2), 3)


def test_join_split_and_stack(evaluate, data):
    x, y = at.dmatrix("x"), at.fmatrix("y")
    a, b = data.normal(size=(2, 5)), data.normal(size=(2, 2)).astype("float32")
    parts = at.split(x, [2, 0, 3], 3, axis=1)
    outputs = [at.concatenate([x, y], axis=1), *parts, at.stack([x[0, 0], y[1, 1]])]
    wants = [np.concatenate([a, b], 1), a[:, :2], a[:, 2:2], a[:, 2:]]
    wants.append(np.array([a[0, 0], b[1, 1]]))
    for result, want in zip(evaluate([x, y], outputs, a, b), wants):
        assert result.dtype == "float64"
        np.testing.assert_allclose(result, want)
    with pytest.raises(ValueError, match="sum to 4"):
        evaluate([x], at.split(x, [1, 3], 2, axis=1), a)


def test_reshape_that_does_not_fit_raises_value_error(evaluate):
    x = at.dvector("x")
    with pytest.raises(ValueError, match="reshape"):
        evaluate([x], x.reshape((2, 2)), np.ones(3))


def test_products_of_matrices(evaluate, data):
    x, y, v = at.dmatrix("x"), at.fmatrix("y"), at.dvector("v")
    t = at.dtensor3("t")
    a, b = data.normal(size=(3, 4)), data.normal(size=(4, 2)).astype("float32")
    c, d = data.normal(size=4), data.normal(size=(5, 3, 4))
    outputs = [x @ y, at.dot(x, v), at.dot(v, v), at.batched_dot(t, t.dimshuffle(0, 2, 1))]
    wants = [a @ b, a @ c, c @ c, d @ d.transpose(0, 2, 1)]
    for result, want in zip(evaluate([x, y, v, t], outputs, a, b, c, d), wants):
        assert result.dtype == "float64"
        np.testing.assert_allclose(result, want, rtol=1e-6)


def test_op_of_aesaras_own_table(evaluate, data):
    x = at.dmatrix("x")
    a = data.normal(size=(3, 3))
    np.testing.assert_allclose(evaluate([x], at.nlinalg.det(x), a), np.linalg.det(a))
    np.testing.assert_allclose(evaluate([x], at.cumsum(x, axis=1), a), a.cumsum(1))


def test_batches_of_different_sizes_are_a_type_error():
    x, y = at.dtensor3s("x", "y")
    f = aesara.function([x, y], at.batched_dot(x, y), mode="JAX_FIXED")
    with pytest.raises(TypeError, match="same size in axis 0"):
        f(np.ones((2, 3, 4)), np.ones((3, 4, 5)))
