"""Keeps Python from collecting garbage while many objects are made that stay."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


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
