"""Results as NumPy arrays that belong to the caller, without a copy where that is safe.

``np.asarray`` of a JAX array can't be written to, and a copy costs as much as a
tenth of a short loop that returns its trace.  On the CPU the memory of a result
that nobody else knows is handed over instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from fixed_modes.jax.padded import PaddedTrace

#: Smaller results are copied: that is faster than to find out whose they are.
SMALLEST_HANDED_OVER = 1 << 16


class _Memory:
    """The memory of a JAX array, by NumPy's array interface."""

    def __init__(self, array: Any, view: np.ndarray[Any, Any]) -> None:
        self.array = array  # as long as there are views, it must live
        self.__array_interface__ = {**view.__array_interface__, "data": (view.ctypes.data, False)}


def owned_arrays(values: Sequence[Any], arguments: Sequence[Any]) -> list[np.ndarray[Any, Any]]:
    """Make writable NumPy arrays that share no memory with one another or an argument.

    Parameters
    ----------
    values
        JAX arrays that nobody else holds, each made by a compiled function from
        `arguments`; NumPy arrays; or `PaddedTrace`, which is cut to its length.
    arguments
        What the function was called with.
    """
    arrays: list[np.ndarray[Any, Any]] = []
    for value in values:
        length = None
        if type(value) is PaddedTrace:
            length = int(np.asarray(value.length))  # twice as quick as JAX's own `int`
            value = value.buffer
        view = np.asarray(value)
        rows = view if length is None else view[:length]
        # A view of a small part would keep all of the buffer alive.
        is_large = rows.nbytes >= SMALLEST_HANDED_OVER and 4 * rows.nbytes >= view.nbytes
        if is_large and _is_ours(value, view, arguments, arrays):
            rows = np.asarray(_Memory(value, rows))
        elif view is not value or length is not None:
            rows = np.array(rows)  # not NumPy's own
        arrays.append(rows)
    return arrays


def _is_ours(
    value: Any, view: np.ndarray[Any, Any], arguments: Sequence[Any], others: Sequence[Any]
) -> bool:
    """Say whether the memory of a JAX array is no one else's, as far as one can see."""
    if not isinstance(value, jax.Array) or jax.default_backend() != "cpu":
        return False
    if view.dtype.hasobject or len(value.devices()) != 1:
        return False
    if view.__array_interface__["data"][0] != value.unsafe_buffer_pointer():
        return False  # NumPy has made a copy of its own already
    known = [np.asarray(a) if isinstance(a, jax.Array) else a for a in arguments]
    # A scalar's memory is no part of so large a result's.
    arrays = [a for a in (*known, *others) if isinstance(a, np.ndarray) and a.ndim]
    return not any(np.may_share_memory(view, array) for array in arrays)
