"""Plots of a run, as SVG and PNG; needs Matplotlib, which the extra "bench" installs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.contenders import CONTENDERS, yardstick_of
from benchmarks.ratios import Ratio, to_hand_written
from benchmarks.results import Launch, Result, Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Row = Mapping[str, Result]

# One colour and one marker for a contender in all plots, told apart by either (Okabe and
# Ito's colours).
_LOOKS: Mapping[str, tuple[str, str]] = {
    "NUMBA_FIXED": ("#0072B2", "o"),
    "JAX_FIXED": ("#D55E00", "o"),
    "pytensor-numba": ("#009E73", "s"),
    "pytensor-jax": ("#CC79A7", "s"),
    "NUMBA": ("#56B4E9", "^"),
    "JAX": ("#E69F00", "^"),
    "FAST_RUN": ("#555555", "D"),
    "hand-numba": ("#000000", "v"),
    "hand-jax": ("#999999", "v"),
}
_STYLE = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "legend.frameon": False,
    # So that equal data give equal files.
    "svg.hashsalt": "fixed-modes",
}


def draw_all(run: Run, directory: Path) -> list[Path]:
    """Draw all plots that the run has data for.

    Parameters
    ----------
    directory
        Where they go; made if it is not there.

    Returns
    -------
    list of Path
        What was written.
    """
    import matplotlib

    matplotlib.use("agg")
    directory.mkdir(parents=True, exist_ok=True)
    written = []
    with matplotlib.rc_context(_STYLE):
        for name, draw in _PLOTS.items():
            figure = draw(run)
            if figure is None:
                continue
            for suffix, facts in (("svg", {"Date": None}), ("png", {"Software": None})):
                path = directory / f"{name}.{suffix}"
                figure.savefig(path, dpi=130, metadata=facts)
                written.append(path)
    return written


def _present(run: Run) -> list[str]:
    found = {result.contender for result in run.results}
    return [name for name in _LOOKS if name in found]


def _ratios(run: Run) -> Figure | None:
    """Draw the ratio to hand-written code by workload, a panel for each kind of such code."""
    rows = run.by_workload()
    panels = []
    for hand, title in (("hand-numba", "Numba"), ("hand-jax", "JAX")):
        names = [n for n in _present(run) if n != hand and yardstick_of(n) == hand]
        names = [name for name in names if name not in ("hand-numba", "hand-jax")]
        if names and hand in _present(run):
            panels.append((hand, title, names))
    if not panels:
        return None
    figure, axes = _figure(1, len(panels), width=10.5, height=1.6 + 0.3 * len(rows), sharey=True)
    for ax, (_, title, names) in zip(axes, panels):
        found = {name: [to_hand_written(row, name) for row in rows.values()] for name in names}
        largest = max((r.value for rs in found.values() for r in rs if r), default=10.0)
        failed_at = 4.0 * max(largest, 10.0)
        for place, name in enumerate(names):
            _draw_ratios(ax, name, found[name], (place - (len(names) - 1) / 2) * 0.16, failed_at)
        ax.set_xscale("log")
        ax.axvline(1.0, color="black", linewidth=1.0)
        ax.axvspan(failed_at / 1.9, failed_at * 1.9, color="black", alpha=0.06, linewidth=0)
        ax.annotate(
            "fails",
            (failed_at, 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(0, 3),
            textcoords="offset points",
            ha="center",
        )
        _plain_numbers(ax.xaxis)
        ax.set_yticks(range(len(rows)), list(rows))
        ax.set_xlabel(f"time of a call / time of {title} code written by hand")
        ax.set_title(f"against hand-written {title}", loc="left", pad=14)
    axes[0].set_ylim(len(rows) - 0.4, -0.6)
    _legend(figure, axes)
    return figure


def _draw_ratios(
    ax: Axes, name: str, ratios: Sequence[Ratio | None], shift: float, failed_at: float
) -> None:
    colour, marker = _LOOKS[name]
    known = [(y + shift, found) for y, found in enumerate(ratios) if found is not None]
    values = [found.value for _, found in known]
    ax.errorbar(
        values,
        [y for y, _ in known],
        xerr=[
            [found.value - found.low for _, found in known],
            [found.high - found.value for _, found in known],
        ],
        fmt=marker,
        color=colour,
        markersize=4.5,
        elinewidth=1.0,
        label=name,
    )
    failed = [y + shift for y, found in enumerate(ratios) if found is None]
    ax.plot([failed_at] * len(failed), failed, "x", color=colour, markersize=4.5)


def _scaling(run: Run) -> Figure | None:
    """Draw the time against the number of steps."""
    rows = {
        workload: row
        for workload, row in run.by_workload().items()
        if any(result.scaling for result in row.values())
    }
    if not rows:
        return None
    figure, axes = _figure(1, len(rows), width=6.5 * len(rows), height=4.2)
    for ax, (workload, row) in zip(axes, rows.items()):
        for name in _present(run):
            scaling = row[name].scaling if name in row else {}
            if not scaling:
                continue
            colour, marker = _LOOKS[name]
            steps = sorted(map(int, scaling))
            ax.plot(
                steps,
                [min(scaling[str(n)]) for n in steps],
                marker=marker,
                color=colour,
                linestyle="--" if name.startswith("hand-") else "-",
                markersize=5,
                label=name,
            )
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.set_xlabel("steps of the loop")
        ax.set_ylabel("time of a call, s")
        ax.set_title(workload, loc="left")
        ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def _starts(run: Run) -> Figure | None:
    """Draw bars of what a new process takes before its first result."""
    rows = run.by_workload()
    names = [n for n in _present(run) if CONTENDERS[n].cache is not None or n == "NUMBA"]
    titles: list[tuple[str, Callable[[Result], Launch | None]]] = [
        ("empty compile cache", lambda result: result.cold),
        ("full compile cache", lambda result: result.warm),
    ]
    panels = []
    for title, which in titles:
        found = {
            name: [
                which(row[name]) if name in row and row[name].ok else None for row in rows.values()
            ]
            for name in names
        }
        found = {name: launches for name, launches in found.items() if any(launches)}
        if found:
            panels.append((title, found))
    if not panels:
        return None
    most = max(len(found) for _, found in panels)
    height = 1.6 + len(rows) * 0.07 * (most + 1.5)
    figure, axes = _figure(1, len(panels), width=10.5, height=height, sharey=True)
    for ax, (title, found) in zip(axes, panels):
        thickness = 0.85 / len(found)
        for place, (name, launches) in enumerate(found.items()):
            ys = [y + (place + 0.5) * thickness - 0.425 for y in range(len(rows))]
            functions = [launch.function if launch else 0.0 for launch in launches]
            calls = [launch.first_call if launch else 0.0 for launch in launches]
            colour = _LOOKS[name][0]
            ax.barh(ys, functions, thickness, color=colour, alpha=0.45, linewidth=0)
            ax.barh(ys, calls, thickness, functions, color=colour, label=name, linewidth=0)
        ax.set_yticks(range(len(rows)), list(rows))
        ax.set_xlabel("s; pale: aesara.function, full: first call")
        ax.set_title(title, loc="left")
        ax.grid(visible=False, axis="y")
    axes[0].set_ylim(len(rows) - 0.4, -0.6)
    _legend(figure, axes)
    return figure


def _figure(
    rows: int, columns: int, *, width: float, height: float, sharey: bool = False
) -> tuple[Figure, Sequence[Axes]]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    axes: Any = figure.subplots(rows, columns, sharey=sharey, squeeze=False)
    return figure, list(axes.flat)


def _legend(figure: Figure, axes: Sequence[Axes]) -> None:
    """Explain the contenders below all panels, each once."""
    handles: dict[str, Any] = {}
    for ax in axes:
        for handle, label in zip(*ax.get_legend_handles_labels()):
            handles.setdefault(label, handle)
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=4)


def _plain_numbers(axis: Any) -> None:
    """Write 0.1, 1 and 10 instead of powers of ten."""
    from matplotlib.ticker import FuncFormatter, NullFormatter

    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


_PLOTS: Mapping[str, Callable[[Run], Figure | None]] = {
    "ratios": _ratios,
    "scaling": _scaling,
    "starts": _starts,
}
