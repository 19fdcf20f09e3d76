"""`ifelse` in NUMBA_FIXED: only the taken branch runs, and its value is its own."""

from __future__ import annotations

import aesara
import aesara.tensor as at
import numpy as np
import pytest
from aesara.ifelse import ifelse
from aesara.raise_op import Assert


def test_an_error_in_the_other_branch_does_not_matter():
    flag, x, n = at.bscalar("flag"), at.dvector("x"), at.lscalar("n")
    f = aesara.function([flag, x, n], ifelse(flag, x[n] * 2.0, at.exp(x[0])), mode="NUMBA_FIXED")
    value = np.array([0.5, 1.5])
    assert f(1, value, 1) == 3.0
    assert f(0, value, 7) == np.exp(0.5)
    with pytest.raises(IndexError):
        f(1, value, 7)


def test_a_nested_branch_is_lazy_too():
    a, b, n = at.bscalar("a"), at.bscalar("b"), at.lscalar("n")
    checked = Assert("n must be positive")(n, at.gt(n, 0))
    out = ifelse(a, ifelse(b, 10 // checked, n), -n)
    f = aesara.function([a, b, n], out, mode="NUMBA_FIXED")
    assert f(1, 1, 3) == 3
    assert f(1, 0, -3) == -3
    assert f(0, 1, -3) == 3
    with pytest.raises(AssertionError, match="n must be positive"):
        f(1, 1, -3)


def test_what_both_branches_use_is_computed_once():
    flag, x = at.bscalar("flag"), at.dvector("x")
    common = at.tanh(x).sum()
    f = aesara.function([flag, x], ifelse(flag, common * 2.0, common + 1.0), mode="NUMBA_FIXED")
    value = np.array([0.1, 0.2])
    total = np.tanh(value).sum()
    np.testing.assert_allclose(f(1, value), total * 2.0)
    np.testing.assert_allclose(f(0, value), total + 1.0)


def test_several_outputs_and_shapes_that_differ():
    flag, x, y = at.bscalar("flag"), at.dvector("x"), at.dvector("y")
    first, second = ifelse(flag, [x, x * 2.0], [y, y - 1.0])
    f = aesara.function([flag, x, y], [first, second], mode="NUMBA_FIXED")
    x_value, y_value = np.array([1.0, 2.0, 3.0]), np.array([5.0])
    taken = f(1, x_value, y_value)
    np.testing.assert_array_equal(taken[0], x_value)
    np.testing.assert_array_equal(taken[1], x_value * 2.0)
    assert not np.may_share_memory(taken[0], x_value)
    other = f(0, x_value, y_value)
    np.testing.assert_array_equal(other[0], y_value)
    np.testing.assert_array_equal(other[1], y_value - 1.0)


def test_in_a_loop():
    x = at.dvector("x")
    out, _ = aesara.scan(
        lambda v, s: ifelse(at.gt(v, 0), s + at.log(v), s * 0.5),
        sequences=[x],
        outputs_info=[at.zeros((), "float64")],
    )
    f = aesara.function([x], out, mode="NUMBA_FIXED")
    values = np.array([1.0, 2.0, -1.0, 3.0])
    expected, s = [], 0.0
    for v in values:
        s = s + np.log(v) if v > 0 else s * 0.5
        expected.append(s)
    np.testing.assert_allclose(f(values), expected)


def test_the_value_before_an_update_in_place_is_read_first():
    flag, x = at.bscalar("flag"), at.dvector("x")
    y = x * 2.0
    before = y.sum()
    after = at.set_subtensor(y[0], 100.0)
    out = ifelse(flag, before, at.zeros((), "float64"))
    f = aesara.function([flag, x], [out, after], mode="NUMBA_FIXED")
    total, changed = f(1, np.array([1.0, 2.0]))
    assert total == 6.0
    np.testing.assert_array_equal(changed, [100.0, 4.0])
