"""The log-likelihood of a GARCH(1, 1) model, and its gradient by the three parameters."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from benchmarks.namespaces import Namespace
from benchmarks.workload import Graph, Workload

SIZES = {"tiny": {"steps": 12}, "default": {"steps": 10_000}, "large": {"steps": 200_000}}


def make_inputs(steps: int) -> tuple[Any, ...]:
    return 0.05, 0.1, 0.85, np.random.default_rng(5).normal(size=steps)


def _log_likelihood(ns: Namespace) -> tuple[list[Any], Any]:
    omega, alpha, beta = ns.at.dscalars("omega", "alpha", "beta")
    returns = ns.at.dvector("returns")
    variances, _ = ns.scan(
        lambda r, variance, omega, alpha, beta: omega + alpha * r**2 + beta * variance,
        sequences=[returns[:-1]],
        outputs_info=[ns.at.constant(1.0, dtype="float64")],
        non_sequences=[omega, alpha, beta],
    )
    value = -0.5 * (ns.at.log(variances) + returns[1:] ** 2 / variances).sum()
    return [omega, alpha, beta, returns], value


def build(ns: Namespace) -> Graph:
    inputs, value = _log_likelihood(ns)
    return Graph(inputs, [value])


def build_grad(ns: Namespace) -> Graph:
    inputs, value = _log_likelihood(ns)
    return Graph(inputs, ns.grad(value, inputs[:3]))


@njit(error_model="numpy")
def kernel(omega, alpha, beta, returns):
    variance = 1.0
    total = 0.0
    for t in range(returns.shape[0] - 1):
        variance = omega + alpha * returns[t] * returns[t] + beta * variance
        total += np.log(variance) + returns[t + 1] * returns[t + 1] / variance
    return -0.5 * total


@njit(error_model="numpy")
def grad(omega, alpha, beta, returns):
    steps = returns.shape[0] - 1
    variances = np.empty(steps + 1)
    variances[0] = 1.0
    for t in range(steps):
        variances[t + 1] = omega + alpha * returns[t] * returns[t] + beta * variances[t]
    domega = dalpha = dbeta = dvariance = 0.0
    for t in range(steps - 1, -1, -1):
        inverse = 1.0 / variances[t + 1]
        shock = returns[t + 1] * returns[t + 1] * inverse
        dvariance += -0.5 * inverse * (1.0 - shock)
        domega += dvariance
        dalpha += dvariance * returns[t] * returns[t]
        dbeta += dvariance * variances[t]
        dvariance *= beta
    return domega, dalpha, dbeta


def _jax_log_likelihood() -> Any:
    import jax.numpy as jnp
    from jax import lax

    def log_likelihood(omega: Any, alpha: Any, beta: Any, returns: Any) -> Any:
        def step(variance: Any, r: Any) -> Any:
            variance = omega + alpha * r**2 + beta * variance
            return variance, variance

        variances = lax.scan(step, 1.0, returns[:-1])[1]
        return -0.5 * (jnp.log(variances) + returns[1:] ** 2 / variances).sum()

    return log_likelihood


def make_jax_kernel() -> Any:
    from benchmarks.jax_jit import jit

    return jit(_jax_log_likelihood())


def make_jax_grad() -> Any:
    import jax

    from benchmarks.jax_jit import jit

    return jit(jax.grad(_jax_log_likelihood(), argnums=(0, 1, 2)))


WORKLOADS = [
    Workload(
        name="garch",
        title="the log-likelihood of a GARCH(1, 1) model",
        build=build,
        kernel=kernel,
        make_inputs=make_inputs,
        sizes=SIZES,
        make_jax_kernel=make_jax_kernel,
    ),
    Workload(
        name="garch-grad",
        title="its gradient by the three parameters",
        build=build_grad,
        kernel=grad,
        make_inputs=make_inputs,
        sizes=SIZES,
        make_jax_kernel=make_jax_grad,
    ),
]
