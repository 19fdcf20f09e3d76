"""A long loop without state: one number in, one number out."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from benchmarks.namespaces import Namespace
from benchmarks.workload import Graph, Workload


def make_inputs(entries: int) -> tuple[Any, ...]:
    return np.linspace(-5.0, 5.0, entries), 1.7


def build(ns: Namespace) -> Graph:
    xs = ns.at.dvector("xs")
    frequency = ns.at.dscalar("frequency")
    values, _ = ns.scan(
        lambda x, f: ns.at.exp(-(x**2)) * ns.at.sin(f * x),
        sequences=[xs],
        non_sequences=[frequency],
    )
    return Graph([xs, frequency], [values])


@njit
def kernel(xs, frequency):
    values = np.empty(xs.shape[0])
    for t in range(xs.shape[0]):
        x = xs[t]
        values[t] = np.exp(-x * x) * np.sin(frequency * x)
    return values


def make_jax_kernel() -> Any:
    import jax.numpy as jnp

    from benchmarks.jax_jit import jit

    return jit(lambda xs, frequency: jnp.exp(-(xs**2)) * jnp.sin(frequency * xs))


WORKLOADS = [
    Workload(
        name="large-map",
        title="exp(-x x) sin(f x) for 1 000 000 numbers, by a scan without state",
        build=build,
        kernel=kernel,
        make_inputs=make_inputs,
        sizes={
            "tiny": {"entries": 9},
            "default": {"entries": 1_000_000},
            "large": {"entries": 10_000_000},
        },
        make_jax_kernel=make_jax_kernel,
    )
]
