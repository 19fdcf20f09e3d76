"""The directory of the cache, and whether it can be trusted.

Stored machine code is code: whoever can write it runs what they like as the
user who loads it.  So the directory is made for its owner alone, and neither it
nor an entry counts that belongs to somebody else or that others may write to.
"""

from __future__ import annotations

import os
import stat
import sys
from contextlib import suppress
from pathlib import Path

#: The layout of the directory: another one gets another name.
LAYOUT = "compiled-1"


class Untrusted(Exception):
    """A file or directory that somebody else may have written; the message says why."""


def directory(configured: str) -> Path:
    """Name the directory of the entries.

    Parameters
    ----------
    configured
        The value of ``fixed_modes__cache_dir``; empty for the user's own.
    """
    if configured:
        return Path(configured) / LAYOUT
    import platformdirs

    return Path(platformdirs.user_cache_dir("fixed-modes", appauthor=False)) / LAYOUT


def make(path: Path) -> None:
    """Make the directory, for its owner alone, if it is missing.

    Raises
    ------
    OSError
        If it can't be made.
    Untrusted
        If what is there belongs to somebody else.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError):
        path.mkdir(mode=0o700)
    check_directory(path)


def check_directory(path: Path) -> None:
    """Look whether the directory is the user's own.

    Raises
    ------
    OSError
        If there is none.
    Untrusted
        If it is no directory, or if somebody else may have put something there.
    """
    found = os.lstat(path)
    if not stat.S_ISDIR(found.st_mode):
        raise Untrusted("it is not a directory")
    check_owner(found)


def check_owner(found: os.stat_result) -> None:
    """Look at who may write to what `os.stat` describes.

    Raises
    ------
    Untrusted
        If it belongs to another user, or others may write to it.
    """
    if sys.platform == "win32":
        # There the permissions of the user's profile decide, and stat knows neither.
        return
    if found.st_uid != os.geteuid():
        raise Untrusted(f"it belongs to another user (number {found.st_uid})")
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise Untrusted(f"others may write to it (mode {stat.S_IMODE(found.st_mode):04o})")
