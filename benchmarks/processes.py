"""Starts a contender's process and talks to it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

_ROOT = Path(__file__).resolve().parents[1]


class ContenderFailed(Exception):
    """A contender raised, died, or used up its time; the message says which."""


@dataclass(frozen=True)
class Request:
    """What to measure, and how.

    Attributes
    ----------
    contender, workload, size
        What to measure.
    outputs
        The file for what the first call returns.
    python
        The interpreter of the contender's environment.
    variables
        Environment variables, beside those of this process.
    budget
        Seconds that all answers together may take, the imports apart.
    """

    contender: str
    workload: str
    size: str
    outputs: Path
    python: str
    variables: Mapping[str, str]
    budget: float


class ContenderProcess:
    """A contender in a process of its own; a context manager that ends it."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._left = request.budget
        self._expired = False
        # A file and no pipe: a pipe that nobody reads fills up and stops the child.
        self._errors = tempfile.TemporaryFile(  # noqa: SIM115
            "w+", encoding="utf-8", errors="replace"
        )
        variables = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2"}
        for name, value in request.variables.items():
            # The user's flags stay, but for what is set here.
            own = variables.get(name, "") if name.endswith("_FLAGS") else ""
            variables[name] = ",".join(filter(None, [own, value]))
        self._child = subprocess.Popen(
            [request.python, "-m", "benchmarks.child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            encoding="utf-8",
            cwd=_ROOT,
            env=variables,
            # A compiler that it has started ends with it.
            start_new_session=True,
        )

    def __enter__(self) -> ContenderProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self._kill()
        for stream in (self._child.stdin, self._child.stdout):
            if stream is not None:
                with suppress(OSError):
                    stream.close()
        self._child.wait()
        self._errors.close()

    @property
    def left(self) -> float:
        """The seconds that are left of the budget."""
        return self._left

    def start(self) -> dict[str, Any]:
        """Do the imports and make the inputs; gives what the parent has to know.

        Raises
        ------
        ContenderFailed
            As from `ask`.
        """
        request = self._request
        before = self._left
        try:
            return self._exchange(
                {
                    "contender": request.contender,
                    "workload": request.workload,
                    "size": request.size,
                    "outputs": str(request.outputs),
                }
            )
        finally:
            # Imports are no part of what is compared.
            self._left = before

    def ask(self, what: str, **arguments: Any) -> dict[str, Any]:
        """Call a method of `benchmarks.child.Measurement`.

        Raises
        ------
        ContenderFailed
            If it raises, ends the process, or the budget is used up.
        """
        return self._exchange({"do": what, **arguments})

    def _exchange(self, request: dict[str, Any]) -> dict[str, Any]:
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        timer = threading.Timer(max(self._left, 0.0), self._expire)
        start = perf_counter()
        timer.start()
        try:
            print(json.dumps(request), file=self._child.stdin, flush=True)
            line = self._child.stdout.readline()
        except BrokenPipeError:
            line = ""
        finally:
            timer.cancel()
            self._left -= perf_counter() - start
        if not line:
            raise ContenderFailed(self._fate())
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise ContenderFailed(answer["error"])
        return answer

    def _expire(self) -> None:
        self._expired = True
        self._kill()

    def _kill(self) -> None:
        if self._child.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(self._child.pid, signal.SIGKILL)

    def _fate(self) -> str:
        status = self._child.wait()
        if self._expired:
            return f"stopped after {self._request.budget:g} s"
        self._errors.seek(0)
        lines = [line.strip() for line in self._errors.read().splitlines() if line.strip()]
        last = f": {lines[-1]}" if lines else ""
        if status < 0:
            return f"ended by {signal.Signals(-status).name}{last}"
        return f"ended with status {status}{last}"
