"""Diagonals, triangles, choices and permutations (``aesara.tensor.basic``)."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np
from aesara.graph.basic import Apply
from aesara.tensor.basic import (
    AllocDiag,
    Choose,
    Default,
    ExtractDiag,
    PermuteRowElements,
    Tri,
)
from aesara.tensor.math import Convolve
from aesara.tensor.type_other import NoneTypeT

from fixed_modes.jax.bounds import check_bounds
from fixed_modes.jax.dispatch import jax_lower
from fixed_modes.jax.frame import Frame, NeedsConcrete, is_concrete


@jax_lower.register(Tri)
def _tri(op: Tri, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    traced = [v for v, value in zip(node.inputs, values) if not is_concrete(value)]
    raise NeedsConcrete(traced, "the shape of a triangle")


@jax_lower.register(Default)
def _default(op: Default, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    x, default = values
    return [default if x is None or isinstance(node.inputs[0].type, NoneTypeT) else x]


@jax_lower.register(ExtractDiag)
def _extract_diag(op: ExtractDiag, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    return [jnp.diagonal(jnp.asarray(values[0]), op.offset, op.axis1, op.axis2)]


@jax_lower.register(AllocDiag)
def _alloc_diag(op: AllocDiag, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    x = jnp.asarray(values[0])
    length = x.shape[-1]
    size = length + abs(op.offset)
    places = np.arange(length)
    rows, columns = places + max(0, -op.offset), places + max(0, op.offset)
    filled = jnp.zeros((*x.shape[:-1], size, size), x.dtype).at[..., rows, columns].set(x)
    first, second = sorted((op.axis1, op.axis2))
    return [jnp.moveaxis(filled, (-2, -1), (first, second))]


@jax_lower.register(Choose)
def _choose(op: Choose, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    which, choices = jnp.asarray(values[0]).astype("int64"), jnp.asarray(values[1])
    count = choices.shape[0]
    if op.mode == "raise":
        outside = ((which < 0) | (which >= count)).any()
        frame.checks.add(outside, partial(ValueError, "invalid entry in choice array"))
    which = which % count if op.mode == "wrap" else jnp.clip(which, 0, count - 1)
    shape = np.broadcast_shapes(which.shape, choices.shape[1:])
    ndim = len(shape)
    choices = choices.reshape(count, *(1,) * (ndim + 1 - choices.ndim), *choices.shape[1:])
    choices = jnp.broadcast_to(choices, (count, *shape))
    return [jnp.take_along_axis(choices, jnp.broadcast_to(which, shape)[None], axis=0)[0]]


@jax_lower.register(PermuteRowElements)
def _permute(op: PermuteRowElements, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    x, order, _ = values
    shape = np.broadcast_shapes(np.shape(x), np.shape(order))
    order = check_bounds(order, len(shape) - 1, np.shape(x)[-1], frame)
    x, order = jnp.broadcast_to(x, shape), jnp.broadcast_to(order, shape) % shape[-1]
    if frame.concrete(node.inputs[2], "whether a permutation is inverted"):
        order = jnp.argsort(order, axis=-1)
    return [jnp.take_along_axis(x, order, axis=-1)]


@jax_lower.register(Convolve)
def _convolve(op: Convolve, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    dtype = node.outputs[0].type.dtype
    a, b = (jnp.asarray(value).astype(dtype) for value in values)
    if not a.size or not b.size:
        raise ValueError("a convolution of nothing")
    return [jnp.convolve(a, b, mode=op.mode, precision="highest")]
