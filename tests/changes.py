"""Changes of arrays as Aesara means them: the array that is given stays as it is."""

from __future__ import annotations

from typing import Any

import numpy as np


def put(x: np.ndarray, index: Any, value: Any) -> np.ndarray:
    """Give a copy in which what is indexed has been assigned."""
    x = x.copy()
    x[index] = value
    return x


def add(x: np.ndarray, index: Any, value: Any) -> np.ndarray:
    """Give a copy to which a value has been added, as often as an entry is indexed."""
    x = x.copy()
    np.add.at(x, index, value)
    return x
