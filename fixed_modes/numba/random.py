"""Random generators in compiled code."""

from __future__ import annotations

from copy import copy

import numba
from numba import types


@numba.njit
def copy_of_generator(rng):  # type: ignore[no-untyped-def]
    """Copy a NumPy `Generator`; only Python can, so this leaves compiled code."""
    with numba.objmode(result=types.npy_rng):
        result = copy(rng)
    return result
