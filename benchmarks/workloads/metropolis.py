"""Random walk Metropolis sampling of a logistic regression's coefficients."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from benchmarks.namespaces import Namespace
from benchmarks.workload import Graph, Workload


def make_inputs(rows: int, columns: int, steps: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(13)
    x = rng.normal(size=(rows, columns))
    chances = 1.0 / (1.0 + np.exp(-x @ np.linspace(-1.0, 1.0, columns)))
    labels = (rng.uniform(size=rows) < chances).astype(float)
    return x, labels, np.zeros(columns), 0.3, steps


def build(ns: Namespace) -> Graph:
    at = ns.at
    x = at.dmatrix("x")
    labels, start = at.dvectors("labels", "start")
    width = at.dscalar("width")
    n = at.lscalar("n")
    generator = ns.shared(np.random.default_rng(0), name="generator")

    def log_density(beta: Any, x: Any, labels: Any) -> Any:
        eta = at.dot(x, beta)
        return at.sum(labels * eta - at.log1p(at.exp(eta))) - 0.5 * at.sum(beta**2)

    def step(beta: Any, density: Any, x: Any, labels: Any, width: Any) -> Any:
        between, proposal = ns.draw("normal", beta, width, rng=generator)
        after, chance = ns.draw("uniform", 0.0, 1.0, rng=between)
        proposed = log_density(proposal, x, labels)
        accepted = at.log(chance) < proposed - density
        beta = at.switch(accepted, proposal, beta)
        return [beta, at.switch(accepted, proposed, density)], {generator: after}

    (trace, _), updates = ns.scan(
        step,
        outputs_info=[start, log_density(start, x, labels)],
        non_sequences=[x, labels, width],
        n_steps=n,
    )
    return Graph([x, labels, start, width, n], [trace], updates, generator)


@njit
def _log_density(beta, x, labels):
    total = 0.0
    for i in range(x.shape[0]):
        eta = 0.0
        for j in range(x.shape[1]):
            eta += x[i, j] * beta[j]
        total += labels[i] * eta - np.log1p(np.exp(eta))
    for j in range(beta.shape[0]):
        total -= 0.5 * beta[j] * beta[j]
    return total


@njit
def kernel(rng, x, labels, start, width, n):
    columns = start.shape[0]
    trace = np.empty((n, columns))
    beta, proposal = start.copy(), np.empty(columns)
    density = _log_density(beta, x, labels)
    for t in range(n):
        for j in range(columns):
            proposal[j] = rng.normal(beta[j], width)
        chance = rng.uniform(0.0, 1.0)
        proposed = _log_density(proposal, x, labels)
        if np.log(chance) < proposed - density:
            density = proposed
            beta, proposal = proposal, beta
        for j in range(columns):
            trace[t, j] = beta[j]
    return trace


def make_jax_kernel() -> Any:
    import jax
    import jax.numpy as jnp
    from jax import lax

    from benchmarks.jax_jit import jit

    def metropolis(key: Any, x: Any, labels: Any, start: Any, width: Any, n: int) -> Any:
        # All draws at once, before the loop, as one does in JAX.
        for_moves, for_chances = jax.random.split(key)
        moves = width * jax.random.normal(for_moves, (n, start.shape[0]))
        thresholds = jnp.log(jax.random.uniform(for_chances, (n,)))

        def log_density(beta: Any) -> Any:
            eta = x @ beta
            return jnp.sum(labels * eta - jax.nn.softplus(eta)) - 0.5 * jnp.sum(beta**2)

        def step(state: Any, now: Any) -> Any:
            beta, density = state
            move, threshold = now
            proposed = log_density(beta + move)
            accepted = threshold < proposed - density
            beta = jnp.where(accepted, beta + move, beta)
            return (beta, jnp.where(accepted, proposed, density)), beta

        return lax.scan(step, (start, log_density(start)), (moves, thresholds))[1]

    return jit(metropolis, static_argnums=5)


WORKLOADS = [
    Workload(
        name="metropolis",
        title="Metropolis sampling of a logistic regression, 100 rows by 3, the trace",
        build=build,
        kernel=kernel,
        make_inputs=make_inputs,
        sizes={
            "tiny": {"rows": 6, "columns": 2, "steps": 8},
            "default": {"rows": 100, "columns": 3, "steps": 5_000},
            "large": {"rows": 100, "columns": 3, "steps": 50_000},
        },
        make_jax_kernel=make_jax_kernel,
        seed=14,
    )
]
