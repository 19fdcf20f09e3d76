"""Sorting, diagonals, repetition and triangular systems, compared with NumPy and SciPy."""

from __future__ import annotations

import warnings

import aesara
import aesara.tensor as at
import numpy as np
import pytest
import scipy.linalg
from aesara.compile.mode import get_mode
from aesara.graph.basic import Apply
from aesara.graph.op import Op
from aesara.tensor.basic import AllocDiag, ExtractDiag
from aesara.tensor.extra_ops import Repeat
from aesara.tensor.nlinalg import Inv, det, eig, matrix_inverse
from aesara.tensor.slinalg import Cholesky, CholeskySolve, solve, solve_triangular

from fixed_modes.errors import FixedModesWarning
from fixed_modes.numba.compat import ensure_stock_dispatch_imports

MATRIX = np.array([[3.0, 1.0, 2.0, 1.0], [np.nan, -1.0, 0.5, -1.0], [0.0, np.inf, -0.0, 7.0]])


def evaluate(inputs, outputs, *values):
    return aesara.function(inputs, outputs, mode="NUMBA_FIXED")(*values)


def assert_all_equal(results, expected):
    assert len(results) == len(expected)
    for result, wanted in zip(results, expected):
        wanted = np.asarray(wanted)
        assert (result.dtype, result.shape) == (wanted.dtype, wanted.shape)
        np.testing.assert_array_equal(result, wanted)


@pytest.mark.parametrize("dtype", ["float64", "int8"])
def test_sorting(dtype):
    x = at.matrix("x", dtype=dtype)
    outputs = [at.sort(x, axis) for axis in (0, -1, None)]
    outputs += [at.argsort(x, axis) for axis in (0, -1, None)]
    value = MATRIX if dtype == "float64" else np.array([[3, 1, 2], [-1, 3, 1]], dtype)
    expected = [np.sort(value, axis) for axis in (0, -1, None)]
    expected += [np.argsort(value, axis, kind="stable") for axis in (0, -1, None)]
    f = aesara.function([x], outputs, mode="NUMBA_FIXED")
    assert_all_equal(f(value), expected)
    assert_all_equal(f(value[:, :0])[:2], [value[:, :0]] * 2)
    many = np.random.default_rng(1).integers(0, 50, (1, 300)).astype(dtype)
    assert_all_equal(f(many)[1::3], [np.sort(many), np.argsort(many, kind="stable")])


def test_positions_and_repetition():
    x, k = at.dmatrix("x"), at.lvector("k")
    value, counts = np.array([[0.0, 2.0], [3.0, 0.0], [1.0, 1.0]]), np.array([2, 0, 1])
    outputs = [*at.nonzero(x), Repeat(axis=0)(x, k), Repeat(axis=None)(x[:, 0], k)]
    outputs.append(at.flatnonzero(x > 1))
    f = aesara.function([x, k], outputs, mode="NUMBA_FIXED")
    expected = [*np.nonzero(value), value.repeat(counts, 0), value[:, 0].repeat(counts)]
    assert_all_equal(f(value, counts), [*expected, np.flatnonzero(value > 1)])
    assert_all_equal(f(value, [2])[2:4], [value.repeat(2, 0), value[:, 0].repeat(2)])
    with pytest.raises(ValueError, match="2 counts"):
        f(value, [1, 1])
    with pytest.raises(ValueError, match="negative"):
        f(value, [1, -1, 1])


def test_diagonals_of_any_axes():
    x, v, n = at.dtensor3("x"), at.dmatrix("v"), at.lscalar("n")
    value, rows = np.arange(24.0).reshape(2, 3, 4), np.arange(6.0).reshape(2, 3)
    outputs = [ExtractDiag(o, a, b)(x) for o, a, b in [(0, 0, 2), (1, 2, 1), (-5, 0, 1)]]
    outputs += [AllocDiag(-1, 0, 2)(v), AllocDiag(1)(v[0]), AllocDiag(0, 1, 2)(v)]
    outputs += [at.tri(n, 4, 1), at.tri(n, n, -1, dtype="int8")]
    placed = [np.zeros((4, 2, 4)), np.diag(rows[0], 1), np.zeros((2, 3, 3))]
    for k in range(3):
        placed[0][k + 1, :, k] = rows[:, k]
        placed[2][:, k, k] = rows[:, k]
    expected = [np.diagonal(value, o, a, b) for o, a, b in [(0, 0, 2), (1, 2, 1), (-5, 0, 1)]]
    expected += [*placed, np.tri(3, 4, 1), np.tri(3, 3, -1, dtype="int8")]
    assert_all_equal(evaluate([x, v, n], outputs, value, rows, 3), expected)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_triangular_systems(dtype):
    a, b, c = (at.TensorType(dtype, (None,) * n)() for n in (2, 1, 2))
    rng = np.random.default_rng(3)
    low = (np.tril(rng.normal(size=(3, 3))) + 2 * np.eye(3)).astype(dtype)
    vector, sides = rng.normal(size=3).astype(dtype), rng.normal(size=(3, 2)).astype(dtype)
    outputs = [
        solve_triangular(a, b, lower=True),
        solve_triangular(a, c, lower=True, trans=1),
        solve_triangular(a.T, c, lower=False, unit_diagonal=True),
        CholeskySolve(lower=True)(a, b),
        CholeskySolve(lower=False)(a.T, c),
    ]
    f = aesara.function([a, b, c], outputs, mode="NUMBA_FIXED")
    expected = [
        scipy.linalg.solve_triangular(low, vector, lower=True),
        scipy.linalg.solve_triangular(low, sides, lower=True, trans=1),
        scipy.linalg.solve_triangular(low.T, sides, unit_diagonal=True),
        scipy.linalg.cho_solve((low, True), vector),
        scipy.linalg.cho_solve((low.T, False), sides),
    ]
    for result, wanted in zip(f(low, vector, sides), expected):
        assert result.dtype == dtype
        np.testing.assert_allclose(result, wanted, rtol=1e-11 if dtype == "float64" else 1e-4)
    with pytest.raises(np.linalg.LinAlgError, match="diagonal 1"):
        f(np.diag([1, 0, 1]).astype(dtype), vector, sides)
    with pytest.raises(ValueError, match="infs or NaNs"):
        f(low * np.array(np.nan, dtype), vector, sides)
    with pytest.raises(ValueError, match="incompatible dimensions"):
        f(low, vector[:2], sides)


def test_matrix_products_and_positive_systems():
    a, b, v = at.dmatrix("a"), at.dmatrix("b"), at.dvector("v")
    rng = np.random.default_rng(4)
    one, two, vector = rng.normal(size=(3, 4)), rng.normal(size=(4, 2)), rng.normal(size=4)
    f = aesara.function([a, b, v], [a @ b, a @ v, v @ b, v @ v], mode="NUMBA_FIXED")
    expected = [one @ two, one @ vector, vector @ two, vector @ vector]
    for result, wanted in zip(f(one, two, vector), expected):
        np.testing.assert_allclose(result, wanted, rtol=1e-12)
    # Only half of a symmetric matrix counts.
    half = np.triu(one @ one.T) + np.eye(3)
    g = aesara.function([a, b], solve(a, b, assume_a="pos"), mode="NUMBA_FIXED")
    expected = scipy.linalg.solve(half, two[:3], assume_a="pos")
    np.testing.assert_allclose(g(half, two[:3]), expected, rtol=1e-10)


class Doubled(Op):
    """An op of a library whose conversion has nothing for it."""

    __props__ = ()

    def make_node(self, x):
        return Apply(self, [x], [x.type()])

    def perform(self, node, inputs, outputs):
        outputs[0][0] = 2 * inputs[0]


def test_a_conversion_that_refuses_its_properties_runs_in_python():
    ensure_stock_dispatch_imports()
    from aesara.link.numba.dispatch.basic import _numba_funcify

    @_numba_funcify.register(Doubled)
    def refuse(op, node, **kwargs):
        raise NotImplementedError("not for this")

    x = at.lvector("x")
    with pytest.warns(FixedModesWarning, match="Doubled"):
        f = aesara.function([x], [Doubled()(x)], mode="NUMBA_FIXED")
    assert_all_equal(f(np.array([2, 1, 0])), [np.array([4, 2, 0])])


@pytest.mark.parametrize(
    ("dtype", "length"), [("float64", 30), ("float32", 2), ("int64", 30), ("complex128", 40)]
)
def test_batches_of_products(dtype, length):
    x, y = at.tensor3("x", dtype=dtype), at.tensor3("y", dtype=dtype)
    rng = np.random.default_rng(6)
    shapes = [(4, 3, length), (4, length, 5)]
    one, two = ((rng.normal(size=shape) * 9).astype(dtype) for shape in shapes)
    outputs = [
        at.batched_dot(x, y),
        at.batched_dot(x[:, 0], y),
        at.batched_dot(x, y[:, :, 1]),
        at.batched_dot(x[:, 0], y[:, :, 1]),
        at.batched_dot(y.transpose(0, 2, 1), x.transpose(0, 2, 1)),
    ]
    f = aesara.function([x, y], outputs, mode="NUMBA_FIXED")
    expected = [np.einsum("bik,bkj->bij", one, two)]
    expected += [expected[0][:, 0], expected[0][:, :, 1], expected[0][:, 0, 1]]
    expected.append(expected[0].transpose(0, 2, 1))
    for result, wanted in zip(f(one, two), expected):
        assert (result.dtype, result.shape) == (np.dtype(dtype), wanted.shape)
        np.testing.assert_allclose(result, wanted, rtol=2e-4 if dtype == "float32" else 1e-10)
    for bad in ((one[:3], two), (one[:, :, :1], two)):
        with pytest.raises(ValueError, match="batched_dot"):
            f(*bad)


def test_batches_of_other_sizes_raise(mode):
    x, y = at.dtensor3("x"), at.dtensor3("y")
    f = aesara.function([x, y], at.batched_dot(x, y), mode=mode)
    # In FAST_RUN a TypeError in Python, and a ValueError in C.
    with pytest.raises((ValueError, TypeError), match=r"[Ss]hape|same size"):
        f(np.ones((3, 2, 2)), np.ones((2, 2, 2)))
    with pytest.raises(ValueError, match=r"[Ss]hape|contract|size"):
        f(np.ones((3, 2, 2)), np.ones((3, 3, 2)))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_determinants_of_what_is_not_finite(dtype):
    a = at.tensor3("a", dtype=dtype)
    looped, _ = aesara.scan(det, sequences=[a])
    f = aesara.function([a], [det(a[0]), looped], mode="NUMBA_FIXED")
    values = np.array(
        [
            [[2.0, 1.0], [4.0, 3.0]],
            [[np.nan, 1.0], [1.0, 2.0]],
            [[1.0, 2.0], [3.0, np.nan]],
            [[1.0, 2.0], [np.inf, 3.0]],
            [[0.0, 2.0], [3.0, 4.0]],
        ],
        dtype,
    )
    alone, trace = f(values)
    np.testing.assert_allclose(alone, 2, rtol=1e-6)
    np.testing.assert_allclose(trace, [2, np.nan, np.nan, -np.inf, -6], rtol=1e-6)
    assert trace.dtype == dtype
    with pytest.raises(np.linalg.LinAlgError):
        f(values[:, :1])


def test_inverses_of_what_is_not_finite():
    a = at.dmatrix("a")
    f = aesara.function([a], [matrix_inverse(a), Inv()(a)], mode="NUMBA_FIXED")
    value = np.array([[0.0, 2.0, 1.0], [1.0, -1.0, 0.5], [4.0, 0.25, 3.0]])
    for result in f(value * np.array([1.0, np.nan, 1.0])):
        assert result.dtype == "float64"
        assert np.isnan(result).any()
    for result in f(np.diag([np.inf, 2.0])):
        np.testing.assert_array_equal(result, np.diag([0.0, 0.5]))
    np.testing.assert_allclose(f(value), [np.linalg.inv(value)] * 2, rtol=1e-12)
    for bad in (np.ones((2, 2)), value[:, :2]):
        with pytest.raises(np.linalg.LinAlgError):
            f(bad)


def test_eigenvalues_that_are_complex_give_their_real_parts():
    a = at.dmatrix("a")
    with pytest.warns(FixedModesWarning, match="Eig"):
        f = aesara.function([a], eig(a)[0], mode="NUMBA_FIXED")
    value = np.array([[1.0, -2.0], [2.0, 1.0]])
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Casting complex")
        np.testing.assert_allclose(f(value), [1.0, 1.0])
    np.testing.assert_allclose(f(np.diag([3.0, -1.0])), [3.0, -1.0])


@pytest.mark.parametrize("on_error", ["raise", "nan"])
@pytest.mark.parametrize("lower", [True, False])
def test_matrices_without_a_cholesky_factor(lower, on_error):
    a, b = at.dtensor3("a"), at.fmatrix("b")
    looped, _ = aesara.scan(Cholesky(lower=lower, on_error=on_error), sequences=[a])
    f = aesara.function(
        [a, b], [looped, Cholesky(lower=lower, on_error=on_error)(b)], mode="NUMBA_FIXED"
    )
    # Only one triangle counts.
    good = np.array([[4.0, 1.0, 2.0], [0.5, 3.0, 1.0], [1.0, 0.25, 5.0]])
    factor = scipy.linalg.cholesky(good, lower=lower)
    trace, single = f(np.stack([good, 2 * good]), good.astype("float32"))
    np.testing.assert_allclose(trace, [factor, factor * np.sqrt(2)], rtol=1e-12)
    np.testing.assert_allclose(single, factor, rtol=1e-6)
    assert single.dtype == "float32"
    rows = np.stack([good, -good])
    if on_error == "nan":
        trace, _ = f(rows, good.astype("float32"))
        np.testing.assert_allclose(trace, [factor, np.full((3, 3), np.nan)], rtol=1e-12)
    else:
        with pytest.raises(np.linalg.LinAlgError):
            f(rows, good.astype("float32"))
    for bad, message in ((rows * np.nan, "infs or NaNs"), (rows[:, :2], "square")):
        with pytest.raises(ValueError, match=message):
            f(bad, good.astype("float32"))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_softmax_and_unique_of_a_scalar(dtype):
    x, n = at.scalar("x", dtype=dtype), at.lscalar("n")
    share, log_share = at.special.softmax(x, axis=None), at.special.log_softmax(x, axis=None)
    outputs = [share, log_share, at.grad(3 * share, x), at.unique(n)]
    # Aesara has a rewrite for a scalar.
    mode = get_mode("NUMBA_FIXED").excluding("local_Unique_scalar")
    f = aesara.function([x, n], outputs, mode=mode)
    for value, (one, zero) in ((3.0, (1, 0)), (np.inf, (np.nan, np.nan))):
        got = f(np.asarray(value, dtype), 5)
        expected = [np.asarray(v, dtype) for v in (one, zero, zero)] + [np.array([5])]
        for a, b in zip(got, expected):
            assert (a.dtype, a.shape) == (b.dtype, b.shape)
            np.testing.assert_array_equal(a, b)
