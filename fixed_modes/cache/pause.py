"""Keeps Python from collecting garbage while many objects are made that stay."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

#: Thresholds of `gc.set_threshold` under which rewriting and compiling a graph spend at most
#: an eighth of their time on garbage; with Python's own it is up to a third.  What a large
#: graph leaves behind meanwhile is some 30 MiB.
_RARE = (200_000, 20, 100)


@contextmanager
def garbage_left_alone() -> Iterator[None]:
    """Put the collection of garbage off.

    Python looks for garbage after so many new objects, and from time to time through all
    that there are: with Aesara and Numba imported that takes longer than loading a graph.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


class _RareCollections:
    """Raises the thresholds of the collector while any thread asks for that."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._askers = 0
        self._before = self._raised = (0, 0, 0)

    def begin(self) -> None:
        with self._lock:
            self._askers += 1
            if self._askers > 1:
                return
            self._before = gc.get_threshold()
            # A first threshold of 0 says that nothing is collected.
            is_on = self._before[0] > 0
            raised = [max(pair) for pair in zip(self._before, _RARE)] if is_on else self._before
            self._raised = (raised[0], raised[1], raised[2])
            gc.set_threshold(*self._raised)

    def end(self) -> None:
        with self._lock:
            self._askers -= 1
            # Thresholds that someone else has set meanwhile stay.
            if self._askers or gc.get_threshold() != self._raised:
                return
            if gc.isenabled() and gc.get_count()[0] > self._before[0]:
                # It is due at once with these thresholds, and would be one of all objects.
                gc.collect(0)
            gc.set_threshold(*self._before)


_rare_collections = _RareCollections()


@contextmanager
def garbage_rarely_collected() -> Iterator[None]:
    """Collect garbage, but rarely, while a graph is rewritten or compiled."""
    _rare_collections.begin()
    try:
        yield
    finally:
        _rare_collections.end()
