"""Samplers of integers."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy.special as jsp
import numpy as np
from aesara.tensor.random import basic as aer

from fixed_modes.jax.samplers import Draw, _beta_logit, _samples


@_samples(aer.BernoulliRV)
def _bernoulli(draw: Draw, p: Any) -> Any:
    return draw.uniform() < draw.spread(p)


@_samples(aer.CategoricalRV)
def _categorical(draw: Draw, p: Any) -> Any:
    ends = jnp.cumsum(draw.cast(p), axis=-1)
    index = (ends < draw.uniform()[..., None]).sum(axis=-1)
    # Rounding may leave the last end below 1.
    return jnp.minimum(index, ends.shape[-1] - 1)


@_samples(aer.RandIntRV)
@_samples(aer.IntegersRV)
def _integers(draw: Draw, low: Any, high: Any) -> Any:
    low = jnp.broadcast_to(jnp.asarray(low).astype("int64"), draw.shape)
    high = jnp.broadcast_to(jnp.asarray(high).astype("int64"), draw.shape)
    return jax.random.randint(draw.key, draw.shape, low, high, "int64")


@_samples(aer.GeometricRV)
def _geometric(draw: Draw, p: Any) -> Any:
    p = draw.spread(p)
    failures = jnp.floor(draw.exponential() / -jnp.log1p(-p))
    return jnp.where(p >= 1, 0, failures) + 1


@_samples(aer.PoissonRV)
def _poisson(draw: Draw, rate: Any) -> Any:
    return jax.random.poisson(draw.key, draw.spread(rate), draw.shape, "int64")


@_samples(aer.NegBinomialRV)
def _negative_binomial(draw: Draw, n: Any, p: Any) -> Any:
    first, second = draw.keys(2)
    p = draw.spread(p)
    rate = draw.gamma(n, first) * (1 - p) / p
    return jax.random.poisson(second, rate, draw.shape, "int64")


def _binomial_at(u: Any, n: Any, p: Any) -> Any:
    """Give the smallest k that a binomial draw exceeds with probability below 1 - u.

    The distribution function is an incomplete beta function; k is found by
    bisection, so this is exact for every n and p.
    """

    def above(k: Any) -> Any:
        # P(draw <= k) >= u; for k = n it is 1.
        tail = jsp.betainc(jnp.maximum(n - k, 0.5), k + 1, 1 - p)
        return (k >= n) | (tail >= u)

    def halve(state: Any) -> Any:
        low, high = state
        middle = jnp.floor((low + high) / 2)
        found = above(middle)
        return jnp.where(found, low, middle + 1), jnp.where(found, middle, high)

    start = (jnp.zeros_like(n), n)
    low, _ = jax.lax.while_loop(lambda state: (state[0] < state[1]).any(), halve, start)
    return jnp.where(p <= 0, 0.0, jnp.where(p >= 1, n, low))


@_samples(aer.BinomialRV)
def _binomial(draw: Draw, n: Any, p: Any) -> Any:
    return _binomial_at(draw.uniform(), draw.spread(n), draw.spread(p))


@_samples(aer.BetaBinomialRV)
def _beta_binomial(draw: Draw, n: Any, a: Any, b: Any) -> Any:
    first, second = draw.keys(2)
    inner = Draw(draw.op, draw.node, first, draw.shape, draw.dtype, draw.frame)
    p = jax.nn.sigmoid(_beta_logit(inner, a, b))
    return _binomial_at(draw.uniform(second), draw.spread(n), p)


@_samples(aer.MultinomialRV)
def _multinomial(draw: Draw, n: Any, p: Any) -> Any:
    p = draw.cast(p)
    count = p.shape[-1]
    p = jnp.moveaxis(jnp.broadcast_to(p, (*draw.shape, count)), -1, 0)
    n = draw.spread(n)

    def one_class(state: Any, entering: Any) -> Any:
        left, mass = state
        key, share = entering
        chance = jnp.clip(share / jnp.where(mass > 0, mass, 1), 0, 1)
        found = _binomial_at(draw.uniform(key), left, chance)
        return (left - found, mass - share), found

    start = (n, jnp.ones(draw.shape, draw.real))
    keys = draw.keys(count)
    (left, _), found = jax.lax.scan(one_class, start, (keys[:-1], p[:-1]))
    return jnp.moveaxis(jnp.concatenate([found, left[None]]), 0, -1)


@_samples(aer.HyperGeometricRV)
def _hypergeometric(draw: Draw, good: Any, bad: Any, count: Any) -> Any:
    good, bad, count = (jnp.floor(draw.spread(value)) for value in (good, bad, count))

    def take_one(state: Any) -> Any:
        key, taken, good_left, left = state
        key, now = jax.random.split(key)
        active = taken < count
        hit = active & (draw.uniform(now) * left < good_left)
        return key, taken + active, good_left - hit, left - active

    start = (draw.key, jnp.zeros(draw.shape, draw.real), good, good + bad)
    _, _, good_left, _ = jax.lax.while_loop(lambda state: (state[1] < count).any(), take_one, start)
    return good - good_left


@_samples(aer.ZipfRV)
def _zipf(draw: Draw, a: Any) -> Any:
    # Devroye (1986), X.6.1: rejection from the Pareto distribution of the same tail.
    less = draw.spread(a) - 1
    b = 2.0**less
    limit = np.float64(np.iinfo("int64").max)

    def attempt(state: Any) -> Any:
        key, found, accepted = state
        key, first, second = jax.random.split(key, 3)
        x = jnp.floor((1 - draw.uniform(first)) ** (-1 / less))
        t = (1 + 1 / x) ** less
        good = (x < limit) & (draw.uniform(second) * x * (t - 1) / (b - 1) <= t / b)
        return key, jnp.where(good & ~accepted, x, found), accepted | good

    start = (draw.key, jnp.ones(draw.shape, draw.real), jnp.zeros(draw.shape, bool))
    return jax.lax.while_loop(lambda state: ~state[2].all(), attempt, start)[1]
