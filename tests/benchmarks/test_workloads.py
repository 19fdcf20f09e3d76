"""The workloads: hand-written kernels and graphs against plain loops of Python."""

from __future__ import annotations

import math
from typing import Any, Callable

import numpy as np
import pytest

import fixed_modes  # noqa: F401
from benchmarks.agreement import as_arrays, difference
from benchmarks.contenders import CONTENDERS
from benchmarks.workload import SIZES
from benchmarks.workloads import NAMES, load

# Compiling every graph would take minutes; the rest is checked by
# ``python -m benchmarks run --size tiny``.
COMPILED = (
    "density",
    "growing-window",
    "diffusion",
    "large-map",
    "matrix-power",
    "newton-map",
    "particle-filter",
    "rnn-train",
    "recurrence-last",
    "recurrence-grad",
    "ar2",
    "rnn16",
    "while-last",
    "while-full",
    "nested",
    "garch",
    "softmax-map",
    "ar1-normal",
    "gibbs",
)


def growing_window(noise: np.ndarray, weights: np.ndarray) -> np.ndarray:
    values: list[float] = []
    for e in noise:
        before = zip(reversed(values), weights)
        values.append(float(e + sum(value * weight for value, weight in before)))
    return np.array(values)


def recurrence(x: float, a: float, b: float, n: int) -> np.ndarray:
    trace = []
    for _ in range(n):
        x = math.tanh(a * x + b)
        trace.append(x)
    return np.array(trace)


def ar2(start: np.ndarray, a: float, b: float, noise: np.ndarray) -> np.ndarray:
    trace = list(start)
    for e in noise:
        trace.append(a * trace[-1] + b * trace[-2] + e)
    return np.array(trace[2:])


def rnn(x: np.ndarray, w: np.ndarray, h: np.ndarray) -> np.ndarray:
    trace = []
    for row in x:
        h = np.tanh(w @ h + row)
        trace.append(h)
    return np.array(trace)


def while_scan(x: float, rate: float, target: float, tolerance: float, n: int) -> np.ndarray:
    trace = []
    while len(trace) < n:
        x = x + rate * (target - x)
        trace.append(x)
        if abs(target - x) < tolerance:
            break
    return np.array(trace)


def hmm(start: np.ndarray, transitions: np.ndarray, emissions: np.ndarray) -> float:
    weights = np.exp(start)
    for row in emissions:
        weights = weights @ np.exp(transitions) * np.exp(row)
    return np.log(weights.sum())


def kalman(f: np.ndarray, q: np.ndarray, h: np.ndarray, r: float, y: np.ndarray) -> float:
    """Compute the density of all observations at once, from their joint covariance."""
    steps, n = len(y), len(h)
    powers = [np.linalg.matrix_power(f, k) for k in range(steps + 1)]
    cov = np.empty((steps, steps))
    for i in range(steps):
        for j in range(steps):
            state = powers[i + 1] @ np.eye(n) @ powers[j + 1].T
            for k in range(min(i, j) + 1):
                state = state + powers[i - k] @ q @ powers[j - k].T
            cov[i, j] = h @ state @ h + (r if i == j else 0.0)
    _, log_determinant = np.linalg.slogdet(cov)
    return -0.5 * (steps * np.log(2 * np.pi) + log_determinant + y @ np.linalg.solve(cov, y))


def rk4(y: np.ndarray, mu: float, stiffness: float, h: float, n: int) -> np.ndarray:
    def slope(y: np.ndarray) -> np.ndarray:
        return np.array([y[1], mu * (1 - y[0] ** 2) * y[1] - stiffness * y[0]])

    trace = []
    for _ in range(n):
        k1 = slope(y)
        k2 = slope(y + h / 2 * k1)
        k3 = slope(y + h / 2 * k2)
        k4 = slope(y + h * k3)
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        trace.append(y)
    return np.array(trace)


def nested(targets: np.ndarray, z: float, rate: float, n: int) -> np.ndarray:
    trace = []
    for target in targets:
        for _ in range(n):
            z = z + rate * (target - z**3)
        trace.append(z)
    return np.array(trace)


def garch(omega: float, alpha: float, beta: float, returns: np.ndarray) -> float:
    variance, total = 1.0, 0.0
    for before, now in zip(returns[:-1], returns[1:]):
        variance = omega + alpha * before**2 + beta * variance
        total -= 0.5 * (np.log(variance) + now**2 / variance)
    return total


def softmax(x: np.ndarray) -> np.ndarray:
    return np.exp(x) / np.exp(x).sum(axis=1, keepdims=True)


def ar1_normal(x: float, phi: float, sigma: float, n: int) -> np.ndarray:
    rng = load("ar1-normal").generator()
    trace = []
    for _ in range(n):
        x = phi * x + rng.normal(0.0, sigma)
        trace.append(x)
    return np.array(trace)


def gibbs(x: float, y: float, rho: float, n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = load("gibbs").generator()
    sigma = math.sqrt(1 - rho**2)
    xs, ys = [], []
    for _ in range(n):
        x = rng.normal(rho * y, sigma)
        y = rng.normal(rho * x, sigma)
        xs.append(x)
        ys.append(y)
    return np.array(xs), np.array(ys)


def lotka(
    x: float, y: float, alpha: float, beta: float, delta: float, gamma: float, h: float, n: int
) -> float:
    total = 0.0
    for _ in range(n):
        x, y = x + h * (alpha * x - beta * x * y), y + h * (delta * x * y - gamma * y)
        total += x**2 + y**2
    return total / n


def diffusion(u: np.ndarray, rate: float, n: int) -> np.ndarray:
    """Multiply by the matrix of a step, as often as there are steps."""
    cells = len(u)
    step = np.eye(cells)
    for i in range(1, cells - 1):
        step[i, i - 1 : i + 2] += rate * np.array([1.0, -2.0, 1.0])
    return np.linalg.matrix_power(step, n) @ u


def particle_filter(
    x: np.ndarray, observations: np.ndarray, phi: float, sigma: float, tau: float
) -> tuple[np.ndarray, np.ndarray]:
    rng = load("particle-filter").generator()
    evidence, means = [], []
    for y in observations:
        x = rng.normal(phi * x, sigma)
        weights = np.exp(-0.5 * ((y - x) / tau) ** 2)
        shift = rng.uniform()
        edges = np.cumsum(weights / weights.sum())
        pointers = (np.arange(len(x)) + shift) / len(x)
        x = np.array([x[(edges < p).sum()] for p in pointers])
        evidence.append(np.log(weights.mean()))
        means.append(x.mean())
    return np.array(evidence), np.array(means)


def metropolis(
    x: np.ndarray, labels: np.ndarray, beta: np.ndarray, width: float, n: int
) -> np.ndarray:
    rng = load("metropolis").generator()

    def density(beta: np.ndarray) -> float:
        chance = 1 / (1 + np.exp(-x @ beta))
        likelihood = np.prod(np.where(labels == 1.0, chance, 1 - chance))
        return likelihood * np.exp(-0.5 * beta @ beta)

    trace = []
    for _ in range(n):
        proposal = rng.normal(beta, width)
        if rng.uniform() < density(proposal) / density(beta):
            beta = proposal
        trace.append(beta)
    return np.array(trace)


def rnn_train(x: np.ndarray, target: np.ndarray, rate: float) -> float:
    """Descend with slopes from central differences; gives the loss before the last step."""
    workload = load("rnn-train")

    def loss(w1: np.ndarray, u1: Any, w2: Any, u2: Any, v: Any) -> float:
        h1, h2 = np.zeros(len(v)), np.zeros(len(v))
        total = 0.0
        for row, wanted in zip(x, target):
            h1 = np.tanh(w1 @ row + u1 @ h1)
            h2 = np.tanh(w2 @ h1 + u2 @ h2)
            total += (h2 @ v - wanted) ** 2
        return total / len(x)

    weights = list(workload.state("tiny"))
    for _ in range(workload.repeat - 1):
        found = slopes(loss, *range(5))(*weights)
        weights = [weight - rate * slope for weight, slope in zip(weights, found)]
    return loss(*weights)


def newton_map(anomalies: np.ndarray, eccentricity: float) -> np.ndarray:
    """Find the roots by halving intervals."""
    low, high = anomalies - 1.0, anomalies + 1.0
    for _ in range(60):
        middle = (low + high) / 2
        below = middle - eccentricity * np.sin(middle) < anomalies
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return low


def lstm(x: np.ndarray, w: np.ndarray, u: np.ndarray, b: np.ndarray) -> float:
    units = u.shape[1]
    h, c, total = np.zeros(units), np.zeros(units), 0.0
    for row in x:
        forget, write, read, new = (w @ row + u @ h + b).reshape(4, units)
        c = c / (1 + np.exp(-forget)) + np.tanh(new) / (1 + np.exp(-write))
        h = np.tanh(c) / (1 + np.exp(-read))
        total += (h**2).mean()
    return total / len(x)


def slopes(function: Callable[..., Any], *places: int) -> Callable[..., list[np.ndarray]]:
    """Differentiate by the inputs at `places`, with central differences."""

    def differentiate(*inputs: Any) -> list[np.ndarray]:
        result = []
        for place in places:
            point = np.asarray(inputs[place], float)
            slope = np.empty(point.shape)
            for index in np.ndindex(point.shape):
                values = []
                for step in (1e-5, -1e-5):
                    moved = point.copy()
                    moved[index] += step
                    values.append(function(*inputs[:place], moved, *inputs[place + 1 :]))
                slope[index] = (values[0] - values[1]) / 2e-5
            result.append(slope)
        return result

    return differentiate


EXPECTED: dict[str, Callable[..., Any]] = {
    "recurrence-full": recurrence,
    "recurrence-last": lambda *inputs: recurrence(*inputs)[-1],
    "recurrence-grad": slopes(lambda *inputs: recurrence(*inputs).sum(), 0, 1, 2),
    "ar2": ar2,
    "rnn16": rnn,
    "rnn64": rnn,
    "rnn16-grad": slopes(lambda *inputs: (rnn(*inputs) ** 2).mean(), 1),
    "rnn64-grad": slopes(lambda *inputs: (rnn(*inputs) ** 2).mean(), 1),
    "while-last": lambda *inputs: while_scan(*inputs)[-1],
    "while-full": while_scan,
    "hmm": hmm,
    "hmm-grad": slopes(hmm, 1),
    "kalman": kalman,
    "kalman-grad": slopes(kalman, 0, 3),
    "rk4": rk4,
    "rk4-grad": slopes(lambda *inputs: (rk4(*inputs) ** 2).mean(), 1, 2),
    "nested": nested,
    "garch": garch,
    "garch-grad": slopes(garch, 0, 1, 2),
    "softmax-map": softmax,
    "ar1-normal": ar1_normal,
    "gibbs": gibbs,
    "lotka-grad": slopes(lotka, 2, 3, 4, 5),
    "diffusion": diffusion,
    "particle-filter": particle_filter,
    "metropolis": metropolis,
    "rnn-train": rnn_train,
    "newton-map": newton_map,
    "matrix-power": np.linalg.matrix_power,
    "lstm-grad": slopes(lstm, 1, 2, 3),
    "large-map": lambda xs, f: np.exp(-(xs**2)) * np.sin(f * xs),
    "density": lambda places, points, width: np.array(
        [sum(math.exp(-(((x - y) / width) ** 2)) for x in points) for y in places]
    ),
    "growing-window": growing_window,
}


def check(name: str, outputs: Any) -> None:
    expected = as_arrays(EXPECTED[name](*load(name).inputs("tiny")))
    # A difference quotient is right to half of the digits and some.
    differences = "grad" in name or name == "rnn-train"
    assert difference(as_arrays(outputs), expected, 1e-7 if differences else 1e-9) == ""


@pytest.mark.parametrize("name", NAMES)
def test_kernel_agrees_with_a_plain_loop(name):
    workload = load(name)
    call = CONTENDERS["hand-numba"].make(workload, "tiny").call
    check(name, call(*workload.inputs("tiny")))


@pytest.mark.parametrize("name", COMPILED)
def test_graph_agrees_with_a_plain_loop(name):
    workload = load(name)
    call = CONTENDERS["NUMBA_FIXED"].make(workload, "tiny").call
    check(name, call(*workload.inputs("tiny")))


@pytest.mark.parametrize("name", NAMES)
def test_every_size_has_inputs_that_are_the_same_each_time(name):
    workload = load(name)
    assert tuple(workload.sizes) == SIZES
    one, other = workload.inputs("default"), workload.inputs("default")
    for a, b in zip(one, other):
        np.testing.assert_array_equal(a, b)


def test_kernels_leave_their_inputs_alone():
    for name in NAMES:
        workload = load(name)
        inputs = workload.inputs("tiny")
        first = () if workload.seed is None else (workload.generator(),)
        workload.kernel(*first, *inputs, *workload.state("tiny"))
        for used, fresh in zip(inputs, workload.inputs("tiny")):
            np.testing.assert_array_equal(used, fresh)
