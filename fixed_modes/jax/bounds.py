"""Positions out of bounds: an error as in NumPy, where JAX would take another entry."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from aesara.graph.basic import Variable

from fixed_modes.jax.chunks import any_true
from fixed_modes.jax.frame import Frame, is_concrete
from fixed_modes.jax.ranges import Range, value_range


def check_bounds(
    index: Any, axis: int, length: int, frame: Frame, variable: Variable | None = None
) -> Any:
    """See to it that an index out of bounds raises, now or after the run.

    Parameters
    ----------
    index
        An integer, or an array of them; negative ones count from the end.
    axis, length
        The axis that is indexed, for the message, and its length.
    frame
        Gets the check if `index` is traced, unless the user has switched it off.
    variable
        The variable of the frame's graph that `index` is the value of.  There is
        no check if that is known to stay within bounds.

    Returns
    -------
    The index, of a type that holds the length, which JAX adds to what is negative.

    Raises
    ------
    IndexError
        If `index` is known and out of bounds.
    """
    if np.result_type(index).itemsize < 4 or np.result_type(index).kind == "u":
        index = np.asarray(index, "int64") if is_concrete(index) else index.astype("int64")
    where = f"is out of bounds for axis {axis} with size {length}"
    if is_concrete(index):
        positions = np.asarray(index)
        outside = positions[(positions < -length) | (positions >= length)]
        if outside.size:
            raise IndexError(f"index {outside[0]} {where}")
    elif index.size and not length:
        # JAX refuses to make code for it, with an error of another type.
        raise IndexError(f"index {where}")
    elif index.size and frame.settings.index_checks:
        found = None if variable is None else value_range(variable, frame)
        if _stays_within(found, length):
            return index
        frame.checks.add(_any_outside(index, length, frame), lambda: IndexError(f"index {where}"))
    return index


def position(
    index: Any, axis: int, length: int, frame: Frame, variable: Variable | None = None
) -> Any:
    """Say how far from the start a single index is, and see to it that it is checked.

    The check is next to free: one comparison of what is computed anyhow.

    Parameters
    ----------
    index
        An integer; a negative one counts from the end.
    axis, length, frame, variable
        As for `check_bounds`.

    Returns
    -------
    An int if `index` is known, else traced, of type uint64: one that is out of bounds
    is a large number.

    Raises
    ------
    IndexError
        If `index` is known and out of bounds.
    """
    if is_concrete(index) or not length:
        check_bounds(index, axis, length, frame)
        return int(index) % length
    found = None if variable is None else value_range(variable, frame)
    index = jnp.asarray(index)
    if index.dtype.kind != "u" and (found is None or found.low < 0):
        index = index.astype("int64")
        index = jnp.where(index < 0, index + length, index)
    index = index.astype("uint64")
    if frame.settings.index_checks and not _stays_within(found, length):
        text = f"index is out of bounds for axis {axis} with size {length}"
        frame.checks.add(index >= length, lambda: IndexError(text))
    return index


def _any_outside(index: Any, length: int, frame: Frame) -> Any:
    def outside(parts: Any) -> list[Any]:
        return [(parts[0] < -length) | (parts[0] >= length)]

    if frame.outer is not None:
        # What a step of a loop consists of may be vector code for all steps at once.
        return outside([index])[0].any()
    return any_true(outside, [index.ravel()], index.size)[0]


def _stays_within(found: Range | None, length: int) -> bool:
    return found is not None and -length <= found.low and found.high < length
