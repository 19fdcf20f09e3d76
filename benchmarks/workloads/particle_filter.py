"""A particle filter with systematic resampling at every step."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from benchmarks.namespaces import Namespace
from benchmarks.workload import Graph, Workload


def make_inputs(particles: int, steps: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(11)
    return rng.normal(size=particles), np.cumsum(0.3 * rng.normal(size=steps)), 0.9, 0.5, 0.7


def build(ns: Namespace) -> Graph:
    at = ns.at
    start, observations = at.dvectors("start", "observations")
    phi, sigma, tau = at.dscalars("phi", "sigma", "tau")
    generator = ns.shared(np.random.default_rng(0), name="generator")

    def step(y: Any, x: Any, phi: Any, sigma: Any, tau: Any) -> Any:
        between, x = ns.draw("normal", phi * x, sigma, rng=generator)
        log_weights = -0.5 * ((y - x) / tau) ** 2
        largest = at.max(log_weights)
        cumulated = at.cumsum(at.exp(log_weights - largest))
        total, count = cumulated[-1], x.shape[0]
        # One uniform number places as many evenly spaced pointers as there are particles.
        after, shift = ns.draw("uniform", 0.0, 1.0, rng=between)
        pointers = (at.arange(count) + shift) * (total / count)
        chosen = at.minimum(at.searchsorted(cumulated, pointers), count - 1)
        x = x[chosen]
        return [x, largest + at.log(total / count), at.mean(x)], {generator: after}

    (_, evidence, means), updates = ns.scan(
        step,
        sequences=[observations],
        outputs_info=[start, None, None],
        non_sequences=[phi, sigma, tau],
    )
    inputs = [start, observations, phi, sigma, tau]
    return Graph(inputs, [evidence, means], updates, generator)


@njit(error_model="numpy")
def kernel(rng, start, observations, phi, sigma, tau):
    steps, count = observations.shape[0], start.shape[0]
    evidence, means = np.empty(steps), np.empty(steps)
    x, moved, cumulated = start.copy(), np.empty(count), np.empty(count)
    for t in range(steps):
        y = observations[t]
        largest = -np.inf
        for i in range(count):
            moved[i] = rng.normal(phi * x[i], sigma)
            error = (y - moved[i]) / tau
            cumulated[i] = -0.5 * (error * error)
            largest = max(largest, cumulated[i])
        total = 0.0
        for i in range(count):
            total += np.exp(cumulated[i] - largest)
            cumulated[i] = total
        shift = rng.uniform(0.0, 1.0)
        spacing = total / count
        chosen, mean = 0, 0.0
        for i in range(count):
            # Pointers ascend, so that none looks before the particle of the last.
            pointer = (i + shift) * spacing
            while chosen < count - 1 and cumulated[chosen] < pointer:
                chosen += 1
            x[i] = moved[chosen]
            mean += x[i]
        evidence[t] = largest + np.log(total / count)
        means[t] = mean / count
    return evidence, means


def make_jax_kernel() -> Any:
    import jax
    import jax.numpy as jnp
    from jax import lax

    from benchmarks.jax_jit import jit

    def particle_filter(
        key: Any, start: Any, observations: Any, phi: Any, sigma: Any, tau: Any
    ) -> Any:
        count, steps = start.shape[0], observations.shape[0]
        # All draws at once, before the loop, as one does in JAX.
        for_moves, for_shifts = jax.random.split(key)
        noise = sigma * jax.random.normal(for_moves, (steps, count))
        shifts = jax.random.uniform(for_shifts, (steps,))

        def step(x: Any, now: Any) -> Any:
            y, e, shift = now
            x = phi * x + e
            log_weights = -0.5 * ((y - x) / tau) ** 2
            largest = jnp.max(log_weights)
            cumulated = jnp.cumsum(jnp.exp(log_weights - largest))
            total = cumulated[-1]
            pointers = (jnp.arange(count) + shift) * (total / count)
            x = x[jnp.minimum(jnp.searchsorted(cumulated, pointers), count - 1)]
            return x, (largest + jnp.log(total / count), jnp.mean(x))

        return lax.scan(step, start, (observations, noise, shifts))[1]

    return jit(particle_filter)


WORKLOADS = [
    Workload(
        name="particle-filter",
        title="a particle filter of 500 particles over 200 observations, with resampling",
        build=build,
        kernel=kernel,
        make_inputs=make_inputs,
        sizes={
            "tiny": {"particles": 5, "steps": 4},
            "default": {"particles": 500, "steps": 200},
            "large": {"particles": 5_000, "steps": 1_000},
        },
        make_jax_kernel=make_jax_kernel,
        seed=12,
    )
]
