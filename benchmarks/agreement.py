"""Whether two contenders computed the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

# Moments of fewer numbers say nothing.
FEWEST_DRAWS = 100


def as_arrays(outputs: Any) -> list[np.ndarray]:
    """List the outputs of a contender, which may return one value or several."""
    several = isinstance(outputs, (tuple, list))
    return [np.asarray(out) for out in (outputs if several else [outputs])]


def difference(
    outputs: Sequence[np.ndarray], expected: Sequence[np.ndarray], tolerance: float
) -> str:
    """Say how `outputs` differ from `expected`; nothing where they agree."""
    if len(outputs) != len(expected):
        return f"{len(outputs)} outputs instead of {len(expected)}"
    for place, (out, other) in enumerate(zip(outputs, expected)):
        if out.dtype != other.dtype:
            return f"output {place} has dtype {out.dtype} instead of {other.dtype}"
        if out.shape != other.shape:
            return f"output {place} has shape {out.shape} instead of {other.shape}"
        # Relative to the largest number: a sum in another order moves the small ones more.
        scale = np.max(np.abs(other), initial=0.0)
        if not np.allclose(out, other, rtol=tolerance, atol=tolerance * scale):
            return (
                f"output {place} is off by {np.max(np.abs(out - other)):.3g} at a scale {scale:.3g}"
            )
    return ""


def difference_of_moments(
    outputs: Sequence[np.ndarray], expected: Sequence[np.ndarray], tolerance: float
) -> str:
    """Say how means and standard deviations along the first axis differ; nothing where not.

    For contenders that draw other numbers of the same distribution.  Their dtypes and
    shapes are those of `difference`.

    Parameters
    ----------
    tolerance
        How far they may lie apart; what was drawn is of the order of one.
    """
    shapes = difference(
        [np.zeros_like(out) for out in outputs], [np.zeros_like(out) for out in expected], 0.0
    )
    if shapes:
        return shapes
    for place, (out, other) in enumerate(zip(outputs, expected)):
        if len(other) < FEWEST_DRAWS:
            continue
        for what, moment in (("mean", np.mean), ("standard deviation", np.std)):
            # A nan is a difference too.
            apart = np.max(np.abs(moment(out, axis=0) - moment(other, axis=0)))
            if not apart <= tolerance:
                return f"the {what} of output {place} is off by {apart:.3g}"
    return ""
