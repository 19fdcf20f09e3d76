"""Tables of a run, in Markdown."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Callable

from benchmarks.contenders import yardstick_of
from benchmarks.results import Result, Run

# The modes whose start and speed are held to targets.
OURS = ("NUMBA_FIXED", "JAX_FIXED")
HAND_WRITTEN = ("hand-numba", "hand-jax")

Row = Mapping[str, Result]


def markdown(run: Run) -> str:
    """Write all tables of a run."""
    rows = run.by_workload()
    present = list(dict.fromkeys(result.contender for result in run.results))
    parts = [_head(run), _steady(rows, present)]
    parts += [_start(rows, mode) for mode in OURS if mode in present]
    parts += [_memory(rows, present), _failures(run)]
    return "\n\n".join(part for part in parts if part)


def _head(run: Run) -> str:
    versions: dict[str, str] = {}
    for result in run.results:
        versions.update(result.versions)
    machine = run.machine
    return (
        f"{run.date}, size {run.size}. {machine['processor']}, {machine['cores']} cores, "
        f"{machine['system']}, Python {machine['python']}"
        + "".join(f", {name} {version}" for name, version in sorted(versions.items()))
        + "."
    )


def _steady(rows: Mapping[str, Row], present: Sequence[str]) -> str:
    hands = [name for name in HAND_WRITTEN if name in present]
    others = [name for name in present if name not in hands]
    ours = [name for name in OURS if name in present and "FAST_RUN" in present]
    ratios = [
        (f"{name} / {yardstick_of(name)}", _ratio(name, yardstick_of(name))) for name in others
    ]
    ratios += [(f"FAST_RUN / {name}", _ratio("FAST_RUN", name)) for name in ours]
    head = ["workload", *(f"{name}, ms ± IQR" for name in (*hands, *others))]
    lines = []
    for workload, row in rows.items():
        times = [_time(row.get(name)) for name in (*hands, *others)]
        lines.append([workload, *times, *(_number(ratio(row)) for _, ratio in ratios)])
    means = ["geometric mean", *([""] * (len(head) - 1))]
    means += [_number(_geometric_mean(ratio(row) for row in rows.values())) for _, ratio in ratios]
    table = _table([*head, *(title for title, _ in ratios)], [*lines, means])
    return f"## Steady state\n\nMedian time of a call, with the interquartile range.\n\n{table}"


def _start(rows: Mapping[str, Row], mode: str) -> str:
    hand = yardstick_of(mode)
    lines = []
    ratios: list[list[float | None]] = [[], []]
    for workload, row in rows.items():
        ours, theirs = row.get(mode), row.get(hand)
        ours = ours if ours is not None and ours.ok else None
        theirs = theirs if theirs is not None and theirs.ok else None
        both = (None, None)
        if ours is not None and theirs is not None:
            # A kernel has no build; its first call is its start.
            both = ours.start / theirs.start, ours.cpu / theirs.cpu
        for found, ratio in zip(ratios, both):
            found.append(ratio)
        cells = [
            theirs.first_call if theirs is not None else None,
            ours.build if ours is not None else None,
            ours.first_call if ours is not None else None,
            *both,
        ]
        lines.append([workload, *map(_number, cells)])
    means = [_number(_geometric_mean(found)) for found in ratios]
    head = [f"{hand} first call, s", "build, s", "first call, s", "ratio", "ratio of CPU time"]
    table = _table(["workload", *head], [*lines, ["geometric mean", "", "", "", *means]])
    return (
        f"## Start of {mode}\n\nIn a new process, without imports; the ratio is build and "
        f"first call to the first call of {hand}.\n\n{table}"
    )


def _memory(rows: Mapping[str, Row], present: Sequence[str]) -> str:
    lines = []
    for workload, row in rows.items():
        results = [row.get(name) for name in present]
        cells = ["failed" if r is None or not r.ok else f"{r.memory:.1f}" for r in results]
        lines.append([workload, *cells])
    table = _table(["workload", *present], lines)
    return f"## Peak memory\n\nMiB above what the imports took.\n\n{table}"


def _failures(run: Run) -> str:
    lines = [
        f"- {result.workload}, {result.contender}: {result.error or result.disagreement}"
        for result in run.results
        if not result.ok
    ]
    return "## Failures\n\n" + "\n".join(lines) if lines else ""


def _ratio(name: str, other: str) -> Callable[[Row], float | None]:
    def ratio(row: Row) -> float | None:
        one, two = row.get(name), row.get(other)
        if one is None or two is None or not (one.ok and two.ok):
            return None
        return one.steady / two.steady

    return ratio


def _geometric_mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.geometric_mean(known) if known else None


def _time(result: Result | None) -> str:
    if result is None:
        return ""
    if not result.ok:
        return "failed" if result.error else "wrong"
    return f"{1e3 * result.steady:.3g} ± {1e3 * result.spread:.1g}"


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def _table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    rule = [":--", *(["--:"] * (len(head) - 1))]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (head, rule, *lines))
