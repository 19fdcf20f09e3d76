"""Runs functions in a Python process of their own, and survives what they do there.

A crash, an abort or an endless loop of one child is an `Outcome` like any other.
`worker` is the other end.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Job:
    """A function to call in a child: ``"module:function"`` and its keyword arguments."""

    function: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True)
class Outcome:
    """What became of a job.

    Attributes
    ----------
    value
        What the function returned; None where it failed.
    error
        One line that says how it failed; empty where it did not.
    details
        The traceback, or what the child wrote to its standard error stream.
    warnings
        What this package warned of meanwhile, a line each.
    """

    value: Any = None
    error: str = ""
    details: str = ""
    warnings: Sequence[str] = ()

    @property
    def ok(self) -> bool:
        return not self.error


def run_jobs(
    jobs: Sequence[Job],
    timeout: float,
    on_start: Callable[[int], None] | None = None,
    environment: Mapping[str, str] | None = None,
) -> list[Outcome]:
    """Call the functions of `jobs`, in order, in one child.

    Parameters
    ----------
    jobs
        What to call; the values returned have to be JSON.
    timeout
        Seconds after which the child is killed.
    on_start
        Called with the index of each job as it starts.
    environment
        The child's environment variables; by default those of this process.

    Returns
    -------
    list of Outcome
        One for each job.  A job that raises leaves the next ones to run; a
        child that dies takes the current job and the rest with it.
    """
    outcomes: list[Outcome] = []
    expired = threading.Event()
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as errors:
        with subprocess.Popen(
            [sys.executable, "-c", "from fixed_modes.cli.worker import main; main()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            encoding="utf-8",
            # The first entry keeps XLA's progress notes off the error stream.
            env={"TF_CPP_MIN_LOG_LEVEL": "2", **(environment or os.environ)},
        ) as child:
            assert child.stdin is not None
            assert child.stdout is not None

            def expire() -> None:
                expired.set()
                child.kill()

            timer = threading.Timer(timeout, expire)
            timer.start()
            try:
                _send(child.stdin, jobs)
                for line in child.stdout:
                    message = json.loads(line)
                    if "start" in message:
                        if on_start is not None:
                            on_start(message["start"])
                    else:
                        outcomes.append(Outcome(**message))
            except BaseException:
                child.kill()
                raise
            finally:
                timer.cancel()
        errors.seek(0)
        written = errors.read()
    if len(outcomes) < len(jobs):
        if expired.is_set():
            fate = f"stopped after {timeout:g} s without a result"
        else:
            fate = _describe_end(child.returncode, written)
        lost = Outcome(error=fate, details=written.strip())
        outcomes.extend([lost] * (len(jobs) - len(outcomes)))
    return outcomes


def _send(stdin: Any, jobs: Sequence[Job]) -> None:
    request = [{"function": job.function, "arguments": dict(job.arguments)} for job in jobs]
    try:
        with stdin:
            json.dump(request, stdin)
    except OSError:
        # The child is gone already; its exit status and error stream say why.
        pass


def _describe_end(status: int, written: str) -> str:
    if status < 0:
        try:
            name = signal.Signals(-status).name
        except ValueError:
            name = f"signal {-status}"
        return f"the process was ended by {name}{_last_line(written)}"
    return f"the process ended with status {status}{_last_line(written)}"


def _last_line(written: str) -> str:
    lines = [line for line in written.splitlines() if line.strip()]
    return f": {lines[-1].strip()}" if lines else ""
