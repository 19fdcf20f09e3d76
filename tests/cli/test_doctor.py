from __future__ import annotations

import json
import os

import pytest
from click.testing import CliRunner

from fixed_modes.cli import doctor as doctor_module
from fixed_modes.cli.app import cli
from fixed_modes.cli.children import Outcome
from fixed_modes.cli.doctor import check_hook
from fixed_modes.cli.versions import Found

WORKS = Outcome(value={"seconds": 1.25})
ALL_FOUND = [Found("Python", "3.11.7", "3.9 to 3.12", "ok"), Found("jax", "0.6.2", "<0.7", "ok")]


@pytest.fixture
def examine(monkeypatch):
    """Run ``doctor`` on given findings; gives the exit status and the output as one line."""

    def run(*options, versions=ALL_FOUND, hook="active", numba=WORKS, jax=WORKS, installed=True):
        outcomes = {"NUMBA_FIXED": numba, "JAX_FIXED": jax}
        monkeypatch.setattr(doctor_module, "find_versions", lambda: versions)
        monkeypatch.setattr(doctor_module, "check_hook", lambda timeout: hook)
        monkeypatch.setattr(doctor_module, "_is_installed", lambda: installed)
        monkeypatch.setattr(
            doctor_module, "run_jobs", lambda jobs, timeout: [outcomes[jobs[0].arguments["mode"]]]
        )
        result = CliRunner().invoke(cli, ["doctor", *options])
        return result.exit_code, " ".join(result.stdout.split())

    return run


def test_all_well_is_status_0(examine) -> None:
    status, output = examine()
    assert status == 0
    assert output.endswith("OK: both modes work here.")
    assert "problem" not in output
    assert "warning" not in output


def test_a_mode_that_fails_is_status_1_with_its_error(examine) -> None:
    status, output = examine(jax=Outcome(error="the process was ended by SIGABRT"))
    assert status == 1
    assert "problem: JAX_FIXED does not work: the process was ended by SIGABRT." in output
    assert "small scan in NUMBA_FIXED works (1.2 s)" in output
    assert output.endswith("BROKEN: JAX_FIXED can't be used here.")


def test_what_a_mode_warned_of_is_a_warning(examine) -> None:
    status, output = examine(jax=Outcome(value={"seconds": 1.0}, warnings=["an op is slow"]))
    assert status == 0
    assert "warning: JAX_FIXED: an op is slow" in output


def test_two_modes_that_fail_are_both_named(examine) -> None:
    failed = Outcome(error="ImportError: nothing there")
    status, output = examine(numba=failed, jax=failed)
    assert status == 1
    assert "pip install --force-reinstall numba llvmlite" in output
    assert "pip install --force-reinstall jax jaxlib" in output
    assert output.endswith("BROKEN: NUMBA_FIXED and JAX_FIXED can't be used here.")


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (
            Found("numpy", "2.1.0", ">=1.22, <2", "unsupported"),
            'problem: numpy 2.1.0 is not supported, >=1.22, <2 is. pip install "numpy>=1.22,<2"',
        ),
        (
            Found("Python", "3.13.1", "3.9 to 3.12", "unsupported"),
            "problem: Python 3.13.1 is not supported; use 3.9 to 3.12.",
        ),
        (
            Found("llvmlite", None, "as Numba asks", "missing"),
            "problem: llvmlite is not installed. pip install llvmlite",
        ),
    ],
)
def test_a_version_that_is_not_supported_is_status_1(examine, found, expected) -> None:
    status, output = examine(versions=[found])
    assert status == 1
    assert expected in output
    assert output.endswith("BROKEN: not all is well.")


def test_a_slow_jax_is_one_warning_and_status_0(examine) -> None:
    slow = [Found(name, "0.7.1", "<0.7", "slow") for name in ("jax", "jaxlib")]
    status, output = examine(versions=slow)
    assert status == 0
    assert output.count("warning:") == 1
    assert "loops are slow with jax 0.7.1 and jaxlib 0.7.1" in output
    assert output.endswith("OK: both modes work here, with a warning (see above).")


def test_an_inactive_hook_of_an_installation_is_status_1(examine) -> None:
    status, output = examine(hook="inactive")
    assert status == 1
    assert "problem: the start-up hook is not active" in output
    assert "pip install --force-reinstall --no-deps fixed-modes" in output


def test_a_source_tree_without_hook_is_a_warning(examine) -> None:
    status, output = examine(hook="inactive", installed=False)
    assert status == 0
    assert "warning: fixed-modes runs from a source tree" in output


def test_a_hook_that_is_switched_off_is_a_warning(examine, monkeypatch) -> None:
    monkeypatch.setenv("FIXED_MODES_STARTUP", "0")
    status, output = examine(hook="inactive")
    assert status == 0
    assert "warning: FIXED_MODES_STARTUP=0 switches the start-up hook off" in output


def test_a_hook_that_cannot_be_checked_is_status_1(examine) -> None:
    status, output = examine(hook="failed: ImportError: no libfoo")
    assert status == 1
    assert "ImportError: no libfoo" in output


def test_json_holds_all_of_it(examine) -> None:
    status, output = examine("--json", jax=Outcome(error="KeyError: 1", details="Traceback"))
    # Before click 8.2 the test runner mixes the progress lines into the output.
    found = json.loads(output[output.index("{") :])
    assert status == 1
    assert found["ok"] is False
    assert found["verdict"] == "BROKEN: JAX_FIXED can't be used here."
    assert found["hook"] == "active"
    assert found["versions"][1] == {
        "name": "jax",
        "version": "0.6.2",
        "supported": "<0.7",
        "status": "ok",
    }
    assert found["modes"]["NUMBA_FIXED"]["ok"] is True
    assert found["modes"]["JAX_FIXED"] == {
        "ok": False,
        "error": "KeyError: 1",
        "details": "Traceback",
    }
    (problem,) = found["problems"]
    assert problem["remedy"] == "python -m fixed_modes doctor --json"


@pytest.mark.parametrize("timeout", ["0", "-1", "soon"])
def test_a_timeout_has_to_be_a_positive_number(timeout) -> None:
    result = CliRunner().invoke(cli, ["doctor", "--timeout", timeout])
    assert result.exit_code == 2
    assert "--timeout" in result.output


@pytest.mark.parametrize(
    ("aesara", "expected"),
    [
        (
            "import os\nclass config:\n    mode = os.environ['AESARA_FLAGS'].split('mode=')[1]",
            "active",
        ),
        (
            'raise ValueError(\'Invalid value ("NUMBA_FIXED") for "mode"\')',
            "inactive",
        ),
        ("raise ImportError('no libfoo')", "failed: ImportError: no libfoo"),
        ("import os; os._exit(9)", "failed: exit status 9"),
        ("import time; time.sleep(600)", "failed: importing Aesara took more than 3 s"),
    ],
)
def test_the_hook_is_judged_by_what_a_process_that_imports_aesara_says(
    aesara, expected, write, tmp_path, monkeypatch
) -> None:
    write("aesara.py", aesara)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert check_hook(3.0) == expected


def test_a_working_installation_is_status_0_and_plain_text_in_a_pipe(python) -> None:
    done = python("-m", "fixed_modes", "doctor", FORCE_COLOR="1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1].startswith("OK: both modes work here")
    assert done.stdout.count("works (") == 2
    assert not set("\x1b\r\b") & set(done.stdout + done.stderr)
    assert len(done.stderr.splitlines()) == 3


def test_a_numba_that_cannot_be_imported_breaks_its_mode_only(python, write, tmp_path) -> None:
    write("broken/numba/__init__.py", "raise ImportError('a library of Numba is missing')")
    broken = os.fspath(tmp_path / "broken")
    done = python("-m", "fixed_modes", "doctor", "--json", PYTHONPATH=broken)
    found = json.loads(done.stdout)
    assert done.returncode == 1
    assert found["verdict"] == "BROKEN: NUMBA_FIXED can't be used here."
    assert found["modes"]["JAX_FIXED"]["ok"] is True
    assert "a library of Numba is missing" in found["modes"]["NUMBA_FIXED"]["error"]
    assert [problem["remedy"] for problem in found["problems"]] == [
        "pip install --force-reinstall numba llvmlite"
    ]
