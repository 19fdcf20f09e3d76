"""Whether a test of many numbers is true of any of them, by vector code.

XLA's reductions go over scalars on a CPU, or start threads for them: a test whether any
of 100 000 indices is out of bounds takes 0.7 ns an index, and 0.07 ns as here (JAX 0.6.2).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Callable

import jax
import jax.numpy as jnp
import numpy as np

#: So many numbers are tested at one time.
CHUNK = 64

#: Fewer numbers are tested as they are.
LEAST = 4 * CHUNK

#: Gives booleans, each of shape (n,), of parts of some arrays, each with n rows.
Test = Callable[[Sequence[Any]], Sequence[Any]]


def any_true(test: Test, arrays: Sequence[Any], count: int) -> list[Any]:
    """Say for each boolean that a test gives whether it is true of any row.

    Parameters
    ----------
    test
        What is tested row by row.
    arrays
        With `count` rows each.
    """
    if count < LEAST or jax.default_backend() != "cpu":
        return [jnp.any(found) for found in test(arrays)]
    whole = count - count % CHUNK
    carry = [jnp.zeros(CHUNK, bool) for _ in test([array[:CHUNK] for array in arrays])]

    def step(number: Any, failed: list[Any]) -> list[Any]:
        # An unsigned position is not looked at again for being negative.
        start = number.astype("uint64") * np.uint64(CHUNK)
        part = [jax.lax.dynamic_slice_in_dim(array, start, CHUNK) for array in arrays]
        return [old | new for old, new in zip(failed, test(part))]

    failed = [found.any() for found in jax.lax.fori_loop(0, whole // CHUNK, step, carry)]
    if whole == count:
        return failed
    rest = test([array[whole:] for array in arrays])
    return [found | jnp.any(more) for found, more in zip(failed, rest)]
