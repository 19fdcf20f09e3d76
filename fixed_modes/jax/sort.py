"""Sorting (``aesara.tensor.sort``)."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from aesara.graph.basic import Apply
from aesara.tensor.sort import ArgSortOp, SortOp, TopKOp

from fixed_modes.jax.dispatch import jax_lower
from fixed_modes.jax.frame import Frame


@jax_lower.register(SortOp)
def _sort(op: SortOp, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    axis = frame.concrete(node.inputs[1], "the axis of a sort")
    return [jnp.sort(jnp.asarray(values[0]), axis=None if axis is None else int(axis))]


@jax_lower.register(ArgSortOp)
def _argsort(op: ArgSortOp, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    axis = frame.concrete(node.inputs[1], "the axis of a sort")
    return [jnp.argsort(jnp.asarray(values[0]), axis=None if axis is None else int(axis))]


@jax_lower.register(TopKOp)
def _top_k(op: TopKOp, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    x = jnp.asarray(values[0])
    axis = op.axis % x.ndim
    size = x.shape[axis]
    count = int(frame.concrete(node.inputs[1], "how many entries are the largest"))
    if count == 0:
        raise ValueError("topk: kth cannot be zero")
    if abs(count) > size:
        raise ValueError(f"topk: kth cannot be larger than the size of specified axis {op.axis}")
    if abs(count) == 1:  # nan counts as the smallest too, then
        extreme = jnp.argmax if count > 0 else jnp.argmin
        places = jnp.expand_dims(extreme(x, axis=axis), axis)
    else:
        first, last = (size - count, size) if count > 0 else (0, -count)
        places = jax.lax.slice_in_dim(jnp.argsort(x, axis=axis), first, last, axis=axis)
    outputs = []
    if op.return_values:
        outputs.append(jnp.take_along_axis(x, places, axis=axis))
    if op.return_indices:
        outputs.append(places)
    return outputs
