"""Every scalar op, for every dtype, gives what its ``perform`` gives."""

from __future__ import annotations

import warnings

import aesara
import aesara.scalar.basic as aes
import aesara.scalar.math as aes_math
import aesara.tensor as at
import numpy as np
import pytest
from aesara.compile.mode import Mode
from aesara.tensor.elemwise import Elemwise
from scipy import special

import fixed_modes
from fixed_modes.errors import FixedModesWarning
from fixed_modes.numba import special_functions

# Where C code or we are better than `perform`, on purpose; what those give is below.
APART = {
    aes.Pow,  # in double precision for integers, as in C
    aes.InRange,  # `perform` lets a NaN be in every open range
    aes.ComplexFromPolar,  # refuses negative radii
    aes.Mean,  # runs in Python
    aes_math.GammaIncDer,
    aes_math.GammaIncCDer,  # their series stop at 1e-10 and 1e-6
    aes_math.BetaIncDer,
    aes_math.Hyp2F1Der,
}

VALUES = {
    "b": [1, 1, 0],
    "i": [1, 2, -1, 5, -3, 7],
    "u": [1, 2, 5, 7, 3, 200],
    "f": [0.5, 1.0, -1.5, 2.5, -0.375, 0.0, 0.25, 3.7, 20.0],
    "c": [0.5, 1 + 1j, 2.5 - 0.3j, 1j, 0.25, -1 + 0.5j],
}


def scalar_ops():
    found = {}
    for module in (aes, aes_math):
        for value in vars(module).values():
            if isinstance(value, aes.ScalarOp) and type(value) not in {*APART, aes.Composite}:
                found.setdefault(str(value), value)
    return list(found.values())


def applied(dtype):
    """Apply all ops that take the dtype to the first of four scalars each."""
    inputs = [at.TensorType(dtype, ())(f"x{n}") for n in range(4)]
    outputs = []
    for op in scalar_ops():
        count = op.nin if op.nin > 0 else 2
        try:
            out = Elemwise(op)(*inputs[:count])
        except (TypeError, NotImplementedError, aes.ComplexError):
            continue
        if out.type.dtype != "float16":
            outputs.append(out)
    return inputs, outputs


def performed(out, values):
    """Give the value, or None where NumPy refuses it."""
    node, storage = out.owner, [[None]]
    try:
        with np.errstate(all="ignore"):
            node.op.prepare_node(node, {}, {}, "py")
            node.op.perform(node, values[: len(node.inputs)], storage)
    except (ValueError, TypeError, OverflowError, AttributeError):
        return None
    return storage[0][0]


@pytest.mark.parametrize(
    "dtype",
    ["bool", "int8", "int64", "uint8", "uint64", "float32", "float64", "complex64"],
)
def test_values_and_dtypes(dtype):
    kind = np.dtype(dtype).kind
    inputs, outputs = applied(dtype)
    numbers = VALUES[kind]
    draws = [
        [np.asarray(numbers[(n * k + n) % len(numbers)], dtype) for n in range(1, 5)]
        for k in range(len(numbers))
    ]
    # What NumPy can't do for the dtype at all stays out.
    outputs = [out for out in outputs if performed(out, draws[0]) is not None]
    assert len(outputs) > 50
    mode = Mode(linker=fixed_modes.NUMBA_FIXED.linker, optimizer=None)
    with warnings.catch_warnings():
        if kind in "bc":  # some ops of such values run in Python
            warnings.simplefilter("ignore", FixedModesWarning)
        f = aesara.function(inputs, outputs, mode=mode, on_unused_input="ignore")
    single = dtype not in ("int64", "uint64", "float64")
    for values in draws:
        expected = [performed(out, values) for out in outputs]
        with np.errstate(all="ignore"):
            results = f(*values)
        for out, value, result in zip(outputs, expected, results):
            assert result.dtype == out.type.dtype
            if value is not None:
                np.testing.assert_allclose(
                    result,
                    value,
                    rtol=1e-3 if dtype == "bool" else (2e-6 if single else 1e-12),
                    atol=1e-7 if single else 1e-15,
                    err_msg=f"{out.owner.op} of {values}",
                )


def test_integer_powers_and_ranges_are_those_of_c():
    x, y, u, v = (
        at.bscalar("x"),
        at.bscalar("y"),
        at.dscalar("u"),
        at.uscalar("v") if hasattr(at, "uscalar") else at.TensorType("uint32", ())("v"),
    )
    f = aesara.function(
        [x, y, u, v],
        [x**y, v**2, at.and_(u > 0, u < 2), at.cast(u, "uint8"), at.cast(u, "uint32")],
        mode="NUMBA_FIXED",
    )
    got = f(np.int8(2), np.int8(-1), -50.0, np.uint32(3))
    assert [int(g) for g in got] == [0, 9, 0, 206, 2**32 - 50]
    got = f(np.int8(-3), np.int8(3), np.nan, np.uint32(70000))
    assert [int(g) for g in got[:3]] == [-27, 70000**2 % 2**32, 0]


def test_a_mean_is_no_running_mean():
    x = at.dvector("x")
    with pytest.warns(FixedModesWarning, match="mean"):
        f = aesara.function([x], at.math.Mean(0)(x), mode="NUMBA_FIXED")
    assert f([2.0, 4.0, 12.0]) == pytest.approx(6.0)


def test_a_negative_radius_is_refused():
    r, angle = at.dscalar("r"), at.dscalar("angle")
    f = aesara.function([r, angle], at.complex_from_polar(r, angle), mode="NUMBA_FIXED")
    assert f(2.0, np.pi / 2) == pytest.approx(2j)
    with pytest.raises(ValueError, match="polar radius must be non-negative"):
        f(-2.0, 0.0)


K, X = np.array([0.3, 0.7, 2.0, 5.0, 11.0, 60.0]), np.array([0.01, 0.5, 3.0, 7.9, 8.0, 31.0])


def derivative(function, at_value, step):
    """Differentiate numerically, with an error of the fourth order."""
    below, above = function(at_value - step), function(at_value + step)
    return (8 * (above - below) - function(at_value + 2 * step) + function(at_value - 2 * step)) / (
        12 * step
    )


def test_derivatives_of_special_functions():
    for k, x in zip(np.repeat(K, len(X)), np.tile(X, len(K))):
        expected = derivative(lambda v, x=x: special.gammainc(v, x), k, 1e-3 * min(k, 1))
        assert special_functions.gammainc_der(k, x) == pytest.approx(expected, abs=1e-8)
        assert special_functions.gammaincc_der(k, x) == pytest.approx(-expected, abs=2e-5)
    for p, q, x in [(0.5, 2.0, 0.3), (2.5, 1.0, 0.9), (10.0, 8.0, 0.5), (1.0, 3.0, 0.01)]:
        expected = derivative(lambda v, q=q, x=x: special.betainc(v, q, x), p, 1e-3)
        assert special_functions.betainc_der(p, q, x, 1.0) == pytest.approx(expected, rel=1e-7)
        expected = derivative(lambda v, p=p, x=x: special.betainc(p, v, x), q, 1e-3)
        assert special_functions.betainc_der(p, q, x, 0.0) == pytest.approx(expected, rel=1e-7)
    for a, b, c, z in [(0.5, 2.0, 1.5, 0.3), (3.0, 0.7, 4.0, -0.8)]:
        for position in range(3):

            def moved(v, parameters=(a, b, c), position=position, z=z):
                changed = [v if n == position else p for n, p in enumerate(parameters)]
                return special.hyp2f1(*changed, z)

            expected = derivative(moved, (a, b, c)[position], 1e-3)
            got = special_functions.hyp2f1_der(a, b, c, z, float(position))
            assert got == pytest.approx(expected, rel=1e-7)
    assert np.isnan(special_functions.hyp2f1_der(0.5, 2.0, 1.5, 1.5, 0.0))
    x = np.array([0.1, 1.0, 9.9, 50.0, -0.5, -15.2, -100.7])
    got = [special_functions.trigamma(v) for v in x]
    np.testing.assert_allclose(got, special.polygamma(1, x), rtol=1e-14)
    assert special_functions.trigamma(-2.0) == np.inf


def test_special_functions_at_the_ends_of_their_range():
    x, k = at.dvector("x"), at.dvector("k")
    outputs = [at.psi(x), at.tri_gamma(x), at.gammainc(k, x), at.chi2sf(x, k), at.erfcx(x)]
    f = aesara.function([x, k], outputs, mode="NUMBA_FIXED")
    values = np.array([0.0, -1.0, np.inf, np.nan, 1e-300, 1e300])
    orders = np.array([0.0, 1.0, 2.0, np.nan, 2.0, 1.0])
    expected = [
        special.psi(values),
        [np.inf, np.inf, 0.0, np.nan, np.inf, 1e-300],
        special.gammainc(orders, values),
        [np.nan, 1.0, 0.0, np.nan, 1.0, 0.0],
        special.erfcx(values),
    ]
    for result, value in zip(f(values, orders), expected):
        np.testing.assert_allclose(result, value, rtol=1e-12)
