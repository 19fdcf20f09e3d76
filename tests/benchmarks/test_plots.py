"""The plots: what they show, read from the figures."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from benchmarks.results import Launch, Result, Run

matplotlib = pytest.importorskip("matplotlib")


@pytest.fixture
def run() -> Run:
    def result(contender: str, seconds: float, **facts: object) -> Result:
        launches = [Launch(function=2.0, first_call=1.0, samples=[seconds] * 3)] * 2
        return Result("ar2", contender, launches, **facts)

    machine = {"system": "s", "processor": "p", "cores": 2, "python": "3"}
    results = [
        result("NUMBA_FIXED", 0.002, scaling={"1000": [1.0, 2.0], "10": [0.5]}),
        result("hand-numba", 0.001),
        result("pytensor-numba", 0.003, error="Boom"),
    ]
    return Run("2025-01-01T00:00:00Z", "tiny", machine, 60.0, results)


def test_every_plot_is_written_as_svg_and_png(run: Run, tmp_path: Path) -> None:
    from benchmarks.plots import draw_all

    written = draw_all(run, tmp_path / "plots")
    names = {
        f"{name}.{kind}" for name in ("ratios", "scaling", "starts") for kind in ("svg", "png")
    }
    assert {path.name for path in written} == names
    for path in written:
        begin = b"\x89PNG" if path.suffix == ".png" else b"<?xml"
        assert path.read_bytes().startswith(begin)


def test_equal_runs_give_equal_files(run: Run, tmp_path: Path) -> None:
    from benchmarks.plots import draw_all

    for one, two in zip(draw_all(run, tmp_path / "a"), draw_all(run, tmp_path / "b")):
        assert one.read_bytes() == two.read_bytes()


def test_ratios_are_drawn_where_they_are_and_failures_apart(run: Run) -> None:
    from benchmarks.plots import _ratios

    figure = _ratios(run)
    (ax,) = figure.axes
    points = {
        line.get_marker(): line.get_xdata()[0]
        for line in ax.lines
        if line.get_marker() in ("o", "x") and len(line.get_xdata())
    }
    assert math.isclose(points["o"], 2.0)
    low, high = next(patch for patch in ax.patches).get_extents().intervalx
    shown = ax.transData.inverted().transform([(low, 0), (high, 0)])[:, 0]
    assert shown[0] < points["x"] < shown[1]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["ar2"]
    assert "hand" in ax.get_xlabel()


def test_times_by_steps_are_on_log_axes_with_units(run: Run) -> None:
    from benchmarks.plots import _scaling

    (ax,) = _scaling(run).axes
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    (line,) = ax.lines
    assert list(line.get_xdata()) == [10, 1000]
    assert list(line.get_ydata()) == [0.5, 1.0]
    assert ax.get_ylabel() == "time of a call, s"
