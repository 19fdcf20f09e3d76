"""A scan in a scan: at every outer step an inner loop relaxes towards a moving target."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from benchmarks.namespaces import Namespace
from benchmarks.workload import Graph, Workload


def make_inputs(outer: int, inner: int) -> tuple[Any, ...]:
    return np.sin(0.1 * np.arange(outer)), 0.2, 0.05, inner


def build(ns: Namespace) -> Graph:
    targets = ns.at.dvector("targets")
    z0, rate = ns.at.dscalars("z0", "rate")
    n = ns.at.lscalar("n")

    def relax(z: Any, target: Any, rate: Any) -> Any:
        return z + rate * (target - z**3)

    def step(target: Any, z: Any, rate: Any, n: Any) -> Any:
        inner, _ = ns.scan(relax, outputs_info=[z], non_sequences=[target, rate], n_steps=n)
        return inner[-1]

    trace, _ = ns.scan(step, sequences=[targets], outputs_info=[z0], non_sequences=[rate, n])
    return Graph([targets, z0, rate, n], [trace])


@njit
def kernel(targets, z0, rate, n):
    trace = np.empty(targets.shape[0])
    z = z0
    for t in range(targets.shape[0]):
        target = targets[t]
        for _ in range(n):
            z = z + rate * (target - z * z * z)
        trace[t] = z
    return trace


def make_jax_kernel() -> Any:
    from jax import lax

    from benchmarks.jax_jit import jit

    def nested(targets: Any, z0: Any, rate: Any, n: Any) -> Any:
        def step(z: Any, target: Any) -> Any:
            z = lax.fori_loop(0, n, lambda _, z: z + rate * (target - z**3), z)
            return z, z

        return lax.scan(step, z0, targets)[1]

    return jit(nested)


WORKLOADS = [
    Workload(
        name="nested",
        title="a loop that runs a loop at every step, the outer trace",
        build=build,
        kernel=kernel,
        make_inputs=make_inputs,
        sizes={
            "tiny": {"outer": 5, "inner": 4},
            "default": {"outer": 500, "inner": 200},
            "large": {"outer": 5_000, "inner": 200},
        },
        make_jax_kernel=make_jax_kernel,
    )
]
