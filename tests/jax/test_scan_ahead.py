"""What is computed ahead of a loop: maps, and draws that don't depend on the loop."""

from __future__ import annotations

import aesara
import aesara.tensor as at
import numpy as np
import pytest
from aesara.scan.utils import until
from aesara.tensor.random.utils import RandomStream
from scipy import stats

from fixed_modes.jax import scan_ahead

MODE = "JAX_FIXED"


@pytest.fixture(params=["at once", "in blocks"])
def blocks(request, monkeypatch):
    """Compute ahead for all steps at once, or for a few at a time."""
    if request.param == "in blocks":
        monkeypatch.setattr(scan_ahead, "MOST_BYTES", 1000)


def random_walk(step, steps, outputs_info=None):
    """Compile a loop that draws, with the update of its generator."""
    srng = RandomStream(11)
    trace, updates = aesara.scan(
        lambda *state: step(srng, *state), outputs_info=outputs_info, n_steps=steps
    )
    return aesara.function([], trace, updates=updates, mode=MODE)


def test_map_is_what_numpy_gives(blocks):
    x, w = at.dmatrix("x"), at.dmatrix("w")
    rows, _ = aesara.scan(
        lambda row, w: [at.exp(row - row.max()).sum(), row @ w, at.constant(2.0) * w[0]],
        sequences=[x],
        non_sequences=[w],
    )
    f = aesara.function([x, w], rows, mode=MODE)
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(101, 5)), rng.normal(size=(5, 3))
    sums, products, constants = f(a, b)
    np.testing.assert_allclose(sums, np.exp(a - a.max(1, keepdims=True)).sum(1), rtol=1e-13)
    np.testing.assert_allclose(products, a @ b, rtol=1e-12, atol=1e-14)
    np.testing.assert_array_equal(constants, np.tile(2 * b[0], (101, 1)))


def test_a_bad_index_in_one_step_of_a_map_raises(blocks):
    x, indices = at.dvector("x"), at.lvector("indices")
    rows, _ = aesara.scan(lambda i, x: x[i] ** 2, sequences=[indices], non_sequences=[x])
    f = aesara.function([x, indices], rows, mode=MODE)
    order = np.arange(300) % 7
    np.testing.assert_array_equal(f(np.arange(7.0), order), order**2.0)
    order[250] = 7
    with pytest.raises(IndexError, match="out of bounds"):
        f(np.arange(7.0), order)


def test_draws_are_independent_and_follow_the_distribution(blocks):
    f = random_walk(lambda srng: [srng.normal(1.0, 2.0), srng.uniform(0, 3)], 2000)
    normal, uniform = f()
    assert stats.kstest(normal, stats.norm(1, 2).cdf).pvalue > 1e-3
    assert stats.kstest(uniform, stats.uniform(0, 3).cdf).pvalue > 1e-3
    # No draw comes twice, in one call or the next.
    again, _ = f()
    assert len(np.unique(np.concatenate([normal, again]))) == 4000
    standard = stats.norm.ppf(uniform / 3), (normal - 1) / 2
    assert abs(np.corrcoef(*standard)[0, 1]) < 4 / np.sqrt(2000)
    for draws in standard:
        assert abs(np.corrcoef(draws[1:], draws[:-1])[0, 1]) < 4 / np.sqrt(2000)


def test_location_may_depend_on_the_loop(blocks):
    def step(srng, x, y):
        x = srng.normal(0.5 * y, 0.1)
        return [x, srng.normal(0.5 * x, 0.1)]

    start = at.constant(8.0, dtype="float64")
    xs, ys = random_walk(step, 3000, [start, start])()
    before = np.concatenate([[8.0], ys[:-1]])
    for noise in ((xs - 0.5 * before) / 0.1, (ys - 0.5 * xs) / 0.1):
        assert stats.kstest(noise, stats.norm.cdf).pvalue > 1e-3


def test_key_that_is_used_for_more_than_bits():
    """The sampler of a gamma variable loops until a proposal is taken."""
    f = random_walk(lambda srng: [srng.gamma(2.5, 2.0), srng.poisson(3.0)], 1500)
    gamma, poisson = f()
    assert stats.kstest(gamma, stats.gamma(2.5, scale=0.5).cdf).pvalue > 1e-3
    assert abs(poisson.mean() - 3) < 5 * np.sqrt(3 / 1500)
    assert len(np.unique(gamma)) == 1500


def test_vector_draws_in_a_loop_inside_a_loop():
    srng = RandomStream(5)

    def inner(total):
        return total + srng.normal(size=(3,))

    def outer():
        sums, updates = aesara.scan(inner, outputs_info=[at.zeros(3)], n_steps=4)
        return sums[-1], updates

    rows, updates = aesara.scan(outer, n_steps=500)
    f = aesara.function([], rows, updates=updates, mode=MODE)
    draws = f()
    assert draws.shape == (500, 3)
    assert stats.kstest(draws.ravel() / 2, stats.norm.cdf).pvalue > 1e-3
    assert len(np.unique(np.concatenate([draws, f()]))) == 3000


@pytest.mark.parametrize("entries", [0, 1, 31, 32, 33, 200])
def test_loops_of_a_map_end_each_by_its_own_condition(entries):
    """The number of steps to 1 in Collatz's sequence, and the largest number on the way."""

    def collatz(start, most):
        def step(x, largest, count):
            x = at.switch(at.eq(x % 2, 0), x // 2, 3 * x + 1)
            return [x, at.maximum(largest, x), count + 1], until(at.le(x, 1))

        zero = at.constant(0, dtype="int64")
        (_, largest, count), _ = aesara.scan(step, outputs_info=[start, start, zero], n_steps=most)
        return largest[-1], count[-1]

    starts, most = at.lvector("starts"), at.lscalar("most")
    rows, _ = aesara.scan(collatz, sequences=[starts], non_sequences=[most])
    f = aesara.function([starts, most], rows, mode=MODE)

    def expected(x, limit):
        largest, count = x, 0
        while count < limit:
            x = x // 2 if x % 2 == 0 else 3 * x + 1
            largest, count = max(largest, x), count + 1
            if x <= 1:
                break
        return largest, count

    values = np.arange(1, entries + 1)
    for limit in (500, 7):
        found = np.transpose(f(values, limit)).reshape(-1, 2)
        np.testing.assert_array_equal(found, [expected(x, limit) for x in values] or found[:0])


@pytest.mark.parametrize("steps", [0, 1, 5])
def test_short_loops_of_a_map_run_side_by_side(steps):
    def inner(x, n):
        trace, _ = aesara.scan(
            lambda y, x: at.cos(y) * x, outputs_info=[x], non_sequences=[x], n_steps=n
        )
        return at.concatenate([x[None], trace])[-1]

    xs = at.dvector("xs")
    rows, _ = aesara.scan(lambda x: inner(x, steps), sequences=[xs])
    values = np.linspace(-2, 2, 300)
    y = values
    for _ in range(steps):
        y = np.cos(y) * values
    np.testing.assert_allclose(aesara.function([xs], rows, mode=MODE)(values), y, rtol=1e-13)


def test_a_failing_check_in_one_of_the_loops_of_a_map_raises():
    def inner(x):
        trace, _ = aesara.scan(
            lambda y, x: (60 // (y - 3), until(y < x)),
            outputs_info=[x],
            non_sequences=[x],
            n_steps=4,
        )
        return trace[-1]

    xs = at.lvector("xs")
    rows, _ = aesara.scan(inner, sequences=[xs])
    f = aesara.function([xs], rows, mode=MODE)
    reference = aesara.function([xs], rows, mode="FAST_COMPILE")
    values = np.arange(100, 170)
    np.testing.assert_array_equal(f(values), reference(values))
    values[50] = 3
    with pytest.raises(ZeroDivisionError):
        f(values)
