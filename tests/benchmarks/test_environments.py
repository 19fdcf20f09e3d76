"""Virtual environments for contenders that can't share ours."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import environments
from benchmarks.environments import Environment, EnvironmentFailed, prepare


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the environment "bare" known, which has nothing installed."""
    # Without requirements pip has nothing to do, and says so.
    monkeypatch.setitem(
        environments.ENVIRONMENTS, "bare", Environment(("pip",), (sys.version_info[1],))
    )


@pytest.mark.usefixtures("bare")
def test_an_environment_is_made_once(tmp_path: Path) -> None:
    said: list[str] = []
    python = prepare("bare", tmp_path, said.append)
    where = subprocess.run(
        [str(python), "-c", "import sys; print(sys.prefix)"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert Path(where.stdout.strip()).resolve().parent == tmp_path.resolve()
    assert said
    said.clear()
    assert prepare("bare", tmp_path, said.append) == python
    assert not said


@pytest.mark.usefixtures("bare")
def test_an_environment_that_was_left_half_made_is_made_again(tmp_path: Path) -> None:
    python = prepare("bare", tmp_path, lambda what: None)
    python.unlink()
    (python.parents[1] / "complete").unlink()
    assert prepare("bare", tmp_path, lambda what: None).exists()


def test_a_missing_python_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(environments.ENVIRONMENTS, "old", Environment((), (1, 2)))
    with pytest.raises(EnvironmentFailed, match=r"needs Python 3\.1, 3\.2; none is on PATH"):
        prepare("old", tmp_path, lambda what: None)


def test_what_pip_says_is_passed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = Environment((str(tmp_path / "nothing-here"),), (sys.version_info[1],))
    monkeypatch.setitem(environments.ENVIRONMENTS, "wrong", wrong)
    with pytest.raises(EnvironmentFailed, match="nothing-here"):
        prepare("wrong", tmp_path, lambda what: None)
