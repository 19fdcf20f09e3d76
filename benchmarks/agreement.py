"""Whether two contenders computed the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


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
