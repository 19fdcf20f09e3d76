"""Indexing in NUMBA_FIXED gives NumPy's values and errors."""

from __future__ import annotations

import aesara
import aesara.tensor as at
import numpy as np
import pytest
from aesara.compile.mode import get_mode
from aesara.tensor.subtensor import IncSubtensor, Subtensor

X = np.arange(24.0).reshape(2, 3, 4)
ROWS = np.array([1, 0, 1])
COLUMNS = np.array([2, -1, 0])
GRID = np.array([[0, 1], [1, 1]])
MASK = np.array([True, False, True])


def tensors(*values):
    return [at.as_tensor(v).type() for v in values]


def evaluate(build, *values):
    inputs = tensors(*values)
    before = [np.array(v) for v in values]
    result = aesara.function(inputs, build(*inputs), mode="NUMBA_FIXED")(*values)
    for value, old in zip(values, before):
        np.testing.assert_array_equal(value, old)
    return result


GETS = {
    "scalar": (lambda x: x[1, 2, 3], ()),
    "row": (lambda x: x[-1], ()),
    "slices": (lambda x: x[:, 1:3, ::-2], ()),
    "take": (lambda x, i: x[i], (ROWS,)),
    "take of a vector": (lambda x, i: x[0, 0][i], (COLUMNS,)),
    "two arrays": (lambda x, i, j: x[i, j], (ROWS, COLUMNS)),
    "arrays apart": (lambda x, i, j: x[i, :, j], (ROWS, COLUMNS)),
    "arrays after a slice": (lambda x, i, j: x[:, i, j], (ROWS, COLUMNS)),
    "array and number": (lambda x, i: x[i, 1], (ROWS,)),
    "grid": (lambda x, g: x[g], (GRID,)),
    "grid against vector": (lambda x, g, i: x[g, i[:2]], (GRID, ROWS)),
    "new axis": (lambda x, i: x[:, None, i], (ROWS,)),
    "slice beside array": (lambda x, i: x[1:, i, ::2], (ROWS,)),
    "mask": (lambda x, m: x[:, m], (MASK,)),
    "mask and array": (lambda x, m: x[0][m, 1], (MASK,)),
    "whole mask": (lambda x, m: x[m], (X > 7,)),
    "empty": (lambda x, i: x[i], (np.zeros(0, np.int64),)),
}


@pytest.mark.parametrize("name", GETS)
def test_values_taken(name):
    build, values = GETS[name]
    np.testing.assert_array_equal(evaluate(build, X, *values), build(X, *values))


SETS = {
    "row": (lambda x, v: (x[1], v), (np.ones((3, 4)),)),
    "slice with one value": (lambda x, v: (x[:, 1:3], v), (np.float64(7.0),)),
    "slice broadcast": (lambda x, v: (x[:, 1:3], v), (np.arange(4.0),)),
    "repeated rows": (lambda x, i, v: (x[i], v), (ROWS, np.arange(36.0).reshape(3, 3, 4))),
    "repeated rows, one value": (lambda x, i, v: (x[i], v), (ROWS, np.float64(0.5))),
    "repeated pairs": (lambda x, i, v: (x[i, i], v), (ROWS, np.arange(4.0))),
    "repeated elements": (lambda x, i, v: (x[0, 0][i], v), (np.array([1, 1, 3]), np.arange(3.0))),
    "arrays apart": (lambda x, i, v: (x[i, :, i], v), (ROWS, np.arange(9.0).reshape(3, 3))),
    "mask": (lambda x, m, v: (x[:, m], v), (MASK, np.float64(-1.0))),
}


@pytest.mark.parametrize("name", SETS)
def test_increments_count_every_index(name):
    build, values = SETS[name]
    result = evaluate(lambda *v: at.inc_subtensor(*build(*v)), X, *values)
    base, *_ = expected_target(name)
    np.testing.assert_allclose(result, incremented(name, base, values))


@pytest.mark.parametrize("name", SETS)
def test_sets(name):
    build, values = SETS[name]
    result = evaluate(lambda *v: at.set_subtensor(*build(*v)), X, *values)
    base, *_ = expected_target(name)
    expected = base.copy()
    expected[numpy_index(name, values)] = values[-1]
    np.testing.assert_allclose(result, expected)


def expected_target(name):
    return (X[0, 0],) if name == "repeated elements" else (X,)


def numpy_index(name, values):
    return {
        "row": lambda: 1,
        "slice with one value": lambda: (slice(None), slice(1, 3)),
        "slice broadcast": lambda: (slice(None), slice(1, 3)),
        "repeated rows": lambda: values[0],
        "repeated rows, one value": lambda: values[0],
        "repeated pairs": lambda: (values[0], values[0]),
        "repeated elements": lambda: values[0],
        "arrays apart": lambda: (values[0], slice(None), values[0]),
        "mask": lambda: (slice(None), values[0]),
    }[name]()


def incremented(name, base, values):
    result = base.copy()
    np.add.at(result, numpy_index(name, values), values[-1])
    return result


@pytest.mark.parametrize(
    ("build", "index"),
    [
        (lambda x, i: x[i], np.int64(2)),
        (lambda x, i: x[:, i], np.int64(-4)),
        (lambda x, i: x[i], np.array([0, 2])),
        (lambda x, i: x[i, i], np.array([0, -3])),
        (lambda x, i: at.set_subtensor(x[i], 0.0), np.int64(-3)),
        (lambda x, i: at.inc_subtensor(x[i], 1.0), np.array([5])),
        (lambda x, i: at.inc_subtensor(x[i, i], 1.0), np.array([2])),
    ],
)
def test_an_index_out_of_bounds_is_an_error(build, index):
    with pytest.raises(IndexError, match="out of bounds"):
        evaluate(build, X, index)


def test_an_index_out_of_bounds_inside_a_scan_names_the_scan():
    x, steps = at.dvector("x"), at.lvector("steps")
    out, _ = aesara.scan(lambda i: x[i], sequences=[steps], name="lookup")
    f = aesara.function([x, steps], out.sum(), mode="NUMBA_FIXED")
    assert f(np.arange(3.0), np.array([0, 2, -1])) == 4.0
    with pytest.raises(IndexError, match=r"index 3 is out of bounds for axis 0 with size 3"):
        f(np.arange(3.0), np.array([0, 3]))


def test_shapes_that_do_not_match_are_an_error():
    with pytest.raises(IndexError):
        evaluate(lambda x, m: x[m], X[0], np.array([True, False]))
    with pytest.raises(ValueError, match="length"):
        evaluate(lambda x, v: at.set_subtensor(x[0], v), X[0], np.ones(3))


def test_a_scalar_without_indices():
    x, y = at.dscalar("x"), at.dscalar("y")
    part = Subtensor([])(x)
    outputs = [part + 1, IncSubtensor([])(x, y), IncSubtensor([], set_instead_of_inc=True)(x, y)]
    mode = get_mode("NUMBA_FIXED").excluding("local_useless_subtensor")
    f = aesara.function([x, y], outputs, mode=mode)
    assert f(2.0, 5.0) == [3.0, 7.0, 5.0]
    looped, _ = aesara.scan(lambda step, *_: outputs, sequences=at.arange(2), non_sequences=[x, y])
    for trace, value in zip(aesara.function([x, y], looped, mode=mode)(2.0, 5.0), (3.0, 7.0, 5.0)):
        np.testing.assert_array_equal(trace, [value, value])


@pytest.mark.parametrize("order", ["C", "F"])
def test_coordinates_of_indices(order):
    k, i, n = at.lmatrix("k"), at.bscalar("i"), at.lscalar("n")
    outputs = at.unravel_index(k, (2, n), order=order) + at.unravel_index(i, (2, 3), order=order)
    f = aesara.function([k, i, n], outputs, mode="NUMBA_FIXED")
    positions = np.array([[5, 0, 4], [3, 2, 1]])
    expected = [
        *np.unravel_index(positions, (2, 3), order),
        *np.unravel_index(4, (2, 3), order),
    ]
    for result, wanted in zip(f(positions, 4, 3), expected):
        assert result.dtype == "int64"
        np.testing.assert_array_equal(result, wanted)
    for bad in (([[6]], 0, 3), ([[-1]], 0, 3), ([[5]], 0, 2), ([[0]], 6, 3), ([[0]], -1, 3)):
        with pytest.raises(ValueError, match="out of bounds"):
            f(*bad)


@pytest.mark.parametrize("mode", ["raise", "wrap", "clip"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_positions_of_coordinates(order, mode):
    a, b = at.lmatrix("a"), at.lmatrix("b")
    dims = (2**30, 2**31)
    outputs = [
        at.ravel_multi_index(pair, dims, order=order, mode=mode)
        for pair in ((a, b), (a[0, 0], b[0, 0]), (a[0], b[0]))
    ]
    f = aesara.function([a, b], outputs, mode="NUMBA_FIXED")
    rows, columns = np.array([[2**29 + 1, 0], [7, 2**30 - 1]]), np.array([[2**30 + 3, 5], [0, 9]])
    outside = rows + np.array([[0, 2**30], [-8, 2**30]])
    if mode == "raise":
        with pytest.raises(ValueError, match="invalid entry"):
            f(outside, columns)
    else:
        rows = outside
    expected = [
        np.ravel_multi_index((x, y), dims, order=order, mode=mode)
        for x, y in ((rows, columns), (rows[0, 0], columns[0, 0]), (rows[0], columns[0]))
    ]
    for result, wanted in zip(f(rows, columns), expected):
        assert result.dtype == "int64"
        np.testing.assert_array_equal(result, wanted)
