"""A sum over data in each step, and a step that makes more of its row than it gives back."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from benchmarks.namespaces import Namespace
from benchmarks.workload import Graph, Workload


def make_inputs(places: int, points: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(31)
    return np.linspace(-3.0, 3.0, places), rng.normal(size=points), 0.3


def build(ns: Namespace) -> Graph:
    places, points = ns.at.dvector("places"), ns.at.dvector("points")
    width = ns.at.dscalar("width")
    densities, _ = ns.scan(
        lambda y, x, width: ns.at.exp(-(((x - y) / width) ** 2)).sum(),
        sequences=[places],
        non_sequences=[points, width],
    )
    return Graph([places, points, width], [densities])


@njit
def kernel(places, points, width):
    densities = np.empty(places.shape[0])
    for t in range(places.shape[0]):
        total = 0.0
        for i in range(points.shape[0]):
            z = (points[i] - places[t]) / width
            total += np.exp(-z * z)
        densities[t] = total
    return densities


def make_jax_kernel() -> Any:
    import jax
    import jax.numpy as jnp

    from benchmarks.jax_jit import jit

    @jit
    def density(places, points, width):
        def step(carry, y):
            return carry, jnp.exp(-(((points - y) / width) ** 2)).sum()

        return jax.lax.scan(step, 0.0, places)[1]

    return density


WORKLOADS = [
    Workload(
        name="density",
        title="a kernel density at 1 000 places from 2 000 points, by a scan without state",
        build=build,
        kernel=kernel,
        make_inputs=make_inputs,
        sizes={
            "tiny": {"places": 3, "points": 5},
            "default": {"places": 1_000, "points": 2_000},
            "large": {"places": 10_000, "points": 5_000},
        },
        make_jax_kernel=make_jax_kernel,
    )
]
