"""Compiled helpers that the generated modules call."""

from __future__ import annotations

import numba
import numpy as np


@numba.njit
def rows_from(buffer, first):  # type: ignore[no-untyped-def]
    """Give the rows of a ring buffer in order, starting with row `first`."""
    ordered = np.empty_like(buffer)
    rest = buffer.shape[0] - first
    ordered[:rest] = buffer[first:]
    ordered[rest:] = buffer[:first]
    return ordered
