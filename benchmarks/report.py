"""Tables of a run, in Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.contenders import CONTENDERS, yardstick_of
from benchmarks.ratios import Row, geometric_mean, ratio, to_hand_written
from benchmarks.reasons import reason_for
from benchmarks.results import Launch, Result, Run

# The modes whose speed is held to targets.
OURS = ("NUMBA_FIXED", "JAX_FIXED")
HAND_WRITTEN = ("hand-numba", "hand-jax")

# What the ratio to code written by hand should not be above.
TARGET = 1.5

# Where the tables stand in a page.
BEGIN, END = "<!-- results -->", "<!-- end of results -->"


def markdown(run: Run) -> str:
    """Write all tables of a run."""
    rows = run.by_workload()
    found = {result.contender for result in run.results}
    present = [name for name in CONTENDERS if name in found]
    parts = [
        _head(run, present),
        _summary(rows, present),
        _ratios(rows, present),
        _above_target(rows, present),
        _times(rows, present),
        *(_starts(rows, present, mode) for mode in OURS if mode in present),
        _scaling(run, present),
        _memory(rows, present),
        _failures(run, present),
    ]
    return "\n\n".join(part for part in parts if part)


def replace_results(page: str, tables: str) -> str:
    """Put tables between the two marks of a page.

    Raises
    ------
    ValueError
        If the page has not the two marks, one after the other.
    """
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"the page has no marks {BEGIN} and {END}")
    return f"{before}{BEGIN}\n\n{tables}\n\n{END}{after}"


def _head(run: Run, present: Sequence[str]) -> str:
    machine = run.machine
    head = (
        f"Measured on {run.date[:10]}, size `{run.size}`, in {run.seconds / 60:.0f} minutes. "
        f"{machine['processor']}, {machine['cores']} cores, {machine['system']}."
    )
    lines = []
    for name in present:
        versions: dict[str, str] = {}
        for result in run.results:
            if result.contender == name:
                versions.update(result.versions)
        lines.append([name, ", ".join(f"{what} {v}" for what, v in versions.items())])
    return f"{head}\n\n{_table(['contender', 'versions'], lines, text=2)}"


def _summary(rows: Mapping[str, Row], present: Sequence[str]) -> str:
    lines = []
    for name in present:
        results = [row[name] for row in rows.values() if name in row]
        right = sum(result.ok for result in results)
        cells = [name, f"{right} of {len(results)}"]
        if name in HAND_WRITTEN:
            lines.append([*cells, "", "", "", ""])
            continue
        known = [found.value for row in rows.values() if (found := to_hand_written(row, name))]
        faster = [found.value for row in rows.values() if (found := ratio(row, "FAST_RUN", name))]
        cells += [yardstick_of(name), _number(geometric_mean(known))]
        cells += [_number(max(known, default=None)), _number(geometric_mean(faster))]
        lines.append(cells)
    head = [
        "contender",
        "workloads done right",
        "beside",
        "geometric mean",
        "worst",
        "FAST_RUN / it",
    ]
    text = (
        "Time of a call, divided by that of the code written by hand; over the workloads "
        "that the contender does."
    )
    return f"## Summary\n\n{text}\n\n{_table(head, lines)}"


def _ratios(rows: Mapping[str, Row], present: Sequence[str]) -> str:
    names = [name for name in present if name not in HAND_WRITTEN]
    head = ["workload", *(f"{name} / {yardstick_of(name)}" for name in names)]
    lines = []
    for workload, row in rows.items():
        cells = [workload]
        for name in names:
            found = to_hand_written(row, name)
            cells.append(
                _state(row.get(name))
                if found is None
                else _number(found.value)
                if name not in OURS
                else f"{_number(found.value)} ({_number(found.low)} to {_number(found.high)})"
            )
        lines.append(cells)
    text = "Ratios of median times of a call; for our modes with 95 % intervals (bootstrap)."
    return f"## Ratios to code written by hand\n\n{text}\n\n{_table(head, lines)}"


def _above_target(rows: Mapping[str, Row], present: Sequence[str]) -> str:
    lines = []
    for name in OURS:
        if name not in present:
            continue
        for workload, row in rows.items():
            found = to_hand_written(row, name)
            if found is not None and found.value > TARGET:
                reason = reason_for(name, workload) or "Not known yet."
                lines.append(f"- {workload}, {name}, {_number(found.value)}: {reason}")
    if not lines:
        return ""
    return f"### Above {TARGET:g}\n\n" + "\n".join(lines)


def _times(rows: Mapping[str, Row], present: Sequence[str]) -> str:
    lines = [
        [workload, *(_time(row.get(name)) for name in present)] for workload, row in rows.items()
    ]
    text = "Median time of a call and interquartile range, ms."
    return f"## Times\n\n{text}\n\n{_table(['workload', *present], lines)}"


def _starts(rows: Mapping[str, Row], present: Sequence[str], mode: str) -> str:
    hand = yardstick_of(mode)
    peers = [name for name in present if yardstick_of(name) == hand and name not in HAND_WRITTEN]
    # What FAST_RUN compiles for one workload serves the next.
    names = [name for name in dict.fromkeys((mode, *peers)) if name != "FAST_RUN"]
    names += [hand] if hand in present else []
    parts = [f"## Start of {mode}\n\nIn a new process, imports and the graph's own lines apart."]
    for title, which in (("With an empty cache", _cold), ("With a full cache", _warm)):
        those = [
            name
            for name in names
            if any(which(row.get(name)) for row in rows.values()) or name == mode
        ]
        lines = [_start_line(workload, row, those, mode, which) for workload, row in rows.items()]
        if not any(any(line.ratios) for line in lines):
            continue
        head = ["workload"]
        for name in those:
            head += [f"{name}, s"] if name in HAND_WRITTEN else [f"{name}: function, s", "call, s"]
        others = [name for name in those if name != mode]
        head += [f"{mode} / {name}" for name in others]
        means = [geometric_mean(line.ratios[k] for line in lines) for k in range(len(others))]
        last = ["geometric mean", *[""] * (len(head) - 1 - len(others)), *map(_number, means)]
        cells = [[*line.cells, *map(_number, line.ratios)] for line in lines]
        parts.append(f"### {title}\n\n{_table(head, [*cells, last])}")
    parts.append(_warm_in_words(rows, mode))
    return "\n\n".join(part for part in parts if part)


def _warm_in_words(rows: Mapping[str, Row], mode: str) -> str:
    """Say what the targets for a start with a full cache are about."""
    functions, beyond = [], []
    for workload, row in rows.items():
        ours, peer = _warm(row.get(mode)), _warm(row.get("pytensor-numba"))
        hand = _warm(row.get(yardstick_of(mode)))
        if ours and peer:
            functions.append(ours.function / peer.function)
        if ours and hand:
            beyond.append((ours.first_call - hand.first_call, workload))
    parts = []
    if functions:
        parts.append(
            f"`aesara.function` took {_number(geometric_mean(functions))} times as long as "
            f"PyTensor's `function` for its mode NUMBA (geometric mean; at most "
            f"{_number(max(functions))} times)."
        )
    if beyond:
        most, where = max(beyond)
        parts.append(
            f"The first call took at most {most:.2f} s longer than that of the code "
            f"written by hand ({where})."
        )
    return f"With a full cache: {' '.join(parts)}" if parts else ""


@dataclass(frozen=True)
class _StartLine:
    """The cells of times, and the ratios of our start to those of the others."""

    cells: list[str]
    ratios: list[float | None]


def _start_line(
    workload: str,
    row: Row,
    names: Sequence[str],
    mode: str,
    which: Callable[[Result | None], Launch | None],
) -> _StartLine:
    cells = [workload]
    ratios = []
    ours = which(row.get(mode))
    for name in names:
        launch = which(row.get(name))
        if launch is None:
            cells += [_state(row.get(name)), *([] if name in HAND_WRITTEN else [""])]
        elif name in HAND_WRITTEN:
            cells.append(_number(launch.first_call))
        else:
            cells += [_number(launch.function), _number(launch.first_call)]
        if name != mode:
            ratios.append(ours.start / launch.start if launch and ours else None)
    return _StartLine(cells, ratios)


def _cold(result: Result | None) -> Launch | None:
    return result.cold if result is not None and result.ok else None


def _warm(result: Result | None) -> Launch | None:
    return result.warm if result is not None and result.ok else None


def _scaling(run: Run, present: Sequence[str]) -> str:
    parts = []
    for workload, row in run.by_workload().items():
        lengths = sorted({int(n) for result in row.values() for n in result.scaling})
        if not lengths:
            continue
        names = [name for name in present if name in row]
        lines = []
        for steps in lengths:
            times = [row[name].scaling.get(str(steps)) for name in names]
            lines.append([f"{steps:,}", *(_number(1e3 * min(t)) if t else "" for t in times)])
        text = (
            "Shortest time of a call, ms, for a number of steps; empty where the contender "
            "fails, or where it would not fit into the time of a contender."
        )
        parts.append(f"## {workload} by steps\n\n{text}\n\n{_table(['steps', *names], lines)}")
    return "\n\n".join(parts)


def _memory(rows: Mapping[str, Row], present: Sequence[str]) -> str:
    lines = []
    for workload, row in rows.items():
        cells = [workload]
        for name in present:
            result = row.get(name)
            memory = result.memory if result is not None and result.ok else None
            cells.append(_state(result) if memory is None else f"{memory:.1f}")
        lines.append(cells)
    text = "MiB above what the imports took, compilation included."
    return f"## Peak memory\n\n{text}\n\n{_table(['workload', *present], lines)}"


def _failures(run: Run, present: Sequence[str]) -> str:
    """List what failed, equal messages of a contender together."""
    lines = []
    for name in present:
        messages: dict[str, list[str]] = {}
        for result in run.results:
            if result.contender == name and not result.ok:
                message = result.error or result.disagreement or "no sample"
                messages.setdefault(_short(message), []).append(result.workload)
            elif result.contender == name and result.scaling_error:
                messages.setdefault(_short(result.scaling_error), []).append(result.workload)
        lines += [
            f"- {name}: {', '.join(workloads)}: {message}"
            for message, workloads in messages.items()
        ]
    return "## Failures\n\n" + "\n".join(lines) if lines else ""


def _short(message: str) -> str:
    # Markdown takes an angle bracket for the start of a tag.
    message = message.replace("<", "\\<").replace("|", "\\|")
    return message if len(message) <= 160 else message[:157] + "..."


def _state(result: Result | None) -> str:
    """Say why there is no number."""
    if result is None or result.ok:
        return ""
    return "failed" if result.error else "wrong"


def _time(result: Result | None) -> str:
    if result is None or not result.ok:
        return _state(result)
    return f"{1e3 * result.steady:.3g} ± {1e3 * result.spread:.1g}"


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def _table(head: Sequence[str], lines: Iterable[Sequence[str]], text: int = 1) -> str:
    """Write a table whose first `text` columns are words."""
    rule = [*[":--"] * text, *["--:"] * (len(head) - text)]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (head, rule, *lines))
