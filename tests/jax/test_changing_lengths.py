"""Loops in a loop whose number of steps changes from step to step."""

import aesara
import aesara.tensor as at
import numpy as np
import pytest
from aesara.scan.utils import until

import fixed_modes  # noqa: F401

MODE = "JAX_FIXED"


def n_trailing_ones(number):
    """Count the ones at the end of a binary number, by an ``until`` loop."""
    (_, counts), _ = aesara.scan(
        lambda rest, count: ((rest // 2, count + 1), until(at.eq(rest & 1, 0))),
        outputs_info=(number, at.constant(-1, dtype="int64")),
        n_steps=number + 1,
    )
    return counts[-1]


# A warning that the loop runs in Python would be an error in all of these tests.


def test_last_row_of_an_until_loop_with_a_bound_that_changes():
    numbers = at.lvector("numbers")
    counts, _ = aesara.scan(n_trailing_ones, sequences=[numbers])
    f = aesara.function([numbers], counts, mode=MODE)
    values = np.array([0, 1, 2, 3, 7, 8, 23])
    expected = [len(f"0{v:b}") - len(f"0{v:b}".rstrip("1")) for v in values]
    np.testing.assert_array_equal(f(values), expected)


def test_last_row_of_an_until_loop_that_maps():
    numbers = at.lvector("numbers")

    def last_square(number):
        squares, _ = aesara.scan(
            lambda i: (i * i, until(i * i > 50)), sequences=[at.arange(1, 1 + number)]
        )
        return squares[-1]

    outputs, _ = aesara.scan(last_square, sequences=[numbers])
    f = aesara.function([numbers], outputs, mode=MODE)
    np.testing.assert_array_equal(f([1, 3, 20]), [1, 9, 64])


@pytest.mark.filterwarnings("ignore::fixed_modes.errors.FixedModesWarning")
def test_last_row_of_no_step_is_an_error():
    numbers = at.lvector("numbers")
    counts, _ = aesara.scan(n_trailing_ones, sequences=[numbers])
    f = aesara.function([numbers], counts, mode=MODE)
    np.testing.assert_array_equal(f([3, 5]), [2, 1])
    with pytest.raises(IndexError):
        f([3, -1])
    np.testing.assert_array_equal(f([3, 5]), [2, 1])


@pytest.mark.parametrize(
    "bounds", [(0, 1, 1), (1, 2, 3), (9, -1, -2)], ids=["ones", "threes", "backwards"]
)
def test_arange_with_bounds_that_change(bounds):
    start, factor, step = bounds
    n = at.lvector("n")

    def total(m, x):
        sums, _ = aesara.scan(
            lambda i, s, x: s * 0.5 + i * x,
            sequences=[at.arange(start, factor * m, step)],
            outputs_info=[at.constant(1.0, dtype="float64")],
            non_sequences=[x],
        )
        return sums[-1]

    x = at.scalar("x")
    totals, _ = aesara.scan(total, sequences=[n], non_sequences=[x])
    f = aesara.function([n, x], totals, mode=MODE)
    counts = [2, 5, 3]
    expected = []
    for m in counts:
        s = 1.0
        for i in range(start, factor * m, step):
            s = s * 0.5 + i * 0.3
        expected.append(s)
    np.testing.assert_allclose(f(counts, 0.3), expected, rtol=1e-12)


def test_trajectory_that_doubles():
    """The pattern of a dynamic trajectory: ``2**k`` steps at most, from where the last ended."""
    n = at.lscalar("n")

    def extend(k, x):
        (states, _), _ = aesara.scan(
            lambda i, x: (
                (at.switch(at.eq(i % 2, 0), x + i, x * 1.5), i),
                until(x > 20),
            ),
            sequences=[at.arange(1, 1 + 2**k)],
            outputs_info=[x, None],
        )
        return states[-1]

    start = at.constant(0.5, dtype="float64")
    states, _ = aesara.scan(extend, sequences=[at.arange(n)], outputs_info=[start])
    f = aesara.function([n], states, mode=MODE)
    expected, x = [], 0.5
    for k in range(6):
        for i in range(1, 1 + 2**k):
            stop = x > 20
            x = x + i if i % 2 == 0 else x * 1.5
            if stop:
                break
        expected.append(x)
    np.testing.assert_allclose(f(6), expected, rtol=1e-12)
