"""Measures contenders side by side."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.contenders import yardstick_of
from benchmarks.processes import ContenderFailed, ContenderProcess
from benchmarks.results import Launch, Result

# A contender with such long calls gives few samples; they vary little.
LONG_CALL = 0.5
SAMPLES_OF_LONG_CALLS = 3

Report = Callable[[str], None]


@dataclass(frozen=True)
class Plan:
    """How thoroughly to measure.

    Attributes
    ----------
    size
        Of the inputs.
    launches
        Processes for each contender; each gives one build and one first call.
    rounds
        Samples from each process.
    timeout
        Seconds that a process may take for one step.
    """

    size: str
    launches: int
    rounds: int
    timeout: float


def measure(workload: str, contenders: Sequence[str], plan: Plan, report: Report) -> list[Result]:
    """Measure the contenders on one workload.

    All processes of one launch are alive together, idle but for one, and their
    samples are taken in turns: what disturbs the machine for a while disturbs
    each of them.

    Parameters
    ----------
    report
        Told what is going on.

    Returns
    -------
    list of Result
        In the order of `contenders`.  A failure is a result too.
    """
    results = {name: Result(workload, name) for name in contenders}
    with tempfile.TemporaryDirectory() as directory:
        files = {name: Path(directory, f"{name}.npz") for name in contenders}
        # The processes know the workload; this one does not import it, since Linux counts
        # the memory of a parent into the peak of its child.
        definition: dict[str, Any] = {}
        for _ in range(plan.launches):
            _launch(workload, results, files, plan, report, definition)
        _compare(results, files, definition)
    return list(results.values())


def _launch(
    workload: str,
    results: dict[str, Result],
    files: dict[str, Path],
    plan: Plan,
    report: Report,
    definition: dict[str, Any],
) -> None:
    with ExitStack() as stack:
        live: dict[str, tuple[ContenderProcess, Launch]] = {}
        slow: set[str] = set()
        for name, result in results.items():
            if result.error:
                continue
            report(f"{name}: start")
            process = stack.enter_context(
                ContenderProcess(name, workload, plan.size, files[name], plan.timeout)
            )
            try:
                definition.update(process.start())
                answer = process.ask("prepare")
                result.versions = answer.pop("versions")
                launch = Launch(**answer)
                report(f"{name}: warm up")
                answer = process.ask("calibrate")
            except ContenderFailed as error:
                result.error = str(error)
                continue
            launch.calls = answer["calls"]
            if answer["per_call"] > LONG_CALL:
                slow.add(name)
            result.launches.append(launch)
            live[name] = process, launch
        for number in range(plan.rounds):
            report(f"round {number + 1} of {plan.rounds}")
            names = list(live)
            # Everyone gets every place, so that no one always runs after the same neighbour.
            first = number % max(len(names), 1)
            for name in names[first:] + names[:first]:
                process, launch = live[name]
                if name in slow and len(launch.samples) >= SAMPLES_OF_LONG_CALLS:
                    continue
                try:
                    launch.samples.append(process.ask("sample")["per_call"])
                except ContenderFailed as error:
                    results[name].error = str(error)
                    del live[name]
        for name, (process, launch) in live.items():
            try:
                launch.memory_peak = process.ask("finish")["memory_peak"]
            except ContenderFailed as error:
                results[name].error = str(error)


def _compare(
    results: dict[str, Result], files: dict[str, Path], definition: dict[str, Any]
) -> None:
    """Set the outputs of each contender beside those of its yardstick, or of the first."""
    import numpy as np

    from benchmarks.agreement import difference

    outputs = {}
    for name, path in files.items():
        if path.exists():
            with np.load(path) as stored:
                outputs[name] = [stored[key] for key in stored.files]
    for name, result in results.items():
        others = [yardstick_of(name), *results]
        other = next((o for o in others if o in outputs and o != name), None)
        if name not in outputs or other is None:
            continue
        if definition["draws"] and "jax" in (name + other).lower():
            # JAX has generators of its own: the same distribution, other draws.
            continue
        result.disagreement = difference(outputs[name], outputs[other], definition["tolerance"])
