"""The gradient of a Kalman filter's log-likelihood, by the transition and the noise."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from benchmarks.namespaces import Namespace
from benchmarks.workload import Graph, Workload
from benchmarks.workloads.kalman import SIZES, jax_log_likelihood, log_likelihood, make_inputs


def build(ns: Namespace) -> Graph:
    inputs, value = log_likelihood(ns)
    return Graph(inputs, ns.grad(value, [inputs[0], inputs[3]]))


@njit(error_model="numpy")
def kernel(transition, noise, observed, variance, y):
    f, h = transition, observed
    steps, n = y.shape[0], h.shape[0]
    # Before and after the move of each step; the last entries of the first two are not used.
    mean, cov = np.zeros((steps + 1, n)), np.zeros((steps + 1, n, n))
    predicted, moved = np.empty(n), np.empty((steps, n, n))
    us, ss, errors = np.empty((steps, n)), np.empty(steps), np.empty(steps)
    for i in range(n):
        cov[0, i, i] = 1.0
    for t in range(steps):
        for i in range(n):
            predicted[i] = 0.0
            for k in range(n):
                predicted[i] += f[i, k] * mean[t, k]
            for j in range(n):
                moved[t, i, j] = 0.0
                for k in range(n):
                    moved[t, i, j] += f[i, k] * cov[t, k, j]
        for i in range(n):
            for j in range(n):
                entry = noise[i, j]
                for k in range(n):
                    entry += moved[t, i, k] * f[j, k]
                cov[t + 1, i, j] = entry
        s, error = variance, y[t]
        for i in range(n):
            us[t, i] = 0.0
            for k in range(n):
                us[t, i] += cov[t + 1, i, k] * h[k]
            s += h[i] * us[t, i]
            error -= h[i] * predicted[i]
        ss[t], errors[t] = s, error
        for i in range(n):
            gain = us[t, i] / s
            mean[t + 1, i] = predicted[i] + gain * error
            for j in range(n):
                cov[t + 1, i, j] -= gain * us[t, j]

    df, dvariance = np.zeros((n, n)), 0.0
    dmean, dcov = np.zeros(n), np.zeros((n, n))
    dgain, du, dmoved = np.empty(n), np.empty(n), np.empty((n, n))
    for t in range(steps - 1, -1, -1):
        s, error = ss[t], errors[t]
        derror = -error / s
        ds = -0.5 * (1.0 / s - error * error / (s * s))
        for i in range(n):
            derror += us[t, i] / s * dmean[i]
            dgain[i] = error * dmean[i]
            du[i] = 0.0
            for j in range(n):
                dgain[i] -= dcov[i, j] * us[t, j]
                du[i] -= dcov[j, i] * us[t, j] / s
        for i in range(n):
            du[i] += dgain[i] / s
            ds -= dgain[i] * us[t, i] / (s * s)
        dvariance += ds
        for i in range(n):
            du[i] += ds * h[i]
            # From here on the derivatives by the prediction.
            dmean[i] -= derror * h[i]
            for j in range(n):
                dcov[i, j] += du[i] * h[j]
        for i in range(n):
            for j in range(n):
                by_moved, by_f = 0.0, 0.0
                for k in range(n):
                    by_moved += dcov[i, k] * f[k, j]
                    by_f += dcov[k, i] * moved[t, k, j]
                dmoved[i, j] = by_moved
                df[i, j] += by_f + dmean[i] * mean[t, j]
        for i in range(n):
            du[i] = 0.0
            for k in range(n):
                du[i] += f[k, i] * dmean[k]
            for j in range(n):
                by_cov, by_f = 0.0, 0.0
                for k in range(n):
                    by_cov += f[k, i] * dmoved[k, j]
                    by_f += dmoved[i, k] * cov[t, j, k]
                dcov[i, j] = by_cov
                df[i, j] += by_f
        for i in range(n):
            dmean[i] = du[i]
    return df, dvariance


def make_jax_kernel() -> Any:
    import jax

    from benchmarks.jax_jit import jit

    return jit(jax.grad(jax_log_likelihood(), argnums=(0, 3)))


WORKLOADS = [
    Workload(
        name="kalman-grad",
        title="its gradient by the transition matrix and the variance of the observation",
        build=build,
        kernel=kernel,
        make_inputs=make_inputs,
        sizes=SIZES,
        make_jax_kernel=make_jax_kernel,
    )
]
