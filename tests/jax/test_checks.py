"""Run-time checks that compiled code carries out of loops: the right one raises."""

from __future__ import annotations

import aesara
import aesara.tensor as at
import jax
import numpy as np
import pytest
from aesara.ifelse import ifelse
from aesara.raise_op import Assert
from aesara.scan.utils import until

import fixed_modes
from fixed_modes.jax import scan_ahead
from fixed_modes.jax.chunks import CHUNK, LEAST, any_true


@pytest.fixture(params=[False, True], ids=["whole", "blocks"])
def blocks(request, monkeypatch):
    """Run loops in blocks of a few steps."""
    if request.param:
        monkeypatch.setattr(scan_ahead, "MOST_BYTES", 64)


def assert_raises_of(f, args, size):
    with pytest.raises(IndexError, match=f"axis 0 with size {size}\n"):
        f(*args)


@pytest.mark.parametrize("count", [3, 70])
def test_each_of_many_checks_of_a_step_has_its_own_error(count):
    arrays = [at.dvector(f"x{n}") for n in range(count)]
    indices = at.lmatrix("i")

    def step(i, total, *arrays):
        return total + sum(x[i[n]] for n, x in enumerate(arrays))

    out, _ = aesara.scan(
        step, sequences=[indices], outputs_info=[np.float64(0)], non_sequences=arrays
    )
    f = aesara.function([indices, *arrays], out[-1], mode="JAX_FIXED")
    values = [np.arange(n + 1.0) for n in range(count)]
    good = np.zeros((5, count), "int64")
    good[3] = np.arange(count)
    assert f(good, *values) == good.sum()
    for n in {0, 1, count - 2, count - 1}:
        for bad_index in (n + 1, -n - 2):
            bad = good.copy()
            bad[2, n] = bad_index
            assert_raises_of(f, (bad, *values), n + 1)
    two = good.copy()
    two[4, 1], two[1, 2] = 10**6, -(10**6)
    assert_raises_of(f, (two, *values), "[23]")


def test_loops_one_after_another_and_checks_between_and_after(blocks):
    x, y, z, w = (at.dvector(name) for name in "xyzw")
    i, j, k, m = (at.lvector(name) for name in "ijkm")

    def step(i, total, x):
        return 0.5 * total + x[i]

    first, _ = aesara.scan(step, sequences=[i], outputs_info=[y[j[0]]], non_sequences=[x])
    second, _ = aesara.scan(step, sequences=[k], outputs_info=[first[-1]], non_sequences=[z])
    f = aesara.function([x, y, z, w, i, j, k, m], second[-1] + w[m].sum(), mode="JAX_FIXED")
    sizes = (11, 12, 13, 14)
    arrays = [np.arange(float(size)) for size in sizes]
    indices = [np.array(v) for v in ([3, -11, 10], [5], [0, 12, -1, 4, 4], [13, 1])]
    total = 5.0
    for number in (3.0, 0.0, 10.0, 0.0, 12.0, 12.0, 4.0, 4.0):
        total = 0.5 * total + number
    assert f(*arrays, *indices) == total + 14.0
    for which, size in zip((0, 1, 2, 3), (11, 12, 13, 14)):
        for bad_index in (size, -size - 1, np.iinfo("int64").max, np.iinfo("int64").min):
            bad = [index.copy() for index in indices]
            bad[which][-1 if which else 1] = bad_index
            assert_raises_of(f, (*arrays, *bad), size)


def test_loop_in_a_loop_and_branches():
    x, y, z = (at.dvector(name) for name in "xyz")
    i, j, c = at.lvector("i"), at.lscalar("j"), at.lscalar("c")

    def inner(k, total, x):
        return total + x[k]

    def outer(k, total, x, y):
        inside, _ = aesara.scan(
            inner, sequences=[at.stack([k, k + 1])], outputs_info=[total], non_sequences=[x]
        )
        return ifelse(at.gt(k, 2), inside[-1] + y[k], inside[-1])

    out, _ = aesara.scan(outer, sequences=[i], outputs_info=[np.float64(0)], non_sequences=[x, y])
    total = ifelse(at.eq(c, 1), out[-1] + z[j], out[-1])
    f = aesara.function([x, y, z, i, j, c], total, mode="JAX_FIXED")
    arrays = [np.arange(9.0), np.arange(5.0), np.arange(3.0)]
    assert f(*arrays, np.array([1, 4]), 2, 1) == 1 + 2 + 4 + 5 + 4 + 2
    assert f(*arrays, np.array([1, 2]), 100, 0) == 1 + 2 + 2 + 3
    assert_raises_of(f, (*arrays, np.array([1, 8]), 0, 0), 9)
    assert_raises_of(f, (*arrays, np.array([1, 5]), 0, 0), 5)
    assert_raises_of(f, (*arrays, np.array([1, 2]), 3, 1), 3)


def test_checks_of_loops_that_end_by_a_condition():
    x, n = at.dvector("x"), at.lscalar("n")

    def step(place, total, x):
        following = Assert("the total is too large")(total + x[place], total < 1e3)
        return [place + 2, following], until(place >= n)

    start = [at.constant(0, dtype="int64"), np.float64(0)]
    (_, total), _ = aesara.scan(step, outputs_info=start, non_sequences=[x], n_steps=50)
    f = aesara.function([x, n], total[-1], mode="JAX_FIXED")
    assert f(np.arange(10.0), 8) == 0 + 2 + 4 + 6 + 8
    assert_raises_of(f, (np.arange(10.0), 9), 10)
    with pytest.raises(AssertionError, match="the total is too large"):
        f(1e3 * np.arange(10.0), 8)


@pytest.mark.parametrize("count", [LEAST - 1, LEAST, LEAST + CHUNK, LEAST + CHUNK + 3])
def test_any_true_sees_every_row(count):
    numbers = np.zeros(count, "int64")
    test = jax.jit(lambda a, b: any_true(lambda p: [p[0] > p[1], p[0] < -p[1]], [a, b], count))
    limits = np.full(count, 5)
    assert [bool(found) for found in test(numbers, limits)] == [False, False]
    for place in {0, 1, CHUNK - 1, CHUNK, count // 2, count - 2, count - 1}:
        above, below = numbers.copy(), numbers.copy()
        above[place], below[place] = 6, -6
        assert [bool(found) for found in test(above, limits)] == [True, False]
        assert [bool(found) for found in test(below, limits)] == [False, True]


@pytest.mark.parametrize("count", [LEAST - 2, LEAST + CHUNK + 1])
def test_bad_index_anywhere_in_a_long_vector_or_map(count):
    x, i = at.dvector("x"), at.lvector("i")
    mapped, _ = aesara.scan(lambda i, x: x[i] * at.exp(x[i + 1]), sequences=[i], non_sequences=[x])
    values = np.linspace(0, 1, 7)
    good = np.arange(count) % 13 - 7
    functions = [
        (aesara.function([x, i], x[i], mode="JAX_FIXED"), values[good]),
        (
            aesara.function([x, i], mapped, mode="JAX_FIXED"),
            values[good] * np.exp(values[good + 1]),
        ),
    ]
    for f, want in functions:
        in_bounds = np.where(good < 6, good, 0)
        want = np.where(good < 6, want, 0) if f is functions[0][0] else want
        np.testing.assert_allclose(f(values, in_bounds)[good < 6], want[good < 6], rtol=1e-15)
        for place in (0, CHUNK, count - 1):
            for bad_index in (7, -9):
                bad = in_bounds.copy()
                bad[place] = bad_index
                assert_raises_of(f, (values, bad), 7)


def test_batches_of_reads_and_writes_at_traced_places():
    x, i = at.dmatrix("x"), at.lscalar("i")
    out = at.set_subtensor(x[i, 1:3], 2 * x[i - 1, 1:3]) ** 2
    f = fixed_modes.jax_function([x, i], out)
    grad = fixed_modes.jax_function([x, i], at.grad(out.sum(), x))
    values, places = np.arange(12.0).reshape(3, 4), np.array([0, 2, -2])
    with jax.experimental.enable_x64():
        results = np.asarray(jax.vmap(f, (None, 0))(values, places))
        gradients = np.asarray(jax.vmap(grad, (None, 0))(values, places))
        slope_of = jax.grad(lambda x, i: f(x, i).sum())
        by_jax = np.asarray(jax.vmap(slope_of, (None, 0))(values, places))
    for result, gradient, other, place in zip(results, gradients, by_jax, places):
        want = values.copy()
        want[place, 1:3] = 2 * values[place - 1, 1:3]
        np.testing.assert_array_equal(result, want**2)
        slope = 2 * want
        slope[place - 1, 1:3] += 2 * slope[place, 1:3]
        slope[place, 1:3] = 0
        np.testing.assert_array_equal(gradient, slope)
        np.testing.assert_array_equal(other, slope)


def test_bad_index_in_a_map_of_maps():
    x, i = at.dvector("x"), at.lmatrix("i")

    def row(i, x):
        return aesara.scan(lambda i, x: 2 * x[i], sequences=[i], non_sequences=[x])[0]

    out, _ = aesara.scan(row, sequences=[i], non_sequences=[x])
    f = aesara.function([x, i], out, mode="JAX_FIXED")
    values = np.linspace(0, 1, 7)
    places = np.arange(3 * (LEAST + 5)).reshape(3, -1) % 14 - 7
    np.testing.assert_array_equal(f(values, places), 2 * values[places])
    for place in ((0, 0), (1, LEAST), (2, LEAST + 4)):
        bad = places.copy()
        bad[place] = 7
        assert_raises_of(f, (values, bad), 7)
