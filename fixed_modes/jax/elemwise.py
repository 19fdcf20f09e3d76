"""`Elemwise`, `DimShuffle` and reductions (``aesara.tensor.elemwise``)."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from aesara.graph.basic import Apply
from aesara.scalar import basic as aes
from aesara.tensor.elemwise import CAReduce, DimShuffle, Elemwise
from aesara.tensor.math import Argmax, MaxAndArgmax, Mean, MulWithoutZeros

from fixed_modes.jax.dispatch import jax_lower
from fixed_modes.jax.extremes import argmax, max_and_argmax
from fixed_modes.jax.frame import Frame
from fixed_modes.jax.scalar import as_dtype, check_division, lower_composite, scalar_lower


@jax_lower.register(aes.ScalarOp)
def _scalar_op(op: aes.ScalarOp, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    if isinstance(op, aes.Composite):
        return lower_composite(op, values, frame)
    check_division(node, op, values, frame)
    return [scalar_lower(op, node, values)]


@jax_lower.register(Elemwise)
def _elemwise(op: Elemwise, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    shapes = [np.shape(value) for value in values]
    for axis, sizes in enumerate(zip(*shapes)):
        if len(set(sizes) - {1}) > 1:
            raise ValueError(f"Shapes on dimension {axis} do not match: {sizes}")
    if isinstance(op.scalar_op, aes.Composite):
        results = lower_composite(op.scalar_op, values, frame)
    else:
        check_division(node, op.scalar_op, values, frame)
        results = [scalar_lower(op.scalar_op, node, values)]
    # An output need not depend on every operand, but it has the shape of all.
    shape = np.broadcast_shapes(*shapes)
    return [jnp.broadcast_to(result, shape) for result in results]


@jax_lower.register(DimShuffle)
def _dim_shuffle(op: DimShuffle, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    (x,) = values
    moved = jnp.transpose(x, op.transposition)
    kept = len(op.shuffle)
    if any(size != 1 for size in moved.shape[kept:]):
        raise ValueError(f"Only dimensions of size 1 can be dropped, not {moved.shape[kept:]}")
    sizes = iter(moved.shape[:kept])
    return [moved.reshape([1 if axis == "x" else next(sizes) for axis in op.new_order])]


@jax_lower.register(CAReduce)
def _careduce(op: CAReduce, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    (x,) = values
    if x.ndim == 0:
        return [x]
    axes = tuple(range(x.ndim)) if op.axis is None else tuple(op.axis)
    x = as_dtype(x, op.acc_dtype or x.dtype)
    scalar_op = op.scalar_op
    if isinstance(op, Mean):
        return [jnp.mean(x, axis=axes, dtype=node.outputs[0].type.dtype)]
    if isinstance(scalar_op, MulWithoutZeros):
        return [jnp.prod(jnp.where(x == 0, jnp.ones_like(x), x), axis=axes, dtype=x.dtype)]
    if isinstance(scalar_op, aes.Add):
        return [jnp.sum(x, axis=axes, dtype=x.dtype)]
    if isinstance(scalar_op, aes.Mul):
        return [jnp.prod(x, axis=axes, dtype=x.dtype)]
    if isinstance(scalar_op, aes.ScalarMaximum):
        return [jnp.max(x, axis=axes)]
    if isinstance(scalar_op, aes.ScalarMinimum):
        return [jnp.min(x, axis=axes)]
    for scalar_class, function, start in (
        (aes.OR, jax.lax.bitwise_or, 0),
        (aes.AND, jax.lax.bitwise_and, True if x.dtype == bool else -1),
        (aes.XOR, jax.lax.bitwise_xor, 0),
    ):
        if isinstance(scalar_op, scalar_class):
            first = np.asarray(start).astype(x.dtype)
            return [jax.lax.reduce(x, first, function, axes)]
    raise NotImplementedError(f"No JAX conversion for a reduction by {scalar_op}")


def _searched_axes(x: Any, axis: Any) -> tuple[int, ...]:
    return tuple(range(x.ndim)) if axis is None else tuple(int(a) % x.ndim for a in axis)


@jax_lower.register(MaxAndArgmax)
def _max_and_argmax(op: MaxAndArgmax, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    (x,) = values
    if x.ndim == 0:
        return [x, np.zeros((), "int64")]
    return list(max_and_argmax(x, _searched_axes(x, op.axis)))


@jax_lower.register(Argmax)
def _argmax_op(op: Argmax, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    (x,) = values
    return [np.zeros((), "int64") if x.ndim == 0 else argmax(x, _searched_axes(x, op.axis))]
