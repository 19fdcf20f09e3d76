"""Matrices that NumPy and SciPy refuse, where JAX would give nan."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np

from fixed_modes.jax.frame import Frame


def refuse_singular(pivots: Any, frame: Frame, text: str = "Singular matrix") -> None:
    """See to it that a pivot of zero raises `numpy.linalg.LinAlgError` after the run."""
    frame.checks.add((pivots == 0).any(), partial(np.linalg.LinAlgError, text))


def refuse_nan(result: Any, frame: Frame, text: str) -> None:
    """See to it that nan in a result raises `numpy.linalg.LinAlgError` after the run."""
    frame.checks.add(jnp.isnan(result).any(), partial(np.linalg.LinAlgError, text))


def refuse_not_finite(value: Any, frame: Frame) -> None:
    """See to it that inf or nan in an argument raises `ValueError` after the run."""
    error = partial(ValueError, "array must not contain infs or NaNs")
    frame.checks.add(~jnp.isfinite(value).all(), error)


def refuse_not_square(x: Any) -> None:
    """Raise `numpy.linalg.LinAlgError` for a matrix that is not square."""
    if x.shape[-1] != x.shape[-2]:
        raise np.linalg.LinAlgError("Last 2 dimensions of the array must be square")
