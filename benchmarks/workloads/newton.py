"""Newton's method until it converges, for each entry of a vector."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from benchmarks.namespaces import Namespace
from benchmarks.workload import Graph, Workload

TOLERANCE = 1e-12
MOST_STEPS = 50


def make_inputs(entries: int) -> tuple[Any, ...]:
    return np.linspace(0.0, 3.0, entries), 0.6


def build(ns: Namespace) -> Graph:
    anomalies = ns.at.dvector("anomalies")
    eccentricity = ns.at.dscalar("eccentricity")

    def newton(x: Any, m: Any, e: Any) -> Any:
        move = (x - e * ns.at.sin(x) - m) / (1.0 - e * ns.at.cos(x))
        return x - move, ns.until(abs(move) < TOLERANCE)

    def solve(m: Any, e: Any) -> Any:
        trace, _ = ns.scan(newton, outputs_info=[m], non_sequences=[m, e], n_steps=MOST_STEPS)
        return trace[-1]

    roots, _ = ns.scan(solve, sequences=[anomalies], non_sequences=[eccentricity])
    return Graph([anomalies, eccentricity], [roots])


@njit(error_model="numpy")
def kernel(anomalies, e):
    roots = np.empty(anomalies.shape[0])
    for i in range(anomalies.shape[0]):
        x = m = anomalies[i]
        for _ in range(MOST_STEPS):
            move = (x - e * np.sin(x) - m) / (1.0 - e * np.cos(x))
            x = x - move
            if abs(move) < TOLERANCE:
                break
        roots[i] = x
    return roots


def make_jax_kernel() -> Any:
    import jax
    import jax.numpy as jnp
    from jax import lax

    from benchmarks.jax_jit import jit

    def solve(m: Any, e: Any) -> Any:
        def goes_on(state: Any) -> Any:
            t, _, move = state
            return (t < MOST_STEPS) & (abs(move) >= TOLERANCE)

        def step(state: Any) -> Any:
            t, x, _ = state
            move = (x - e * jnp.sin(x) - m) / (1.0 - e * jnp.cos(x))
            return t + 1, x - move, move

        return lax.while_loop(goes_on, step, (0, m, jnp.inf))[1]

    return jit(jax.vmap(solve, in_axes=(0, None)))


WORKLOADS = [
    Workload(
        name="newton-map",
        title="Kepler's equation by Newton's method until it converges, for 10 000 entries",
        build=build,
        kernel=kernel,
        make_inputs=make_inputs,
        sizes={
            "tiny": {"entries": 7},
            "default": {"entries": 10_000},
            "large": {"entries": 1_000_000},
        },
        make_jax_kernel=make_jax_kernel,
    )
]
