"""Elementwise ops and reductions: values and dtypes as NumPy gives them."""

from __future__ import annotations

import warnings

import aesara
import aesara.tensor as at
import numpy as np
import pytest
import scipy.special as sp

REAL = np.array([-2.5, -1.0, -0.5, 0.0, 0.3, 1.0, 2.5, 30.0, np.inf, -np.inf, np.nan])
POSITIVE = np.array([0.1, 0.5, 1.0, 2.5, 7.0, 30.0])

UNARY = {
    "abs": (at.abs, np.abs, REAL),
    "sgn": (at.sgn, np.sign, REAL),
    "round": (at.round, np.round, REAL),
    "round away": (
        lambda x: at.round(x, mode="half_away_from_zero"),
        lambda x: np.sign(x) * np.floor(np.abs(x) + 0.5),
        REAL,
    ),
    "reciprocal": (at.reciprocal, lambda x: 1 / x, POSITIVE),
    "log1mexp": (lambda x: at.log1mexp(-x), lambda x: np.log(-np.expm1(-x)), POSITIVE),
    "softplus": (at.softplus, lambda x: np.logaddexp(0, x), REAL),
    "sigmoid": (at.sigmoid, sp.expit, REAL),
    "erfcx": (at.erfcx, sp.erfcx, np.array([-2.0, 0.0, 1.0, 24.0, 26.0, 300.0])),
    "erfcinv": (at.erfcinv, sp.erfcinv, np.array([0.1, 0.7, 1.9])),
    "gamma": (at.gamma, sp.gamma, np.array([-2.5, -1.5, 0.5, 3.0, 7.5])),
    "gammaln": (at.gammaln, sp.gammaln, POSITIVE),
    "digamma": (at.psi, sp.psi, POSITIVE),
    "trigamma": (at.tri_gamma, lambda x: sp.polygamma(1, x), np.append(POSITIVE, [1e3, -0.7])),
    "isnan": (at.isnan, np.isnan, REAL),
    "isinf": (at.isinf, np.isinf, REAL),
    "tanh": (at.tanh, np.tanh, REAL),
    "log1p": (at.log1p, np.log1p, POSITIVE),
}


@pytest.mark.parametrize("name", UNARY)
def test_function_of_one_number(evaluate, name):
    op, function, values = UNARY[name]
    x = at.dvector("x")
    with np.errstate(all="ignore"):
        want = function(values)
    result = evaluate([x], op(x), values)
    np.testing.assert_allclose(result, want, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    "left", ["bool", "int8", "uint8", "int32", "int64", "float32", "complex64"]
)
@pytest.mark.parametrize("right", ["int8", "int64", "float32", "float64"])
def test_mixed_dtypes_promote_as_in_aesara(evaluate, left, right):
    x, y = at.vector("x", dtype=left), at.vector("y", dtype=right)
    a = np.array([0, 1, 3]).astype(left)
    b = np.array([2, 1, 2]).astype(right)
    outputs = [x + y, x * y, x - y if left != "bool" else x + y, at.eq(x, y)]
    outputs += [x / y, at.switch(x, x, y)]
    results = evaluate([x, y], outputs, a, b)
    difference = a.astype(complex) - b if left != "bool" else a.astype(complex) + b
    wants = [a.astype(complex) + b, a.astype(complex) * b, difference, a == b]
    wants += [a.astype(complex) / b, np.where(a, a, b)]
    for variable, result, want in zip(outputs, results, wants):
        assert result.dtype == variable.dtype
        np.testing.assert_allclose(result, want, rtol=1e-6)


def test_integer_division_and_remainder_have_the_sign_of_the_divisor(evaluate):
    x, y = at.lvector("x"), at.lvector("y")
    a, b = np.array([7, -7, 7, -7]), np.array([2, 2, -2, -2])
    quotient, remainder, power = evaluate([x, y], [x // y, x % y, x**2], a, b)
    np.testing.assert_array_equal(quotient, a // b)
    np.testing.assert_array_equal(remainder, a % b)
    np.testing.assert_array_equal(power, a**2)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("form", ["alone", "fused"])
def test_floor_division_of_floats(evaluate, dtype, form):
    x, y = at.vector("x", dtype=dtype), at.vector("y", dtype=dtype)
    a = np.array([7, -7, 0, 7, -7, 7, -7, 6, -6, 7, -7, np.inf, np.nan, 2, 1], dtype)
    b = np.array([0, 0, 0, 2, 2, -2, -2, -3, 3, np.inf, np.inf, 2, 1, np.nan, 0.1], dtype)
    inf, nan = np.inf, np.nan  # the last quotient is rounded up before `floor`
    want = np.array([inf, -inf, nan, 3, -4, -4, 3, -2, -2, 0, -1, inf, nan, nan, 10])
    if form == "fused":
        np.testing.assert_array_equal(evaluate([x, y], (x // y) * 2 + 1, a, b), 2 * want + 1)
    else:
        result = evaluate([x, y], x // y, a, b)
        assert result.dtype == dtype
        np.testing.assert_array_equal(result, want)


def test_floor_division_of_known_floats(evaluate):
    x = at.dvector("x")
    rows = x.shape[0]
    outputs = [rows // at.constant(v) for v in (0.0, 0.1, 0.6, -0.6)]
    result = evaluate([x], outputs, np.ones(1))
    np.testing.assert_array_equal(result, [np.inf, 10, 1, -2])


@pytest.mark.parametrize("place", ["outside", "fused", "in a loop", "known"])
def test_integer_division_by_zero_raises(place):
    x, y = at.lvector("x"), at.lvector("y")
    looped, _ = aesara.scan(lambda a, b: (a % b) * 2 + at.argmax(at.stack([a, b])), [x, y])
    out = {
        "outside": x // y,
        "fused": (x % y) * 2 + x,
        "in a loop": looped,
        "known": x // (x.shape[0] - 2),
    }[place]
    f = aesara.function([x, y], out, mode="JAX_FIXED", on_unused_input="ignore")
    fine = np.array([4, 9, 2])
    assert f(fine, np.array([3, 2, 1])).shape == (3,)
    bad = fine[:2] if place == "known" else fine
    with pytest.raises(ZeroDivisionError):
        f(bad, np.array([3, 0, 1])[: len(bad)])


def test_complex_numbers(evaluate):
    z, x = at.zvector("z"), at.dvector("x")
    v = np.array([1 + 2j, -0.5j, -3.0])
    outputs = [z.real, z.imag, abs(z), at.angle(z), z.conj(), at.complex(x, 2 * x), z * x]
    r = np.array([1.0, -2.0, 3.0])
    wants = [v.real, v.imag, np.abs(v), np.angle(v), v.conj(), r + 2j * r, v * r]
    for variable, result, want in zip(outputs, evaluate([z, x], outputs, v, r), wants):
        assert result.dtype == variable.dtype
        np.testing.assert_allclose(result, want)


def test_clip_with_crossed_bounds_takes_the_lower_one(evaluate):
    x = at.dvector("x")
    np.testing.assert_array_equal(evaluate([x], at.clip(x, 2.0, 1.0), np.arange(4.0)), [2, 2, 1, 1])


def test_shapes_that_do_not_match_raise(evaluate):
    x, y = at.dvector("x"), at.dvector("y")
    with pytest.raises(ValueError, match="do not match"):
        evaluate([x, y], at.exp(x) + y, np.ones(2), np.ones(3))
    with pytest.raises(ValueError, match="dot"):
        evaluate([x, y], at.dot(x, y), np.ones(2), np.ones(3))


def test_result_has_the_shape_of_all_operands(evaluate):
    x, y = at.dvector("x"), at.dmatrix("y")
    filled, fused = evaluate(
        [x, y], [at.second(y, x), at.exp(x) + 0 * y], np.ones(3), np.zeros((2, 3))
    )
    assert filled.shape == fused.shape == (2, 3)


@pytest.mark.parametrize("dtype", ["bool", "int8", "float32", "float64"])
@pytest.mark.parametrize("axis", [None, 0, (0, 2), -1])
def test_reductions(evaluate, dtype, axis):
    x = at.tensor(dtype=dtype, shape=(None, None, None))
    value = (np.arange(24).reshape(2, 3, 4) % 5).astype(dtype)
    outputs = [x.sum(axis), x.prod(axis), x.max(axis), x.min(axis), x.all(axis), x.any(axis)]
    with np.errstate(over="ignore"):
        wants = [
            value.sum(axis, dtype=outputs[0].dtype),
            value.prod(axis, dtype=outputs[1].dtype),
            value.max(axis),
            value.min(axis),
            value.all(axis),
            value.any(axis),
        ]
    for variable, result, want in zip(outputs, evaluate([x], outputs, value), wants):
        assert result.dtype == variable.dtype
        np.testing.assert_allclose(result, want, rtol=1e-6)


def test_maximum_and_its_position(evaluate):
    x = at.dtensor3("x")
    value = np.random.default_rng(0).normal(size=(2, 3, 4))
    top, where = at.max_and_argmax(x, axis=(0, 2))
    got_top, got_where, nan_top = evaluate(
        [x], [top, where, at.switch(x > 0, np.nan, x).max()], value
    )
    np.testing.assert_array_equal(got_top, value.max((0, 2)))
    flat = value.transpose(1, 0, 2).reshape(3, 8)
    np.testing.assert_array_equal(got_where, flat.argmax(-1))
    assert np.isnan(nan_top)


def test_axes_come_and_go(evaluate):
    x = at.tensor("float64", shape=(None, 1, None))
    value = np.arange(6.0).reshape(2, 1, 3)
    result = evaluate([x], x.dimshuffle(2, "x", 0), value)
    np.testing.assert_array_equal(result, value[:, 0].T[:, None])


def test_known_values_are_computed_with_numpy_at_once(evaluate):
    x = at.dmatrix("x")
    rows = x.shape[0]
    lengths = at.stack([rows, rows * rows // 2, rows * 0 - 1])
    out = x.reshape(at.stack([lengths[0] * 2, at.constant(-1)]))
    value = np.arange(12.0).reshape(2, 6)
    np.testing.assert_array_equal(evaluate([x], out, value), value.reshape(4, 3))


def test_big_constant_arrays_are_not_changed_by_in_place_ops():
    table = np.arange(4.0)
    constant = at.constant(table)
    out = at.inc_subtensor(constant[1:], 1.0)
    f = aesara.function([], [out, constant + 0], mode="JAX_FIXED")
    for _ in range(2):
        changed, kept = f()
        np.testing.assert_array_equal(changed, [0, 2, 3, 4])
        np.testing.assert_array_equal(kept, np.arange(4.0))
    np.testing.assert_array_equal(table, np.arange(4.0))


def test_slope_of_the_incomplete_gamma_function_in_a_loop():
    from scipy import special

    x, k = at.dvector("x"), at.dscalar("k")
    total, _ = aesara.scan(
        lambda x, total, k: total + at.gammainc(k, x) ** 2,
        sequences=[x],
        outputs_info=[at.constant(0.0, dtype="float64")],
        non_sequences=[k],
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        slope = aesara.function([x, k], aesara.grad(total[-1], k), mode="JAX_FIXED")
        values = np.array([0.01, 0.3, 1.0, 2.5, 14.0, 40.0])

        def value(k):
            return (special.gammainc(k, values) ** 2).sum()

        for at_k in (0.4, 1.0, 3.5, 25.0):
            step = 1e-5 * at_k
            expected = (value(at_k + step) - value(at_k - step)) / (2 * step)
            np.testing.assert_allclose(slope(values, at_k), expected, rtol=1e-7, atol=1e-9)


def test_x_log_y_is_zero_where_x_is():
    from aesara.tensor.xlogx import xlogx, xlogy0

    x, y = at.dmatrix("x"), at.drow("y")
    f = aesara.function([x, y], [xlogx(x), xlogy0(x, y)], mode="JAX_FIXED")
    a, b = np.array([[0.0, 0.5, 3.0], [-0.0, 1.0, np.nan]]), np.array([[0.0, 2.0, 0.25]])
    with np.errstate(all="ignore"):
        expected = [np.where(a == 0, 0, a * np.log(c)) for c in (a, b)]
    for result, wanted in zip(f(a, b), expected):
        np.testing.assert_allclose(result, wanted, rtol=1e-15)


def test_more_dimensions_than_numpy_allows_are_a_value_error():
    x = at.dscalar("x")
    for graph in (
        x.dimshuffle(("x",) * 33),
        at.alloc(x, *(1,) * 33),
        x.dimshuffle(("x",) * 33) + 1,
    ):
        f = aesara.function([x], graph, mode="JAX_FIXED")
        with pytest.raises(ValueError, match="33"):
            f(1.0)
    f = aesara.function([x], x.dimshuffle(("x",) * 32), mode="JAX_FIXED")
    assert f(2.5).shape == (1,) * 32


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
def test_false_times_what_is_not_finite_is_nan(dtype: str) -> None:
    mask, y = at.tensor("bool", shape=(None,), name="mask"), at.vector("y", dtype=dtype)
    real = at.dvector("x")
    steps, _ = aesara.scan(lambda m, y: m * y, sequences=[mask, y])
    outputs = [
        mask * y,
        at.cast(mask, dtype) * y,
        at.cast(at.cast(mask, "int8"), dtype) * y,
        at.cast(at.cast(mask, "float32"), dtype) * y,
        (mask * y).sum(),
        steps,
        (real > 0) * at.log(real),
        at.dot(real > 0, at.log(real)),
    ]
    f = aesara.function([mask, y, real], outputs, mode="JAX_FIXED")
    masks = np.array([True, False, False, False, True])
    ys = np.array([np.inf, -np.inf, np.nan, 2.0, -3.0]).astype(dtype)
    reals = np.array([1.0, 0.0])
    *products, total, in_steps, of_log, dot = f(masks, ys, reals)
    with np.errstate(invalid="ignore"):
        # A complex infinity times a real number is not the same everywhere.
        wanted = ys[1:] * masks[1:] if dtype == "complex128" else ys * masks
    for product in (*products, in_steps):
        np.testing.assert_array_equal(np.isnan(product[-len(wanted) :]), np.isnan(wanted))
        np.testing.assert_array_equal(product[-2:], wanted[-2:])
    assert np.isnan(total)
    np.testing.assert_array_equal(of_log, [0.0, np.nan])
    assert np.isnan(dot)
