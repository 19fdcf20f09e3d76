"""Imports every module that registers conversions."""

from __future__ import annotations

from fixed_modes.jax import (
    advanced_subtensor,
    bessel,
    blas,
    discrete_samplers,
    elemwise,
    extra_ops,
    fft,
    inner_graph,
    nlinalg,
    printing,
    ragged_indexing,
    ragged_ops,
    random,
    scan,
    slinalg,
    sort,
    special,
    subtensor,
    tensor_basic,
    tensor_extras,
)

__all__ = [
    "advanced_subtensor",
    "bessel",
    "blas",
    "discrete_samplers",
    "elemwise",
    "extra_ops",
    "fft",
    "inner_graph",
    "nlinalg",
    "printing",
    "ragged_indexing",
    "ragged_ops",
    "random",
    "scan",
    "slinalg",
    "sort",
    "special",
    "subtensor",
    "tensor_basic",
    "tensor_extras",
]
