"""How far results of elementary functions are from what extended precision gives."""

from __future__ import annotations

import numpy as np


def arguments() -> np.ndarray:
    """Give 9000 numbers: some near 1, some of all magnitudes from 1e-12 to 600."""
    rng = np.random.default_rng(11)
    scales = 10.0 ** rng.uniform(-12, 2.5, 3000)
    return np.concatenate([rng.normal(size=3000), scales * rng.choice([-1, 1], 3000), 2 * scales])


def units_apart(value: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """Give the errors of doubles in units in their last places."""
    with np.errstate(invalid="ignore"):
        return np.abs(value - exact) / np.spacing(np.abs(exact).astype("float64"))
