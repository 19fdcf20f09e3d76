"""Imports every module that registers conversions."""

from __future__ import annotations

from fixed_modes.jax import (
    advanced_subtensor,
    discrete_samplers,
    elemwise,
    inner_graph,
    nlinalg,
    printing,
    random,
    scan,
    subtensor,
    tensor_basic,
)

__all__ = [
    "advanced_subtensor",
    "discrete_samplers",
    "elemwise",
    "inner_graph",
    "nlinalg",
    "printing",
    "random",
    "scan",
    "subtensor",
    "tensor_basic",
]
