"""Which versions are installed, and which of them this package supports."""

from __future__ import annotations

import platform
import re
from dataclasses import dataclass
from importlib import metadata


@dataclass(frozen=True)
class Requirement:
    """A distribution and the versions of it that are supported.

    Attributes
    ----------
    at_least, below
        Bounds of the release number; None where there is none.
    text
        The bounds as the user reads them.
    """

    name: str
    text: str
    at_least: tuple[int, ...] | None = None
    below: tuple[int, ...] | None = None


REQUIREMENTS = (
    Requirement("Python", "3.9 to 3.12", (3, 9), (3, 13)),
    Requirement("aesara", ">=2.9.3, <3", (2, 9, 3), (3,)),
    # The upper bounds of the next two are Aesara's own.
    Requirement("numpy", ">=1.22, <2", (1, 22), (2,)),
    Requirement("scipy", "<=1.12", None, (1, 13)),
    Requirement("numba", ">=0.57.1", (0, 57, 1)),
    Requirement("llvmlite", "as Numba asks"),
    Requirement("jax", ">=0.4.20, <0.7", (0, 4, 20), (0, 7)),
    Requirement("jaxlib", ">=0.4.20, <0.7", (0, 4, 20), (0, 7)),
)

# They work in short tests, but loops are slower by orders of magnitude, and 0.7.0 crashes in some.
_SLOW_JAX = ((0, 7, 0), (0, 7, 1))


@dataclass(frozen=True)
class Found:
    """An installed version, judged.

    Attributes
    ----------
    version
        None where the distribution is not installed.
    status
        ``"ok"``, ``"slow"``, ``"unsupported"`` or ``"missing"``.
    """

    name: str
    version: str | None
    supported: str
    status: str


def find_versions() -> list[Found]:
    """Judge what is installed, by its metadata: nothing is imported."""
    return [
        Found(need.name, version, need.text, judge(need, version))
        for need in REQUIREMENTS
        for version in [_installed(need.name)]
    ]


def _installed(name: str) -> str | None:
    if name == "Python":
        return platform.python_version()
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def judge(need: Requirement, version: str | None) -> str:
    """Say how `version` stands to what is needed; the status of a `Found`.

    Examples
    --------
    >>> judge(Requirement("numba", ">=0.57.1", (0, 57, 1)), "0.57.0")
    'unsupported'
    """
    if version is None:
        return "missing"
    number = release(version)
    if need.at_least is not None and number < need.at_least:
        return "unsupported"
    if need.name in ("jax", "jaxlib") and number in _SLOW_JAX:
        return "slow"
    if need.below is not None and number >= need.below:
        return "unsupported"
    return "ok"


def release(version: str) -> tuple[int, ...]:
    """Return the numbers that a version begins with, at least three of them.

    >>> release("3.13.0rc1")
    (3, 13, 0)
    """
    match = re.match(r"\d+(\.\d+)*", version)
    numbers = [int(part) for part in match.group().split(".")] if match else []
    return tuple(numbers + [0] * (3 - len(numbers)))
