"""Starts a contender's process and talks to it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).resolve().parents[1]


def _without_cache() -> str:
    """Give the flags of a process that compiles all it runs, as a first one does."""
    own = os.environ.get("AESARA_FLAGS", "")
    return ",".join(filter(None, [own, "fixed_modes__cache=False"]))


class ContenderFailed(Exception):
    """A contender raised, died, or took too long; the message says which."""


class ContenderProcess:
    """A contender in a process of its own; a context manager that ends it.

    Parameters
    ----------
    contender, workload, size
        What to measure.
    outputs
        The file for what the first call returns.
    timeout
        Seconds that one request may take.
    """

    def __init__(
        self, contender: str, workload: str, size: str, outputs: Path, timeout: float
    ) -> None:
        self._timeout = timeout
        self._expired = False
        # A file and no pipe: a pipe that nobody reads fills up and stops the child.
        self._errors = tempfile.TemporaryFile(  # noqa: SIM115
            "w+", encoding="utf-8", errors="replace"
        )
        self._child = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            encoding="utf-8",
            cwd=_ROOT,
            env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2", "AESARA_FLAGS": _without_cache()},
        )
        self._request = {
            "contender": contender,
            "workload": workload,
            "size": size,
            "outputs": str(outputs),
        }

    def __enter__(self) -> ContenderProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self._child.kill()
        for stream in (self._child.stdin, self._child.stdout):
            if stream is not None:
                with suppress(OSError):
                    stream.close()
        self._child.wait()
        self._errors.close()

    def start(self) -> dict[str, Any]:
        """Do the imports and make the inputs; gives what the comparison has to know.

        Raises
        ------
        ContenderFailed
            As from `ask`.
        """
        return self._exchange(self._request)

    def ask(self, what: str) -> dict[str, Any]:
        """Call a method of `benchmarks.child.Measurement`.

        Raises
        ------
        ContenderFailed
            If it raises, ends the process, or takes longer than the timeout.
        """
        return self._exchange({"do": what})

    def _exchange(self, request: dict[str, Any]) -> dict[str, Any]:
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        timer = threading.Timer(self._timeout, self._expire)
        timer.start()
        try:
            print(json.dumps(request), file=self._child.stdin, flush=True)
            line = self._child.stdout.readline()
        except BrokenPipeError:
            line = ""
        finally:
            timer.cancel()
        if not line:
            raise ContenderFailed(self._fate())
        answer = json.loads(line)
        if "error" in answer:
            raise ContenderFailed(answer["error"])
        return answer

    def _expire(self) -> None:
        self._expired = True
        self._child.kill()

    def _fate(self) -> str:
        status = self._child.wait()
        if self._expired:
            return f"stopped after {self._timeout:g} s"
        self._errors.seek(0)
        lines = [line.strip() for line in self._errors.read().splitlines() if line.strip()]
        last = f": {lines[-1]}" if lines else ""
        if status < 0:
            return f"ended by {signal.Signals(-status).name}{last}"
        return f"ended with status {status}{last}"
