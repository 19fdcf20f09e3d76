"""What stock back ends get wrong without a word: right or an error here, in loops too."""

from __future__ import annotations

import aesara
import aesara.tensor as at
import numpy as np
import pytest
import scipy.linalg
from aesara.ifelse import ifelse
from aesara.raise_op import Assert
from aesara.tensor.nlinalg import det, eigh, matrix_inverse, qr, svd
from aesara.tensor.slinalg import expm, kron, solve

NAN, INF = np.nan, np.inf


@pytest.fixture(params=["alone", "in a loop"])
def compute(request, mode):
    """Compile ``step(*inputs)``, by itself or as what a loop does twice; call it once."""

    def run(step, inputs, *values):
        if request.param == "alone":
            return aesara.function(inputs, list(step(*inputs)), mode=mode)(*values)
        # What changes from step to step can't be computed once, before the loop.
        zeros = at.zeros((2,), dtype=inputs[0].dtype)
        outputs, _ = aesara.scan(
            lambda zero, first, *others: list(step(first + zero, *others)),
            sequences=[zeros],
            non_sequences=list(inputs),
            return_list=True,
        )
        results = aesara.function(inputs, outputs, mode=mode)(*values)
        for result in results:
            np.testing.assert_array_equal(result[0], result[1])
        return [result[1] for result in results]

    return run


def check_all(got, expected):
    assert len(got) == len(expected)
    for position, (a, b) in enumerate(zip(got, expected)):
        b = np.asarray(b)
        assert a.dtype == b.dtype, position
        assert a.shape == b.shape, position
        np.testing.assert_array_equal(a, b, err_msg=f"result {position}")


def test_missing_values_and_infinity_are_seen(compute):
    x = at.dvector("x")
    values = np.array([1.0, NAN, INF, -INF, -0.0])

    def step(x):
        return (
            at.isnan(x),
            at.isinf(x),
            at.eq(x, x[::-1]),
            at.lt(x, 2.0),
            at.neq(x, 1.0),
            at.switch(at.isnan(x), 7.0, x),
            at.maximum(x, 0.5),
            at.minimum(x, 0.5),
            at.clip(x, -1.0, 1.0),
            at.sgn(x),
            abs(x),
            at.isnan(x - x[::-1]),
            at.any(at.isnan(x)),
        )

    with np.errstate(invalid="ignore"):
        expected = [
            np.isnan(values),
            np.isinf(values),
            values == values[::-1],
            values < 2.0,
            values != 1.0,
            np.array([1.0, 7.0, INF, -INF, 0.0]),
            np.maximum(values, 0.5),
            np.minimum(values, 0.5),
            np.clip(values, -1.0, 1.0),
            np.sign(values),
            abs(values),
            np.isnan(values - values[::-1]),
            np.any(np.isnan(values)),
        ]
    check_all(compute(step, [x], values), expected)


def test_reductions_keep_missing_values(compute):
    x = at.dmatrix("x")
    values = np.array([[1.0, NAN, 3.0], [2.0, 5.0, -INF]])

    def step(x):
        return (
            x.max(),
            x.min(axis=0),
            x.max(axis=1),
            x.sum(axis=1),
            x.prod(axis=1),
            x.mean(axis=0),
            at.argmax(x, axis=1),
            at.argmin(x, axis=1),
            at.all(at.isnan(x), axis=0),
            at.cumsum(x, axis=1),
        )

    expected = [
        values.max(),
        values.min(axis=0),
        values.max(axis=1),
        values.sum(axis=1),
        values.prod(axis=1),
        values.mean(axis=0),
        values.argmax(axis=1),
        values.argmin(axis=1),
        np.isnan(values).all(axis=0),
        np.cumsum(values, axis=1),
    ]
    check_all(compute(step, [x], values), expected)


def test_integers_wrap_and_divide_as_in_numpy(compute):
    x, y, z = at.bvector("x"), at.vector("y", dtype="uint8"), at.lvector("z")
    values = (
        np.array([127, -128, 5], "int8"),
        np.array([255, 0, 7], "uint8"),
        np.array([-7, 7, 2**62], "int64"),
    )

    def step(x, y, z):
        return x + x, -x, y - np.uint8(1), z // -2, z % -3, z * 4, abs(x), x // np.int8(2), x % 3

    a, b, c = values
    expected = [a + a, -a, b - np.uint8(1), c // -2, c % -3, c * 4, abs(a), a // 2, a % 3]
    expected = [np.asarray(e) for e in expected]
    check_all(compute(step, [x, y, z], *values), expected)


def test_what_no_integer_holds_is_cut_off_as_in_c(compute):
    x, z = at.dvector("x"), at.lvector("z")
    values = np.array([300.7, -1.5, 127.9, -129.0]), np.array([2, -1, 0])
    dtypes = ("int8", "uint8", "int16", "uint16", "int32", "int64")

    def step(x, z):
        beyond = [at.cast(x * 1e20, dtype) for dtype in ("int32", "int64")]
        return *[at.cast(x, dtype) for dtype in dtypes], *beyond, z ** (z * 0 - 1), z**-3

    # Cut off first, then the last bits of that; 0 to the -1 is infinite.
    cut = np.array([300, -1, 127, -129])
    expected = [cut.astype(dtype) for dtype in dtypes]
    lowest = [np.iinfo(dtype).min for dtype in ("int32", "int64")]
    expected += [np.full(4, lowest[0], "int32"), np.full(4, lowest[1], "int64")]
    expected += [np.array([0, -1, lowest[1]]), np.array([0, -1, lowest[1]])]
    check_all(compute(step, [x, z], *values), expected)


@pytest.mark.filterwarnings("ignore::fixed_modes.errors.FixedModesWarning")
def test_decompositions_of_what_is_missing_and_of_nothing(compute):
    x, y = at.dmatrix("x"), at.dmatrix("y")
    nan = np.array([[1.0, 2.0], [NAN, 3.0], [0.0, 1.0]])

    def step(x, y):
        return *qr(x), eigh(x[:2])[0], *svd(y), *svd(y, False), svd(y, compute_uv=False), *qr(y)

    q, r = np.full((3, 2), NAN), np.array([[NAN, NAN], [0.0, NAN]])
    expected = [q, r, np.full(2, NAN)]
    expected += [np.zeros((0, 0)), np.zeros(0), np.eye(3), np.zeros((0, 0)), np.zeros(0)]
    expected += [np.zeros((0, 3)), np.zeros(0), np.zeros((0, 0)), np.zeros((0, 3))]
    check_all(compute(step, [x, y], nan, np.zeros((0, 3))), expected)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (40, 40)])
def test_reduced_qr_of_every_dtype(dtype, shape, mode):
    rng = np.random.default_rng(7)
    values = rng.normal(size=shape).astype(dtype)
    x = at.matrix("x", dtype=dtype)
    got = aesara.function([x], list(qr(x)), mode=mode)(values)
    tolerance = 2e-5 if dtype == "float32" else 1e-13
    for a, b in zip(got, np.linalg.qr(values)):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


@pytest.mark.filterwarnings("ignore::fixed_modes.errors.FixedModesWarning")
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_matrices_keep_their_imaginary_parts(compute, dtype):
    x, y = at.matrix("x", dtype=dtype), at.matrix("y", dtype=dtype)
    a = np.array([[2 + 1j, -1j], [0.5, 1 - 2j]], dtype)
    b = np.array([[1j, 2.0], [-1.0, 1 + 1j]], dtype)

    def step(x, y):
        return at.dot(x, y), solve(x, y), matrix_inverse(x), det(x), kron(x, y)

    expected = [a @ b, np.linalg.solve(a, b), np.linalg.inv(a), np.linalg.det(a), np.kron(a, b)]
    tolerance = 1e-5 if dtype == "complex64" else 1e-12
    for got, right in zip(compute(step, [x, y], a, b), expected):
        assert got.dtype == dtype
        np.testing.assert_allclose(got, right, rtol=tolerance, atol=tolerance)


def test_repeated_indices_add_up(compute):
    x, index = at.dvector("x"), at.lvector("index")
    values, indices = np.array([1.0, 2.0, 3.0]), np.array([0, 0, -1, 0])

    def step(x, index):
        return at.inc_subtensor(x[index], 1.0), at.inc_subtensor(x[index], x[index]), x[index]

    once, twice = values.copy(), values.copy()
    np.add.at(once, indices, 1.0)
    np.add.at(twice, indices, values[indices])
    check_all(compute(step, [x, index], values, indices), [once, twice, values[indices]])


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_quotients_are_rounded_down(dtype, mode):
    """As in Aesara's C code; in Python the first is NaN and the fourth 9.

    It takes 1 away from a negative quotient with a rest, which 1 and 0.1 have: 0.1 is rounded up.
    """
    x, y = at.vector("x", dtype=dtype), at.vector("y", dtype=dtype)
    a = np.array([np.inf, -np.inf, np.inf, 1.0, -1.0, 7.0, 1.0, -1.0, 0.0], dtype)
    b = np.array([2.0, 2.0, -2.0, 0.1, 0.1, -2.0, 0.0, np.inf, 0.0], dtype)
    expected = [np.inf, -np.inf, -np.inf, 10.0, -11.0, -4.0, np.inf, -1.0, np.nan]
    for quotient in (x // y, aesara.scan(lambda x, y: x // y, [x, y])[0]):
        found = aesara.function([x, y], quotient, mode=mode)(a, b)
        np.testing.assert_array_equal(found, np.array(expected, dtype))


# The types are those that FAST_RUN raises.
ERRORS = {
    "an index": (lambda x, k: x[k], IndexError, 3),
    "a negative index": (lambda x, k: x[k], IndexError, -4),
    "an index of a row": (lambda x, k: at.outer(x, x)[k], IndexError, 3),
    "an index in an array": (lambda x, k: x[at.stack([0, k])], IndexError, 3),
    "an index into nothing": (lambda x, k: x[:k][at.stack([k])], IndexError, 0),
    "an index to write to": (lambda x, k: at.set_subtensor(x[k], 1.0), IndexError, 3),
    "indices to write to": (lambda x, k: at.inc_subtensor(x[at.stack([k])], 1.0), IndexError, 3),
    "a divisor": (lambda x, k: at.constant(7) // k, ZeroDivisionError, 0),
    "a modulus": (lambda x, k: at.constant(7) % k, ZeroDivisionError, 0),
    "a step of a range": (lambda x, k: at.arange(0, 5, k), ZeroDivisionError, 0),
    "an end of a range": (
        lambda x, k: at.arange(0.0, at.switch(at.eq(k, 0), NAN, 2.0), 1.0),
        ValueError,
        0,
    ),
    "a number of values": (lambda x, k: at.special.softmax(x[:k]), ValueError, 0),
    "another one": (lambda x, k: at.special.log_softmax(x[:k]), ValueError, 0),
    "a matrix to solve": (lambda x, k: solve(at.diag(x / k), x), ValueError, 0),
    "an assertion": (lambda x, k: Assert("no")(x, at.gt(k, 0)), AssertionError, 0),
    "a shape": (lambda x, k: x.reshape((2, k)), ValueError, 2),
    "a length": (lambda x, k: x + at.zeros((k,)), AssertionError, 2),
    "a length of a product": (lambda x, k: at.dot(x, at.zeros((k,))), ValueError, 2),
    "a value to write": (lambda x, k: at.set_subtensor(x[:2], at.ones((k,))), AssertionError, 3),
}


@pytest.mark.filterwarnings("ignore::fixed_modes.errors.FixedModesWarning")
@pytest.mark.parametrize("case", list(ERRORS))
def test_what_can_not_be_done_raises(case, mode):
    build, error, bad = ERRORS[case]
    x, k = at.dvector("x"), at.lscalar("k")
    ks = at.lvector("ks")
    values = np.array([1.0, 2.0, 3.0])
    alone = aesara.function([x, k], build(x, k), mode=mode, on_unused_input="ignore")
    with pytest.raises(error):
        alone(values, bad)
    # The last step is the bad one; what comes of the steps before is thrown away.
    looped, _ = aesara.scan(lambda k, x: build(x, k).sum(), [ks], non_sequences=[x])
    f = aesara.function([x, ks], looped, mode=mode, on_unused_input="ignore")
    with pytest.raises(error):
        f(values, np.array([bad, bad]))


def test_results_are_arrays_that_belong_to_the_caller(mode):
    x = at.dmatrix("x")
    trace, _ = aesara.scan(lambda row, s: s + row, [x], [at.zeros(2)])
    f = aesara.function([x], [trace, trace[-1], trace.sum(), x], mode=mode)
    first = f(np.ones((3, 2)))
    kept = [np.array(result) for result in first]
    for result in first:
        assert type(result) is np.ndarray
        assert result.flags.writeable
    second = f(np.zeros((3, 2)))
    for result, old in zip(first, kept):
        np.testing.assert_array_equal(result, old)
        result[...] = -1.0
    np.testing.assert_array_equal(second[0], np.zeros((3, 2)))
    np.testing.assert_array_equal(f(np.ones((3, 2)))[0], kept[0])


@pytest.mark.filterwarnings("ignore::fixed_modes.errors.FixedModesWarning")
def test_sums_of_exponentials_and_of_solutions_in_branches(mode):
    x, y, flag = at.dmatrix("x"), at.dmatrix("y"), at.lscalar("flag")
    branches = [solve(x, y), matrix_inverse(x), expm(x), qr(x)[0]]
    outputs = [expm(x).sum(), (expm(x) * y).sum(), aesara.grad((expm(x) * y).sum(), x).sum()]
    outputs += [ifelse(at.gt(flag, 0), branch, y).sum() for branch in branches]
    f = aesara.function([x, y, flag], outputs, mode=mode)
    rng = np.random.default_rng(2)
    a, b = rng.normal(size=(2, 4, 4))
    power = scipy.linalg.expm(a)
    slope = scipy.linalg.expm_frechet(a.T, b, compute_expm=False)
    expected = [power.sum(), (power * b).sum(), slope.sum()]
    solved = [np.linalg.solve(a, b), np.linalg.inv(a), power, np.linalg.qr(a)[0]]
    np.testing.assert_allclose(f(a, b, 1), expected + [value.sum() for value in solved])
    np.testing.assert_allclose(f(a, b, 0), expected + [b.sum()] * 4)


MISFIT = "(?i)mismatch|incompatible|zero-size|shape"
_THREE, _TABLE = np.array([1.0, 2.0, -3.0]), np.arange(6.0).reshape(2, 3)


@pytest.mark.parametrize("length", [0, 1, 2, 3, 4, 7])
@pytest.mark.parametrize(
    ("step", "meaning"),
    [
        (lambda x: x * _THREE, lambda x: x * _THREE),
        (lambda x: at.exp(x + _THREE).sum(), lambda x: np.exp(x + _THREE).sum()),
        (lambda x: (2 * x - _TABLE).sum(axis=0), lambda x: (2 * x - _TABLE).sum(axis=0)),
        (lambda x: at.max(x[:, None] + _THREE), lambda x: np.max(x[:, None] + _THREE)),
    ],
    ids=["product", "sum", "table", "maximum"],
)
def test_lengths_that_constants_do_not_fit(compute, step, meaning, length):
    x = at.dvector("x")
    values = np.linspace(-1.0, 2.0, length)
    try:
        expected = meaning(values)
    except ValueError:
        with pytest.raises(ValueError, match=MISFIT):
            compute(lambda x: [step(x)], [x], values)
        return
    (result,) = compute(lambda x: [step(x)], [x], values)
    np.testing.assert_allclose(result, expected, rtol=1e-14)


def test_a_function_that_was_right_for_one_length_sees_a_wrong_one(mode):
    x = at.dvector("x")
    f = aesara.function([x], x ** np.array([1, 2, 3]), mode=mode)
    np.testing.assert_array_equal(f([1.0, 2.0, 3.0]), [1.0, 4.0, 27.0])
    np.testing.assert_array_equal(f([2.0]), [2.0, 4.0, 8.0])
    for length in (4, 0, 2):
        with pytest.raises(ValueError, match=MISFIT):
            f(np.ones(length))
