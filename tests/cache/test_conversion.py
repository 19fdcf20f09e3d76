"""Rewritten graphs that are loaded are converted when they are first called."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aesara
import aesara.tensor as at
import numpy as np
import pytest
from aesara.graph.fg import FunctionGraph

import fixed_modes
from fixed_modes.errors import FixedModesWarning
from fixed_modes.numba import module


@pytest.fixture(autouse=True)
def directory(tmp_path: Path) -> Iterator[Path]:
    with aesara.config.change_flags(
        fixed_modes__cache=True, fixed_modes__cache_dir=str(tmp_path / "cache")
    ):
        yield tmp_path / "cache" / "compiled-1"


def cumulated() -> Any:
    x = at.dvector("x")
    return aesara.function([x], x.cumsum(), mode="NUMBA_FIXED")


@pytest.fixture
def lowered(monkeypatch: pytest.MonkeyPatch) -> list[FunctionGraph]:
    """Note the graphs for which code is written."""
    found = []
    lower_graph = module.lower_graph

    def noting(fgraph: FunctionGraph, writer: Any) -> None:
        found.append(fgraph)
        lower_graph(fgraph, writer)

    monkeypatch.setattr(module, "lower_graph", noting)
    return found


def test_a_loaded_graph_is_converted_at_its_first_call(lowered: list[FunctionGraph]) -> None:
    cumulated()
    assert len(lowered) == 1
    f = cumulated()
    assert len(lowered) == 1
    np.testing.assert_array_equal(f([1.0, 3.0]), [1.0, 4.0])
    assert len(lowered) == 2
    assert fixed_modes.cache_report(f) == ["graph loaded", "compiled"]
    # The source of a function that was not called is written when it is asked for.
    assert "def graph" in fixed_modes.numba_source(cumulated())


def test_a_loaded_graph_warns_where_a_rewritten_one_does(lowered: list[FunctionGraph]) -> None:
    x = at.dmatrix("x")
    for expected in ("rewritten", "loaded", "loaded"):
        with pytest.warns(FixedModesWarning, match="in Python at every call"):
            f = aesara.function([x], at.nlinalg.eig(x)[0], mode="NUMBA_FIXED")
        assert fixed_modes.cache_report(f)[0] == f"graph {expected}"
    assert len(lowered) == 3
