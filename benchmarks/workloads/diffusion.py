"""One-dimensional diffusion: a stencil at every step, the last state."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from benchmarks.namespaces import Namespace
from benchmarks.workload import Graph, Workload


def make_inputs(cells: int, steps: int) -> tuple[Any, ...]:
    return np.random.default_rng(10).normal(size=cells), 0.2, steps


def build(ns: Namespace) -> Graph:
    u0 = ns.at.dvector("u0")
    rate = ns.at.dscalar("rate")
    n = ns.at.lscalar("n")

    def step(u: Any, rate: Any) -> Any:
        inside = u[1:-1]
        return ns.at.set_subtensor(inside, inside + rate * (u[2:] - 2.0 * inside + u[:-2]))

    trace, _ = ns.scan(step, outputs_info=[u0], non_sequences=[rate], n_steps=n)
    return Graph([u0, rate, n], [trace[-1]])


@njit
def kernel(u0, rate, n):
    u, after = u0.copy(), u0.copy()
    for _ in range(n):
        for i in range(1, u.shape[0] - 1):
            after[i] = u[i] + rate * (u[i + 1] - 2.0 * u[i] + u[i - 1])
        u, after = after, u
    return u


def make_jax_kernel() -> Any:
    from jax import lax

    from benchmarks.jax_jit import jit

    def diffusion(u0: Any, rate: Any, n: Any) -> Any:
        def step(_: Any, u: Any) -> Any:
            return u.at[1:-1].add(rate * (u[2:] - 2.0 * u[1:-1] + u[:-2]))

        return lax.fori_loop(0, n, step, u0)

    return jit(diffusion)


WORKLOADS = [
    Workload(
        name="diffusion",
        title="2 000 steps of diffusion over 500 cells, the last state",
        build=build,
        kernel=kernel,
        make_inputs=make_inputs,
        sizes={
            "tiny": {"cells": 6, "steps": 5},
            "default": {"cells": 500, "steps": 2_000},
            "large": {"cells": 5_000, "steps": 20_000},
        },
        make_jax_kernel=make_jax_kernel,
    )
]
