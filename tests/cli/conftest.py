"""Fixtures for tests that start Python processes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Callable, Protocol

import pytest

import fixed_modes

Completed = subprocess.CompletedProcess[str]


class RunPython(Protocol):
    def __call__(self, *arguments: str, stdin: str = "", **variables: str) -> Completed: ...


def _run_python(directory: Path, arguments: tuple[str, ...], stdin: str, **variables: str):
    # Found by children too, whatever their working directory is.
    package = str(Path(fixed_modes.__file__).parents[1])
    path = [*variables.pop("PYTHONPATH", "").split(os.pathsep), package]
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in ("AESARA_FLAGS", "FORCE_COLOR", "NO_COLOR", "COLUMNS")
    }
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, path))
    # Compiled code is kept there, and not among the user's.
    environment["XDG_CACHE_HOME"] = str(directory / "cache")
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=directory,
        env={**environment, **variables},
        input=stdin,
        capture_output=True,
        encoding="utf-8",
        timeout=600,
    )


@pytest.fixture
def python(tmp_path: Path) -> RunPython:
    """Run Python in `tmp_path`, with extra environment variables."""

    def run(*arguments: str, stdin: str = "", **variables: str) -> Completed:
        return _run_python(tmp_path, arguments, stdin, **variables)

    return run


@pytest.fixture(scope="module")
def module_python(tmp_path_factory: pytest.TempPathFactory) -> RunPython:
    """Run Python, as `python` does, for results that a module's tests share."""

    def run(*arguments: str, stdin: str = "", **variables: str) -> Completed:
        return _run_python(tmp_path_factory.mktemp("shared"), arguments, stdin, **variables)

    return run


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, str], Path]:
    """Write a file below `tmp_path`."""

    def write_file(name: str, text: str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    return write_file
