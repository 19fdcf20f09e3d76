"""Entries on disk: bytes under a key, that are whole and the user's own, or not there.

There are no locks: an entry is written to a temporary file and renamed, so that a
reader finds the old entry, the new one or none, and two writers of one key don't
meet.  Whatever is wrong with the directory or an entry is one warning and a miss.
"""

from __future__ import annotations

import hashlib
import logging
import os
import stat
import time
import uuid
import warnings
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from fixed_modes.cache import place
from fixed_modes.cache.place import Untrusted

_log = logging.getLogger("fixed_modes.cache")

_MAGIC = b"fixed_modes entry 1\n"
_SUFFIX = ".entry"
_TEMPORARY = ".new"
#: After so many seconds a temporary file belongs to a process that has died.
_ABANDONED = 3600.0
#: So much of the bound is left after making room, so that not every entry has to.
_ROOM = 0.9


class Entry(NamedTuple):
    """What the directory says of one entry."""

    path: Path
    size: int
    used: float


class Damaged(Exception):
    """An entry that is not as it was written."""


class Store:
    """The entries of one directory.

    Parameters
    ----------
    directory
        Where they are; made when the first entry is written.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._has_warned = False
        # The size of all entries when they were listed last, and of those written since.
        self._listed: int | None = None
        self._written = 0

    def get(self, key: str) -> bytes | None:
        """Give the content of an entry; None if there is none to be trusted.

        Parameters
        ----------
        key
            Letters, digits and dashes.
        """
        path = self._path(key)
        try:
            place.check_directory(self.directory)
            content = _content(key, _read(path))
        except FileNotFoundError:
            return None
        except Untrusted as exc:
            self._warn(f"Compiled code in {path} is not used: {exc}.")
            return None
        except Damaged as exc:
            self._warn(f"Compiled code in {path} is not used: {exc}.")
            self.remove(key)
            return None
        except OSError as exc:
            self._warn(f"Compiled code in {path} can't be read: {exc}.")
            return None
        # The time of the last use, which file systems don't keep by themselves.
        with suppress(OSError):
            os.utime(path)
        return content

    def put(self, key: str, content: bytes, max_size: int) -> bool:
        """Write an entry, and remove the least recently used ones where room is needed.

        Parameters
        ----------
        key
            Letters, digits and dashes.
        content
            What `get` is to give back.
        max_size
            The number of bytes that all entries together may take.

        Returns
        -------
        Whether the entry has been written.
        """
        header = _header(key, content)
        size = len(header) + len(content)
        if size > max_size:
            _log.debug("An entry of %d bytes is larger than the cache may become", size)
            return False
        try:
            place.make(self.directory)
            self._write(self._path(key), header + content)
        except Untrusted as exc:
            self._warn(f"Compiled code is not kept in {self.directory}: {exc}.")
            return False
        except OSError as exc:
            self._warn(f"Compiled code can't be kept in {self.directory}: {exc}.")
            return False
        self._written += size
        if self._may_be_full(max_size):
            self.prune(max_size)
        return True

    def remove(self, key: str) -> None:
        """Remove an entry, where that is possible."""
        with suppress(OSError):
            self._path(key).unlink()

    def entries(self) -> list[Entry]:
        """List the entries, the least recently used first."""
        return _oldest_first(self._files())

    def prune(self, max_size: int) -> int:
        """Remove what the dead left behind, and the least recently used if there is too much.

        Returns
        -------
        How many entries have been removed.
        """
        files = list(self._files())
        for file in files:
            is_old = time.time() - file.used > _ABANDONED
            if file.path.name.endswith(_TEMPORARY) and is_old:
                with suppress(OSError):
                    file.path.unlink()
        entries = _oldest_first(files)
        size = sum(entry.size for entry in entries)
        removed = 0
        for entry in entries if size > max_size else ():
            if size <= _ROOM * max_size:
                break
            # Another process may have removed it already.
            with suppress(OSError):
                entry.path.unlink()
            size -= entry.size
            removed += 1
        self._listed, self._written = size, 0
        return removed

    def _may_be_full(self, max_size: int) -> bool:
        """Say whether the entries have to be listed, which takes long where there are many.

        Half of the room that was left is for the other processes.
        """
        return self._listed is None or 2 * self._written > max_size - self._listed

    def clear(self) -> int:
        """Remove all entries, and temporary files too.

        Returns
        -------
        How many entries there were.

        Raises
        ------
        OSError
            If one can't be removed.
        """
        number = 0
        for file in self._files():
            with suppress(FileNotFoundError):
                file.path.unlink()
            number += file.path.name.endswith(_SUFFIX)
        return number

    def _path(self, key: str) -> Path:
        return self.directory / f"{key}{_SUFFIX}"

    def _files(self) -> Iterator[Entry]:
        """Yield what this class has written: nothing else in the directory is touched."""
        try:
            found = list(os.scandir(self.directory))
        except OSError:
            return
        for file in found:
            if not file.name.endswith((_SUFFIX, _TEMPORARY)):
                continue
            with suppress(OSError):
                status = file.stat(follow_symlinks=False)
                if not stat.S_ISDIR(status.st_mode):
                    yield Entry(Path(file.path), status.st_size, status.st_mtime)

    def _write(self, path: Path, data: bytes) -> None:
        temporary = path.with_name(f"{path.stem}-{uuid.uuid4().hex}{_TEMPORARY}")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        try:
            with open(os.open(temporary, flags, 0o600), "wb") as file:
                file.write(data)
            os.replace(temporary, path)
        except BaseException:
            with suppress(OSError):
                temporary.unlink()
            raise

    def _warn(self, message: str) -> None:
        """Warn once: what is wrong with one entry is mostly wrong with all."""
        if self._has_warned:
            _log.debug(message)
            return
        self._has_warned = True
        # Here, since it imports Aesara, which a store has no other need for.
        from fixed_modes.errors import FixedModesWarning

        warnings.warn(
            f"{message} Graphs are compiled anew where that is needed; 'python -m fixed_modes "
            "cache info' shows the directory, and fixed_modes__cache=False in AESARA_FLAGS turns "
            "the cache off.",
            FixedModesWarning,
            stacklevel=2,
        )


@lru_cache(maxsize=8)
def store_in(configured: str) -> Store:
    """Give the store for a value of ``fixed_modes__cache_dir``; one object for each."""
    return Store(place.directory(configured))


def _oldest_first(files: Iterable[Entry]) -> list[Entry]:
    found = [entry for entry in files if entry.path.name.endswith(_SUFFIX)]
    return sorted(found, key=lambda entry: entry.used)


def _read(path: Path) -> bytes:
    # Neither a link nor a pipe: one could lead elsewhere, the other wait for ever.
    flags = os.O_RDONLY | getattr(os, "O_BINARY", 0)
    flags |= getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    with open(os.open(path, flags), "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise Untrusted("it is not an ordinary file")
        place.check_owner(found)
        return file.read()


def _header(key: str, content: bytes) -> bytes:
    # The checksum covers the key: a file under another name is no entry of that name.
    checksum = hashlib.sha256(key.encode() + b"\n" + content).hexdigest()
    return _MAGIC + f"{checksum} {len(content):020d}\n".encode()


def _content(key: str, data: bytes) -> bytes:
    length = len(_header(key, b""))
    content = data[length:]
    if data[:length] != _header(key, content):
        raise Damaged("it is damaged, or not complete")
    return content
