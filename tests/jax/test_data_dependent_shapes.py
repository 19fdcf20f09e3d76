"""Shapes that depend on values: compiled segments, steps between them, loops step by step."""

from __future__ import annotations

import warnings

import aesara
import aesara.tensor as at
import numpy as np
import pytest
from aesara.compile.builders import OpFromGraph
from aesara.ifelse import ifelse
from aesara.raise_op import Assert

from fixed_modes.errors import FixedModesWarning
from fixed_modes.jax.segments import CompiledStep

X = np.array([3.0, -1.0, 2.0, 0.5, 2.0])


def compiled(inputs, outputs, **kwargs):
    return aesara.function(inputs, outputs, mode="JAX_FIXED", **kwargs)


def test_steps_between_compiled_segments():
    x, counts = at.dvector("x"), at.lvector("counts")
    large = at.exp(x)[at.exp(x) > 2.0]
    total = (large * 2.0).sum()
    outputs = [
        total,
        at.unique(x),
        at.repeat(x, counts),
        at.nonzero(x > 1.0)[0],
        at.arange(at.cast(total, "int64")).sum(),
        x[at.cast(x.sum(), "int64") - 4 :],
        at.alloc(x[0], at.cast(x[2], "int64"), 2),
        aesara.grad((x[x > 1.0] ** 2).sum(), x),
        at.concatenate([x[x > 1.0], x[x <= 1.0]]),
    ]
    f = compiled([x, counts], outputs)
    for v in (X, X[::-1].copy(), np.array([1.0, 5.0, 1.5])):
        n = np.arange(len(v))
        e = np.exp(v)
        wanted_total = 2 * e[e > 2].sum()
        wants = [
            wanted_total,
            np.unique(v),
            np.repeat(v, n),
            np.nonzero(v > 1)[0],
            np.arange(int(wanted_total)).sum(),
            v[int(v.sum()) - 4 :],
            np.full((int(v[2]), 2), v[0]),
            np.where(v > 1, 2 * v, 0),
            np.concatenate([v[v > 1], v[v <= 1]]),
        ]
        for got, want in zip(f(v, n), wants):
            np.testing.assert_allclose(got, want)
    assert sum(isinstance(step, CompiledStep) for step in f.vm.jit_fn.graph.steps) >= 2


def test_results_of_steps_belong_to_the_caller():
    x = at.dvector("x")
    f = compiled([x], [x[at.cast(x[0], "int64") :], x[x > -9.0]])
    value = X.copy()
    for result in f(value):
        assert not np.shares_memory(result, value)
        result[:] = 0.0
    np.testing.assert_array_equal(value, X)


def test_values_set_by_a_mask_need_no_step():
    x, y, m = at.dvector("x"), at.dvector("y"), at.dmatrix("m")
    outputs = [
        at.set_subtensor(x[x > 1.0], 7.0),
        at.inc_subtensor(x[x > 1.0], y),
        at.set_subtensor(m[x > 1.0], y[:2]),
    ]
    f = compiled([x, y, m], outputs)
    y_value, m_value = np.array([10.0, 20.0, 30.0]), np.zeros((5, 2))
    first, second, third = f(X, y_value, m_value)
    np.testing.assert_array_equal(first, np.where(X > 1, 7.0, X))
    np.testing.assert_array_equal(second, [13.0, -1.0, 22.0, 0.5, 32.0])
    np.testing.assert_array_equal(third, np.where(X > 1, 1, 0)[:, None] * y_value[:2])
    assert len(f.vm.jit_fn.graph.steps) == 1
    with pytest.raises(ValueError, match="shape mismatch"):
        f(X, np.ones(2), m_value)


def test_branches_with_shapes_of_their_own_run_only_if_taken():
    x, c = at.dvector("x"), at.lscalar("c")
    positive = Assert("not positive")(x, at.all(x > 0))
    f = compiled([x, c], ifelse(c, positive[positive > 1.0], x * 2.0))
    np.testing.assert_array_equal(f(X, 0), X * 2)
    np.testing.assert_array_equal(f(np.abs(X), 1), [3.0, 2.0, 2.0])
    with pytest.raises(AssertionError, match="not positive"):
        f(X, 1)


def test_error_while_tracing_a_branch_is_raised_only_if_it_is_taken():
    x, y, c = at.dvector("x"), at.dvector("y"), at.lscalar("c")
    f = compiled([x, y, c], ifelse(c, (x + y).sum(), x.sum()))
    assert f(X, X[:2], 0) == X.sum()
    with pytest.raises(ValueError, match="do not match"):
        f(X, X[:2], 1)
    assert f(X, X, 1) == 2 * X.sum()
    # Both branches fail.
    g = compiled([x, y, c], ifelse(c, x + y, x[:3] * y))
    for branch in (0, 1):
        with pytest.raises(ValueError, match=r"do not match|broadcast"):
            g(X, X[:2], branch)


def test_op_from_graph_and_loop_over_what_a_mask_selects():
    x = at.dvector("x")
    inner = OpFromGraph([x], [x[x > 1.0] * 2.0])
    summed, _ = aesara.scan(lambda v, s: s + v, sequences=[inner(x)], outputs_info=[at.zeros(())])
    f = compiled([x], summed)
    for v in (X, X + 1.0):
        np.testing.assert_allclose(f(v), np.cumsum(2 * v[v > 1]))


def test_loops_with_lengths_that_vary_run_step_by_step_with_one_warning():
    x, m = at.dvector("x"), at.dmatrix("m")
    weights = at.constant(np.array([1.0, 2.0]))

    def step(i, row, before, last, x, weights):
        window = x[:i]
        chosen = row[row > before]
        inner, _ = aesara.scan(lambda s: 2.0 * s, outputs_info=[at.ones(())], n_steps=i + 1)
        new = ifelse(at.gt(i, 1), window.sum(), before + chosen.sum() + inner[-1])
        return new + last * weights[0], at.unique(row).shape[0]

    (states, counts), _ = aesara.scan(
        step,
        sequences=[at.arange(4), m],
        outputs_info=[{"initial": at.constant(np.array([0.5, 1.0])), "taps": [-2, -1]}, None],
        non_sequences=[x, weights],
        name="varying",
    )
    f = compiled([x, m], [states, counts])
    values = np.array([[1.0, 1.0, 2.0], [3.0, 0.0, 0.5], [1.0, 2.0, 3.0], [4.0, 4.0, 4.0]])
    with pytest.warns(FixedModesWarning, match="varying") as caught:
        got, lengths = f(X, values)
    assert len(caught) == 1
    history = [0.5, 1.0]
    for i, row in enumerate(values):
        before, last = history[-2:]
        new = X[:i].sum() if i > 1 else before + row[row > before].sum() + 2.0 ** (i + 1)
        history.append(new + last)
    np.testing.assert_allclose(got, history[2:])
    np.testing.assert_array_equal(lengths, [len(set(row)) for row in values])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        f(X + 1.0, values)


def test_a_window_of_constant_length_is_compiled_unless_it_reaches_out():
    x, i = at.dvector("x"), at.lscalar("i")
    moving, _ = aesara.scan(
        lambda i, x: x[i : i + 3].sum(), sequences=[at.arange(3)], non_sequences=[x]
    )
    f = compiled([x], moving)
    np.testing.assert_allclose(f(X), [4.0, 1.5, 4.5])
    with warnings.catch_warnings():
        # Compiled again, for windows of any length.
        warnings.simplefilter("error")
        np.testing.assert_allclose(f(X[:4]), [4.0, 1.5, 2.5])
        np.testing.assert_allclose(f(X), [4.0, 1.5, 4.5])
    # Rows of two lengths are no trace.
    rows, _ = aesara.scan(lambda i, x: x[i : i + 3], sequences=[at.arange(2)], non_sequences=[x])
    h = compiled([x], rows)
    np.testing.assert_allclose(h(X), [X[:3], X[1:4]])
    with (
        pytest.warns(FixedModesWarning, match="bounds of a slice"),
        pytest.raises(ValueError, match="shape"),
    ):
        h(X[:3])
    np.testing.assert_allclose(h(X), [X[:3], X[1:4]])
    g = compiled([x, i], x[i : i + 3])
    for k in (0, 2, 3, 4, 9, -2):
        np.testing.assert_array_equal(g(X, k), X[k : k + 3])


def test_gradient_of_a_loop_that_runs_step_by_step():
    x = at.dvector("x")
    places = at.as_tensor(np.arange(5))
    # Nothing can be assigned to places of which the number changes.
    out, _ = aesara.scan(
        lambda i, s, x: s * 0.5 + (at.set_subtensor(x[places[:i]], 0.0) ** 2).sum(),
        sequences=[at.arange(3)],
        outputs_info=[at.zeros(())],
        non_sequences=[x],
    )
    f = compiled([x], [out[-1], aesara.grad(out[-1], x)])
    with pytest.warns(FixedModesWarning):
        value, slope = f(X)
    weights = np.array([0.25, 0.5, 1.0])
    np.testing.assert_allclose(value, sum(w * (X[i:] ** 2).sum() for i, w in enumerate(weights)))
    want = sum(w * np.where(np.arange(5) >= i, 2 * X, 0) for i, w in enumerate(weights))
    np.testing.assert_allclose(slope, want)


def test_exceptions_have_the_types_of_fast_run():
    x, k, i = at.dvector("x"), at.lvector("k"), at.lscalar("i")
    f = compiled([x, i], x[::i])
    np.testing.assert_array_equal(f(X, -2), X[::-2])
    with pytest.raises(ValueError, match="step cannot be zero"):
        f(X, 0)
    m = at.outer(x, x)
    with pytest.raises(IndexError, match="shape mismatch"):
        compiled([x, k], m[k, k[:2]])(X, np.arange(3))
    with pytest.raises(IndexError, match="boolean index"):
        compiled([x], x[x[:2] > 0.0])(X)


def test_fused_scalar_graph_on_known_values_needs_no_compiler():
    # `Composite.perform` goes through the entries one by one; this is NumPy's arithmetic.
    n = at.lscalar("n")
    length = at.switch(at.lt(n, 0), at.minimum(-n, 7) // 2, at.maximum(n * n - 3, 1))
    f = compiled([n], at.arange(length))
    with aesara.config.change_flags(cxx=""):
        for value in (-9, -2, 0, 3):
            want = min(-value, 7) // 2 if value < 0 else max(value * value - 3, 1)
            np.testing.assert_array_equal(f(value), np.arange(want))
