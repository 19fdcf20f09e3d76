"""Assignments to no rows at all: values that don't fit are an error there too."""

from __future__ import annotations

from typing import Any, Callable

import aesara
import aesara.tensor as at
import numpy as np
import pytest

from tests import changes

MODES = ["NUMBA_FIXED", "JAX_FIXED"]
ROWS = np.array([0, 1, 2, 1])
COLUMNS = np.array([0, 1, 0, 1])

Target = Callable[[Any, Any, Any], Any]

#: What is indexed, by how many indices count, rows and columns.
TARGETS: dict[str, Target] = {
    "rows": lambda k, rows, columns: rows[:k],
    "slice": lambda k, rows, columns: slice(None, k),
    "slice of a column": lambda k, rows, columns: (slice(None, k), 1),
    "entries": lambda k, rows, columns: (rows[:k], columns[:k]),
    "columns": lambda k, rows, columns: (slice(None), columns[:k]),
    "parts of rows": lambda k, rows, columns: (rows[:k], slice(1, None)),
}
VALUES = [(), (1,), (2,), (3,), (4,), (2, 3), (1, 3), (1, 1), (6, 1)]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("change", ["set", "add"])
@pytest.mark.parametrize("target", TARGETS)
def test_like_numpy(target: str, change: str, mode: str) -> None:
    x, rows, columns, k = at.dmatrix("x"), at.lvector("rows"), at.lvector("columns"), at.lscalar()
    symbolic = at.set_subtensor if change == "set" else at.inc_subtensor
    array = np.arange(18.0).reshape(6, 3)
    place = TARGETS[target](0, ROWS, COLUMNS)
    errors = 0
    for shape in VALUES:
        if len(shape) > array[place].ndim:
            continue
        y = at.tensor("float64", shape=(None,) * len(shape))
        f = aesara.function(
            [rows, columns, k, x, y],
            symbolic(x[TARGETS[target](k, rows, columns)], y),
            mode=mode,
            on_unused_input="ignore",
        )
        arguments = ROWS, COLUMNS, 0, array, np.ones(shape)
        try:
            expected = (changes.put if change == "set" else changes.add)(
                array, place, np.ones(shape)
            )
        except ValueError:
            errors += 1
            with pytest.raises(ValueError, match=r"shape|length|broadcast|values"):
                f(*arguments)
        else:
            np.testing.assert_array_equal(f(*arguments), expected)
    assert errors
