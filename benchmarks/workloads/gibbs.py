"""A Gibbs sampler of two correlated normal variables."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from benchmarks.namespaces import Namespace
from benchmarks.workload import Graph, Workload


def make_inputs(steps: int) -> tuple[Any, ...]:
    return 0.0, 0.0, 0.8, steps


def build(ns: Namespace) -> Graph:
    x0, y0, rho = ns.at.dscalars("x0", "y0", "rho")
    n = ns.at.lscalar("n")
    generator = ns.shared(np.random.default_rng(0), name="generator")

    def step(x: Any, y: Any, rho: Any) -> Any:
        sigma = ns.at.sqrt(1.0 - rho**2)
        between, x = ns.draw("normal", rho * y, sigma, rng=generator)
        after, y = ns.draw("normal", rho * x, sigma, rng=between)
        return [x, y], {generator: after}

    (xs, ys), updates = ns.scan(step, outputs_info=[x0, y0], non_sequences=[rho], n_steps=n)
    return Graph([x0, y0, rho, n], [xs, ys], updates, generator)


@njit
def kernel(rng, x0, y0, rho, n):
    xs, ys = np.empty(n), np.empty(n)
    sigma = np.sqrt(1.0 - rho * rho)
    x, y = x0, y0
    for t in range(n):
        x = rng.normal(rho * y, sigma)
        y = rng.normal(rho * x, sigma)
        xs[t] = x
        ys[t] = y
    return xs, ys


def make_jax_kernel() -> Any:
    import jax
    import jax.numpy as jnp
    from jax import lax

    from benchmarks.jax_jit import jit

    def gibbs(key: Any, x0: Any, y0: Any, rho: Any, n: int) -> Any:
        # All draws at once, before the loop, as one does in JAX.
        noise = jnp.sqrt(1.0 - rho**2) * jax.random.normal(key, (n, 2))

        def step(state: Any, e: Any) -> Any:
            _, y = state
            x = rho * y + e[0]
            y = rho * x + e[1]
            return (x, y), (x, y)

        return lax.scan(step, (x0, y0), noise)[1]

    return jit(gibbs, static_argnums=4)


WORKLOADS = [
    Workload(
        name="gibbs",
        title="a Gibbs sampler of two correlated normal variables, both traces",
        build=build,
        kernel=kernel,
        make_inputs=make_inputs,
        sizes={
            "tiny": {"steps": 10},
            "default": {"steps": 50_000},
            "large": {"steps": 500_000},
        },
        make_jax_kernel=make_jax_kernel,
        seed=8,
    )
]
