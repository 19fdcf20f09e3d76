"""An AR(2) process from given innovations."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from benchmarks.namespaces import Namespace
from benchmarks.workload import Graph, Workload


def make_inputs(steps: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(1)
    return np.array([0.1, -0.2]), 1.2, -0.5, rng.normal(size=steps)


def build(ns: Namespace) -> Graph:
    start = ns.at.dvector("start")
    a, b = ns.at.dscalars("a", "b")
    noise = ns.at.dvector("noise")
    trace, _ = ns.scan(
        lambda e, x1, x2, a, b: a * x1 + b * x2 + e,
        sequences=[noise],
        outputs_info=[dict(initial=start, taps=[-1, -2])],
        non_sequences=[a, b],
    )
    return Graph([start, a, b, noise], [trace])


@njit
def kernel(start, a, b, noise):
    trace = np.empty(noise.shape[0])
    x2, x1 = start[0], start[1]
    for t in range(noise.shape[0]):
        x = a * x1 + b * x2 + noise[t]
        trace[t] = x
        x2, x1 = x1, x
    return trace


def make_jax_kernel() -> Any:
    from jax import lax

    from benchmarks.jax_jit import jit

    def ar2(start: Any, a: Any, b: Any, noise: Any) -> Any:
        def step(carry: Any, e: Any) -> Any:
            x2, x1 = carry
            x = a * x1 + b * x2 + e
            return (x1, x), x

        return lax.scan(step, (start[0], start[1]), noise)[1]

    return jit(ar2)


WORKLOADS = [
    Workload(
        name="ar2",
        title="x[t] = a x[t-1] + b x[t-2] + e[t], the whole trace",
        build=build,
        kernel=kernel,
        make_inputs=make_inputs,
        sizes={
            "tiny": {"steps": 20},
            "default": {"steps": 100_000},
            "large": {"steps": 1_000_000},
        },
        make_jax_kernel=make_jax_kernel,
    )
]
