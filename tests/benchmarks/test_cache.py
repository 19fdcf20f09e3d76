"""The measurement of starts with an empty cache and a full one."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks.app import cli
from benchmarks.cache import Result, Start, markdown


def test_a_workload_is_started_cold_and_warm(tmp_path: Path) -> None:
    target = tmp_path / "found.json"
    arguments = ["cache", "--only", "softmax-map", "--modes", "NUMBA_FIXED", "--json", str(target)]
    done = CliRunner().invoke(cli, arguments)
    assert done.exit_code == 0, done.output
    found = json.loads(target.read_text())
    (result,) = found["results"]
    assert (result["workload"], result["mode"]) == ("softmax-map", "NUMBA_FIXED")
    assert result["cold"]["compiled"] >= 1
    assert result["warm"]["compiled"] == 0
    assert (result["cold"]["rewritten"], result["warm"]["rewritten"]) == (1, 0)
    # No C compiler either.
    assert result["cold"]["processes"] == result["warm"]["processes"] == 0
    assert 0 < result["warm"]["key"] < result["warm"]["function"]
    assert 0 < result["warm"]["lookup"] < result["warm"]["function"]
    assert 0 < result["warm"]["once"] < result["warm"]["function"]
    assert result["kernel"]["first_call"] > 0
    assert "softmax-map | NUMBA_FIXED" in done.output


@pytest.mark.parametrize("contender", ["NUMBA_FIXED", "hand-numba"])
def test_a_workload_with_a_state_is_started(contender: str) -> None:
    child = [sys.executable, "-m", "benchmarks.cache_child", contender, "rnn-train", "tiny"]
    done = subprocess.run(child, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1])["first_call"] > 0


def test_the_table_allows_for_the_cores() -> None:
    warm = Start(function=1.5, first_call=0.5, key=0.03, lookup=0.01, once=0.007)
    result = Result("a", "JAX_FIXED", Start(2.0, 3.0), warm, alone=1.0, together=6.0)
    line = markdown([result], workers=8, cores=2).splitlines()[-1]
    assert line == "| a | JAX_FIXED | 2 | 1.5 | 3 | 0.5 |  | 2 | 7 | 0 | 0 | 0 | 1.50 |"
    line = markdown([result], workers=1, cores=2).splitlines()[-1]
    assert line.endswith("| 6.00 |")
