"""Tries a batch of random graphs; one process, since compiled code may end it.

Prints a JSON object a line: ``{"try": n}`` before each graph, ``{"seen": what}``
after it, and at the end ``{"failure": ...}`` if a graph failed.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.errors import Flaky

from tests.conformance.check import Mismatch, NotAGraph, check
from tests.conformance.graphs import programs
from tests.conformance.program import Program

#: Seconds for making a failing graph smaller.
SHRINK_SECONDS = 120.0
#: Graphs drawn with one seed: Hypothesis varies those that it has had, and repeats itself.
ROUND = 25


class Batch:
    """Tries programs, and remembers which ones failed.

    Parameters
    ----------
    known
        Signatures of failures that have been reported: they are counted only.
    current
        Where the program that is being tried is written, in case the process dies.
    """

    def __init__(self, mode: str, known: set[str], current: Path) -> None:
        self.mode, self.known, self.current = mode, known, current
        self.tried = 0
        self.failures: dict[str, Mismatch] = {}
        self.signature = ""
        self.deadline = 0.0
        self.smallest: Program | None = None
        self.passed: set[str] = set()

    def try_program(self, program: Program) -> None:
        text = program.body
        if text in self.failures:
            self.smallest = program
            raise self.failures[text]
        if self.signature and time.monotonic() > self.deadline:
            return  # Hypothesis stops making it smaller
        if text in self.passed:
            return
        self.current.write_text(program.alone(self.mode, "The process ended.", ""))
        self.tried += 1
        _say({"try": self.tried})
        try:
            seen = check(program, self.mode)
        except NotAGraph:
            seen = "no graph"
        except Mismatch as mismatch:
            seen = mismatch.signature
            if self._is_new(seen):
                if not self.signature:
                    self.signature = seen
                    self.deadline = time.monotonic() + SHRINK_SECONDS
                    _say({"found": seen})
                self.failures[text] = mismatch
                self.smallest = program
                raise
        self.passed.add(text)
        _say({"seen": seen})

    def _is_new(self, signature: str) -> bool:
        # While one failure is made smaller, others don't count.
        return signature == self.signature if self.signature else signature not in self.known


def _say(message: dict[str, Any]) -> None:
    print(json.dumps(message), flush=True)


def main() -> None:
    """Run the batch that the arguments describe."""
    mode, number, examples, known, current = sys.argv[1:]
    logging.disable(logging.ERROR)
    known_path = Path(known)
    signatures = set(known_path.read_text().splitlines()) if known_path.exists() else set()
    batch = Batch(mode, signatures, Path(current))

    for part in range(0, int(examples), ROUND):

        @seed(1_000 * int(number) + part)
        @settings(
            max_examples=ROUND,
            deadline=None,
            database=None,
            phases=[Phase.generate, Phase.shrink],
            suppress_health_check=list(HealthCheck),
            report_multiple_bugs=False,
        )
        @given(programs(with_random=mode == "NUMBA_FIXED"))
        def try_some(program: Program) -> None:
            batch.try_program(program)

        with suppress(Mismatch, Flaky):
            try_some()
        if batch.smallest is not None:
            break
    if batch.smallest is not None:
        mismatch = batch.failures[batch.smallest.body]
        script = batch.smallest.alone(mode, mismatch.signature, mismatch.details)
        _say({"failure": mismatch.signature, "script": script})


if __name__ == "__main__":
    main()
