"""Products of matrices (``aesara.tensor.math``, ``aesara.tensor.blas``)."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from aesara.graph.basic import Apply
from aesara.tensor.blas import BatchedDot, Dot22, Dot22Scalar, Gemm, Gemv, Ger
from aesara.tensor.math import Dot, MatMul

from fixed_modes.jax.dispatch import jax_lower
from fixed_modes.jax.frame import Frame, described


def _operands(node: Apply, values: list[Any]) -> list[Any]:
    """Bring all operands to the output's dtype, as NumPy does."""
    dtype = node.outputs[0].type.dtype
    return [jnp.asarray(value).astype(dtype) for value in values]


@jax_lower.register(Dot)
@jax_lower.register(Dot22)
@jax_lower.register(MatMul)
def _dot(op: Any, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    x, y = _operands(node, values)
    return [jnp.matmul(x, y) if isinstance(op, MatMul) else jnp.dot(x, y)]


@jax_lower.register(BatchedDot)
def _batched_dot(op: BatchedDot, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    x, y = _operands(node, values)
    if x.shape[0] != y.shape[0]:
        text = f"The operands must have the same size in axis 0: {x.shape}, {y.shape}"
        raise described(TypeError(text), node, frame.scans)
    left = "bij" if x.ndim == 3 else "bj"
    right = "bjk" if y.ndim == 3 else "bj"
    kept = "b" + ("i" if x.ndim == 3 else "") + ("k" if y.ndim == 3 else "")
    return [jnp.einsum(f"{left},{right}->{kept}", x, y)]


@jax_lower.register(Dot22Scalar)
def _dot22_scalar(op: Dot22Scalar, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    x, y, scale = _operands(node, values)
    return [jnp.dot(x, y) * scale]


@jax_lower.register(Gemm)
@jax_lower.register(Gemv)
def _gemm(op: Any, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    # Both compute beta * z + alpha * dot(x, y).
    z, alpha, x, y, beta = _operands(node, values)
    return [beta * z + alpha * jnp.dot(x, y)]


@jax_lower.register(Ger)
def _ger(op: Ger, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    a, alpha, x, y = _operands(node, values)
    return [a + alpha * jnp.outer(x, y)]
