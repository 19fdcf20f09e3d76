"""A scalar recurrence: its trace, its last value, and the gradient of the trace's sum."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from benchmarks.namespaces import Namespace
from benchmarks.workload import Graph, Workload

SIZES = {"tiny": {"steps": 20}, "default": {"steps": 100_000}, "large": {"steps": 1_000_000}}


def make_inputs(steps: int) -> tuple[Any, ...]:
    return 0.3, 0.9, 0.1, steps


def _trace(ns: Namespace) -> tuple[list[Any], Any]:
    x0, a, b = ns.at.dscalars("x0", "a", "b")
    n = ns.at.lscalar("n")
    trace, _ = ns.scan(
        lambda x, a, b: ns.at.tanh(a * x + b), outputs_info=[x0], non_sequences=[a, b], n_steps=n
    )
    return [x0, a, b, n], trace


def build_full(ns: Namespace) -> Graph:
    inputs, trace = _trace(ns)
    return Graph(inputs, [trace])


def build_last(ns: Namespace) -> Graph:
    inputs, trace = _trace(ns)
    return Graph(inputs, [trace[-1]])


def build_grad(ns: Namespace) -> Graph:
    inputs, trace = _trace(ns)
    return Graph(inputs, ns.grad(trace.sum(), inputs[:3]))


@njit
def full(x0, a, b, n):
    trace = np.empty(n)
    x = x0
    for t in range(n):
        x = np.tanh(a * x + b)
        trace[t] = x
    return trace


@njit
def last(x0, a, b, n):
    x = x0
    for _ in range(n):
        x = np.tanh(a * x + b)
    return x


@njit
def grad(x0, a, b, n):
    trace = np.empty(n + 1)
    trace[0] = x0
    for t in range(n):
        trace[t + 1] = np.tanh(a * trace[t] + b)
    dx = da = db = 0.0
    for t in range(n - 1, -1, -1):
        dx += 1.0
        dz = dx * (1.0 - trace[t + 1] * trace[t + 1])
        da += dz * trace[t]
        db += dz
        dx = dz * a
    return dx, da, db


def _jax_scan() -> Any:
    import jax.numpy as jnp
    from jax import lax

    def scan(x0: Any, a: Any, b: Any, n: int) -> Any:
        def step(x: Any, _: None) -> Any:
            x = jnp.tanh(a * x + b)
            return x, x

        return lax.scan(step, x0, None, length=n)

    return scan


def make_jax_full() -> Any:
    from benchmarks.jax_jit import jit

    scan = _jax_scan()
    return jit(lambda x0, a, b, n: scan(x0, a, b, n)[1], static_argnums=3)


def make_jax_last() -> Any:
    import jax.numpy as jnp
    from jax import lax

    from benchmarks.jax_jit import jit

    def last(x0: Any, a: Any, b: Any, n: int) -> Any:
        return lax.fori_loop(0, n, lambda _, x: jnp.tanh(a * x + b), x0)

    return jit(last)


def make_jax_grad() -> Any:
    import jax

    from benchmarks.jax_jit import jit

    scan = _jax_scan()

    def loss(x0: Any, a: Any, b: Any, n: int) -> Any:
        return scan(x0, a, b, n)[1].sum()

    return jit(jax.grad(loss, argnums=(0, 1, 2)), static_argnums=3)


WORKLOADS = [
    Workload(
        name="recurrence-full",
        title="x[t+1] = tanh(a x[t] + b), the whole trace",
        build=build_full,
        kernel=full,
        make_inputs=make_inputs,
        sizes=SIZES,
        make_jax_kernel=make_jax_full,
    ),
    Workload(
        name="recurrence-last",
        title="x[t+1] = tanh(a x[t] + b), the last value",
        build=build_last,
        kernel=last,
        make_inputs=make_inputs,
        sizes=SIZES,
        make_jax_kernel=make_jax_last,
    ),
    Workload(
        name="recurrence-grad",
        title="the gradient of the sum of that trace by x[0], a and b",
        build=build_grad,
        kernel=grad,
        make_inputs=make_inputs,
        sizes=SIZES,
        make_jax_kernel=make_jax_grad,
    ),
]
