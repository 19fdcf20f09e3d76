"""Elementwise ops and reductions in NUMBA_FIXED against NumPy, dtype by dtype."""

from __future__ import annotations

import aesara
import aesara.tensor as at
import numpy as np
import pytest
from scipy import special

from fixed_modes.errors import FixedModesWarning

FLOATS = np.array([-1.5, -0.25, 0.0, 0.25, 0.9, 2.5, np.nan, np.inf, -np.inf])

# Each with NumPy's function, applied to the values in double precision.
OF_FLOATS = {
    "abs": np.abs,
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "log1p": np.log1p,
    "sqrt": np.sqrt,
    "square": np.square,
    "sgn": np.sign,
    "ceil": np.ceil,
    "floor": np.floor,
    "trunc": np.trunc,
    "neg": np.negative,
    "reciprocal": np.reciprocal,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "arcsin": np.arcsin,
    "arccos": np.arccos,
    "arctan": np.arctan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "arcsinh": np.arcsinh,
    "arccosh": np.arccosh,
    "arctanh": np.arctanh,
    "deg2rad": np.deg2rad,
    "rad2deg": np.rad2deg,
    "erf": special.erf,
    "erfc": special.erfc,
    "sigmoid": special.expit,
    "softplus": lambda x: np.logaddexp(0, x),
    "isnan": np.isnan,
    "isinf": np.isinf,
    "round": np.round,
}


def evaluate(inputs, outputs, *values):
    return aesara.function(inputs, outputs, mode="NUMBA_FIXED", on_unused_input="ignore")(*values)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@np.errstate(all="ignore")
def test_functions_of_floats(dtype):
    x = at.vector("x", dtype=dtype)
    values = FLOATS.astype(dtype)
    outputs = [getattr(at, name)(x) for name in OF_FLOATS]
    tolerance = 1e-12 if dtype == "float64" else 2e-6
    for name, variable, got in zip(OF_FLOATS, outputs, evaluate([x], outputs, values)):
        assert got.dtype == variable.dtype, name
        expected = OF_FLOATS[name](values.astype("float64"))
        np.testing.assert_allclose(got, expected, rtol=tolerance, atol=1e-15, err_msg=name)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64", "uint64"])
def test_arithmetic_of_integers_stays_in_its_dtype(dtype):
    x, y = at.vector("x", dtype=dtype), at.vector("y", dtype=dtype)
    top = np.iinfo(dtype).max
    a = np.array([top, top, 7, 3, 0], dtype)
    b = np.array([1, top, 2, 5, 9], dtype)
    outputs = [x + y, x - y, x * y, x // y, x % y, at.maximum(x, y), x & y, x | y, x ^ y, ~x]
    with np.errstate(all="ignore"):
        expected = [a + b, a - b, a * b, a // b, a % b, np.maximum(a, b)]
        expected += [a & b, a | b, a ^ b, ~a]
    for got, wanted in zip(evaluate([x, y], outputs, a, b), expected):
        assert got.dtype == dtype
        np.testing.assert_array_equal(got, wanted)


def test_floor_division_and_modulo_have_the_sign_of_the_divisor():
    for dtype in ("int64", "float64"):
        x, y = at.vector("x", dtype=dtype), at.vector("y", dtype=dtype)
        a = np.array([7, -7, 7, -7, 6, -6], dtype)
        b = np.array([2, 2, -2, -2, 3, -3], dtype)
        quotient, rest = evaluate([x, y], [x // y, x % y], a, b)
        np.testing.assert_array_equal(quotient, a // b)
        np.testing.assert_array_equal(rest, a % b)


@pytest.mark.parametrize("ndim", [0, 1, 2])
@pytest.mark.parametrize("operation", [lambda x, y: x // y, lambda x, y: x % y])
def test_integer_division_by_zero_is_an_error(operation, ndim):
    x = at.TensorType("int64", (None,) * ndim)("x")
    f = aesara.function([x], operation(7, x), mode="NUMBA_FIXED")
    np.testing.assert_array_equal(f(np.full((2,) * ndim, 4)), operation(7, np.full((2,) * ndim, 4)))
    with pytest.raises(ZeroDivisionError):
        f(np.zeros((2,) * ndim, np.int64))


def test_integer_division_by_zero_inside_a_scan_is_an_error():
    x = at.lvector("x")
    out, _ = aesara.scan(
        lambda v, s: s + 12 // v, sequences=[x], outputs_info=[at.zeros((), "int64")]
    )
    f = aesara.function([x], out[-1], mode="NUMBA_FIXED")
    assert f(np.array([3, 4])) == 7
    with pytest.raises(ZeroDivisionError, match="integer division by zero"):
        f(np.array([3, 0]))


def test_division_of_floats_by_zero_is_infinite():
    x = at.dvector("x")
    got = evaluate([x], 1.0 / x, np.array([0.0, -0.0, np.inf, np.nan]))
    np.testing.assert_array_equal(got, [np.inf, -np.inf, 0.0, np.nan])


def test_nan_rules_of_maximum_and_minimum():
    x = at.dvector("x")
    values = np.array([1.0, np.nan, 3.0])
    outputs = [
        at.maximum(x, 2.0),
        at.minimum(2.0, x),
        x.max(),
        x.min(),
        at.isnan(x).sum(),
        at.switch(x > 2, 1.0, 0.0),
    ]
    got = evaluate([x], outputs, values)
    expected = [[2.0, np.nan, 3.0], [1.0, np.nan, 2.0], np.nan, np.nan, 1, [0.0, 0.0, 1.0]]
    for a, b in zip(got, expected):
        np.testing.assert_array_equal(a, b)


def test_mixed_dtypes_are_computed_in_the_dtype_of_the_result():
    i8, f32, f64 = at.bvector("i8"), at.fvector("f32"), at.dvector("f64")
    u64, boolean = at.vector("u64", dtype="uint64"), at.vector("b", dtype="bool")
    values = [
        np.array([-3, 4], "int8"),
        np.array([0.1, 1e8], "float32"),
        np.array([1 / 3, 2.0]),
        np.array([2**63 + 5, 1], "uint64"),
        np.array([True, False]),
    ]
    a, b, c, d, e = values
    inputs = [i8, f32, f64, u64, boolean]
    outputs = [i8 + f32, f32 * f64, i8 / i8, boolean * f32, boolean + boolean, u64 + u64, f32**i8]
    expected = [
        (a.astype("f4") + b),
        b * c,
        (a.astype("f4") / a.astype("f4")),
        e * b,
        e | e,
        d + d,
        b.astype("f8") ** a.astype("f8"),
    ]
    for variable, got, wanted in zip(outputs, evaluate(inputs, outputs, *values), expected):
        assert got.dtype == variable.dtype
        np.testing.assert_allclose(got, wanted.astype(got.dtype), rtol=3e-7)


def test_complex_values():
    z = at.zvector("z")
    values = np.array([1 + 2j, -0.5j, 0.3])
    outputs = [z * z, z / (1 + z), at.exp(z), abs(z), at.real(z), at.imag(z), at.conj(z), z.sum()]
    expected = [
        values * values,
        values / (1 + values),
        np.exp(values),
        np.abs(values),
        values.real,
        values.imag,
        values.conj(),
        values.sum(),
    ]
    for got, wanted in zip(evaluate([z], outputs, values), expected):
        np.testing.assert_allclose(got, wanted)


def test_more_operands_than_a_ufunc_takes():
    xs = [at.dvector(f"x{n}") for n in range(40)]
    total = xs[0]
    for n, x in enumerate(xs[1:], start=1):
        total = total * 0.5 + x * n
    values = [np.array([n, 1.0 / (n + 1)]) for n in range(40)]
    expected = values[0]
    for n, value in enumerate(values[1:], start=1):
        expected = expected * 0.5 + value * n
    np.testing.assert_allclose(evaluate(xs, total, *values), expected)


def test_broadcasting_and_reordered_axes():
    m, row, column = at.dmatrix("m"), at.dvector("row"), at.dvector("column")
    m_value = np.arange(6.0).reshape(2, 3)
    row_value, column_value = np.array([1.0, 2.0, 3.0]), np.array([10.0, 20.0])
    outputs = [
        m + row,
        m * column.dimshuffle(0, "x"),
        m.T + column,
        m.dimshuffle(1, "x", 0) * row.dimshuffle(0, "x", "x"),
        m.T,
        m.dimshuffle("x", 1, 0),
    ]
    expected = [
        m_value + row_value,
        m_value * column_value[:, None],
        m_value.T + column_value,
        m_value.T[:, None, :] * row_value[:, None, None],
        m_value.T,
        m_value.T[None],
    ]
    got = evaluate([m, row, column], outputs, m_value, row_value, column_value)
    for a, b in zip(got, expected):
        np.testing.assert_array_equal(a, b)


def test_shapes_that_do_not_match_are_an_error():
    x, y = at.dvector("x"), at.dvector("y")
    f = aesara.function([x, y], at.exp(x) + y, mode="NUMBA_FIXED")
    with pytest.raises(ValueError, match="Input dimension mismatch"):
        f(np.ones(2), np.ones(3))


def test_a_length_of_one_that_the_graph_does_not_know_is_broadcast():
    x, y, z = at.dmatrix("x"), at.dmatrix("y"), at.dmatrix("z")
    f = aesara.function([x, y, z], at.exp(x) + y * z, mode="NUMBA_FIXED")
    full = np.arange(6.0).reshape(2, 3)
    for shapes in [(1, 1, 2), (1, 2, 1), (2, 1, 1), (2, 2, 1), (1, 1, 1)]:
        for axis in (0, 1):
            values = [
                full.take(range(min(n, 2)) if n == 1 else range(full.shape[axis]), axis) + k
                for k, n in enumerate(shapes)
            ]
            a, b, c = values
            np.testing.assert_allclose(f(a, b, c), np.exp(a) + b * c)
    # Nothing can be written over an input that is too short for the result.
    with pytest.raises(ValueError, match="Input dimension mismatch"):
        f(full, full[:, :2], full)


@pytest.mark.parametrize("dtype", ["float64", "float32", "int8", "uint8", "int64", "bool"])
def test_reductions(dtype):
    x = at.matrix("x", dtype=dtype)
    values = np.array([[1, 0, 3], [2, 5, 1]]).astype(dtype)
    outputs = [x.sum(), x.sum(axis=0), x.prod(axis=1), x.max(axis=0), x.min(), x.any(axis=1)]
    outputs += [x.all(), x.mean(axis=1), at.dot(x, x.T).sum()]
    expected = [
        values.sum(),
        values.sum(axis=0),
        values.prod(axis=1),
        values.max(axis=0),
        values.min(),
        values.any(axis=1),
        values.all(),
        values.mean(axis=1),
        np.dot(values, values.T).sum(),
    ]
    if dtype == "bool":
        outputs, expected = outputs[:-1], expected[:-1]
    for variable, got, wanted in zip(outputs, evaluate([x], outputs, values), expected):
        assert got.dtype == variable.dtype
        np.testing.assert_allclose(got, wanted.astype(got.dtype), rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128", "int64"])
@pytest.mark.parametrize("size", [0, 1, 3, 40])
def test_products_small_and_large(dtype, size):
    m, n = at.matrix("m", dtype=dtype), at.matrix("n", dtype=dtype)
    u, v = at.vector("u", dtype=dtype), at.vector("v", dtype=dtype)
    rng = np.random.default_rng(3)
    values = [rng.integers(-4, 5, shape) for shape in [(5, size), (size, 7), size, size]]
    a, b, c, d = (value.astype(dtype) for value in values)
    outputs = [at.dot(m, n), at.dot(m, u), at.dot(u, n), at.dot(u, v), at.dot(n.T, m.T)]
    expected = [a @ b, a @ c, c @ b, c @ d, b.T @ a.T]
    for got, wanted in zip(evaluate([m, n, u, v], outputs, a, b, c, d), expected):
        assert got.dtype == dtype
        np.testing.assert_allclose(got, wanted, rtol=1e-6)
    with pytest.raises(ValueError, match="Shape mismatch"):
        evaluate([m, u], at.dot(m, u), a, np.zeros(size + 1, dtype))


def test_reductions_of_nothing():
    x = at.dmatrix("x")
    total, product = evaluate([x], [x.sum(), x.prod(axis=0)], np.zeros((0, 2)))
    assert total == 0.0
    np.testing.assert_array_equal(product, [1.0, 1.0])
    with pytest.raises(ValueError, match="zero-size"):
        evaluate([x], x.max(axis=0), np.zeros((0, 2)))


def test_an_op_that_nothing_compiles_runs_in_python_and_says_so():
    x = at.zvector("x")
    with pytest.warns(FixedModesWarning, match=r"log1p.* in Python"):
        f = aesara.function([x], at.log1p(x), mode="NUMBA_FIXED")
    values = np.array([0.5, 3.0 - 1j])
    np.testing.assert_allclose(f(values), np.log1p(values))
