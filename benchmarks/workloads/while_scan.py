"""A loop that ends by a condition: its last value, and its whole trace."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from benchmarks.namespaces import Namespace
from benchmarks.workload import Graph, Workload

# The distance to the target falls by the rate at every step, so that the loop takes
# log(tolerance) / log(1 - rate) steps: about 20, 20 000 and 200 000.
SIZES = {"tiny": {"scale": 1}, "default": {"scale": 1_000}, "large": {"scale": 10_000}}


def make_inputs(scale: int) -> tuple[Any, ...]:
    return 0.0, 0.5 / scale, 1.0, 4.5e-5, 40 * scale


def _trace(ns: Namespace) -> tuple[list[Any], Any]:
    x0, rate, target, tolerance = ns.at.dscalars("x0", "rate", "target", "tolerance")
    n = ns.at.lscalar("n")

    def step(x: Any, rate: Any, target: Any, tolerance: Any) -> Any:
        x = x + rate * (target - x)
        return x, ns.until(abs(target - x) < tolerance)

    trace, _ = ns.scan(step, outputs_info=[x0], non_sequences=[rate, target, tolerance], n_steps=n)
    return [x0, rate, target, tolerance, n], trace


def build_last(ns: Namespace) -> Graph:
    inputs, trace = _trace(ns)
    return Graph(inputs, [trace[-1]])


def build_full(ns: Namespace) -> Graph:
    inputs, trace = _trace(ns)
    return Graph(inputs, [trace])


@njit
def last(x0, rate, target, tolerance, n):
    x = x0
    for _ in range(n):
        x = x + rate * (target - x)
        if abs(target - x) < tolerance:
            break
    return x


@njit
def full(x0, rate, target, tolerance, n):
    trace = np.empty(n)
    x = x0
    steps = n
    for t in range(n):
        x = x + rate * (target - x)
        trace[t] = x
        if abs(target - x) < tolerance:
            steps = t + 1
            break
    return trace[:steps]


def make_jax_last() -> Any:
    from jax import lax

    from benchmarks.jax_jit import jit

    def last(x0: Any, rate: Any, target: Any, tolerance: Any, n: Any) -> Any:
        def goes_on(state: Any) -> Any:
            t, x = state
            return (t < n) & ((t == 0) | (abs(target - x) >= tolerance))

        def step(state: Any) -> Any:
            t, x = state
            return t + 1, x + rate * (target - x)

        return lax.while_loop(goes_on, step, (0, x0))[1]

    return jit(last)


def make_jax_full() -> Any:
    import jax.numpy as jnp
    from jax import lax

    from benchmarks.jax_jit import jit

    def padded(x0: Any, rate: Any, target: Any, tolerance: Any, n: int) -> Any:
        def goes_on(state: Any) -> Any:
            t, x, _ = state
            return (t < n) & ((t == 0) | (abs(target - x) >= tolerance))

        def step(state: Any) -> Any:
            t, x, trace = state
            x = x + rate * (target - x)
            return t + 1, x, trace.at[t].set(x)

        t, _, trace = lax.while_loop(goes_on, step, (0, x0, jnp.zeros(n)))
        return t, trace

    compiled = jit(padded, static_argnums=4)

    def full(*inputs: Any) -> Any:
        # A length that depends on the data exists outside of compiled code only.
        steps, trace = compiled(*inputs)
        return np.asarray(trace)[: int(steps)]

    return full


WORKLOADS = [
    Workload(
        name="while-last",
        title="x += rate (target - x) until it is close, the last value",
        build=build_last,
        kernel=last,
        make_inputs=make_inputs,
        sizes=SIZES,
        make_jax_kernel=make_jax_last,
    ),
    Workload(
        name="while-full",
        title="x += rate (target - x) until it is close, the whole trace",
        build=build_full,
        kernel=full,
        make_inputs=make_inputs,
        sizes=SIZES,
        make_jax_kernel=make_jax_full,
    ),
]
