"""A matrix to a power that is an input, by as many products."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from benchmarks.namespaces import Namespace
from benchmarks.workload import Graph, Workload


def make_inputs(rows: int, power: int) -> tuple[Any, ...]:
    # The power of an orthogonal matrix neither grows nor vanishes.
    matrix = np.random.default_rng(15).normal(size=(rows, rows))
    return np.ascontiguousarray(np.linalg.qr(matrix)[0]), power


def build(ns: Namespace) -> Graph:
    a = ns.at.dmatrix("a")
    k = ns.at.lscalar("k")
    powers, _ = ns.scan(
        lambda p, a: ns.at.dot(p, a),
        outputs_info=[ns.at.eye(a.shape[0])],
        non_sequences=[a],
        n_steps=k,
    )
    return Graph([a, k], [powers[-1]])


@njit
def kernel(a, k):
    power, after = np.eye(a.shape[0]), np.empty(a.shape)
    for _ in range(k):
        np.dot(power, a, after)
        power, after = after, power
    return power


def make_jax_kernel() -> Any:
    import jax.numpy as jnp
    from jax import lax

    from benchmarks.jax_jit import jit

    return jit(lambda a, k: lax.fori_loop(0, k, lambda _, p: p @ a, jnp.eye(a.shape[0])))


WORKLOADS = [
    Workload(
        name="matrix-power",
        title="a 32 by 32 matrix to the power of 1 000, which is an input",
        build=build,
        kernel=kernel,
        make_inputs=make_inputs,
        sizes={
            "tiny": {"rows": 3, "power": 4},
            "default": {"rows": 32, "power": 1_000},
            "large": {"rows": 128, "power": 1_000},
        },
        make_jax_kernel=make_jax_kernel,
    )
]
