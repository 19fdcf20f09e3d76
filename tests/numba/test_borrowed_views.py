"""Views in loops, which have no owner, end before what they are views of."""

from __future__ import annotations

import gc
import warnings
from typing import Any

import aesara
import aesara.tensor as at
import numpy as np
import pytest
from aesara.graph.basic import Apply
from aesara.graph.op import Op

import fixed_modes
from fixed_modes.errors import FixedModesWarning


class Kept(Op):
    """Gives a view of its input, which it also keeps."""

    __props__ = ()
    view_map = {0: [0]}  # noqa: RUF012 (the name that Aesara gives it)

    def __init__(self) -> None:
        self.seen: list[np.ndarray] = []

    def make_node(self, x: Any) -> Apply:
        return Apply(self, [at.as_tensor(x)], [x.type()])

    def perform(self, node: Apply, inputs: Any, outputs: Any) -> None:
        self.seen.append(inputs[0].copy())
        outputs[0][0] = inputs[0][::1]


def _fill_memory() -> None:
    """Use memory that has been given back, so that what is read from there is wrong."""
    gc.collect()
    for size in (8, 64, 512, 4096, 32768):
        for _ in range(20):
            np.full(size, np.nan)


@pytest.mark.parametrize("length", [3, 40, 5000])
def test_parts_of_all_that_a_loop_reads(length: int) -> None:
    rows, start, fixed = at.dmatrix("rows"), at.dvector("start"), at.dmatrix("fixed")

    def step(row: Any, state: Any, fixed: Any) -> Any:
        return [state[::-1] + row[0], row[1:], fixed[1], fixed.T[0], state[:2]]

    (states, *parts), _ = aesara.scan(
        step, sequences=[rows], outputs_info=[start, None, None, None, None], non_sequences=[fixed]
    )
    f = aesara.function([rows, start, fixed], [states, *parts], mode="NUMBA_FIXED")
    rng = np.random.default_rng(4)
    values = [rng.normal(size=shape) for shape in ((6, length), length, (4, length))]
    expected: list[list[np.ndarray]] = [[], [], [], [], []]
    state = values[1]
    for row in values[0]:
        results = [state[::-1] + row[0], row[1:], values[2][1], values[2].T[0], state[:2]]
        state = results[0]
        for part, value in zip(expected, results):
            part.append(value)
    for _ in range(3):
        results = f(*values)
        _fill_memory()
        for result, part in zip(results, expected):
            np.testing.assert_allclose(result, part, rtol=1e-12)
    assert "borrowed(" in fixed_modes.numba_source(f)


def test_rows_of_what_each_step_of_an_outer_loop_makes() -> None:
    matrices = at.dtensor3("matrices")

    def outer(matrix: Any) -> Any:
        turned = at.exp(matrix).T
        inner, _ = aesara.scan(
            lambda row, other: row[1:] + other[0, 1:], sequences=[turned], non_sequences=[turned]
        )
        return inner[-1], inner

    results, _ = aesara.scan(outer, sequences=[matrices])
    f = aesara.function([matrices], results, mode="NUMBA_FIXED")
    values = np.random.default_rng(5).normal(size=(3, 50, 40))
    for _ in range(3):
        last, whole = f(values)
        _fill_memory()
        turned = np.exp(values).transpose(0, 2, 1)
        expected = turned[:, :, 1:] + turned[:, :1, 1:]
        np.testing.assert_allclose(whole, expected, rtol=1e-12)
        np.testing.assert_allclose(last, expected[:, -1], rtol=1e-12)


def test_views_that_python_gets() -> None:
    kept = Kept()
    rows, start = at.dmatrix("rows"), at.dvector("start")
    (states, views), _ = aesara.scan(
        lambda row, state: (state + kept(row[1:]), kept(state)),
        sequences=[rows],
        outputs_info=[start, None],
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FixedModesWarning)
        f = aesara.function([rows, start], [states, views], mode="NUMBA_FIXED")
        values = np.random.default_rng(6).normal(size=(5, 4))
        states, views = f(values, np.zeros(3))
    _fill_memory()
    expected = np.cumsum(values[:, 1:], axis=0)
    np.testing.assert_allclose(states, expected, rtol=1e-12)
    np.testing.assert_allclose(views, [np.zeros(3), *expected[:-1]], rtol=1e-12)
    assert len(kept.seen) == 10
