"""Virtual environments for the contenders that can't share ours."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_COMPLETE = "complete"


class EnvironmentFailed(Exception):
    """An environment could not be made; the message says why."""


@dataclass(frozen=True)
class Environment:
    """What a contender needs to be installed.

    Attributes
    ----------
    requirements
        As pip takes them, pinned.
    pythons
        The minor versions of Python 3 that will do, the best one first.
    """

    requirements: tuple[str, ...]
    pythons: tuple[int, ...]


ENVIRONMENTS = {
    # The newest PyTensor; its newer releases need Python 3.12.  JAX is the version that
    # ours and the functions written by hand run on.
    "pytensor": Environment(
        (
            "pytensor==3.3.8 ; python_version >= '3.12'",
            "pytensor==3.0.7 ; python_version < '3.12'",
            "numba==0.68.0 ; python_version >= '3.12'",
            "jax==0.6.2",
            "jaxlib==0.6.2",
        ),
        (12, 13, 11),
    ),
    # Aesara as it is installed without this package: with the newest Numba that its Numba
    # mode can be imported with, and a setuptools that still has what it imports.
    "stock": Environment(
        (
            "aesara==2.9.4",
            "numba==0.58.1",
            "jax==0.6.2 ; python_version >= '3.10'",
            "jaxlib==0.6.2 ; python_version >= '3.10'",
            "jax==0.4.30 ; python_version < '3.10'",
            "jaxlib==0.4.30 ; python_version < '3.10'",
            "setuptools==65.5.0",
        ),
        (11, 10, 9),
    ),
}


def default_directory() -> Path:
    """Give the directory of the environments, in the user's cache."""
    import platformdirs

    return platformdirs.user_cache_path("fixed-modes") / "benchmarks"


def prepare(name: str, directory: Path, report: Callable[[str], None]) -> Path:
    """Make an environment, if it isn't there yet.

    Parameters
    ----------
    name
        A key of `ENVIRONMENTS`.
    report
        Told what is going on.

    Returns
    -------
    Path
        Its interpreter.

    Raises
    ------
    EnvironmentFailed
        If no suitable Python is found, or pip fails.
    """
    environment = ENVIRONMENTS[name]
    python = _find_python(environment.pythons)
    pins = hashlib.sha256("\n".join((python, *environment.requirements)).encode()).hexdigest()
    place = directory / f"{name}-{pins[:12]}"
    interpreter = place / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if (place / _COMPLETE).exists():
        return interpreter
    # What is there without the mark was left by a run that was stopped.
    shutil.rmtree(place, ignore_errors=True)
    report(f"environment {name}: {python}")
    _run([python, "-m", "venv", str(place)])
    report(f"environment {name}: pip install")
    install = ["-m", "pip", "install", "-q", "--disable-pip-version-check"]
    _run([str(interpreter), *install, *environment.requirements])
    (place / _COMPLETE).touch()
    return interpreter


def _find_python(minors: tuple[int, ...]) -> str:
    for minor in minors:
        for candidate in _candidates(minor):
            if _is_python(candidate, minor):
                return candidate
    versions = ", ".join(f"3.{minor}" for minor in minors)
    raise EnvironmentFailed(f"needs Python {versions}; none is on PATH or in pyenv")


def _candidates(minor: int) -> Iterator[str]:
    if sys.version_info[1] == minor:
        yield sys.executable
    found = shutil.which(f"python3.{minor}")
    if found is not None:
        yield found
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    yield from map(str, sorted(root.glob(f"versions/3.{minor}.*/bin/python"), reverse=True))


def _is_python(path: str, minor: int) -> bool:
    """Tell whether it starts, and can make environments; a name on PATH may be a shim."""
    check = f"import sys, venv, ensurepip; sys.exit(sys.version_info[:2] != (3, {minor}))"
    with suppress(OSError, subprocess.TimeoutExpired):
        done = subprocess.run([path, "-c", check], capture_output=True, check=False, timeout=30)
        return done.returncode == 0
    return False


def _run(command: list[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise EnvironmentFailed(str(error)) from error
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        raise EnvironmentFailed(f"{' '.join(command[1:4])}: {lines[-1] if lines else 'failed'}")
