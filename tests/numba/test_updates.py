"""Parts of arrays set and increased by expressions, in place and on copies."""

from __future__ import annotations

from typing import Any, Callable

import aesara
import aesara.tensor as at
import numpy as np
import pytest

#: The part that is updated, and the parts that the new values are computed from.
PARTS: list[tuple[Any, Any, Any]] = [
    (slice(1, -1), slice(None, -2), slice(2, None)),
    (slice(1, None), slice(None, -1), slice(1, None)),
    (slice(None, -1), slice(1, None), slice(1, None)),
    (slice(None, None, -1), slice(None), slice(None)),
    (slice(3, 3), slice(0, 0), slice(5, 2)),
    (slice(-3, None), slice(None, 3), slice(1, 4)),
    (slice(None, 50), slice(None), slice(None, None, -1)),
    (slice(None, None, 2), slice(None, None, 2), slice(None, None, 2)),
]


def updated(x: np.ndarray, parts: tuple[Any, Any, Any], inc: bool) -> np.ndarray:
    target, first, second = parts
    result, value = x.copy(), np.tanh(x[first]) + 2 * x[second]
    result[target] = x[target] + value if inc else value
    return result


def update(x: Any, parts: tuple[Any, Any, Any], inc: bool) -> Any:
    target, first, second = parts
    change: Callable = at.inc_subtensor if inc else at.set_subtensor
    return change(x[target], at.tanh(x[first]) + 2 * x[second])


@pytest.mark.parametrize("inc", [False, True])
@pytest.mark.parametrize("parts", PARTS)
@pytest.mark.parametrize("shape", [(10,), (10, 9)])
def test_on_a_copy_and_in_place(shape: tuple[int, ...], parts: Any, inc: bool) -> None:
    x = at.TensorType("float64", (None,) * len(shape))("x")
    values = np.random.default_rng(1).normal(size=shape)
    f = aesara.function([x], update(x, parts, inc), mode="NUMBA_FIXED")
    np.testing.assert_allclose(f(values), updated(values, parts, inc), rtol=1e-13)
    given = aesara.In(x, mutable=True, borrow=True)
    in_place = aesara.function([given], update(x, parts, inc), mode="NUMBA_FIXED")
    np.testing.assert_allclose(in_place(values.copy()), updated(values, parts, inc), rtol=1e-13)


@pytest.mark.parametrize("inc", [False, True])
@pytest.mark.parametrize("parts", PARTS)
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("shape", [(10,), (10, 9)])
def test_of_a_state(shape: tuple[int, ...], parts: Any, inc: bool, last: bool) -> None:
    x, n = at.TensorType("float64", (None,) * len(shape))("x"), at.lscalar("n")
    trace, _ = aesara.scan(lambda s: update(s, parts, inc) / 2, outputs_info=x, n_steps=n)
    plain, _ = aesara.scan(lambda s: update(s, parts, inc), outputs_info=x, n_steps=n)
    outputs = [trace[-1], plain[-1]] if last else [trace, plain]
    f = aesara.function([x, n], outputs, mode="NUMBA_FIXED")
    values = np.random.default_rng(1).normal(size=shape) / 10
    halved, states, s, h = [], [], values, values
    for _ in range(4):
        s, h = updated(s, parts, inc), updated(h, parts, inc) / 2
        states.append(s)
        halved.append(h)
    for result, rows in zip(f(values, 4), (halved, states)):
        np.testing.assert_allclose(result, rows[-1] if last else rows, rtol=1e-12)


@pytest.mark.parametrize("mode", ["NUMBA_FIXED", "FAST_COMPILE"])
def test_values_of_another_length_are_an_error(mode: str) -> None:
    x, y = at.dvectors("x", "y")
    f = aesara.function([x, y], at.set_subtensor(x[1:4], at.exp(y) + 1), mode=mode)
    values = np.zeros(6)
    np.testing.assert_allclose(f(values, np.zeros(3)), [0, 2, 2, 2, 0, 0])
    with pytest.raises(ValueError, match=r"."):
        f(values, np.zeros(2))
    np.testing.assert_array_equal(values, np.zeros(6))


def test_a_value_is_spread_along_axes() -> None:
    x, y = at.dmatrix("x"), at.dvector("y")
    f = aesara.function([x, y], at.set_subtensor(x[1:3], at.exp(y)), mode="NUMBA_FIXED")
    expected = np.zeros((4, 2))
    expected[1:3] = np.exp([0.0, 1.0])
    np.testing.assert_allclose(f(np.zeros((4, 2)), np.array([0.0, 1.0])), expected)
    np.testing.assert_allclose(
        f(np.zeros((4, 2)), np.array([0.0])), [[0, 0], [1, 1], [1, 1], [0, 0]]
    )


def test_integers_take_whole_numbers_only_by_cast() -> None:
    x, y = at.lvector("x"), at.lvector("y")
    f = aesara.function([x, y], at.inc_subtensor(x[::2], y * y - 1), mode="NUMBA_FIXED")
    values = np.arange(6)
    np.testing.assert_array_equal(f(values, np.array([1, 2, 3])), [0, 1, 5, 3, 12, 5])


def test_single_rows_and_elements_of_a_state() -> None:
    start = at.dmatrix("start")

    def step(s: Any) -> Any:
        s = at.set_subtensor(s[-1], at.sqrt(s[0]) + 1)
        s = at.inc_subtensor(s[:, 1], s[:, 0] * 2)
        s = at.set_subtensor(s[1:, -1:], -s[:2, :1])
        return at.set_subtensor(s[0, 0], s[1, 1])

    trace, _ = aesara.scan(step, outputs_info=start, n_steps=3)
    f = aesara.function([start], trace, mode="NUMBA_FIXED")
    state = np.random.default_rng(6).uniform(1, 2, (3, 12))
    rows = []
    given = state
    for _ in range(3):
        state = state.copy()
        state[-1] = np.sqrt(state[0]) + 1
        state[:, 1] += state[:, 0] * 2
        state[1:, -1:] = -state[:2, :1]
        state[0, 0] = state[1, 1]
        rows.append(state)
    np.testing.assert_allclose(f(given), rows, rtol=1e-12)
