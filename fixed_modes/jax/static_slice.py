"""Slices with known bounds, steps other than 1 included."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np


def static_slice(x: Any, slices: Sequence[slice]) -> Any:
    """Do what ``x[slices]`` does; there is a slice with known bounds for every axis.

    JAX makes a gather of a step other than 1, which is slow and keeps XLA from
    turning what comes after it into vector instructions.
    """
    if isinstance(x, np.ndarray) or not slices:
        return x[tuple(slices)]
    rows = [range(*s.indices(size)) for s, size in zip(slices, x.shape)]
    backwards = [axis for axis, r in enumerate(rows) if r.step < 0]
    rows = [r[::-1] if r.step < 0 else r for r in rows]
    starts = [r.start if len(r) else 0 for r in rows]
    stops = [r[-1] + 1 if len(r) else 0 for r in rows]
    x = jax.lax.slice(x, starts, stops, [r.step for r in rows])
    return jax.lax.rev(x, backwards) if backwards else x
