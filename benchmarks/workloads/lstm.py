"""The gradient of an LSTM layer's loss by its weights."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from benchmarks.namespaces import Namespace
from benchmarks.workload import Graph, Workload


def make_inputs(units: int, features: int, steps: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(16)
    x = rng.normal(size=(steps, features))
    w = rng.normal(size=(4 * units, features)) / np.sqrt(features)
    u = rng.normal(size=(4 * units, units)) / np.sqrt(units)
    return x, w, u, 0.1 * rng.normal(size=4 * units)


def build(ns: Namespace) -> Graph:
    at = ns.at
    x, w, u = at.dmatrices("x", "w", "u")
    b = at.dvector("b")
    units = u.shape[1]

    def step(x: Any, h: Any, c: Any, w: Any, u: Any, b: Any) -> Any:
        n = h.shape[0]
        z = at.dot(w, x) + at.dot(u, h) + b
        forget, write, read = (at.sigmoid(z[k * n : (k + 1) * n]) for k in range(3))
        c = forget * c + write * at.tanh(z[3 * n :])
        return read * at.tanh(c), c

    (hs, _), _ = ns.scan(
        step,
        sequences=[x],
        outputs_info=[at.zeros(units), at.zeros(units)],
        non_sequences=[w, u, b],
    )
    return Graph([x, w, u, b], ns.grad((hs**2).mean(), [w, u, b]))


@njit
def _sigmoid(x):
    return 1.0 / (1.0 + np.exp(-x))


@njit
def _add_product(columns, vector, total):
    """Add a matrix times a vector; row j of `columns` is column j of the matrix."""
    for j in range(vector.shape[0]):
        factor = vector[j]
        for i in range(total.shape[0]):
            total[i] += columns[j, i] * factor


@njit(error_model="numpy")
def kernel(x, w, u, b):
    steps, units = x.shape[0], u.shape[1]
    w_columns, u_columns = np.ascontiguousarray(w.T), np.ascontiguousarray(u.T)
    # Row t is the state before step t.
    hs, cs = np.zeros((steps + 1, units)), np.zeros((steps + 1, units))
    gates, squashed = np.empty((steps, 4, units)), np.empty((steps, units))
    z = np.empty(4 * units)
    for t in range(steps):
        for i in range(4 * units):
            z[i] = b[i]
        _add_product(w_columns, x[t], z)
        _add_product(u_columns, hs[t], z)
        for i in range(units):
            forget, write = _sigmoid(z[i]), _sigmoid(z[units + i])
            read, new = _sigmoid(z[2 * units + i]), np.tanh(z[3 * units + i])
            c = forget * cs[t, i] + write * new
            gates[t, 0, i], gates[t, 1, i] = forget, write
            gates[t, 2, i], gates[t, 3, i] = read, new
            cs[t + 1, i] = c
            squashed[t, i] = np.tanh(c)
            hs[t + 1, i] = read * squashed[t, i]
    scale = 2.0 / (steps * units)
    dzs, db = np.empty((steps, 4 * units)), np.zeros(4 * units)
    dh, dc = np.zeros(units), np.zeros(units)
    for t in range(steps - 1, -1, -1):
        dz = dzs[t]
        for i in range(units):
            forget, write = gates[t, 0, i], gates[t, 1, i]
            read, new = gates[t, 2, i], gates[t, 3, i]
            by_h = dh[i] + scale * hs[t + 1, i]
            by_c = dc[i] + by_h * read * (1.0 - squashed[t, i] * squashed[t, i])
            dz[i] = by_c * cs[t, i] * forget * (1.0 - forget)
            dz[units + i] = by_c * new * write * (1.0 - write)
            dz[2 * units + i] = by_h * squashed[t, i] * read * (1.0 - read)
            dz[3 * units + i] = by_c * write * (1.0 - new * new)
            dc[i] = by_c * forget
            dh[i] = 0.0
        for i in range(4 * units):
            db[i] += dz[i]
        _add_product(u, dz, dh)
    return np.dot(dzs.T, x), np.dot(dzs.T, hs[:steps]), db


def make_jax_kernel() -> Any:
    import jax
    import jax.numpy as jnp
    from jax import lax

    from benchmarks.jax_jit import jit

    def loss(x: Any, w: Any, u: Any, b: Any) -> Any:
        def step(state: Any, x: Any) -> Any:
            h, c = state
            forget, write, read, new = jnp.split(w @ x + u @ h + b, 4)
            c = jax.nn.sigmoid(forget) * c + jax.nn.sigmoid(write) * jnp.tanh(new)
            h = jax.nn.sigmoid(read) * jnp.tanh(c)
            return (h, c), h

        start = jnp.zeros(u.shape[1])
        return (lax.scan(step, (start, start), x)[1] ** 2).mean()

    return jit(jax.grad(loss, argnums=(1, 2, 3)))


WORKLOADS = [
    Workload(
        name="lstm-grad",
        title="the gradient of an LSTM layer by its weights, 16 units and 500 steps",
        build=build,
        kernel=kernel,
        make_inputs=make_inputs,
        sizes={
            "tiny": {"units": 2, "features": 3, "steps": 4},
            "default": {"units": 16, "features": 8, "steps": 500},
            "large": {"units": 64, "features": 16, "steps": 2_000},
        },
        make_jax_kernel=make_jax_kernel,
    )
]
