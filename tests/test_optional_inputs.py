"""None in the place of an array, for the ops that take it for "not given"."""

from __future__ import annotations

import pickle

import aesara
import aesara.tensor as at
import numpy as np
import pytest
from aesara.tensor.basic import default


@pytest.fixture(params=["NUMBA_FIXED", "JAX_FIXED"])
def mode(request):
    return request.param


@pytest.mark.parametrize("ndim", [0, 1, 2])
def test_what_is_none_is_replaced_by_the_default(mode, ndim):
    x, y = (at.TensorType("float64", (None,) * ndim)(name) for name in "xy")
    f = aesara.function([x, y], [default(x, y), at.exp(default(x, y))], mode=mode)
    a, b = np.full([2] * ndim, 1.5), np.full([3] * ndim, 2.5)
    for args, want in (((a, b), a), ((None, b), b), ((a, None), a), ((None, b), b)):
        value, power = f(*args)
        np.testing.assert_array_equal(value, want)
        np.testing.assert_allclose(power, np.exp(want), rtol=1e-15)
    with pytest.raises(TypeError, match=r"expected an array for [xy], not None"):
        f(None, None)
    np.testing.assert_array_equal(f(a, b)[0], a)


def test_defaults_keep_their_values_and_results_their_memory(mode):
    x, y = at.dvectors("xy")
    value = default(x, y)
    written = at.inc_subtensor(value[:1], 5.0)
    f = aesara.function([x, y], [value, written], mode=mode)
    a, b = np.array([1.0, 2.0]), np.array([3.0, 4.0, 5.0])
    for args, want in (((None, b), [3.0, 4.0, 5.0]), ((a, None), [1.0, 2.0])):
        results = f(*args)
        np.testing.assert_array_equal(results[0], want)
        np.testing.assert_array_equal(results[1], [want[0] + 5.0, *want[1:]])
        assert not any(np.shares_memory(r, i) for r in results for i in args if i is not None)
    np.testing.assert_array_equal(a, [1.0, 2.0])
    np.testing.assert_array_equal(b, [3.0, 4.0, 5.0])


def test_a_state_that_is_none_starts_from_the_default(mode):
    x, y = at.dscalars("xy")
    new = y + default(x, np.float64(3.5))
    f = aesara.function([y, aesara.In(x, update=new, value=12.0)], new, mode=mode)
    assert f(3.0) == 15.0
    f["x"] = None
    assert f(1.0) == 4.5
    assert f(2.0) == 6.5


@pytest.mark.parametrize("dtype", ["int32", "float32", "complex64"])
def test_a_number_of_columns_that_is_none_is_that_of_rows(mode, dtype):
    rows, columns, k = at.lscalar("rows"), at.iscalar("columns"), at.iscalar("k")
    outputs = [at.eye(rows, columns, k, dtype=dtype), at.tri(rows, columns, k, dtype=dtype)]
    f = aesara.function([rows, columns, k], outputs, mode=mode)
    for args in ((3, None, 1), (3, 5, -1), (4, None, 0), (0, None, 0)):
        for result, make in zip(f(*args), (np.eye, np.tri)):
            expected = make(*args, dtype=dtype)
            assert (result.shape, result.dtype) == (expected.shape, expected.dtype)
            np.testing.assert_array_equal(result, expected)
    with pytest.raises(TypeError, match="expected an array for rows, not None"):
        f(None, 3, 0)
    with pytest.raises(TypeError, match="expected an array for k, not None"):
        f(3, None, None)


def test_an_argument_that_something_else_reads_too_must_be_there(mode):
    x, y = at.dvectors("xy")
    f = aesara.function([x, y], default(x, y) + x.sum(), mode=mode)
    np.testing.assert_array_equal(f([1.0, 2.0], None), [4.0, 5.0])
    with pytest.raises(TypeError, match="expected an array for x, not None"):
        f(None, [1.0])


def test_a_loop_over_the_default_and_copies_of_the_function(mode):
    x, y = at.dvectors("xy")
    trace, _ = aesara.scan(
        lambda v, total: total + v, sequences=[default(x, y)], outputs_info=np.float64(0)
    )
    f = aesara.function([x, y], trace, mode=mode)
    values = [1.0, 2.0, 4.0]
    for function in (f, f.copy(), pickle.loads(pickle.dumps(f))):
        np.testing.assert_array_equal(function(None, values), np.cumsum(values))
        np.testing.assert_array_equal(function(values, None), np.cumsum(values))
        np.testing.assert_array_equal(function(values[:2], values), np.cumsum(values[:2]))
