"""What a run finds, and the file that it goes into."""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

FORMAT = 2


@dataclass
class Launch:
    """One process of a contender; times in seconds, memory in MiB.

    Attributes
    ----------
    imports
        Importing the libraries and the workload.
    graph
        Writing the graph down.
    function
        ``aesara.function``, nothing for code written by hand.
    first_call
        The first call, which compiles.
    cpu
        The processor time of these three, which tells a busy machine from slow code.
    memory_before, memory_peak
        The largest resident size before the build and at the end; the latter 0 where the
        time was up before.
    calls
        How many calls make a sample.
    samples
        The mean time of a call, for each sample.
    """

    imports: float = 0.0
    graph: float = 0.0
    function: float = 0.0
    first_call: float = 0.0
    cpu: float = 0.0
    memory_before: float = 0.0
    memory_peak: float = 0.0
    calls: int = 0
    samples: list[float] = field(default_factory=list)

    @property
    def start(self) -> float:
        """``aesara.function`` and the first call together."""
        return self.function + self.first_call


@dataclass
class Result:
    """One contender on one workload.

    Attributes
    ----------
    launches
        The first one found its compile cache empty, the others what that one had left.
    error
        How it failed; empty where it did not.
    disagreement
        How its numbers differ from those of the contender that is compared with;
        empty where they don't, None where nothing was compared.
    versions
        Of Python and the libraries that did the work.
    scaling
        Samples for other numbers of steps, where the workload has them.
    scaling_error
        Why there are no more of these; empty where there are all, or the next one was
        foreseen to take too long.
    """

    workload: str
    contender: str
    launches: list[Launch] = field(default_factory=list)
    error: str = ""
    disagreement: str | None = None
    versions: dict[str, str] = field(default_factory=dict)
    scaling: dict[str, list[float]] = field(default_factory=dict)
    scaling_error: str = ""

    @property
    def ok(self) -> bool:
        """Whether there are times, of the right numbers."""
        return not self.error and not self.disagreement and bool(self.samples)

    @property
    def samples(self) -> list[float]:
        return [sample for launch in self.launches for sample in launch.samples]

    @property
    def steady(self) -> float:
        """The median time of a call, in seconds."""
        return statistics.median(self.samples)

    @property
    def spread(self) -> float:
        """The interquartile range of the time of a call, in seconds."""
        if len(self.samples) < 2:
            return 0.0
        low, _, high = statistics.quantiles(self.samples, n=4, method="inclusive")
        return high - low

    @property
    def cold(self) -> Launch | None:
        """The launch that had to compile everything."""
        return self.launches[0] if self.launches else None

    @property
    def warm(self) -> Launch | None:
        """The launch that found a full cache: of several, that with the median start."""
        others = sorted(self.launches[1:], key=lambda launch: launch.start)
        return others[len(others) // 2] if others else None

    @property
    def memory(self) -> float | None:
        """The peak memory above what the imports took, in MiB."""
        known = [
            launch.memory_peak - launch.memory_before
            for launch in self.launches
            if launch.memory_peak
        ]
        # The first launch compiles, which takes more.
        return max(known) if known else None


@dataclass
class Run:
    """All results of a run.

    Attributes
    ----------
    date
        When it began, in ISO format.
    size
        The size of the inputs.
    machine
        As from `benchmarks.machine.describe`.
    seconds
        How long it took.
    """

    date: str
    size: str
    machine: dict[str, Any]
    seconds: float = 0.0
    results: list[Result] = field(default_factory=list)

    def by_workload(self) -> Mapping[str, Mapping[str, Result]]:
        """Group the results: workload, contender, result; in the order of the run."""
        table: dict[str, dict[str, Result]] = {}
        for result in self.results:
            table.setdefault(result.workload, {})[result.contender] = result
        return table

    def write(self, path: Path) -> None:
        """Write the file, all of it or nothing."""
        text = json.dumps({"format": FORMAT, **asdict(self)}, indent=1)
        partial = path.with_name(path.name + ".partial")
        partial.write_text(text + "\n", encoding="utf-8")
        partial.replace(path)


def read_run(path: Path) -> Run:
    """Read a file that `Run.write` wrote.

    Raises
    ------
    ValueError
        If the file is something else.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content.pop("format") != FORMAT:
            raise ValueError("it has another format")
        results = [
            Result(**{**entry, "launches": [Launch(**launch) for launch in entry["launches"]]})
            for entry in content.pop("results")
        ]
        return Run(**content, results=results)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} holds no results of this program: {error}") from error
