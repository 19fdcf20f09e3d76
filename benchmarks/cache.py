"""What the compile cache is worth: the same start with an empty cache and with a full one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

_ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Start:
    """The start of a workload in a new process, in seconds of the processor, without imports.

    Attributes
    ----------
    function
        ``aesara.function``.
    first_call
        The first call.
    key, lookup
        Of these, what the cache took to describe the graph and to read the entry.
    once
        Of these, what it took to find out versions and what is registered, which the
        second function of a process does without.
    compiled
        How many functions Numba compiled.
    processes
        How many processes were started, a C compiler for example.
    rewritten
        1 if Aesara has rewritten the graph, 0 if a rewritten one was loaded.
    """

    function: float
    first_call: float
    key: float = 0.0
    lookup: float = 0.0
    once: float = 0.0
    compiled: int = 0
    processes: int = 0
    rewritten: int = 0


@dataclass(frozen=True)
class Result:
    """The starts of one workload.

    Attributes
    ----------
    cold, warm
        With an empty cache, and with what the first process has left.
    kernel
        The kernel written by hand, from Numba's own cache; None for JAX_FIXED.
    alone, together
        Seconds from the start of a process to its end, one process by itself (the
        median of three) and `workers` at once, all with a full cache; None if not measured.
    """

    workload: str
    mode: str
    cold: Start
    warm: Start
    kernel: Start | None = None
    alone: float | None = None
    together: float | None = None

    def as_json(self) -> dict[str, Any]:
        """Give it as `json` takes it."""
        return asdict(self)


def measure(
    workload: str, mode: str, size: str, workers: int, timeout: float, tell: Callable[[str], None]
) -> Result:
    """Start a workload several times, in processes of its own and with a cache of its own.

    Raises
    ------
    RuntimeError
        If a process fails.
    """
    with tempfile.TemporaryDirectory() as place:
        own = os.environ.get("AESARA_FLAGS", "")
        flags = f"fixed_modes__cache=True,fixed_modes__cache_dir={place}/ours"
        variables = {
            "AESARA_FLAGS": ",".join(filter(None, [own, flags])),
            "NUMBA_CACHE_DIR": f"{place}/numba",
        }

        def start(contender: str) -> Start:
            return Start(**_run(contender, workload, size, variables, timeout))

        tell("cold")
        cold = start(mode)
        tell("warm")
        warm = start(mode)
        kernel = alone = together = None
        if mode == "NUMBA_FIXED":
            tell("kernel")
            start("hand-numba")
            kernel = start("hand-numba")
        if workers:
            tell(f"{workers} workers")
            alone = median(_seconds(lambda: start(mode)) for _ in range(3))
            together = _seconds(lambda: _all_at_once(lambda: start(mode), workers))
    return Result(workload, mode, cold, warm, kernel, alone, together)


def markdown(results: Sequence[Result], workers: int, cores: int) -> str:
    """Write a table."""
    head = ["workload", "mode", "function cold, s", "warm, s", "first call cold, s", "warm, s"]
    head += ["kernel warm, s", "key and lookup, % of function cold", "once a process, ms"]
    head += ["compiled warm", "rewritten warm", "processes warm"]
    if workers:
        head += [f"{workers} at once / one, for {cores} cores"]
    lines = [_line(result, workers, cores) for result in results]
    rule = [":--", ":--", *(["--:"] * (len(head) - 2))]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (head, rule, *lines))


def _line(result: Result, workers: int, cores: int) -> list[str]:
    warm = result.warm
    # Where everything is loaded, looking it up is most of what is left to do.
    share = 100 * (warm.key + warm.lookup) / result.cold.function
    cells = [
        result.workload,
        result.mode,
        *(f"{seconds:.3g}" for seconds in (result.cold.function, warm.function)),
        *(f"{seconds:.3g}" for seconds in (result.cold.first_call, warm.first_call)),
        "" if result.kernel is None else f"{result.kernel.first_call:.3g}",
        f"{share:.2g}",
        f"{1e3 * warm.once:.2g}",
        str(warm.compiled),
        str(warm.rewritten),
        str(warm.processes),
    ]
    if workers:
        assert result.alone is not None
        assert result.together is not None
        cells.append(f"{result.together / result.alone / max(workers / cores, 1):.2f}")
    return cells


def _run(
    contender: str, workload: str, size: str, variables: Mapping[str, str], timeout: float
) -> dict[str, Any]:
    process = subprocess.run(
        [sys.executable, "-m", "benchmarks.cache_child", contender, workload, size],
        cwd=_ROOT,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    if process.returncode:
        last = (process.stderr.strip().splitlines() or ["no message"])[-1]
        raise RuntimeError(f"{contender} on {workload}: {last}")
    # Libraries may print lines before ours.
    found: dict[str, Any] = json.loads(process.stdout.splitlines()[-1])
    return found


def _all_at_once(start: Callable[[], Any], number: int) -> list[Any]:
    with ThreadPoolExecutor(number) as pool:
        return [future.result() for future in [pool.submit(start) for _ in range(number)]]


def _seconds(do: Callable[[], Any]) -> float:
    start = perf_counter()
    do()
    return perf_counter() - start
