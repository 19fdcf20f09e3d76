"""What has to hold in every step for a loop to be compiled, and is seen only when it runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp

from fixed_modes.jax.frame import Frame, RunByItself


def same_length(found: Sequence[Any], frame: Frame) -> Any:
    """Give the one length that arrays have in common.

    Parameters
    ----------
    found
        Their lengths, of which one at least is traced.
    frame
        Gets a check that they are equal.
    """
    first, *others = sorted(found, key=lambda length: isinstance(length, int))
    for other in others:
        if other is not first:
            demand(first == other, "arrays in it have other lengths in some step", frame)
    return first


def demand(holds: Any, reason: str, frame: Frame) -> None:
    """Have the loop run in Python if a traced condition does not hold; says why."""
    frame.checks.add(jnp.any(~jnp.asarray(holds)), RunByItself(reason))
