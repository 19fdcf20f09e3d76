"""A map: the softmax of every row of a matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from benchmarks.namespaces import Namespace
from benchmarks.workload import Graph, Workload


def make_inputs(rows: int, columns: int) -> tuple[Any, ...]:
    return (np.random.default_rng(6).normal(size=(rows, columns)),)


def build(ns: Namespace) -> Graph:
    x = ns.at.dmatrix("x")

    def softmax(row: Any) -> Any:
        e = ns.at.exp(row - ns.at.max(row))
        return e / ns.at.sum(e)

    rows, _ = ns.scan(softmax, sequences=[x])
    return Graph([x], [rows])


@njit(error_model="numpy")
def kernel(x):
    out = np.empty(x.shape)
    rows, columns = x.shape
    for i in range(rows):
        largest = x[i, 0]
        for j in range(1, columns):
            largest = max(largest, x[i, j])
        total = 0.0
        for j in range(columns):
            e = np.exp(x[i, j] - largest)
            out[i, j] = e
            total += e
        for j in range(columns):
            out[i, j] /= total
    return out


def make_jax_kernel() -> Any:
    import jax

    from benchmarks.jax_jit import jit

    return jit(lambda x: jax.nn.softmax(x, axis=1))


WORKLOADS = [
    Workload(
        name="softmax-map",
        title="the softmax of each of 1 000 rows of 100 numbers, by a scan without state",
        build=build,
        kernel=kernel,
        make_inputs=make_inputs,
        sizes={
            "tiny": {"rows": 3, "columns": 4},
            "default": {"rows": 1_000, "columns": 100},
            "large": {"rows": 20_000, "columns": 100},
        },
        make_jax_kernel=make_jax_kernel,
    )
]
