"""Index checks that are not made, since the index is known to stay within bounds."""

from __future__ import annotations

import aesara
import aesara.tensor as at
import numpy as np
import pytest

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
