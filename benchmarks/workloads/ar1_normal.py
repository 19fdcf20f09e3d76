"""An AR(1) process that draws its innovations in the loop."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from benchmarks.namespaces import Namespace
from benchmarks.workload import Graph, Workload


def make_inputs(steps: int) -> tuple[Any, ...]:
    return 0.1, 0.95, 0.5, steps


def build(ns: Namespace) -> Graph:
    x0, phi, sigma = ns.at.dscalars("x0", "phi", "sigma")
    n = ns.at.lscalar("n")
    generator = ns.shared(np.random.default_rng(0), name="generator")

    def step(x: Any, phi: Any, sigma: Any) -> Any:
        after, draw = ns.draw("normal", 0.0, sigma, rng=generator)
        return phi * x + draw, {generator: after}

    trace, updates = ns.scan(step, outputs_info=[x0], non_sequences=[phi, sigma], n_steps=n)
    return Graph([x0, phi, sigma, n], [trace], updates, generator)


@njit
def kernel(rng, x0, phi, sigma, n):
    trace = np.empty(n)
    x = x0
    for t in range(n):
        x = phi * x + rng.normal(0.0, sigma)
        trace[t] = x
    return trace


def make_jax_kernel() -> Any:
    import jax
    from jax import lax

    from benchmarks.jax_jit import jit

    def ar1(key: Any, x0: Any, phi: Any, sigma: Any, n: int) -> Any:
        # All draws at once, before the loop, as one does in JAX.
        noise = sigma * jax.random.normal(key, (n,))

        def step(x: Any, e: Any) -> Any:
            x = phi * x + e
            return x, x

        return lax.scan(step, x0, noise)[1]

    return jit(ar1, static_argnums=4)


WORKLOADS = [
    Workload(
        name="ar1-normal",
        title="x[t] = phi x[t-1] + a normal draw, the whole trace",
        build=build,
        kernel=kernel,
        make_inputs=make_inputs,
        sizes={
            "tiny": {"steps": 20},
            "default": {"steps": 100_000},
            "large": {"steps": 1_000_000},
        },
        make_jax_kernel=make_jax_kernel,
        seed=7,
    )
]
