"""Measures contenders side by side."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.contenders import CONTENDERS, yardstick_of
from benchmarks.processes import ContenderFailed, ContenderProcess, Request
from benchmarks.results import Launch, Result

# A contender with such long calls gives few samples; they vary little.
LONG_CALL = 0.5
SAMPLES_OF_LONG_CALLS = 3

# Samples of each length where the time is measured against the number of steps.
SAMPLES_OF_LENGTHS = 3

Report = Callable[[str], None]


@dataclass(frozen=True)
class Plan:
    """How thoroughly to measure.

    Attributes
    ----------
    size
        Of the inputs.
    launches
        Processes for each contender with a compile cache: the first one finds it empty.
        The others have one process.
    rounds
        Samples from each process.
    budget
        Seconds for each process, its imports apart.
    together
        How many processes may import their libraries at once, and how many contenders
        without a compile cache may start at once.
    pythons
        The interpreter of each contender, or what kept it from being installed.
    shared
        A directory for what Aesara itself compiles to C, kept from one workload and one
        run to the next.
    """

    size: str
    launches: int
    rounds: int
    budget: float
    together: int
    pythons: Mapping[str, str | Exception]
    shared: Path


@dataclass
class _Live:
    """A process that is being measured."""

    process: ContenderProcess
    result: Result
    launch: Launch = field(default_factory=Launch)
    slow: bool = False


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
        session = _Session(workload, plan, report, Path(directory))
        for number in range(plan.launches):
            session.launch(results, first=number == 0)
        session.compare(results)
    return list(results.values())


class _Session:
    """The launches of one workload, which share compile caches."""

    def __init__(self, workload: str, plan: Plan, report: Report, directory: Path) -> None:
        self._workload = workload
        self._plan = plan
        self._report = report
        self._directory = directory
        # The processes know the workload; this one does not import it, since Linux counts
        # the memory of a parent into the peak of its child.
        self._definition: dict[str, Any] = {}

    def launch(self, results: Mapping[str, Result], *, first: bool) -> None:
        """Measure all contenders that are launched this time, and have not failed."""
        with ExitStack() as stack:
            live: list[_Live] = []
            for name, result in results.items():
                python = self._plan.pythons[name]
                if isinstance(python, Exception):
                    result.error = str(python)
                elif not result.error and (first or CONTENDERS[name].cache is not None):
                    process = ContenderProcess(self._request(name, python))
                    live.append(_Live(stack.enter_context(process), result))
            self._report("imports")
            live = self._at_once(live, self._start)
            # Starts that are compared are made on a quiet machine; the others are long.
            alone = [one for one in live if CONTENDERS[one.result.contender].cache is not None]
            others = [one for one in live if one not in alone]
            live = [one for one in alone if self._try(one, self._prepare)]
            live += self._at_once(others, self._prepare)
            live = [one for one in live if self._try(one, self._calibrate)]
            for number in range(self._plan.rounds):
                self._report(f"round {number + 1} of {self._plan.rounds}")
                # Everyone gets every place, so that no one always runs after the same
                # neighbour.
                live = [one for one in live[1:] + live[:1] if self._try(one, self._sample)]
            live = [one for one in live if self._try(one, self._finish)]
            if first:
                for steps in self._definition.get("scaling", ()):
                    self._report(f"{steps} steps")
                    live = [one for one in live if self._scale(one, steps)]

    def compare(self, results: Mapping[str, Result]) -> None:
        """Set the outputs of each contender beside those of its yardstick, or of the first."""
        import numpy as np

        from benchmarks.agreement import difference, difference_of_moments

        outputs = {}
        for name in results:
            path = self._outputs(name)
            if path.exists():
                with np.load(path) as stored:
                    outputs[name] = [stored[key] for key in stored.files]
        for name, result in results.items():
            others = [yardstick_of(name), *results]
            other = next((o for o in others if o in outputs and o != name), None)
            if name not in outputs or other is None:
                continue
            # JAX has generators of its own: the same distribution, other draws.
            draws = self._definition["draws"] and "jax" in (name + other).lower()
            compare = difference_of_moments if draws else difference
            tolerance = self._definition["moments" if draws else "tolerance"]
            result.disagreement = compare(outputs[name], outputs[other], tolerance)

    def _request(self, name: str, python: str) -> Request:
        contender = CONTENDERS[name]
        variables = {"AESARA_FLAGS": f"base_compiledir={self._plan.shared}"}
        if contender.cache is not None:
            for variable, value in contender.cache(self._directory / f"cache-{name}").items():
                known = variables.get(variable)
                variables[variable] = value if known is None else f"{known},{value}"
        return Request(
            contender=name,
            workload=self._workload,
            size=self._plan.size,
            outputs=self._outputs(name),
            python=python,
            variables=variables,
            budget=self._plan.budget,
        )

    def _outputs(self, name: str) -> Path:
        return self._directory / f"{name}.npz"

    def _at_once(self, those: Sequence[_Live], do: Callable[[_Live], None]) -> list[_Live]:
        with ThreadPoolExecutor(self._plan.together) as pool:
            done = list(pool.map(lambda one: self._try(one, do), those))
        return [one for one, worked in zip(those, done) if worked]

    def _try(self, one: _Live, do: Callable[[_Live], None]) -> bool:
        try:
            do(one)
        except ContenderFailed as error:
            # Samples that were taken before the time was up are good.
            if not one.launch.samples:
                one.result.error = str(error)
            return False
        return True

    def _start(self, one: _Live) -> None:
        answer = one.process.start()
        one.result.versions = answer.pop("versions")
        self._definition.update(answer)

    def _prepare(self, one: _Live) -> None:
        self._report(f"{one.result.contender}: first call")
        one.launch = Launch(**one.process.ask("prepare"))
        one.result.launches.append(one.launch)

    def _calibrate(self, one: _Live) -> None:
        self._report(f"{one.result.contender}: warm up")
        answer = one.process.ask("calibrate")
        one.launch.calls = answer["calls"]
        if answer["per_call"] > LONG_CALL:
            # So long a call is a sample as it is.
            one.slow = True
            one.launch.samples.append(answer["per_call"])

    def _sample(self, one: _Live) -> None:
        if not one.slow or len(one.launch.samples) < SAMPLES_OF_LONG_CALLS:
            one.launch.samples.append(one.process.ask("sample")["per_call"])

    def _finish(self, one: _Live) -> None:
        one.launch.memory_peak = one.process.ask("finish")["memory_peak"]

    def _scale(self, one: _Live, steps: int) -> bool:
        scaling = one.result.scaling
        # Ten times the steps take ten times as long, or worse: not what can't be done in time.
        expected = [steps / int(known) * min(taken) for known, taken in scaling.items()]
        longest = max(expected, default=0.0)
        if longest * (2 + SAMPLES_OF_LENGTHS) > one.process.left:
            return False
        try:
            answer = one.process.ask("scale", steps=steps)
            samples = [answer["per_call"]]
            samples += (
                one.process.ask("sample")["per_call"] for _ in range(SAMPLES_OF_LENGTHS - 1)
            )
        except ContenderFailed as error:
            one.result.scaling_error = f"{steps} steps: {error}"
            return False
        scaling[str(steps)] = samples
        return True


def interpreters(
    contenders: Iterable[str], own: str, prepare: Callable[[str], str]
) -> dict[str, str | Exception]:
    """Find the interpreter of each contender, making environments where they are missing.

    Parameters
    ----------
    own
        The interpreter of contenders without an environment of their own.
    prepare
        Makes an environment and gives its interpreter.
    """
    from benchmarks.environments import EnvironmentFailed

    made: dict[str, str | Exception] = {"": own}
    found = {}
    for name in contenders:
        environment = CONTENDERS[name].environment
        if environment not in made:
            try:
                made[environment] = prepare(environment)
            except EnvironmentFailed as error:
                made[environment] = error
        found[name] = made[environment]
    return found
