"""Functions of our modes are called by a short way, which gives what the long one gives."""

from __future__ import annotations

import copy
import pickle

import aesara
import aesara.tensor as at
import numpy as np
import pytest
from aesara.compile.function.types import Function

from fixed_modes.function import FixedFunction, Plan

MODE = "NUMBA_FIXED"


@pytest.fixture(scope="module")
def affine():
    """Make a function of a vector, a matrix and two numbers, in our mode and another."""
    x, m, a, n = at.dvector("x"), at.fmatrix("m"), at.dscalar("a"), at.lscalar("n")
    outputs = [x * a, m.sum(), a + n]
    inputs = [x, m, a, n]
    return tuple(aesara.function(inputs, outputs, mode=mode) for mode in (MODE, "FAST_COMPILE"))


def takes_the_short_way(function):
    return isinstance(function._plan, Plan)


@pytest.mark.parametrize(
    "arguments",
    [
        (np.arange(3.0), np.ones((2, 2), "float32"), np.array(2.0), np.array(3)),
        (np.arange(3.0)[::-1], np.ones((2, 2), "float32").T, 2.0, 3),
        ([1, 2, 3], np.ones((2, 2), "float32").tolist(), 2, True),
        (np.arange(3), np.ones((2, 2), "int8"), np.float32(2), np.int8(3)),
        (np.zeros(0), np.zeros((0, 2), "float32"), float("nan"), -(2**63)),
    ],
)
def test_arguments_are_converted_as_ever(affine, arguments):
    ours, reference = affine
    assert isinstance(ours, FixedFunction)
    assert type(reference) is Function
    for found, expected in zip(ours(*arguments), reference(*arguments)):
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)
    assert takes_the_short_way(ours)


@pytest.mark.parametrize(
    "arguments",
    [
        (np.ones((2, 2)), np.ones((2, 2), "float32"), 1.0, 1),
        (np.ones(2), np.ones((2, 2), "float64"), 1.0, 1),
        (np.ones(2), np.ones((2, 2), "float32"), "a", 1),
        (np.ones(2), np.ones((2, 2), "float32"), 1.0, 1.5),
        (np.ones(2), np.ones((2, 2), "float32"), 1.0, 2**63),
        (np.ones(2), np.ones((2, 2), "float32"), 1.0),
        (np.ones(2), np.ones((2, 2), "float32"), 1.0, 1, 1),
    ],
)
def test_bad_arguments_get_the_same_errors(affine, arguments):
    messages = []
    for function in affine:
        with pytest.raises((TypeError, ValueError, OverflowError)) as caught:
            function(*arguments)
        messages.append((caught.type, str(caught.value).splitlines()[0]))
    assert messages[0] == messages[1]


def test_keywords_and_subsets_go_the_inherited_way(affine):
    ours, _ = affine
    x, m = np.arange(3.0), np.ones((1, 1), "float32")
    np.testing.assert_array_equal(ours(x, m, n=1, a=2.0)[0], 2 * x)
    np.testing.assert_array_equal(ours(x, m, 2.0, 1, output_subset=[2]), [3.0])


def test_shared_variables_are_updated():
    x = at.dvector("x")
    total, count = aesara.shared(np.zeros(2)), aesara.shared(0)
    f = aesara.function([x], total * 2, updates={total: total + x, count: count + 1}, mode=MODE)
    np.testing.assert_array_equal(f(np.ones(2)), [0, 0])
    np.testing.assert_array_equal(f(np.ones(2)), [2, 2])
    np.testing.assert_array_equal(total.get_value(), [2, 2])
    assert count.get_value() == 2
    assert takes_the_short_way(f)
    nothing = aesara.function([], updates={count: count + 1}, mode=MODE)
    assert nothing() in (None, [])
    assert count.get_value() == 3


def test_special_inputs_and_outputs():
    x, y = at.dscalar("x"), at.dscalar("y")
    default = aesara.function([x, aesara.In(y, value=3.0)], x + y, mode=MODE)
    assert default(1.0) == 4.0
    assert default(1.0, 5.0) == 6.0
    assert default(1.0) == 4.0
    named = aesara.function([x], {"twice": 2 * x}, mode=MODE)
    assert named(2.0) == {"twice": 4.0}
    v = at.dvector("v")
    mutable = aesara.function([aesara.In(v, mutable=True)], v + 1, mode=MODE)
    np.testing.assert_array_equal(mutable(np.ones(2)), [2, 2])
    fixed = at.TensorType("float64", (2,))("fixed")
    shaped = aesara.function([fixed], fixed + 1, mode=MODE)
    np.testing.assert_array_equal(shaped(np.ones(2)), [2, 2])
    with pytest.raises(TypeError, match="shape"):
        shaped(np.ones(3))


def test_copies_and_pickles_are_functions_of_the_same_kind():
    x = at.dscalar("x")
    state = aesara.shared(1.0)
    f = aesara.function([x], x * state, updates={state: state + 1}, mode=MODE)
    assert f(2.0) == 2.0
    copies = [copy.deepcopy(f), pickle.loads(pickle.dumps(f)), f.copy()]
    for other in copies:
        assert type(other) is FixedFunction
        assert other(2.0) == 4.0
    assert f(2.0) in (4.0, 6.0)


def test_times_are_counted(affine):
    ours, _ = affine
    mode = ours.maker.mode
    before = mode.call_time
    ours(np.ones(1), np.ones((1, 1), "float32"), 1.0, 1)
    assert mode.call_time > before
    assert mode.fn_time <= mode.call_time
