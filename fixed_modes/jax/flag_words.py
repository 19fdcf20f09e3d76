"""The flags of run-time checks as bits of integers, which the loops carry on.

XLA lays what a loop needs for itself, such as its condition, into the memory of an
output that is made after the loop.  An array of flags is such an output, and the
smallest: each step then writes through a pointer that it reads first, and a loop of 3 ns
a step with two checks takes 5.5 ns (JAX 0.6.2; 3.1 ns with words).  Words that all loops
of a graph carry, and that are the output themselves, are in use all the time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

#: The bits of a word.
WIDTH = 64


def fill_up(words: Sequence[Any], count: int) -> list[Any]:
    """Add words without a flag, so that there are bits for `count` flags."""
    missing = -(-count // WIDTH) - len(words)
    return [*words, *(jnp.zeros((), "uint64") for _ in range(missing))]


def pack(flags: Iterable[tuple[int, Any]], words: Sequence[Any]) -> list[Any]:
    """Set the bits of flags in words.

    Parameters
    ----------
    flags
        Pairs of a number and a traced boolean, or an array of them.
    words
        Enough of them, scalars of type uint64: flag ``i`` is bit ``i % WIDTH`` of word
        ``i // WIDTH``.
    """
    packed = list(words)
    for number, flag in flags:
        index, bit = divmod(number, WIDTH)
        packed[index] = packed[index] | (jnp.any(flag).astype("uint64") << np.uint64(bit))
    return packed


def unpack(words: Sequence[Any], number: int) -> Any:
    """Give one flag as a boolean."""
    index, bit = divmod(number, WIDTH)
    return (words[index] >> np.uint64(bit)) & np.uint64(1) != 0


def first_of(words: Sequence[Any]) -> int | None:
    """Give the number of the first flag that is set, after the run."""
    for index, word in enumerate(words):
        value = int(np.asarray(word))  # the number itself takes longer
        if value:
            return index * WIDTH + (value & -value).bit_length() - 1
    return None
