"""Slices whose length changes with the step: weights of all that came before."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from benchmarks.namespaces import Namespace
from benchmarks.workload import Graph, Workload


def make_inputs(steps: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(32)
    return rng.normal(size=steps), 0.9 / np.arange(2.0, steps + 2.0) ** 1.5


def build(ns: Namespace) -> Graph:
    noise, weights = ns.at.dvector("noise"), ns.at.dvector("weights")

    def step(t: Any, values: Any, noise: Any, weights: Any) -> Any:
        memory = ns.at.dot(values[:t], weights[:t][::-1])
        return ns.at.set_subtensor(values[t], noise[t] + memory)

    values, _ = ns.scan(
        step,
        sequences=[ns.at.arange(noise.shape[0])],
        outputs_info=[ns.at.zeros_like(noise)],
        non_sequences=[noise, weights],
    )
    return Graph([noise, weights], [values[-1]])


@njit
def kernel(noise, weights):
    values = np.zeros(noise.shape[0])
    for t in range(noise.shape[0]):
        memory = 0.0
        for i in range(t):
            memory += values[i] * weights[t - 1 - i]
        values[t] = noise[t] + memory
    return values


def make_jax_kernel() -> Any:
    import jax
    import jax.numpy as jnp

    from benchmarks.jax_jit import jit

    @jit
    def long_memory(noise, weights):
        steps = noise.shape[0]
        # The weights of the last so many steps stand side by side, backwards, with zeros
        # for the steps to come.
        turned = jnp.concatenate([weights[::-1], jnp.zeros(steps)])

        def step(values, t):
            row = jax.lax.dynamic_slice(turned, (steps - t,), (steps,))
            return values.at[t].set(noise[t] + (values * row).sum()), None

        return jax.lax.scan(step, jnp.zeros(steps), jnp.arange(steps))[0]

    return long_memory


WORKLOADS = [
    Workload(
        name="growing-window",
        title="2 000 steps of a series with long memory: each weighs all that came before",
        build=build,
        kernel=kernel,
        make_inputs=make_inputs,
        sizes={
            "tiny": {"steps": 6},
            "default": {"steps": 2_000},
            "large": {"steps": 10_000},
        },
        make_jax_kernel=make_jax_kernel,
    )
]
