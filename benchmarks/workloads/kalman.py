"""The log-likelihood of a Kalman filter with three states and one observed number."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from benchmarks.namespaces import Namespace
from benchmarks.workload import Graph, Workload

LOG_2_PI = float(np.log(2.0 * np.pi))
SIZES = {"tiny": {"steps": 6}, "default": {"steps": 2_000}, "large": {"steps": 50_000}}


def make_inputs(steps: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(4)
    transition = np.array([[0.9, 0.2, 0.0], [-0.1, 0.8, 0.3], [0.0, -0.2, 0.7]])
    noise = np.diag([0.1, 0.2, 0.3])
    observed = np.array([1.0, 0.5, -0.3])
    return transition, noise, observed, 0.4, rng.normal(size=steps)


def log_likelihood(ns: Namespace) -> tuple[list[Any], Any]:
    """Give the inputs and the value of the graph."""
    at = ns.at
    transition, noise = at.dmatrices("transition", "noise")
    observed, y = at.dvectors("observed", "y")
    variance = at.dscalar("variance")

    def step(y: Any, mean: Any, cov: Any, transition: Any, noise: Any, h: Any, r: Any) -> Any:
        mean = at.dot(transition, mean)
        cov = at.dot(at.dot(transition, cov), transition.T) + noise
        u = at.dot(cov, h)
        s = at.dot(h, u) + r
        gain = u / s
        error = y - at.dot(h, mean)
        term = -0.5 * (LOG_2_PI + at.log(s) + error**2 / s)
        return mean + gain * error, cov - at.outer(gain, u), term

    (_, _, terms), _ = ns.scan(
        step,
        sequences=[y],
        outputs_info=[at.zeros_like(observed), at.eye(3), None],
        non_sequences=[transition, noise, observed, variance],
    )
    return [transition, noise, observed, variance, y], terms.sum()


def build(ns: Namespace) -> Graph:
    inputs, value = log_likelihood(ns)
    return Graph(inputs, [value])


@njit(error_model="numpy")
def kernel(transition, noise, observed, variance, y):
    n = observed.shape[0]
    mean, predicted, u = np.zeros(n), np.empty(n), np.empty(n)
    cov, moved = np.eye(n), np.empty((n, n))
    total = 0.0
    for t in range(y.shape[0]):
        for i in range(n):
            predicted[i] = 0.0
            for k in range(n):
                predicted[i] += transition[i, k] * mean[k]
            for j in range(n):
                moved[i, j] = 0.0
                for k in range(n):
                    moved[i, j] += transition[i, k] * cov[k, j]
        for i in range(n):
            for j in range(n):
                entry = noise[i, j]
                for k in range(n):
                    entry += moved[i, k] * transition[j, k]
                cov[i, j] = entry
        s, error = variance, y[t]
        for i in range(n):
            u[i] = 0.0
            for k in range(n):
                u[i] += cov[i, k] * observed[k]
            s += observed[i] * u[i]
            error -= observed[i] * predicted[i]
        total += -0.5 * (LOG_2_PI + np.log(s) + error * error / s)
        for i in range(n):
            gain = u[i] / s
            mean[i] = predicted[i] + gain * error
            for j in range(n):
                cov[i, j] -= gain * u[j]
    return total


def jax_log_likelihood() -> Any:
    """Give the same by hand in JAX, not compiled."""
    import jax.numpy as jnp
    from jax import lax

    def value(transition: Any, noise: Any, h: Any, r: Any, y: Any) -> Any:
        def step(carry: Any, y: Any) -> Any:
            mean, cov = carry
            mean = transition @ mean
            cov = transition @ cov @ transition.T + noise
            u = cov @ h
            s = h @ u + r
            gain = u / s
            error = y - h @ mean
            term = -0.5 * (LOG_2_PI + jnp.log(s) + error**2 / s)
            return (mean + gain * error, cov - jnp.outer(gain, u)), term

        n = h.shape[0]
        return lax.scan(step, (jnp.zeros(n), jnp.eye(n)), y)[1].sum()

    return value


def make_jax_kernel() -> Any:
    from benchmarks.jax_jit import jit

    return jit(jax_log_likelihood())


WORKLOADS = [
    Workload(
        name="kalman",
        title="the log-likelihood of a Kalman filter with 3 states",
        build=build,
        kernel=kernel,
        make_inputs=make_inputs,
        sizes=SIZES,
        make_jax_kernel=make_jax_kernel,
    )
]
