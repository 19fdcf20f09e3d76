"""Measures one contender on one workload, in a process of its own.

Run by `benchmarks.processes`: requests come in and answers go out as lines of JSON.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import traceback
import warnings
from pathlib import Path
from time import perf_counter, process_time
from timeit import Timer
from typing import Any

# Below this a sample would be as much noise as signal.
SHORTEST_SAMPLE = 0.02


def peak_memory() -> float:
    """Give the largest resident size so far, in MiB."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)


class Measurement:
    """One contender on one workload, from the imports on."""

    def __init__(self, contender: str, workload: str, size: str, outputs: str) -> None:
        from benchmarks.contenders import CONTENDERS
        from benchmarks.workloads import load

        start = perf_counter()
        self.contender = CONTENDERS[contender]
        self.contender.import_all()
        self.workload = load(workload)
        self.imports = perf_counter() - start
        self.size = size
        self.inputs = self.workload.inputs(size)
        self.outputs = Path(outputs)
        self.calls = 1

    def describe(self) -> dict[str, Any]:
        """Say what the parent has to know of the workload."""
        return {
            "tolerance": self.workload.tolerance,
            "moments": self.workload.tolerance_of_moments,
            "draws": self.workload.seed is not None,
            "scaling": list(self.workload.scaling),
            "versions": self.contender.versions(),
        }

    def prepare(self) -> dict[str, Any]:
        """Build and call once, and write down what came out."""
        import numpy as np

        from benchmarks.agreement import as_arrays

        before = peak_memory()
        cpu = process_time()
        prepared = self.contender.make(self.workload, self.size)
        self.call = prepared.call
        start = perf_counter()
        outputs = self.call(*self.inputs)
        called = perf_counter()
        cpu = process_time() - cpu
        np.savez(self.outputs, *as_arrays(outputs))
        return {
            "imports": self.imports,
            "graph": prepared.graph,
            "function": prepared.function,
            "first_call": called - start,
            "cpu": cpu,
            "memory_before": before,
        }

    def calibrate(self) -> dict[str, Any]:
        """Find how many calls make a sample; the calls are a warm-up as well."""
        self.calls = 1
        while True:
            seconds = self._time(self.calls)
            if seconds >= SHORTEST_SAMPLE:
                return {"calls": self.calls, "per_call": seconds / self.calls}
            # Straight to the number, with a margin, but not on the word of one noisy call.
            wanted = 1.2 * SHORTEST_SAMPLE / max(seconds, 1e-9) * self.calls
            self.calls = max(self.calls + 1, min(int(wanted), 20 * self.calls))

    def sample(self) -> dict[str, Any]:
        """Time one sample, in seconds a call."""
        return {"per_call": self._time(self.calls) / self.calls}

    def finish(self) -> dict[str, Any]:
        """Give the peak memory."""
        return {"memory_peak": peak_memory()}

    def scale(self, steps: int) -> dict[str, Any]:
        """Go on with inputs of another length; gives what `calibrate` gives."""
        self.inputs = self.workload.make_inputs(steps=steps)
        self.call(*self.inputs)
        return self.calibrate()

    def _time(self, calls: int) -> float:
        # Which collects garbage first, and never in between.
        return Timer("call(*inputs)", "gc.collect()", globals=self._names()).timeit(calls)

    def _names(self) -> dict[str, Any]:
        import gc

        return {"call": self.call, "inputs": self.inputs, "gc": gc}


def main() -> None:
    """Answer requests until the input ends."""
    # Libraries print; their lines must not come between the answers.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    warnings.simplefilter("ignore")
    measurement = None
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if measurement is None:
                measurement = Measurement(**request)
                answer = measurement.describe()
            else:
                answer = getattr(measurement, request.pop("do"))(**request)
        except Exception as error:
            traceback.print_exc()
            answer = {"error": f"{type(error).__name__}: {_first_line(error)}"}
        print(json.dumps(answer), file=answers, flush=True)


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else ""


if __name__ == "__main__":
    main()
