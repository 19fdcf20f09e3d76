"""Indexing, read and written, with known and with traced positions."""

from __future__ import annotations

import warnings

import aesara
import aesara.tensor as at
import numpy as np
import pytest

X = np.arange(24.0).reshape(4, 6)


@pytest.mark.parametrize(
    "index",
    [
        np.s_[1],
        np.s_[-1],
        np.s_[1:3],
        np.s_[::-1],
        np.s_[3:0:-2, ::2],
        np.s_[-3:, -2:1:-1],
        np.s_[2, 1:5:3],
        np.s_[:, 4:2],
        np.s_[1:100, -100:2],
        np.s_[[2, 0, 2]],
        np.s_[[0, 1], [5, -1]],
        np.s_[1:, [3, 3, 0]],
        np.s_[:, None, 2],
        np.s_[np.array([True, False, True, True])],
    ],
    ids=str,
)
class TestKnownPositions:
    def test_read(self, evaluate, index):
        x = at.dmatrix("x")
        np.testing.assert_array_equal(evaluate([x], x[index], X), X[index])

    @pytest.mark.parametrize("operation", ["set", "inc"])
    def test_write(self, evaluate, index, operation):
        if isinstance(index, tuple) and None in index:
            return
        x, y = at.dmatrix("x"), at.tensor("float64", shape=(None,) * X[index].ndim)
        value = np.arange(X[index].size).reshape(X[index].shape) + 100.0
        want = X.copy()
        if operation == "set":
            out = at.set_subtensor(x[index], y)
            want[index] = value
        else:
            out = at.inc_subtensor(x[index], y)
            np.add.at(want, index, value)
        np.testing.assert_array_equal(evaluate([x, y], out, X, value), want)


def test_traced_numbers_and_windows(evaluate):
    i, x = at.lvector("i"), at.dmatrix("x")

    def step(i, x):
        window = x[i : i + 2, 1:3]
        return (
            x[i],
            x[i - 4],
            x[1:, i][::-1],
            window,
            at.set_subtensor(x[i, 2:4], 0.0),
            at.inc_subtensor(x[i : i + 2, i], 1.0),
            at.set_subtensor(x[::2, i], -1.0),
        )

    outputs, _ = aesara.scan(step, sequences=[i], non_sequences=[x])
    results = evaluate([i, x], outputs, np.array([0, 2]), X)
    for n, k in enumerate((0, 2)):
        written = [X.copy(), X.copy(), X.copy()]
        written[0][k, 2:4] = 0.0
        written[1][k : k + 2, k] += 1.0
        written[2][::2, k] = -1.0
        wants = [X[k], X[k - 4], X[1:, k][::-1], X[k : k + 2, 1:3], *written]
        for result, want in zip(results, wants):
            np.testing.assert_array_equal(result[n], want)


def test_window_that_leaves_the_array_is_shorter(evaluate):
    i, x = at.lvector("i"), at.dvector("x")
    out, _ = aesara.scan(lambda i, x: x[i : i + 3].sum(), sequences=[i], non_sequences=[x])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        got = evaluate([i, x], out, np.array([0, 2, 7, -2]), np.arange(4.0))
    np.testing.assert_array_equal(got, [3.0, 5.0, 0.0, 0.0])


@pytest.mark.parametrize("index", [4, -5, [0, 4]], ids=str)
def test_known_position_out_of_bounds_raises(evaluate, index):
    x = at.dmatrix("x")
    with pytest.raises(IndexError, match="out of bounds for axis 0 with size 4"):
        evaluate([x], x[index] * 2.0, X)


@pytest.mark.parametrize("place", ["read", "written", "in a loop", "one of several"])
def test_traced_position_out_of_bounds_raises(place):
    x, k = at.dmatrix("x"), at.lscalar("k")
    looped, _ = aesara.scan(lambda i, x, k: x[i + k].sum(), at.arange(2), non_sequences=[x, k])
    out = {
        "read": x[k, 0] * 2.0,
        "written": at.inc_subtensor(x[k], 1.0),
        "in a loop": looped,
        "one of several": x[at.stack([0, k])],
    }[place]
    f = aesara.function([x, k], out, mode="JAX_FIXED")
    assert np.isfinite(f(X, 1)).all()
    assert np.isfinite(f(X, -4)).all()
    for position in (4, -5):
        with pytest.raises(IndexError, match="out of bounds for axis 0 with size 4"):
            f(X, position)


def test_repeated_positions_add_up_and_the_last_set_wins(evaluate):
    x, i = at.dvector("x"), at.lvector("i")
    outputs = [at.inc_subtensor(x[i], 1.0), at.set_subtensor(x[i], at.arange(3.0))]
    added, replaced = evaluate([x, i], outputs, np.zeros(3), np.array([1, 1, 2]))
    np.testing.assert_array_equal(added, [0.0, 2.0, 1.0])
    np.testing.assert_array_equal(replaced, [0.0, 1.0, 2.0])


def test_write_with_fewer_or_more_axes(evaluate):
    x, y = at.dmatrix("x"), at.drow("y")
    out = [at.set_subtensor(x[1], y[0]), at.inc_subtensor(x[1:3], y), at.set_subtensor(x[:], 5.0)]
    row = np.arange(6.0)[None]
    results = evaluate([x, y], out, X, row)
    wants = [X.copy(), X.copy(), np.full_like(X, 5.0)]
    wants[0][1] = row
    wants[1][1:3] += row
    for result, want in zip(results, wants):
        np.testing.assert_array_equal(result, want)


def test_integer_array_takes_rounded_values_as_numpy_does(evaluate):
    x = at.lvector("x")
    out = at.inc_subtensor(x[1:], at.constant(np.array(2, dtype="int8")))
    result = evaluate([x], out, np.array([1, 2, 3]))
    assert result.dtype == "int64"
    np.testing.assert_array_equal(result, [1, 4, 5])


@pytest.mark.parametrize(
    ("dtype", "places"),
    [("int8", [-50, 100, -128]), ("uint8", [250, 3]), ("int16", [-300, 299]), ("uint64", [299, 0])],
)
def test_indices_of_a_type_that_does_not_hold_the_length(dtype, places, evaluate):
    x, k = at.dvector("x"), at.vector("k", dtype=dtype)
    looped, _ = aesara.scan(lambda i, x: x[i], sequences=[k], non_sequences=[x])
    outputs = [x[k], at.set_subtensor(x[k], 0.5), at.inc_subtensor(x[k], x[k]), looped, x[k[0]]]
    value, index = np.arange(300.0), np.array(places, dtype)
    placed, added = value.copy(), value.copy()
    placed[index] = 0.5
    np.add.at(added, index, value[index])
    expected = [value[index], placed, added, value[index], value[places[0]]]
    for result, wanted in zip(evaluate([x, k], outputs, value, index), expected):
        np.testing.assert_array_equal(result, wanted)
    with pytest.raises(IndexError):
        evaluate([x, k], x[k], value[:90], index)


INDICES = {
    "zeros": (np.zeros(3, int),),
    "from the end": (np.array([-1, 2, 2, 0, 0]),),
    "second axis": (slice(None), np.array([1, 1, 0])),
    "a table": (np.array([[0, 1], [0, 1]]),),
    "apart": (np.array([0, 0]), slice(None), np.array([1, 1])),
    "broadcast": (np.array([[0], [0]]), np.array([0, 0, -3])),
    "behind a slice": (slice(0, 2), np.array([0, 0]), np.array([1, 1])),
    "with a number": (np.array([0, 0, 0]), slice(None), np.array(1)),
    "none": (np.array([], int),),
    "once each": (np.array([2, 1, 0]),),
}


@pytest.mark.parametrize("name", INDICES)
@pytest.mark.parametrize("kind", ["constant", "input", "zeros of another"])
def test_the_last_of_several_values_for_a_place_counts(name, kind):
    """XLA takes an assignment of as many values as there are places for one of them all."""
    index = INDICES[name]
    x = at.dtensor3("x")
    values = np.random.default_rng(3).normal(size=(3, 3, 3))
    shape = values[index].shape
    y = at.TensorType("float64", (None,) * len(shape))("y")
    inputs, arguments, parts = [x, y], [values, np.arange(np.prod(shape)).reshape(shape) + 0.5], []
    for part in index:
        if isinstance(part, slice) or kind == "constant":
            parts.append(part if isinstance(part, slice) else at.constant(part))
            continue
        variable = at.TensorType("int64", (None,) * part.ndim)()
        inputs.append(variable)
        arguments.append(part)
        if kind == "zeros of another":
            variable, part = at.zeros_like(variable), np.zeros_like(part)
        parts.append(variable)
    if kind == "zeros of another":
        index = tuple(p if isinstance(p, slice) else np.zeros_like(p) for p in index)
    outputs = [at.set_subtensor(x[tuple(parts)], y)]
    expected = [values.copy()]
    expected[0][index] = arguments[1]
    if shape == values.shape:
        outputs.append(at.set_subtensor(x[tuple(parts)], x))
        expected.append(values.copy())
        expected[1][index] = values
    f = aesara.function(inputs, outputs, mode="JAX_FIXED")
    for result, value in zip(f(*arguments), expected):
        np.testing.assert_array_equal(result, value)


def test_an_assignment_to_all_by_zeros_in_a_loop():
    x = at.vector("x", dtype="uint8")
    trace, _ = aesara.scan(
        lambda s: at.set_subtensor(s[np.array([0, 0])], s + np.uint8(1)),
        outputs_info=[x],
        n_steps=2,
    )
    f = aesara.function([x], trace, mode="JAX_FIXED")
    np.testing.assert_array_equal(f([1, 2]), [[3, 2], [3, 2]])
