"""A recurrent network of two layers, trained by gradient descent on shared weights."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from benchmarks.namespaces import Namespace
from benchmarks.workload import Graph, Workload

NAMES = ("w1", "u1", "w2", "u2", "v")


def make_inputs(units: int, features: int, steps: int) -> tuple[Any, ...]:
    x = np.random.default_rng(17).normal(size=(steps, features))
    return x, np.sin(np.cumsum(x[:, 0])), 0.05


def make_state(units: int, features: int, steps: int) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(18)
    shapes = [(units, features), *[(units, units)] * 3, (units,)]
    return tuple(rng.normal(size=shape) / np.sqrt(shape[-1]) for shape in shapes)


def build(ns: Namespace) -> Graph:
    at = ns.at
    x = at.dmatrix("x")
    target = at.dvector("target")
    rate = at.dscalar("rate")
    dimensions = [2, 2, 2, 2, 1]
    weights = [ns.shared(np.zeros((1,) * d), name=n) for n, d in zip(NAMES, dimensions)]
    units = weights[-1].shape[0]

    def step(x: Any, h1: Any, h2: Any, w1: Any, u1: Any, w2: Any, u2: Any) -> Any:
        h1 = at.tanh(at.dot(w1, x) + at.dot(u1, h1))
        return h1, at.tanh(at.dot(w2, h1) + at.dot(u2, h2))

    (_, hs), _ = ns.scan(
        step,
        sequences=[x],
        outputs_info=[at.zeros(units), at.zeros(units)],
        non_sequences=weights[:-1],
    )
    loss = ((at.dot(hs, weights[-1]) - target) ** 2).mean()
    slopes = ns.grad(loss, weights)
    updates = {weight: weight - rate * slope for weight, slope in zip(weights, slopes)}
    return Graph([x, target, rate], [loss], updates, state=weights)


@njit
def _add_product(columns, vector, total):
    """Add a matrix times a vector; row j of `columns` is column j of the matrix."""
    for j in range(vector.shape[0]):
        factor = vector[j]
        for i in range(total.shape[0]):
            total[i] += columns[j, i] * factor


@njit
def _descend(weights, slopes, rate):
    for i in range(weights.shape[0]):
        for j in range(weights.shape[1]):
            weights[i, j] -= rate * slopes[i, j]


@njit(error_model="numpy")
def kernel(x, target, rate, w1, u1, w2, u2, v):
    steps, units = x.shape[0], v.shape[0]
    w1_columns, u1_columns = np.ascontiguousarray(w1.T), np.ascontiguousarray(u1.T)
    w2_columns, u2_columns = np.ascontiguousarray(w2.T), np.ascontiguousarray(u2.T)
    # Row t is the state before step t.
    h1, h2 = np.zeros((steps + 1, units)), np.zeros((steps + 1, units))
    z, errors, loss = np.empty(units), np.empty(steps), 0.0
    for t in range(steps):
        for i in range(units):
            z[i] = 0.0
        _add_product(w1_columns, x[t], z)
        _add_product(u1_columns, h1[t], z)
        for i in range(units):
            h1[t + 1, i] = np.tanh(z[i])
            z[i] = 0.0
        _add_product(w2_columns, h1[t + 1], z)
        _add_product(u2_columns, h2[t], z)
        error = -target[t]
        for i in range(units):
            h2[t + 1, i] = np.tanh(z[i])
            error += h2[t + 1, i] * v[i]
        errors[t] = error
        loss += error * error
    dz1, dz2 = np.empty((steps, units)), np.empty((steps, units))
    dh1, dh2, dv = np.zeros(units), np.zeros(units), np.zeros(units)
    for t in range(steps - 1, -1, -1):
        slope = 2.0 * errors[t] / steps
        for i in range(units):
            h = h2[t + 1, i]
            dv[i] += slope * h
            dz2[t, i] = (dh2[i] + slope * v[i]) * (1.0 - h * h)
            dh2[i] = 0.0
        _add_product(u2, dz2[t], dh2)
        _add_product(w2, dz2[t], dh1)
        for i in range(units):
            h = h1[t + 1, i]
            dz1[t, i] = dh1[i] * (1.0 - h * h)
            dh1[i] = 0.0
        _add_product(u1, dz1[t], dh1)
    _descend(w1, np.dot(dz1.T, x), rate)
    _descend(u1, np.dot(dz1.T, h1[:steps]), rate)
    _descend(w2, np.dot(dz2.T, h1[1:]), rate)
    _descend(u2, np.dot(dz2.T, h2[:steps]), rate)
    for i in range(units):
        v[i] -= rate * dv[i]
    return loss / steps


def make_jax_kernel() -> Any:
    import jax
    import jax.numpy as jnp
    from jax import lax

    from benchmarks.jax_jit import jit

    def loss(weights: Any, x: Any, target: Any) -> Any:
        w1, u1, w2, u2, v = weights

        def step(state: Any, x: Any) -> Any:
            h1, h2 = state
            h1 = jnp.tanh(w1 @ x + u1 @ h1)
            h2 = jnp.tanh(w2 @ h1 + u2 @ h2)
            return (h1, h2), h2

        start = jnp.zeros(v.shape[0])
        hs = lax.scan(step, (start, start), x)[1]
        return ((hs @ v - target) ** 2).mean()

    def train(x: Any, target: Any, rate: Any, *weights: Any) -> Any:
        value, slopes = jax.value_and_grad(loss)(weights, x, target)
        return value, tuple(weight - rate * slope for weight, slope in zip(weights, slopes))

    return jit(train)


WORKLOADS = [
    Workload(
        name="rnn-train",
        title="50 steps of gradient descent on a recurrent network of two layers, 16 units each",
        build=build,
        kernel=kernel,
        make_inputs=make_inputs,
        sizes={
            "tiny": {"units": 3, "features": 2, "steps": 5},
            "default": {"units": 16, "features": 8, "steps": 100},
            "large": {"units": 64, "features": 16, "steps": 500},
        },
        make_jax_kernel=make_jax_kernel,
        make_state=make_state,
        repeat=50,
    )
]
