"""Sums of products over the steps of a loop, which are taken out of it."""

from __future__ import annotations

import aesara
import aesara.tensor as at
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fixed_modes.jax import scan_ahead
from fixed_modes.jax.flat_jaxpr import flatten
from fixed_modes.jax.scan_sums import push_out_sums

MODE = "JAX_FIXED"


@pytest.fixture(params=["at once", "in blocks"])
def blocks(request, monkeypatch):
    """Run all steps at once, or a few at a time."""
    if request.param == "in blocks":
        monkeypatch.setattr(scan_ahead, "MOST_BYTES", 4000)


def rows(steps, units, seed=0):
    return np.random.default_rng(seed).normal(size=(steps, units))


def products_taken_out(body, carry, entering):
    flat = flatten(body, carry, (entering, []))
    sums = push_out_sums(flat, len(jax.tree_util.tree_leaves(carry)), 0).sums
    return [len(one.products) for one in sums]


def test_outer_products_are_taken_out():
    def body(carry, entering):
        h, total = carry
        (x,), _ = entering
        h = jnp.tanh(h + x)
        return (h, total + jnp.outer(h, x) @ jnp.eye(20)), [h], []

    def outer(carry, entering):
        h, total = carry
        (x,), _ = entering
        h = jnp.tanh(h + x)
        return (h, (total + h[:, None] @ x[None, :]) + 1.0), [h], []

    carry, row = (jnp.zeros(20), jnp.zeros((20, 20))), [jnp.zeros(20)]
    # A product of two matrices is no smaller than its factors.
    assert products_taken_out(body, carry, row) == []
    assert products_taken_out(outer, carry, row) == [1]


@pytest.mark.parametrize("reader", ["stacked", "state", "twice"])
def test_a_sum_that_the_loop_reads_stays(reader):
    def body(carry, entering):
        h, total = carry
        (x,), _ = entering
        product = h[:, None] @ x[None, :]
        following = total + product
        stacked = [following] if reader == "stacked" else []
        h = h + total[0] if reader == "state" else h
        following = following + total if reader == "twice" else following
        return (h, following), stacked, []

    carry = (jnp.zeros(20), jnp.zeros((20, 20)))
    assert products_taken_out(body, carry, [jnp.zeros(20)]) == []


@pytest.mark.parametrize("steps", [1, 2, 60])
def test_gradient_by_weights(blocks, steps):
    xs, w = at.dmatrix("xs"), at.dmatrix("w")
    hs, _ = aesara.scan(
        lambda x, h, w: at.tanh(w @ h + x),
        sequences=[xs],
        outputs_info=[at.zeros(16)],
        non_sequences=[w],
    )
    f = aesara.function([xs, w], aesara.grad((hs**2).sum(), w), mode=MODE)
    x, weights = rows(steps, 16), rows(16, 16, 1) / 4
    states = [np.zeros(16)]
    for row in x:
        states.append(np.tanh(weights @ states[-1] + row))
    slope, expected = np.zeros(16), np.zeros((16, 16))
    for before, h in zip(states[-2::-1], states[:0:-1]):
        slope = (slope + 2 * h) * (1 - h * h)
        expected += np.outer(slope, before)
        slope = weights.T @ slope
    np.testing.assert_allclose(f(x, weights), expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("read", [slice(None), slice(-1, None), slice(-2, None), slice(0, 2)])
@pytest.mark.parametrize("steps", [0, 1, 2, 7, 50])
def test_a_sum_of_outer_products(blocks, steps, read):
    xs, n = at.dmatrix("xs"), at.lscalar("n")
    start = at.dmatrix("start")
    totals, _ = aesara.scan(
        lambda x, total: total + at.outer(x, x[::-1]),
        sequences=[xs],
        outputs_info=[start],
        n_steps=n,
    )
    f = aesara.function([xs, start, n], totals[read], mode=MODE)
    x, first = rows(steps, 12), rows(12, 12, 3)
    expected = np.zeros((steps, 12, 12))
    total = first
    for t, row in enumerate(x):
        expected[t] = total = total + np.outer(row, row[::-1])
    np.testing.assert_allclose(f(x, first, steps), expected[read], rtol=1e-12, atol=1e-13)


def test_integer_and_complex_sums():
    for kind, make in (("int64", at.lmatrix), ("complex128", at.zmatrix)):
        xs, start = make("xs"), make("start")
        totals, _ = aesara.scan(
            lambda x, total: total + at.dot(x[:, None], x[None, :]),
            sequences=[xs],
            outputs_info=[start],
        )
        f = aesara.function([xs, start], totals[-1], mode=MODE)
        x = (10 * rows(9, 15)).astype(kind)
        if kind == "complex128":
            x = x + 1j * rows(9, 15, 5)
        first = np.ones((15, 15), kind)
        expected = first + sum(np.outer(row, row) for row in x)
        np.testing.assert_allclose(f(x, first), expected, rtol=1e-12)
        assert f(x, first).dtype == kind


def test_dear_functions_of_what_is_read(blocks):
    xs, w = at.dmatrix("xs"), at.dmatrix("w")

    def step(x, h, w):
        y = 2 * x + 1
        return at.tanh(y * at.exp(y.sum())) + 0.5 * h + y + at.dot(w * x[0], x).sum()

    hs, _ = aesara.scan(step, sequences=[xs], outputs_info=[at.zeros(5)], non_sequences=[w])
    x, weights = rows(70, 5), rows(20, 5, 2)
    h, expected = np.zeros(5), []
    for row in x:
        y = 2 * row + 1
        h = np.tanh(y * np.exp(y.sum())) + 0.5 * h + y + (weights * row[0] @ row).sum()
        expected.append(h)
    f = aesara.function([xs, w], hs, mode=MODE)
    np.testing.assert_allclose(f(x, weights), expected, rtol=1e-12)
