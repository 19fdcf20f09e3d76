"""Index checks that are not made, since the index is known to stay within bounds."""

from __future__ import annotations

import aesara
import aesara.tensor as at
import numpy as np
import pytest
from aesara.tensor.random.utils import RandomStream

from fixed_modes.jax.variants import Variant


@pytest.fixture
def checks(monkeypatch):
    """Collect the numbers of checks of all graphs that are traced."""
    numbers = []
    trace = Variant._trace_outputs

    def spy(self, args):
        outputs, flags = trace(self, args)
        numbers.append(0 if flags is None else len(flags.errors))
        return outputs, flags

    monkeypatch.setattr(Variant, "_trace_outputs", spy)
    return numbers


def loop(step, indices, x, **options):
    out, _ = aesara.scan(step, sequences=[indices], non_sequences=[x], **options)
    return aesara.function([x], out, mode="JAX_FIXED")


X = np.arange(12.0) ** 2


@pytest.mark.parametrize(
    ("index", "rows", "n_checks"),
    [
        (lambda i: i, np.arange(10), 0),
        (lambda i: i + 2, np.arange(2, 12), 0),
        (lambda i: i + 3, None, 1),
        (lambda i: i - 12, np.arange(10), 0),
        (lambda i: i - 13, None, 1),
        (lambda i: 11 - i, np.arange(11, 1, -1), 0),
        (lambda i: (5 * i) % 12, 5 * np.arange(10) % 12, 0),
        (lambda i: (5 * i) % 13, None, 1),
        (lambda i: at.minimum(2 * i, 11), np.minimum(2 * np.arange(10), 11), 0),
        (lambda i: at.clip(i, 4, 6), np.clip(np.arange(10), 4, 6), 0),
    ],
)
def test_index_computed_from_a_known_sequence(checks, index, rows, n_checks):
    x = at.dvector("x")
    f = loop(lambda i, x: x[index(i)], at.arange(x.shape[0] - 2), x)
    if rows is None:
        with pytest.raises(IndexError, match="out of bounds"):
            f(X)
    else:
        np.testing.assert_array_equal(f(X), X[rows])
    assert checks == [n_checks]


def test_numbers_that_wrap(checks):
    x = at.dvector("x")
    f = loop(lambda i, x: x[i + at.constant(100, "int8")], at.arange(30, dtype="int8"), x)
    wrapped = np.arange(100, 130).astype("int8")
    np.testing.assert_array_equal(f(np.arange(200.0)), np.arange(200.0)[wrapped])
    assert checks == [0]


def test_inner_loop_and_vector_of_indices(checks):
    x = at.dvector("x")
    offsets = at.constant(np.array([0, 2]))

    def inner(j, i, x):
        return x[i + j] + x[offsets + i].sum()

    def outer(i, x):
        return aesara.scan(inner, sequences=[at.arange(3)], non_sequences=[i, x])[0].sum()

    f = loop(outer, at.arange(10), x)
    expected = [sum(X[i + j] for j in range(3)) + 3 * (X[i] + X[i + 2]) for i in range(10)]
    np.testing.assert_allclose(f(X), expected)
    assert checks == [0]


def test_index_from_data_is_checked(checks):
    x, i = at.dvector("x"), at.lvector("i")
    out, _ = aesara.scan(lambda i, x: x[i % 12] + x[i], sequences=[i], non_sequences=[x])
    f = aesara.function([x, i], out, mode="JAX_FIXED")
    np.testing.assert_array_equal(f(X, [3, -1]), [2 * X[3], 2 * X[11]])
    with pytest.raises(IndexError):
        f(X, [3, 12])
    assert checks == [1]


ROWS = np.array([7, -5, 3, 250, 0, 12], "int64")


@pytest.mark.parametrize(
    ("index", "n_checks"),
    [
        (lambda i: at.clip(i, 0, 11), 0),
        (lambda i: at.clip(i, 0, 12), 1),
        (lambda i: at.maximum(at.minimum(i, 11), -12), 0),
        (lambda i: at.minimum(abs(i % 100 - 50), 11), 0),
        (lambda i: at.minimum(abs(i), 11), 1),  # the least number has no opposite
        (lambda i: i & 7, 0),
        (lambda i: at.switch(i > 3, 2, at.sgn(i)), 0),
        (lambda i: at.cast(i > 3, "int64") * 11, 0),
        (lambda i: (i % 24) // 2, 0),
        (lambda i: (i % 26) // 2, 1),
        (lambda i: i % -12, 0),
        (lambda i: (i % 4) ** 2 + 2, 0),
        (lambda i: (i % 4) ** 2 + 3, 1),
        (lambda i: at.as_tensor(np.array([0, 11, -12, 5]))[i % 4], 0),
        (lambda i: at.as_tensor(np.array([0, 12]))[i % 2], 1),
        (lambda i: at.argmax(at.stack([i, 3, 4])) * 5, 0),
        (lambda i: at.argsort(at.stack([i, 3, 4]))[1], 0),
        (lambda i: at.cast(i, "int8"), 1),
        (lambda i: at.cast(i, "uint8") // 22, 0),
        (lambda i: (2**62 * i) * 4 % 12, 0),
        (lambda i: abs(i * (i - 1)) // 2**61, 0),
    ],
)
def test_index_computed_from_data(checks, index, n_checks):
    x, i = at.dvector("x"), at.lvector("i")
    out, _ = aesara.scan(
        lambda i, h, x: h / 2 + x[index(i)],
        sequences=[i],
        outputs_info=[np.float64(0)],
        non_sequences=[x],
    )
    f = aesara.function([x, i], out, mode="JAX_FIXED")
    places = [int(index(at.constant(row)).eval()) for row in ROWS]
    if all(-12 <= place < 12 for place in places):
        total, wants = 0.0, []
        for place in places:
            total = total / 2 + X[place]
            wants.append(total)
        np.testing.assert_array_equal(f(X, ROWS), wants)
    else:
        with pytest.raises(IndexError):
            f(X, ROWS)
    assert checks == [n_checks]


def test_drawn_index(checks):
    x, p = at.dvector("x"), at.dvector("p")
    stream = RandomStream(1)
    draws = [
        stream.integers(0, 12),
        stream.integers(12),
        stream.integers(-12, x.shape[0]),
        stream.categorical(p),
        stream.bernoulli(0.5),
    ]
    f = aesara.function([x, p], [*draws, *(x[draw] for draw in draws)], mode="JAX_FIXED")
    found = f(X, np.full(4, 0.25))
    np.testing.assert_array_equal(found[len(draws) :], X[np.array(found[: len(draws)])])
    assert checks == [0]
