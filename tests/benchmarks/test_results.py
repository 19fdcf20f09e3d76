"""Result files, the tables made of them, and the comparison of two."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from benchmarks.app import cli
from benchmarks.comparison import Change, changes
from benchmarks.report import markdown
from benchmarks.results import Launch, Result, Run, read_run


def result(contender: str, samples: list[float], **facts: str) -> Result:
    launch = Launch(
        imports=1.0,
        build=0.0 if contender.startswith("hand") else 2.0,
        first_call=1.0,
        cpu=3.0,
        memory_before=100.0,
        memory_peak=160.0,
        calls=1,
        samples=samples,
    )
    return Result("ar2", contender, [launch], **facts)


def run_of(*results: Result) -> Run:
    machine = {"system": "s", "processor": "p", "cores": 2, "python": "3"}
    return Run("2025-01-01T00:00:00Z", "tiny", machine, list(results))


@pytest.fixture
def run() -> Run:
    return run_of(
        result("NUMBA_FIXED", [0.003, 0.001, 0.002, 0.004]),
        result("hand-numba", [0.001, 0.001, 0.001]),
        result("FAST_RUN", [0.1]),
    )


def cells(text: str, row: str) -> list[list[str]]:
    """Give the cells of every table line that begins with `row`."""
    lines = [line for line in text.splitlines() if line.startswith(f"| {row} ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_a_file_gives_back_what_was_written(run, tmp_path):
    run.write(tmp_path / "r.json")
    assert read_run(tmp_path / "r.json") == run


@pytest.mark.parametrize("text", ["", "[]", '{"format": 0}', '{"format": 1, "results": [{}]}'])
def test_another_file_is_refused(text, tmp_path):
    path = tmp_path / "r.json"
    path.write_text(text)
    with pytest.raises(ValueError, match="holds no results of this program"):
        read_run(path)


def test_median_and_spread_are_over_all_samples(run):
    ours = run.results[0]
    assert ours.steady == pytest.approx(0.0025)
    assert ours.spread == pytest.approx(0.0015)


def test_report_gives_ratios_to_the_kernel_and_from_fast_run(run):
    steady, start, memory = cells(markdown(run), "ar2")
    assert steady[-3:] == ["2.5", "100", "40"]
    assert start[-2:] == ["3", "1"]
    assert memory[1:] == ["60.0", "60.0", "60.0"]


def test_report_shows_a_contender_that_failed_or_was_wrong(run):
    run.results[0].error = "Boom: no"
    run.results[2].disagreement = "output 0 is off"
    text = markdown(run)
    assert cells(text, "ar2")[0][2:] == ["failed", "wrong", "", "", ""]
    assert "- ar2, NUMBA_FIXED: Boom: no" in text
    assert "- ar2, FAST_RUN: output 0 is off" in text


def test_a_ratio_may_grow_by_the_factor_but_no_more():
    assert not Change("w", "c", 1.0, 1.3).is_worse(1.3)
    assert Change("w", "c", 1.0, 1.31).is_worse(1.3)
    assert Change("w", "c", 1.0, None).is_worse(1.3)
    assert not Change("w", "c", None, 9.0).is_worse(1.3)


def test_a_slower_machine_is_no_change(run):
    slower = run_of(
        result("NUMBA_FIXED", [0.025]), result("hand-numba", [0.01]), result("FAST_RUN", [1.0])
    )
    assert [change.contender for change in changes(run, slower)] == ["NUMBA_FIXED", "FAST_RUN"]
    assert not any(change.is_worse(1.01) for change in changes(run, slower))


def test_compare_ends_with_status_1_when_a_ratio_has_become_worse(run, tmp_path):
    before, after = str(tmp_path / "a.json"), str(tmp_path / "b.json")
    run.write(tmp_path / "a.json")
    worse = run_of(result("NUMBA_FIXED", [0.005]), result("hand-numba", [0.001]))
    worse.write(tmp_path / "b.json")
    assert CliRunner().invoke(cli, ["compare", before, before]).exit_code == 0
    found = CliRunner().invoke(cli, ["compare", before, after])
    assert found.exit_code == 1
    assert "WORSE  ar2, NUMBA_FIXED: 2.5 -> 5" in found.output
    assert CliRunner().invoke(cli, ["compare", before, after, "--factor", "2"]).exit_code == 0


def results_of_run(path: Path, *options: str) -> list[dict[str, Any]]:
    found = CliRunner().invoke(cli, ["run", "--only", "ar2", "--json", str(path), *options])
    assert found.exit_code == 0, found.output
    return json.loads(path.read_text())["results"]


def test_run_records_a_contender_that_cannot_run_and_goes_on(tmp_path, monkeypatch):
    # The processes find an Aesara that can't be imported.
    (tmp_path / "sitecustomize.py").write_text("import sys; sys.modules['aesara'] = None")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    failed, kernel = results_of_run(
        tmp_path / "r.json", "--quick", "--size=tiny", "--contenders=FAST_RUN,hand-numba"
    )
    assert "aesara" in failed["error"]
    assert kernel["error"] == ""
    assert len(kernel["launches"][0]["samples"]) == 3


def test_run_stops_a_contender_that_takes_too_long(tmp_path):
    (stopped,) = results_of_run(
        tmp_path / "r.json", "--quick", "--contenders=hand-numba", "--timeout=0.01"
    )
    assert stopped["error"] == "stopped after 0.01 s"


def test_resume_keeps_what_the_file_has(run, tmp_path):
    from benchmarks import machine

    path = tmp_path / "r.json"
    run.machine = machine.describe()
    run.write(path)
    arguments = ["run", "--resume", "--size", "tiny", "--only", "ar2", "--json", str(path)]
    assert CliRunner().invoke(cli, arguments).exit_code == 0
    assert read_run(path) == run


def test_an_unknown_name_is_refused_with_the_known_ones():
    found = CliRunner().invoke(cli, ["run", "--only", "ar3"])
    assert found.exit_code == 2
    assert "'ar3' is none of" in found.output
    assert "ar2" in found.output
