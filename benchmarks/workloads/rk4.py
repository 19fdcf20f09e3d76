"""Runge-Kutta steps of the van der Pol oscillator, and a gradient by its parameters."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from benchmarks.namespaces import Namespace
from benchmarks.workload import Graph, Workload

SIZES = {
    "tiny": {"steps": 5, "horizon": 1},
    "default": {"steps": 4_000, "horizon": 8},
    "large": {"steps": 100_000, "horizon": 8},
}


def make_inputs(steps: int, horizon: int) -> tuple[Any, ...]:
    return np.array([1.0, 0.5]), 0.8, 1.2, horizon / steps, steps


def _trace(ns: Namespace) -> tuple[list[Any], Any]:
    y0 = ns.at.dvector("y0")
    mu, stiffness, h = ns.at.dscalars("mu", "stiffness", "h")
    n = ns.at.lscalar("n")

    def slope(y: Any, mu: Any, stiffness: Any) -> Any:
        x, v = y[0], y[1]
        return ns.at.stack([v, mu * (1.0 - x**2) * v - stiffness * x])

    def step(y: Any, mu: Any, stiffness: Any, h: Any) -> Any:
        k1 = slope(y, mu, stiffness)
        k2 = slope(y + 0.5 * h * k1, mu, stiffness)
        k3 = slope(y + 0.5 * h * k2, mu, stiffness)
        k4 = slope(y + h * k3, mu, stiffness)
        return y + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)

    trace, _ = ns.scan(step, outputs_info=[y0], non_sequences=[mu, stiffness, h], n_steps=n)
    return [y0, mu, stiffness, h, n], trace


def build(ns: Namespace) -> Graph:
    inputs, trace = _trace(ns)
    return Graph(inputs, [trace])


def build_grad(ns: Namespace) -> Graph:
    inputs, trace = _trace(ns)
    return Graph(inputs, ns.grad((trace**2).mean(), inputs[1:3]))


@njit
def _acceleration(x, v, mu, stiffness):
    return mu * (1.0 - x * x) * v - stiffness * x


@njit
def _step(x, v, mu, stiffness, h):
    a1 = _acceleration(x, v, mu, stiffness)
    x2, v2 = x + 0.5 * h * v, v + 0.5 * h * a1
    a2 = _acceleration(x2, v2, mu, stiffness)
    x3, v3 = x + 0.5 * h * v2, v + 0.5 * h * a2
    a3 = _acceleration(x3, v3, mu, stiffness)
    x4, v4 = x + h * v3, v + h * a3
    a4 = _acceleration(x4, v4, mu, stiffness)
    x += h / 6.0 * (v + 2.0 * v2 + 2.0 * v3 + v4)
    v += h / 6.0 * (a1 + 2.0 * a2 + 2.0 * a3 + a4)
    return x, v, x2, v2, x3, v3, x4, v4


@njit
def kernel(y0, mu, stiffness, h, n):
    trace = np.empty((n, 2))
    x, v = y0[0], y0[1]
    for t in range(n):
        x, v, _, _, _, _, _, _ = _step(x, v, mu, stiffness, h)
        trace[t, 0] = x
        trace[t, 1] = v
    return trace


@njit
def _pull_back(x, v, dx, dv, mu, stiffness):
    """Take the adjoint of a slope back to the state and to both parameters."""
    by_x = -dv * (2.0 * mu * x * v + stiffness)
    by_v = dx + dv * mu * (1.0 - x * x)
    return by_x, by_v, dv * (1.0 - x * x) * v, -dv * x


@njit
def grad(y0, mu, stiffness, h, n):
    # Row t is the state before step t; the stages in between are computed again.
    trace = np.empty((n + 1, 2))
    x, v = y0[0], y0[1]
    trace[0, 0], trace[0, 1] = x, v
    for t in range(n):
        x, v, _, _, _, _, _, _ = _step(x, v, mu, stiffness, h)
        trace[t + 1, 0], trace[t + 1, 1] = x, v
    dmu = dstiffness = dx = dv = 0.0
    for t in range(n - 1, -1, -1):
        dx += trace[t + 1, 0] / n
        dv += trace[t + 1, 1] / n
        x, v = trace[t, 0], trace[t, 1]
        _, _, x2, v2, x3, v3, x4, v4 = _step(x, v, mu, stiffness, h)
        bx4, bv4, m4, s4 = _pull_back(x4, v4, h / 6.0 * dx, h / 6.0 * dv, mu, stiffness)
        bx3, bv3, m3, s3 = _pull_back(
            x3, v3, h / 3.0 * dx + h * bx4, h / 3.0 * dv + h * bv4, mu, stiffness
        )
        bx2, bv2, m2, s2 = _pull_back(
            x2, v2, h / 3.0 * dx + 0.5 * h * bx3, h / 3.0 * dv + 0.5 * h * bv3, mu, stiffness
        )
        bx1, bv1, m1, s1 = _pull_back(
            x, v, h / 6.0 * dx + 0.5 * h * bx2, h / 6.0 * dv + 0.5 * h * bv2, mu, stiffness
        )
        dx += bx1 + bx2 + bx3 + bx4
        dv += bv1 + bv2 + bv3 + bv4
        dmu += m1 + m2 + m3 + m4
        dstiffness += s1 + s2 + s3 + s4
    return dmu, dstiffness


def _jax_trace() -> Any:
    import jax.numpy as jnp
    from jax import lax

    def trace(y0: Any, mu: Any, stiffness: Any, h: Any, n: int) -> Any:
        def slope(y: Any) -> Any:
            x, v = y
            return jnp.stack([v, mu * (1.0 - x**2) * v - stiffness * x])

        def step(y: Any, _: None) -> Any:
            k1 = slope(y)
            k2 = slope(y + 0.5 * h * k1)
            k3 = slope(y + 0.5 * h * k2)
            k4 = slope(y + h * k3)
            y = y + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
            return y, y

        return lax.scan(step, y0, None, length=n)[1]

    return trace


def make_jax_kernel() -> Any:
    from benchmarks.jax_jit import jit

    return jit(_jax_trace(), static_argnums=4)


def make_jax_grad() -> Any:
    import jax

    from benchmarks.jax_jit import jit

    trace = _jax_trace()

    def loss(*inputs: Any) -> Any:
        return (trace(*inputs) ** 2).mean()

    return jit(jax.grad(loss, argnums=(1, 2)), static_argnums=4)


WORKLOADS = [
    Workload(
        name="rk4",
        title="Runge-Kutta steps of the van der Pol oscillator, the whole trace",
        build=build,
        kernel=kernel,
        make_inputs=make_inputs,
        sizes=SIZES,
        make_jax_kernel=make_jax_kernel,
    ),
    Workload(
        name="rk4-grad",
        title="the gradient of the mean square of that trace by both parameters",
        build=build_grad,
        kernel=grad,
        make_inputs=make_inputs,
        sizes=SIZES,
        make_jax_kernel=make_jax_grad,
    ),
]
