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


def _poisson_of(draw: Draw, key: Any, rate: Any) -> Any:
    """Draw Poisson numbers; `jax.random.poisson` computes in float32, which large rates show."""
    below, above = jax.random.split(key)
    small = _poisson_by_inversion(draw.uniform(below), jnp.minimum(rate, 10.0))
    large = _poisson_by_rejection(draw, above, jnp.maximum(rate, 10.0))
    return jnp.where(rate < 10, small, large)


def _poisson_by_inversion(u: Any, rate: Any) -> Any:
    def advance(state: Any) -> Any:
        k, left, mass = state
        onward = left > mass
        return (
            jnp.where(onward, k + 1, k),
            jnp.where(onward, left - mass, left),
            jnp.where(onward, mass * rate / (k + 1), mass),
        )

    def unfinished(state: Any) -> Any:
        k, left, mass = state
        return ((left > mass) & (k < 100)).any()

    start = (jnp.zeros_like(u), u, jnp.exp(-rate))
    return jax.lax.while_loop(unfinished, advance, start)[0]


def _poisson_by_rejection(draw: Draw, key: Any, rate: Any) -> Any:
    # Hoermann (1993), the method PTRS, for rates from 10 on.
    b = 0.931 + 2.53 * jnp.sqrt(rate)
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    squeeze = 0.9277 - 3.6224 / (b - 2)

    def attempt(state: Any) -> Any:
        key, found, accepted = state
        key, first, second = jax.random.split(key, 3)
        u, v = draw.uniform(first) - 0.5, draw.uniform(second)
        rim = 0.5 - jnp.abs(u)
        k = jnp.floor((2 * a / rim + b) * u + rate + 0.43)
        outside = (k < 0) | ((rim < 0.013) & (v > rim))
        hat = jnp.log(v * inverse_alpha / (a / (rim * rim) + b))
        exact = hat <= k * jnp.log(rate) - rate - jsp.gammaln(k + 1)
        good = ((rim >= 0.07) & (v <= squeeze)) | (~outside & exact)
        return key, jnp.where(good & ~accepted, k, found), accepted | good

    start = (key, jnp.zeros(draw.shape, draw.real), jnp.zeros(draw.shape, bool))
    return jax.lax.while_loop(lambda state: ~state[2].all(), attempt, start)[1]


@_samples(aer.PoissonRV)
def _poisson(draw: Draw, rate: Any) -> Any:
    return _poisson_of(draw, draw.key, draw.spread(rate))


@_samples(aer.NegBinomialRV)
def _negative_binomial(draw: Draw, n: Any, p: Any) -> Any:
    first, second = draw.keys(2)
    p = draw.spread(p)
    rate = draw.gamma(n, first) * (1 - p) / p
    return _poisson_of(draw, second, rate)


def _binomial_of(draw: Draw, key: Any, n: Any, p: Any) -> Any:
    below, above = jax.random.split(key)
    rare = jnp.clip(jnp.minimum(p, 1 - p), 0, 0.5)
    is_small = n * rare < 10
    small = _binomial_by_inversion(draw.uniform(below), n, jnp.where(is_small, rare, 0))
    # What is drawn for the others is thrown away, but must end soon.
    large = _binomial_by_rejection(
        draw, above, jnp.where(is_small, 100.0, n), jnp.where(is_small, 0.5, rare)
    )
    count = jnp.where(is_small, small, large)
    return jnp.where(p > 0.5, n - count, count)


def _binomial_by_inversion(u: Any, n: Any, p: Any) -> Any:
    odds = p / (1 - p)

    def advance(state: Any) -> Any:
        k, left, mass = state
        onward = (left > mass) & (k < n)
        return (
            jnp.where(onward, k + 1, k),
            jnp.where(onward, left - mass, left),
            jnp.where(onward, mass * odds * (n - k) / (k + 1), mass),
        )

    def unfinished(state: Any) -> Any:
        k, left, mass = state
        return ((left > mass) & (k < n) & (k < 200)).any()

    start = (jnp.zeros_like(u), u, jnp.exp(n * jnp.log1p(-p)))
    return jax.lax.while_loop(unfinished, advance, start)[0]


def _binomial_by_rejection(draw: Draw, key: Any, n: Any, p: Any) -> Any:
    # Hoermann (1993), the method BTRS, for p up to 1/2 and a mean from 10 on.
    deviation = jnp.sqrt(n * p * (1 - p))
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * p
    alpha = (2.83 + 5.1 / b) * deviation
    squeeze = 0.92 - 4.2 / b
    mode = jnp.floor((n + 1) * p)
    height = jsp.gammaln(mode + 1) + jsp.gammaln(n - mode + 1)

    def attempt(state: Any) -> Any:
        key, found, accepted = state
        key, first, second = jax.random.split(key, 3)
        u, v = draw.uniform(first) - 0.5, draw.uniform(second)
        rim = 0.5 - jnp.abs(u)
        k = jnp.floor((2 * a / rim + b) * u + n * p + 0.5)
        inside = (k >= 0) & (k <= n)
        hat = jnp.log(v * alpha / (a / (rim * rim) + b))
        ratio = height - jsp.gammaln(k + 1) - jsp.gammaln(n - k + 1)
        exact = hat <= ratio + (k - mode) * jnp.log(p / (1 - p))
        good = inside & (((rim >= 0.07) & (v <= squeeze)) | exact)
        return key, jnp.where(good & ~accepted, k, found), accepted | good

    start = (key, jnp.zeros(draw.shape, draw.real), jnp.zeros(draw.shape, bool))
    return jax.lax.while_loop(lambda state: ~state[2].all(), attempt, start)[1]


@_samples(aer.BinomialRV)
def _binomial(draw: Draw, n: Any, p: Any) -> Any:
    return _binomial_of(draw, draw.key, draw.spread(n), draw.spread(p))


@_samples(aer.BetaBinomialRV)
def _beta_binomial(draw: Draw, n: Any, a: Any, b: Any) -> Any:
    first, second = draw.keys(2)
    inner = Draw(draw.op, draw.node, first, draw.shape, draw.dtype, draw.frame)
    p = jax.nn.sigmoid(_beta_logit(inner, a, b))
    return _binomial_of(draw, second, draw.spread(n), p)


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
        found = _binomial_of(draw, key, left, chance)
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
