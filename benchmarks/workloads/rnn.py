"""A recurrent network: its trace, and the gradient of a loss by the recurrent weights."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from benchmarks.namespaces import Namespace
from benchmarks.workload import Graph, Workload


def make_inputs(units: int, steps: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(2)
    x = rng.normal(size=(steps, units))
    w = rng.normal(size=(units, units)) / np.sqrt(units)
    return x, w, np.zeros(units)


def _trace(ns: Namespace) -> tuple[list[Any], Any]:
    x, w = ns.at.dmatrices("x", "w")
    h0 = ns.at.dvector("h0")
    trace, _ = ns.scan(
        lambda x, h, w: ns.at.tanh(ns.at.dot(w, h) + x),
        sequences=[x],
        outputs_info=[h0],
        non_sequences=[w],
    )
    return [x, w, h0], trace


def build_full(ns: Namespace) -> Graph:
    inputs, trace = _trace(ns)
    return Graph(inputs, [trace])


def build_grad(ns: Namespace) -> Graph:
    inputs, trace = _trace(ns)
    return Graph(inputs, [ns.grad((trace**2).mean(), inputs[1])])


@njit
def _product(columns, h, start, total):
    """Set `total` to `start` and a matrix times `h`; row j of `columns` is its column j.

    For so few units this is faster than BLAS: the inner loop has no sum that has to be
    kept in order, so that it is vectorised.  And loops compile faster than assignments
    between arrays.
    """
    for i in range(total.shape[0]):
        total[i] = start[i]
    for j in range(h.shape[0]):
        factor = h[j]
        for i in range(total.shape[0]):
            total[i] += columns[j, i] * factor


@njit
def full(x, w, h0):
    steps, units = x.shape
    trace = np.empty((steps, units))
    total = np.empty(units)
    columns = np.ascontiguousarray(w.T)
    h = h0
    for t in range(steps):
        _product(columns, h, x[t], total)
        for i in range(units):
            trace[t, i] = np.tanh(total[i])
        h = trace[t]
    return trace


@njit
def grad(x, w, h0):
    steps, units = x.shape
    # Row t is the state before step t, so that the last product below is one matrix product.
    trace = np.empty((steps + 1, units))
    for i in range(units):
        trace[0, i] = h0[i]
    total = np.empty(units)
    columns = np.ascontiguousarray(w.T)
    for t in range(steps):
        _product(columns, trace[t], x[t], total)
        for i in range(units):
            trace[t + 1, i] = np.tanh(total[i])
    scale = 2.0 / (steps * units)
    dz = np.empty((steps, units))
    dh, nothing = np.zeros(units), np.zeros(units)
    for t in range(steps - 1, -1, -1):
        for i in range(units):
            h = trace[t + 1, i]
            dz[t, i] = (dh[i] + scale * h) * (1.0 - h * h)
        _product(w, dz[t], nothing, dh)
    return np.dot(dz.T, trace[:steps])


def _jax_scan() -> Any:
    import jax.numpy as jnp
    from jax import lax

    def scan(x: Any, w: Any, h0: Any) -> Any:
        def step(h: Any, x: Any) -> Any:
            h = jnp.tanh(w @ h + x)
            return h, h

        return lax.scan(step, h0, x)[1]

    return scan


def make_jax_full() -> Any:
    from benchmarks.jax_jit import jit

    return jit(_jax_scan())


def make_jax_grad() -> Any:
    import jax

    from benchmarks.jax_jit import jit

    scan = _jax_scan()
    return jit(jax.grad(lambda x, w, h0: (scan(x, w, h0) ** 2).mean(), argnums=1))


def _sizes(units: int) -> dict[str, dict[str, int]]:
    return {
        "tiny": {"units": 3, "steps": 6},
        "default": {"units": units, "steps": 5_000},
        "large": {"units": units, "steps": 50_000},
    }


WORKLOADS = [
    workload
    for units in (16, 64)
    for workload in (
        Workload(
            name=f"rnn{units}",
            title=f"h[t+1] = tanh(W h[t] + x[t]) with {units} units, the whole trace",
            build=build_full,
            kernel=full,
            make_inputs=make_inputs,
            sizes=_sizes(units),
            make_jax_kernel=make_jax_full,
        ),
        Workload(
            name=f"rnn{units}-grad",
            title=f"the gradient of the mean square of that trace by W, {units} units",
            build=build_grad,
            kernel=grad,
            make_inputs=make_inputs,
            sizes=_sizes(units),
            make_jax_kernel=make_jax_grad,
        ),
    )
]
