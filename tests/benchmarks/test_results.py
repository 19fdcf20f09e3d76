"""Result files, the tables made of them, and the comparison of two."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from benchmarks.app import cli
from benchmarks.comparison import Change, changes
from benchmarks.ratios import ratio
from benchmarks.report import markdown
from benchmarks.results import Launch, Result, Run, read_run


def result(contender: str, samples: list[float], **facts: Any) -> Result:
    launch = Launch(
        imports=1.0,
        function=0.0 if contender.startswith("hand") else 2.0,
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
    return Run("2025-01-01T00:00:00Z", "tiny", machine, 60.0, list(results))


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


@pytest.mark.parametrize("text", ["", "[]", '{"format": 0}', '{"format": 2, "results": [{}]}'])
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
    text = markdown(run)
    ratios, times, cold, memory = cells(text, "ar2")
    assert ratios[1].startswith("2.5 (")
    assert ratios[2] == "100"
    assert times[1:] == ["2.5 ± 2", "1 ± 0", "100 ± 0"]
    # aesara.function, first call, the kernel's, and both of ours to the kernel's.
    assert cold[1:] == ["2", "1", "1", "3"]
    assert memory[1:] == ["60.0", "60.0", "60.0"]
    assert cells(text, "NUMBA_FIXED")[1][1:] == ["1 of 1", "hand-numba", "2.5", "2.5", "40"]


def test_report_sets_starts_on_a_full_cache_beside_one_another(run):
    for name, function, call in (("NUMBA_FIXED", 1.5, 0.25), ("hand-numba", 0.0, 0.5)):
        (result,) = (result for result in run.results if result.contender == name)
        result.launches.append(Launch(function=function, first_call=call, samples=[0.001]))
    assert cells(markdown(run), "ar2")[3][1:] == ["1.5", "0.25", "0.5", "3.5"]


def test_report_says_what_a_full_cache_leaves_to_do(run):
    for name, function, call in (
        ("NUMBA_FIXED", 1.5, 0.25),
        ("hand-numba", 0.0, 0.05),
        ("pytensor-numba", 0.5, 9.0),
    ):
        run.results.append(result(name, [1.0]))
        run.results[-1].launches.append(Launch(function=function, first_call=call))
    text = markdown(run)
    assert "`aesara.function` took 3 times as long as PyTensor's" in text
    assert "at most 0.20 s longer than that of the code written by hand (ar2)" in text


def test_report_shows_a_contender_that_failed_or_was_wrong(run):
    run.results[0].error = "Boom: no"
    run.results[2].disagreement = "output 0 is off"
    text = markdown(run)
    ratios, times, *_ = cells(text, "ar2")
    assert ratios[1:] == ["failed", "wrong"]
    assert times[1:] == ["failed", "1 ± 0", "wrong"]
    assert "- NUMBA_FIXED: ar2: Boom: no" in text
    assert "- FAST_RUN: ar2: output 0 is off" in text


def test_report_names_every_ratio_above_the_target(run):
    assert "### Above 1.5\n\n- ar2, NUMBA_FIXED, 2.5: " in markdown(run)
    run.results[0] = result("NUMBA_FIXED", [0.0015])
    assert "### Above" not in markdown(run)


def test_report_gives_times_by_steps(run):
    run.results[0].scaling = {"1000": [0.002, 0.001], "10000": [0.01]}
    run.results[0].scaling_error = "100000 steps: stopped after 90 s"
    text = markdown(run)
    assert cells(text, "1,000") == [["1,000", "1", "", ""]]
    assert cells(text, "10,000") == [["10,000", "10", "", ""]]
    assert "- NUMBA_FIXED: ar2: 100000 steps: stopped after 90 s" in text


def test_an_interval_holds_the_ratio_and_widens_with_the_spread():
    hand = result("hand-numba", [1.0, 1.01, 0.99, 1.0, 1.0])
    calm = ratio(
        {"a": result("a", [2.0, 2.01, 1.99, 2.0, 2.0]), "hand-numba": hand}, "a", "hand-numba"
    )
    wild = ratio(
        {"a": result("a", [1.0, 3.0, 2.0, 1.5, 2.5]), "hand-numba": hand}, "a", "hand-numba"
    )
    assert calm.value == wild.value == pytest.approx(2.0)
    assert wild.low < calm.low <= 2.0 <= calm.high < wild.high


def test_tables_replace_those_of_a_page(run, tmp_path):
    page, file = tmp_path / "page.md", tmp_path / "r.json"
    page.write_text("before\n<!-- results -->\nold\n<!-- end of results -->\nafter\n")
    run.write(file)
    found = CliRunner().invoke(cli, ["report", str(file), "--into", str(page)])
    assert found.exit_code == 0, found.output
    text = page.read_text()
    assert text.startswith("before\n<!-- results -->\n")
    assert text.endswith("<!-- end of results -->\nafter\n")
    assert "old" not in text
    assert markdown(run) in text
    page.write_text("no marks")
    found = CliRunner().invoke(cli, ["report", str(file), "--into", str(page)])
    assert found.exit_code == 1
    assert "has no marks" in found.output


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
    path = tmp_path / "r.json"
    names = "--contenders=JAX_FIXED,hand-numba"
    failed, kernel = results_of_run(path, "--quick", "--size=tiny", names)
    assert "aesara" in failed["error"]
    assert kernel["error"] == ""
    assert len(kernel["launches"][0]["samples"]) == 3
    again = ["run", "--resume", "--only=ar2", f"--json={path}", "--size=tiny", "--check"]
    done = CliRunner().invoke(cli, [*again, names])
    assert done.exit_code == 1


def test_run_stops_a_contender_that_takes_too_long(tmp_path):
    (stopped,) = results_of_run(
        tmp_path / "r.json", "--quick", "--contenders=hand-numba", "--budget=0.01"
    )
    assert stopped["error"] == "stopped after 0.01 s"


def test_run_starts_a_contender_with_an_empty_cache_and_with_a_full_one(tmp_path):
    (result,) = results_of_run(
        tmp_path / "r.json", "--contenders=hand-numba", "--size=tiny", "--rounds=1"
    )
    cold, warm = result["launches"]
    assert warm["first_call"] < cold["first_call"]


def test_run_measures_other_lengths_with_the_same_function(tmp_path):
    path = tmp_path / "r.json"
    arguments = ["run", "--only=lotka-grad", "--contenders=hand-numba", "--size=tiny", "--quick"]
    done = CliRunner().invoke(cli, [*arguments, f"--json={path}"])
    assert done.exit_code == 0, done.output
    (result,) = json.loads(path.read_text())["results"]
    assert list(result["scaling"]) == ["1000", "10000", "100000", "1000000"]
    assert all(len(samples) == 3 for samples in result["scaling"].values())
    assert min(result["scaling"]["1000000"]) > min(result["scaling"]["1000"])


def test_run_records_why_an_environment_could_not_be_made(tmp_path, monkeypatch):
    monkeypatch.setattr("benchmarks.environments._candidates", lambda minor: iter(()))
    failed, kernel = results_of_run(
        tmp_path / "r.json",
        "--quick",
        "--size=tiny",
        "--contenders=pytensor-numba,hand-numba",
        f"--environments={tmp_path}",
    )
    assert failed["error"].startswith("needs Python 3.12")
    assert kernel["error"] == ""


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
