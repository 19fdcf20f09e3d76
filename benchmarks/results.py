"""What a run finds, and the file that it goes into."""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

FORMAT = 1


@dataclass
class Launch:
    """One process of a contender; times in seconds, memory in MiB.

    Attributes
    ----------
    imports
        Importing the libraries and the workload.
    build
        ``aesara.function``, nothing for code written by hand.
    first_call
        The first call, which compiles.
    cpu
        The processor time of both, which tells a busy machine from slow code.
    memory_before, memory_peak
        The largest resident size before the build and at the end.
    calls
        How many calls make a sample.
    samples
        The mean time of a call, for each sample.
    """

    imports: float
    build: float
    first_call: float
    cpu: float
    memory_before: float
    memory_peak: float = 0.0
    calls: int = 0
    samples: list[float] = field(default_factory=list)


@dataclass
class Result:
    """One contender on one workload.

    Attributes
    ----------
    error
        How it failed; empty where it did not.
    disagreement
        How its numbers differ from those of the contender that is compared with;
        empty where they don't, None where nothing was compared.
    versions
        Of the libraries that did the work.
    """

    workload: str
    contender: str
    launches: list[Launch] = field(default_factory=list)
    error: str = ""
    disagreement: str | None = None
    versions: dict[str, str] = field(default_factory=dict)

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
    def build(self) -> float:
        return statistics.median(launch.build for launch in self.launches)

    @property
    def first_call(self) -> float:
        return statistics.median(launch.first_call for launch in self.launches)

    @property
    def start(self) -> float:
        """Build and first call together, in seconds."""
        return statistics.median(launch.build + launch.first_call for launch in self.launches)

    @property
    def cpu(self) -> float:
        """The processor time of build and first call, in seconds."""
        return statistics.median(launch.cpu for launch in self.launches)

    @property
    def memory(self) -> float:
        """The peak memory above what the imports took, in MiB."""
        return statistics.median(
            launch.memory_peak - launch.memory_before for launch in self.launches
        )


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
    """

    date: str
    size: str
    machine: dict[str, Any]
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
