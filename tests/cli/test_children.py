from __future__ import annotations

import os

import pytest

from fixed_modes.cli.children import Job, run_jobs

JOBS = """
import os, sys, time, warnings

def double(x):
    return {"doubled": 2 * x}

def noisy():
    print("printed")
    os.write(1, b"written\\n")
    print("an error message", file=sys.stderr)
    return "quiet"

def fail():
    raise ValueError("the first line\\nthe second line")

def fail_without_words():
    raise KeyError

def abort():
    print("about to abort", file=sys.stderr, flush=True)
    os.abort()

def warn():
    from fixed_modes.errors import FixedModesWarning
    warnings.warn("somebody else's")
    warnings.warn("the first line\\nthe second line", FixedModesWarning)
    return 1

def leave():
    sys.exit(7)

def sleep():
    time.sleep(600)
"""


@pytest.fixture
def run(write, tmp_path):
    """Run the functions above in a child, given as ``(name, arguments)``."""
    write("jobs.py", JOBS)
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path}

    def run_functions(*calls: tuple[str, dict[str, object]], timeout: float = 60.0, **options):
        jobs = [Job(f"jobs:{name}", arguments) for name, arguments in calls]
        return run_jobs(jobs, timeout, environment=environment, **options)

    return run_functions


def test_values_come_back_in_order_and_each_start_is_told(run) -> None:
    started: list[int] = []
    outcomes = run(("double", {"x": 1}), ("double", {"x": 2.5}), on_start=started.append)
    assert [outcome.value for outcome in outcomes] == [{"doubled": 2}, {"doubled": 5.0}]
    assert all(outcome.ok for outcome in outcomes)
    assert started == [0, 1]


def test_what_a_job_prints_is_kept_out_of_its_value(run) -> None:
    (outcome,) = run(("noisy", {}))
    assert outcome.value == "quiet"


def test_a_job_that_raises_leaves_the_next_one_to_run(run) -> None:
    failed, silent, good = run(("fail", {}), ("fail_without_words", {}), ("double", {"x": 3}))
    assert not failed.ok
    assert failed.error == "ValueError: the first line ..."
    assert "the second line" in failed.details
    assert silent.error == "KeyError"
    assert good.value == {"doubled": 6}


def test_warnings_of_this_package_come_back_with_their_job(run) -> None:
    warned, quiet = run(("warn", {}), ("double", {"x": 1}))
    assert (warned.value, warned.error) == (1, "")
    assert list(warned.warnings) == ["FixedModesWarning: the first line ..."]
    assert list(quiet.warnings) == []


def test_an_abort_is_reported_for_its_job_and_the_rest(run) -> None:
    good, aborted, rest = run(("double", {"x": 1}), ("abort", {}), ("double", {"x": 1}))
    assert good.ok
    assert aborted.error == rest.error
    assert "SIGABRT" in aborted.error
    assert "about to abort" in aborted.details


def test_a_job_that_leaves_the_process_is_reported(run) -> None:
    (outcome,) = run(("leave", {}))
    assert outcome.error == "the process ended with status 7"


def test_a_job_that_does_not_end_is_stopped(run) -> None:
    (outcome,) = run(("sleep", {}), timeout=2.0)
    assert outcome.error == "stopped after 2 s without a result"


def test_a_child_that_cannot_start_is_reported_with_its_last_words(tmp_path, monkeypatch) -> None:
    (tmp_path / "fixed_modes").mkdir()
    (tmp_path / "fixed_modes" / "__init__.py").write_text("raise ImportError('broken')")
    monkeypatch.chdir(tmp_path)
    (outcome,) = run_jobs([Job("jobs:double", {"x": 1})], 60.0)
    assert outcome.error == "the process ended with status 1: ImportError: broken"
