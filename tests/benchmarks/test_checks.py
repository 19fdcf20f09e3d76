"""The loops with which the cost of index checks is measured."""

from __future__ import annotations

import aesara
import numpy as np
import pytest

from benchmarks.checks import LOOPS, costs

X = np.arange(5.0) ** 2
ROWS = np.array([4, 0, 3, 2, 1])


def recurrence(terms):
    total, trace = 0.0, []
    for term in terms:
        total = total / 2 + term
        trace.append(total)
    return trace


TRACE = recurrence(X[ROWS])
WANTS = {
    "one index": TRACE,
    "two indices": recurrence(X[ROWS] * X[ROWS // 2 + 1]),
    "three indices": recurrence(X[ROWS] * X[ROWS // 2 + 1] + X[ROWS // 3]),
    # The entry that step t adds counts half as much with each step after it.
    "gradient": [
        sum(2 * TRACE[s] * 0.5 ** (s - t) for t in np.flatnonzero(i == ROWS) for s in range(t, 5))
        for i in range(5)
    ],
    "map": 2 * X[ROWS],
    "index from the loop": recurrence(X[[0, 4, 1, 0, 4]])[-1],
}


@pytest.mark.parametrize("mode", ["NUMBA_FIXED", "JAX_FIXED"])
@pytest.mark.parametrize("name", list(LOOPS))
def test_loop_computes_what_its_name_says(name, mode):
    inputs, outputs = LOOPS[name](5)
    values = {"x": X, "i": ROWS, "follows": ROWS, "n": np.int64(5)}
    (found,) = aesara.function(inputs, outputs, mode=mode)(*(values[v.name] for v in inputs))
    np.testing.assert_allclose(found, WANTS[name], rtol=1e-14)


def test_every_loop_is_timed():
    found = list(costs("JAX_FIXED", 20, 2))
    assert [cost.name for cost in found] == list(LOOPS)
    assert all(cost.without > 0 and cost.checked > 0 for cost in found)
