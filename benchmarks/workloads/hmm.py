"""The forward pass of a hidden Markov model in log space, and its gradient."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from benchmarks.namespaces import Namespace
from benchmarks.workload import Graph, Workload

SIZES = {
    "tiny": {"states": 3, "steps": 6},
    "default": {"states": 6, "steps": 1_000},
    "large": {"states": 6, "steps": 20_000},
}


def make_inputs(states: int, steps: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(3)
    transitions = np.log(rng.dirichlet(np.ones(states), size=states))
    return np.full(states, -np.log(states)), transitions, rng.normal(size=(steps, states))


def _log_likelihood(ns: Namespace) -> tuple[list[Any], Any]:
    at = ns.at
    start = at.dvector("start")
    transitions, emissions = at.dmatrices("transitions", "emissions")

    def step(emission: Any, alpha: Any, transitions: Any) -> Any:
        return at.logsumexp(alpha[:, None] + transitions, axis=0) + emission

    alphas, _ = ns.scan(
        step, sequences=[emissions], outputs_info=[start], non_sequences=[transitions]
    )
    return [start, transitions, emissions], at.logsumexp(alphas[-1])


def build(ns: Namespace) -> Graph:
    inputs, value = _log_likelihood(ns)
    return Graph(inputs, [value])


def build_grad(ns: Namespace) -> Graph:
    inputs, value = _log_likelihood(ns)
    return Graph(inputs, [ns.grad(value, inputs[1])])


@njit
def _log_sum_exp(x):
    largest = x[0]
    for i in range(1, x.shape[0]):
        largest = max(largest, x[i])
    total = 0.0
    for i in range(x.shape[0]):
        total += np.exp(x[i] - largest)
    return largest + np.log(total)


@njit
def forward(start, transitions, emissions):
    steps, states = emissions.shape
    alpha = start.copy()
    after = np.empty(states)
    terms = np.empty(states)
    for t in range(steps):
        for j in range(states):
            for i in range(states):
                terms[i] = alpha[i] + transitions[i, j]
            after[j] = _log_sum_exp(terms) + emissions[t, j]
        alpha, after = after, alpha
    return _log_sum_exp(alpha)


@njit(error_model="numpy")
def grad(start, transitions, emissions):
    steps, states = emissions.shape
    alpha = start.copy()
    after = np.empty(states)
    # How much of state j after step t comes from state i: the derivative of one by the
    # other, which saves the exponentials on the way back.
    origins = np.empty((steps, states, states))
    for t in range(steps):
        for j in range(states):
            largest = alpha[0] + transitions[0, j]
            for i in range(1, states):
                largest = max(largest, alpha[i] + transitions[i, j])
            total = 0.0
            for i in range(states):
                term = np.exp(alpha[i] + transitions[i, j] - largest)
                origins[t, j, i] = term
                total += term
            for i in range(states):
                origins[t, j, i] /= total
            after[j] = largest + np.log(total) + emissions[t, j]
        alpha, after = after, alpha
    dalpha = np.exp(alpha - _log_sum_exp(alpha))
    before = np.empty(states)
    result = np.zeros((states, states))
    for t in range(steps - 1, -1, -1):
        for i in range(states):
            before[i] = 0.0
        for j in range(states):
            for i in range(states):
                share = dalpha[j] * origins[t, j, i]
                before[i] += share
                result[i, j] += share
        dalpha, before = before, dalpha
    return result


def _jax_log_likelihood() -> Any:
    from jax import lax
    from jax.scipy.special import logsumexp

    def log_likelihood(start: Any, transitions: Any, emissions: Any) -> Any:
        def step(alpha: Any, emission: Any) -> Any:
            return logsumexp(alpha[:, None] + transitions, axis=0) + emission, None

        return logsumexp(lax.scan(step, start, emissions)[0])

    return log_likelihood


def make_jax_forward() -> Any:
    from benchmarks.jax_jit import jit

    return jit(_jax_log_likelihood())


def make_jax_grad() -> Any:
    import jax

    from benchmarks.jax_jit import jit

    return jit(jax.grad(_jax_log_likelihood(), argnums=1))


WORKLOADS = [
    Workload(
        name="hmm",
        title="the log-likelihood of a hidden Markov model with 6 states",
        build=build,
        kernel=forward,
        make_inputs=make_inputs,
        sizes=SIZES,
        make_jax_kernel=make_jax_forward,
    ),
    Workload(
        name="hmm-grad",
        title="its gradient by the log transition matrix",
        build=build_grad,
        kernel=grad,
        make_inputs=make_inputs,
        sizes=SIZES,
        make_jax_kernel=make_jax_grad,
    ),
]
