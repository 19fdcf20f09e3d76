"""Helpers for the tests of the JAX back end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import aesara
import numpy as np
import pytest

import fixed_modes  # noqa: F401


@pytest.fixture
def evaluate() -> Callable[..., Any]:
    """Compile a graph in JAX_FIXED and call it once, with the inputs' values."""

    def run(inputs: Sequence[Any], outputs: Any, *values: Any, **kwargs: Any) -> Any:
        kwargs.setdefault("mode", "JAX_FIXED")
        return aesara.function(inputs, outputs, **kwargs)(*values)

    return run


@pytest.fixture
def data() -> np.random.Generator:
    """Give a source of test values, the same in every test."""
    return np.random.default_rng(20240611)
