"""A few random graphs in both modes; ``python -m tests.conformance.fuzz`` tries many."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, settings

import fixed_modes
from tests.conformance.check import NotAGraph, check
from tests.conformance.graphs import programs
from tests.conformance.program import Program

# The same graphs each time, and no search for a smaller one: a test says that there is
# a fault, the command shows it.
_SHORT = settings(
    deadline=None,
    database=None,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


def _agrees(program: Program, mode: str) -> None:
    try:
        check(program, mode)
    except NotAGraph:
        # Aesara refuses some scans while they are built.
        return


@settings(_SHORT, max_examples=4)
@given(programs(with_random=True))
def test_random_graphs_in_numba(program):
    _agrees(program, "NUMBA_FIXED")


@settings(_SHORT, max_examples=12)
@given(programs())
def test_random_graphs_in_jax(program):
    _agrees(program, "JAX_FIXED")


PROGRAM = Program(
    """\
def build(scan_mode):
    x = at.TensorType("float64", (None,))("x")
    y, updates = aesara.scan(lambda r, s: s + r, [x], [at.zeros(())], mode=scan_mode)
    return [x], [y], updates, []


def arguments():
    return [np.array([1.0, 2.0, 4.0])]
"""
)


def test_a_program_runs_on_its_own(tmp_path):
    script = tmp_path / "failure.py"
    script.write_text(PROGRAM.alone("JAX_FIXED", "A title", "Some details"))
    root = Path(fixed_modes.__file__).parents[1]
    done = subprocess.run(
        [sys.executable, script],
        env={**os.environ, "PYTHONPATH": str(root)},
        capture_output=True,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("[1. 3. 7.]") == 4  # two calls, expected and given
