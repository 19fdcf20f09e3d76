"""Constants of loaded graphs: the same values in the same layout."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aesara
import aesara.tensor as at
import numpy as np
import pytest

import fixed_modes


@pytest.fixture(autouse=True)
def directory(tmp_path: Path) -> Iterator[Path]:
    with aesara.config.change_flags(
        fixed_modes__cache=True, fixed_modes__cache_dir=str(tmp_path / "cache")
    ):
        yield tmp_path / "cache" / "compiled-1"


TABLE = np.arange(12.0).reshape(3, 4)
# Aesara computes these while it rewrites a graph: what it leaves are views.
PARTS = {
    "in one piece": lambda t: t,
    "backwards": lambda t: t[::-1],
    "every second": lambda t: t[:, ::2],
    "by columns": lambda t: t.T,
    "by columns, backwards": lambda t: t.T[::-1],
    "one column": lambda t: t[:, 1:2],
    "nothing": lambda t: t[3:],
}


def flags_of(f: Any) -> list[tuple[Any, ...]]:
    found = []
    for node in f.maker.fgraph.apply_nodes:
        for variable in node.inputs:
            data = getattr(variable, "data", None)
            if isinstance(data, np.ndarray) and data.ndim == 2:
                flags = data.flags
                found.append((flags.c_contiguous, flags.f_contiguous, flags.writeable))
    return found


@pytest.mark.parametrize("name", PARTS)
@pytest.mark.parametrize("writeable", [True, False])
def test_a_part_of_a_constant(name: str, writeable: bool) -> None:
    table = TABLE.copy()
    table.flags.writeable = writeable
    layouts, keys = [], []
    for expected in ("rewritten", "loaded"):
        x = at.dscalar("x")
        f = aesara.function([x], PARTS[name](at.constant(table)) * x, mode="NUMBA_FIXED")
        (graph, _) = fixed_modes.cache_report(f)
        assert graph == f"graph {expected}"
        layouts.append(flags_of(f))
        keys.append(f.vm.jit_fn.cache.key)
        result = f.vm.jit_fn._general.constants
        assert all(np.isin(values, TABLE).all() for values in result)
    assert layouts[0] == layouts[1] != []
    assert keys[0] == keys[1]


def test_values_of_a_loaded_graph() -> None:
    for expected in ("rewritten", "loaded"):
        x = at.dscalar("x")
        parts = [part(at.constant(TABLE)) * x for part in PARTS.values()]
        f = aesara.function([x], parts, mode="NUMBA_FIXED")
        for part, value in zip(PARTS.values(), f(2.0)):
            np.testing.assert_array_equal(value, 2 * part(TABLE))
        assert fixed_modes.cache_report(f)[0] == f"graph {expected}"
