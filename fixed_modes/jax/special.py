"""Softmax and its kin (``aesara.tensor.special``)."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from aesara.graph.basic import Apply
from aesara.tensor.special import LogSoftmax, Softmax, SoftmaxGrad

from fixed_modes.jax.dispatch import jax_lower
from fixed_modes.jax.frame import Frame


def _with_maximum(x: Any, axis: int | None) -> Any:
    """Raise `ValueError` for an array in which there is nothing along `axis`, as NumPy does."""
    x = jnp.asarray(x)
    if 0 in (x.shape if axis is None else x.shape[axis : axis + 1 or None]):
        raise ValueError("zero-size array to reduction operation maximum which has no identity")
    return x


@jax_lower.register(Softmax)
def _softmax(op: Softmax, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    return [jax.nn.softmax(_with_maximum(values[0], op.axis), axis=op.axis)]


@jax_lower.register(LogSoftmax)
def _log_softmax(op: LogSoftmax, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    return [jax.nn.log_softmax(_with_maximum(values[0], op.axis), axis=op.axis)]


@jax_lower.register(SoftmaxGrad)
def _softmax_grad(op: SoftmaxGrad, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    grad, softmax = map(jnp.asarray, values)
    product = grad * softmax
    return [product - product.sum(axis=op.axis, keepdims=True) * softmax]
