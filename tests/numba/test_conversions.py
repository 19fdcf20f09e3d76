"""What ops of other kinds give, and that no result shares memory that it should not."""

from __future__ import annotations

import warnings

import aesara
import aesara.tensor as at
import numpy as np
import pytest
from aesara.compile.builders import OpFromGraph
from aesara.graph.basic import Apply
from aesara.graph.op import Op
from aesara.tensor.elemwise import Elemwise
from aesara.tensor.math import Mean
from aesara.tensor.nlinalg import lstsq, tensorinv, tensorsolve
from aesara.typed_list.basic import getitem, make_list
from scipy import special

from fixed_modes.errors import FixedModesWarning, UnsupportedOpError

with warnings.catch_warnings():  # Aesara's `nnet` says that it is deprecated
    warnings.simplefilter("ignore", DeprecationWarning)
    from aesara.tensor.nnet.basic import scalar_softsign

V = np.array([1.0, 2.0, 3.0])


def evaluate(inputs, outputs, *values):
    f = aesara.function(inputs, outputs, mode="NUMBA_FIXED")
    before = [np.array(v) for v in values]
    f(*values)
    results = f(*values)
    for value, old in zip(values, before):
        np.testing.assert_array_equal(value, old)
    for result in results:
        assert not any(np.may_share_memory(result, value) for value in values)
    return results


@pytest.mark.parametrize(
    ("build", "expected"),
    [(lambda a: a, [2.0, 2.0, 3.0]), (lambda a: a[::-1], [4.0, 2.0, 1.0])],
    ids=["input", "view"],
)
def test_op_from_graph_that_returns_its_input(build, expected):
    x, a = at.dvector("x"), at.dvector("a")
    out = OpFromGraph([a], [build(a)])(x)
    (got,) = evaluate([x], [at.inc_subtensor(out[0], 1.0)], V)
    np.testing.assert_array_equal(got, expected)


def test_op_from_graph_that_exchanges_states():
    x, a, b = at.dvector("x"), at.dvector("a"), at.dvector("b")
    exchange = OpFromGraph([a, b], [b, a])
    (s, t), _ = aesara.scan(lambda s, t: exchange(s, t), outputs_info=[x, x * 10], n_steps=3)
    got = evaluate([x], [s[-1], t[-1]], V)
    np.testing.assert_array_equal(got, [V * 10, V])


def test_parts_of_a_split_are_their_own():
    x, n = at.dvector("x"), at.lscalar("n")
    first, second = at.split(x, [n, 2], 2)
    got = evaluate([x, n], [at.inc_subtensor(second[0], 1.0), first], V, np.int64(1))
    np.testing.assert_array_equal(got[0], [3.0, 3.0])
    np.testing.assert_array_equal(got[1], [1.0])
    f = aesara.function([x, n], [first, second], mode="NUMBA_FIXED")
    with pytest.raises(ValueError, match="splits sums to 5, expected 3"):
        f(V, 3)


def test_split_of_a_state():
    x = at.dvector("x")

    def step(s):
        head, tail = at.split(s, [1, 2], 2)
        return at.concatenate([tail, at.inc_subtensor(head[0], 10.0)]), s.sum()

    (states, sums), _ = aesara.scan(step, outputs_info=[x, None], n_steps=2)
    last, totals = evaluate([x], [states[-1], sums], V)
    np.testing.assert_array_equal(last, [3.0, 11.0, 12.0])
    np.testing.assert_array_equal(totals, [6.0, 16.0])


def test_diagonals():
    m = at.dmatrix("m")
    value = np.arange(9.0).reshape(3, 3)
    outputs = [at.fill_diagonal(m, 9.0), at.diagonal(m), at.inc_subtensor(at.diagonal(m)[0], 5.0)]
    filled = value.copy()
    np.fill_diagonal(filled, 9.0)
    got = evaluate([m], [*outputs, m.sum()], value)
    for a, b in zip(got, [filled, np.diagonal(value), [5.0, 4.0, 8.0], value.sum()]):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("axis", [0, 1, None, (0, 1)])
def test_positions_of_maxima(axis):
    m = at.dmatrix("m")
    for value in (
        np.array([[1.0, 5.0, 2.0], [5.0, 3.0, 5.0]]),
        np.array([[1.0, np.nan, 2.0], [np.inf, 3.0, np.nan]]),
    ):
        maximum, position = at.max_and_argmax(m, axis=axis)
        got = evaluate([m], [maximum, position, m.argmax(axis=0)], value)
        numpy_axis = axis if isinstance(axis, int) else None
        np.testing.assert_array_equal(got[0], value.max(axis=numpy_axis))
        np.testing.assert_array_equal(got[1], value.argmax(axis=numpy_axis))
        np.testing.assert_array_equal(got[2], value.argmax(axis=0))


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("columns", [3, 20])
def test_positions_of_the_first_nan_and_of_infinities(columns, axis):
    value = np.random.default_rng(6).normal(size=(7, columns))
    value[2, 0] = value[3, 1] = np.inf
    value[:, 2] = -np.inf
    value[4, 0], value[5, 0], value[3, 2], value[0, 1] = np.nan, np.nan, -np.nan, -np.inf
    m = at.dmatrix("m")
    got = evaluate([m], list(at.max_and_argmax(m, axis=axis)), value)
    np.testing.assert_array_equal(got[0], value.max(axis=axis))
    np.testing.assert_array_equal(got[1], value.argmax(axis=axis))


@pytest.mark.parametrize("axis", [0, -1, None])
def test_softmax_and_its_gradient(axis):
    m, g = at.dmatrix("m"), at.dmatrix("g")
    value = np.array([[-1.0, 1000.0, 0.5], [2.0, 998.0, -np.inf]])
    weights = np.arange(6.0).reshape(2, 3)
    soft = at.special.softmax(m, axis=axis)
    outputs = [soft, at.special.log_softmax(m, axis=axis), aesara.grad((soft * g).sum(), m)]
    got = evaluate([m, g], outputs, value, weights)
    expected = special.softmax(value, axis=axis)
    np.testing.assert_allclose(got[0], expected, atol=1e-300)
    np.testing.assert_allclose(got[1], special.log_softmax(value, axis=axis))
    product = expected * weights
    np.testing.assert_allclose(
        got[2], product - product.sum(axis=axis, keepdims=True) * expected, atol=1e-12
    )


def test_sums_along_the_way():
    x, m = at.dvector("x"), at.dmatrix("m")
    value = np.arange(6.0).reshape(2, 3)
    f = aesara.function(
        [x, m], [at.cumsum(x), at.cumprod(m, axis=1), at.cumsum(m)], mode="NUMBA_FIXED"
    )
    got = f(V, value)
    for a, b in zip(got, [np.cumsum(V), np.cumprod(value, axis=1), np.cumsum(value)]):
        np.testing.assert_array_equal(a, b)


class Sine(Op):
    """An op that only Python can run; it gives the same array at every call."""

    __props__ = ()

    def __init__(self):
        self.buffer = np.zeros(3)

    def make_node(self, x):
        return Apply(self, [x], [x.type()])

    def perform(self, node, inputs, outputs):
        self.buffer[:] = np.sin(inputs[0])
        outputs[0][0] = self.buffer


def test_an_op_with_only_perform_keeps_its_results_apart():
    x = at.dvector("x")
    out, _ = aesara.scan(lambda s: Sine()(s) * 2.0, outputs_info=[x], n_steps=3)
    with pytest.warns(FixedModesWarning, match=r"Sine[\s\S]*Inside: .*scan_fn"):
        f = aesara.function([x], [out], mode="NUMBA_FIXED")
    expected, state = [], V
    for _ in range(3):
        state = np.sin(state) * 2.0
        expected.append(state)
    (trace,) = f(V)
    np.testing.assert_allclose(trace, expected)
    with pytest.warns(FixedModesWarning, match="Sine"):
        g = aesara.function([x], Sine()(x), mode="NUMBA_FIXED")
    first = g(V)
    g(np.zeros(3))
    np.testing.assert_allclose(first, np.sin(V))


class NoThunk(Op):
    """An op without code."""

    __props__ = ()

    def make_node(self, x):
        return Apply(self, [x], [x.type()])

    def perform(self, node, inputs, outputs):
        raise NotImplementedError("no Python code")


class OwnThunk(NoThunk):
    """An op that makes what runs it."""

    def make_thunk(self, node, storage_map, compute_map, no_recycling, impl=None):
        def thunk():
            storage_map[node.outputs[0]][0] = storage_map[node.inputs[0]][0] * 3.0

        return thunk


def test_an_op_that_makes_its_own_thunk_runs():
    x = at.dvector("x")
    with pytest.warns(FixedModesWarning, match="OwnThunk"):
        f = aesara.function([x], OwnThunk()(x) + 1.0, mode="NUMBA_FIXED")
    for value in (V, V * 2):
        np.testing.assert_array_equal(f(value), value * 3.0 + 1.0)
    with pytest.warns(FixedModesWarning, match="NoThunk"):
        g = aesara.function([x], NoThunk()(x) + 1.0, mode="NUMBA_FIXED")
    with pytest.raises(UnsupportedOpError, match="NoThunk"):
        g(V)


@pytest.mark.parametrize(
    ("build", "expected"),
    [
        (lambda v: Mean(axis=0)(v), lambda x: x.mean(1)),
        (lambda v: Elemwise(scalar_softsign)(v), lambda x: x / (1 + np.abs(x))),
    ],
    ids=["reduction", "elemwise"],
)
def test_rows_of_an_op_that_turns_out_to_have_no_code(build, expected):
    # The row that was meant for the result is filled from what Python gives.
    x = at.dtensor3("x")
    rows, _ = aesara.scan(build, sequences=[x])
    states, _ = aesara.scan(
        lambda v, s: s * 0 + build(v), sequences=[x], outputs_info=[at.zeros_like(build(x[0]))]
    )
    value = np.random.default_rng(2).normal(size=(3, 5, 4))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FixedModesWarning)
        results = evaluate([x], [rows, states], value)
    for result in results:
        np.testing.assert_allclose(result, expected(value), rtol=1e-12)


@pytest.mark.parametrize(
    ("build", "expected"),
    [
        (lambda a, v: lstsq(a, v, at.constant(-1.0))[0], lambda a, v: np.linalg.solve(a, v)),
        (
            lambda a, v: tensorinv(a.reshape((2, 1, 2)), ind=2),
            lambda a, v: np.linalg.tensorinv(a.reshape(2, 1, 2)),
        ),
        (
            lambda a, v: tensorsolve(a, v),
            lambda a, v: np.linalg.solve(a, v),
        ),
        (lambda a, v: getitem(make_list([v, 2 * v]), 1), lambda a, v: 2 * v),
    ],
    ids=["lstsq", "tensorinv", "tensorsolve", "list"],
)
def test_values_that_are_not_of_a_type_for_compiled_code(build, expected):
    a, v = at.dmatrix("a"), at.dvector("v")
    out = build(a, v)
    rows, _ = aesara.scan(
        lambda v, a: build(a, v).sum(), sequences=[at.stack([v, v + 1])], non_sequences=[a]
    )
    matrix, vector = np.array([[3.0, 1.0], [0.5, 2.0]]), np.array([1.0, -2.0])
    with pytest.warns(FixedModesWarning, match="whole graph in Python"):
        f = aesara.function([a, v], [out, rows], mode="NUMBA_FIXED", on_unused_input="ignore")
    alone, looped = f(matrix, vector)
    np.testing.assert_allclose(alone, expected(matrix, vector), rtol=1e-12)
    wanted = [expected(matrix, vector + k).sum() for k in (0, 1)]
    np.testing.assert_allclose(looped, wanted, rtol=1e-12)


class Scaled(Op):
    """Multiplies by a number that it notes on its node beforehand."""

    __props__ = ()

    def make_node(self, x):
        return Apply(self, [x], [x.type()])

    def prepare_node(self, node, storage_map, compute_map, impl):
        assert impl == "py"
        assert set(node.inputs) <= set(storage_map)
        node.tag.factor = 3.0

    def perform(self, node, inputs, outputs):
        outputs[0][0] = inputs[0] * node.tag.factor


def test_an_op_that_prepares_its_node(mode):
    x = at.dvector("x")
    looped, _ = aesara.scan(lambda v: Scaled()(x) * v, sequences=[x])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FixedModesWarning)
        alone, trace = aesara.function([x], [Scaled()(x), looped], mode=mode)(V)
    np.testing.assert_array_equal(alone, 3 * V)
    np.testing.assert_array_equal(trace, np.outer(V, 3 * V))


def test_half_precision_runs_in_python_and_says_so():
    x = at.vector("x", dtype="float16")
    last, _ = aesara.scan(lambda v, s: s * v + v, sequences=[x], outputs_info=[x[0]])
    with pytest.warns(FixedModesWarning, match="whole graph in Python[\\s\\S]*float16"):
        f = aesara.function([x], [x * 2, x.sum(), last[-1]], mode="NUMBA_FIXED")
    value = np.array([0.5, 3.0, 0.1], "float16")
    state = value[0]
    for v in value:
        state = np.float16(np.float16(state * v) + v)
    expected = [value * 2, value.astype("float32").sum().astype("float16"), state]
    for result, wanted in zip(f(value), expected):
        assert result.dtype == "float16"
        np.testing.assert_allclose(result, wanted, rtol=2e-3)
    total = aesara.shared(np.zeros(3, "float16"), name="total")
    with pytest.warns(FixedModesWarning, match="float16"):
        f = aesara.function([x], total, updates={total: total + x}, mode="NUMBA_FIXED")
    np.testing.assert_array_equal([f(value), f(value)], [np.zeros(3), value])
    np.testing.assert_array_equal(total.get_value(), value * 2)
    with (
        aesara.config.change_flags(fixed_modes__strict=True),
        pytest.raises(UnsupportedOpError, match="float16"),
    ):
        aesara.function([x], x * 2, mode="NUMBA_FIXED")


def test_numba_source_is_what_tracebacks_show():
    import fixed_modes

    x = at.dvector("x")
    out, _ = aesara.scan(lambda v, s: s + v, sequences=[x], outputs_info=[at.zeros(())])
    f = aesara.function([x], out, mode="NUMBA_FIXED")
    source = fixed_modes.numba_source(f)
    assert "for step in range(" in source
    compile(source, "generated", "exec")
    with pytest.raises(TypeError, match="not compiled with the mode NUMBA_FIXED"):
        fixed_modes.numba_source(aesara.function([x], x * 2, mode="FAST_COMPILE"))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_numbers_of_arange_are_numpy_s(dtype):
    bounds = [at.scalar(name, dtype=dtype) for name in ("start", "stop", "step")]
    f = aesara.function(bounds, at.arange(*bounds, dtype=dtype), mode="NUMBA_FIXED")
    cases = [
        *[(0, 5, 1), (-5, 1.1, 1.2), (1.3, 2, -2.1), (10, 2, 2), (10, 2, -0.7), (3, 3, 1)],
        *[(0, 5, np.inf), (0, -5, np.inf), (1e30, 1.5e30, 1e29), (0.1, 90, 0.1), (1, 1.05, 0.1)],
    ]
    for case in cases:
        values = [np.asarray(bound, dtype) for bound in case]
        expected = np.arange(*(v.item() for v in values), dtype=dtype)
        result = f(*values)
        assert result.dtype == expected.dtype
        np.testing.assert_array_equal(result, expected, err_msg=str(case))
    for case, words in (
        ((0, np.inf, 1), "Maximum"), ((0, 1e30, 1e-5), "Maximum"), ((0, np.nan, 1), "length"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=words):
            f(*(np.asarray(bound, dtype) for bound in case))


def test_arange_of_integers_and_floats():
    n, x = at.iscalar("n"), at.dscalar("x")
    graphs = [at.arange(n, x), at.arange(x), at.arange(0, n, x), at.arange(n, dtype="float32")]
    f = aesara.function([n, x], graphs, mode="NUMBA_FIXED")
    expected = [np.arange(2, 7.5), np.arange(7.5), np.arange(0, 2, 7.5), np.arange(2, dtype="f4")]
    for result, wanted in zip(f(2, 7.5), expected):
        assert result.dtype == wanted.dtype
        np.testing.assert_array_equal(result, wanted)
    with pytest.raises(ZeroDivisionError):
        f(2, 0.0)
