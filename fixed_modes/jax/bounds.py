"""Positions out of bounds: an error as in NumPy, where JAX would take another entry."""

from __future__ import annotations

from typing import Any

import numpy as np
from aesara.graph.basic import Variable

from fixed_modes.jax.frame import Frame, is_concrete
from fixed_modes.jax.ranges import value_range


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
        if found is not None and -length <= found.low and found.high < length:
            return index
        failed = ((index < -length) | (index >= length)).any()
        frame.checks.add(failed, lambda: IndexError(f"index {where}"))
    return index
