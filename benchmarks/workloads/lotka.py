"""Lotka-Volterra: the gradient of a loss of the trajectory by the four rates."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from benchmarks.namespaces import Namespace
from benchmarks.workload import Graph, Workload


def make_inputs(steps: int) -> tuple[Any, ...]:
    # Twenty units of time in steps of Euler's method, however many there are.
    return 1.0, 0.5, 1.1, 0.4, 0.1, 0.4, min(0.05, 20.0 / steps), steps


def build(ns: Namespace) -> Graph:
    x0, y0 = ns.at.dscalars("x0", "y0")
    rates = ns.at.dscalars("alpha", "beta", "delta", "gamma")
    h = ns.at.dscalar("h")
    n = ns.at.lscalar("n")

    def step(x: Any, y: Any, alpha: Any, beta: Any, delta: Any, gamma: Any, h: Any) -> Any:
        eaten = x * y
        return x + h * (alpha * x - beta * eaten), y + h * (delta * eaten - gamma * y)

    (xs, ys), _ = ns.scan(step, outputs_info=[x0, y0], non_sequences=[*rates, h], n_steps=n)
    loss = (xs**2 + ys**2).mean()
    return Graph([x0, y0, *rates, h, n], ns.grad(loss, list(rates)))


@njit
def kernel(x0, y0, alpha, beta, delta, gamma, h, n):
    xs, ys = np.empty(n + 1), np.empty(n + 1)
    xs[0], ys[0] = x0, y0
    for t in range(n):
        x, y = xs[t], ys[t]
        eaten = x * y
        xs[t + 1] = x + h * (alpha * x - beta * eaten)
        ys[t + 1] = y + h * (delta * eaten - gamma * y)
    dalpha = dbeta = ddelta = dgamma = 0.0
    dx = dy = 0.0
    scale = 2.0 / n
    for t in range(n - 1, -1, -1):
        dx += scale * xs[t + 1]
        dy += scale * ys[t + 1]
        x, y = xs[t], ys[t]
        hx, hy = h * dx, h * dy
        dalpha += hx * x
        dbeta -= hx * x * y
        ddelta += hy * x * y
        dgamma -= hy * y
        dx += hx * (alpha - beta * y) + hy * delta * y
        dy += hy * (delta * x - gamma) - hx * beta * x
    return dalpha, dbeta, ddelta, dgamma


def make_jax_kernel() -> Any:
    import jax
    from jax import lax

    from benchmarks.jax_jit import jit

    def loss(
        x0: Any, y0: Any, alpha: Any, beta: Any, delta: Any, gamma: Any, h: Any, n: int
    ) -> Any:
        def step(state: Any, _: None) -> Any:
            x, y = state
            eaten = x * y
            state = x + h * (alpha * x - beta * eaten), y + h * (delta * eaten - gamma * y)
            return state, state

        xs, ys = lax.scan(step, (x0, y0), None, length=n)[1]
        return (xs**2 + ys**2).mean()

    return jit(jax.grad(loss, argnums=(2, 3, 4, 5)), static_argnums=7)


WORKLOADS = [
    Workload(
        name="lotka-grad",
        title="the gradient of a Lotka-Volterra trajectory's mean square by its four rates",
        build=build,
        kernel=kernel,
        make_inputs=make_inputs,
        sizes={
            "tiny": {"steps": 20},
            "default": {"steps": 100_000},
            "large": {"steps": 1_000_000},
        },
        make_jax_kernel=make_jax_kernel,
        scaling=(1_000, 10_000, 100_000, 1_000_000),
    )
]
