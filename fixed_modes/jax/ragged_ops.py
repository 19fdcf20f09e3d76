"""Ops on arrays of which the lengths change while a loop runs; see `fixed_modes.jax.ragged`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from aesara.compile.ops import DeepCopyOp, ViewOp
from aesara.graph.basic import Apply
from aesara.raise_op import CheckAndRaise
from aesara.scalar import basic as aes
from aesara.tensor.basic import Join, Split
from aesara.tensor.elemwise import CAReduce, DimShuffle, Elemwise
from aesara.tensor.extra_ops import CumOp
from aesara.tensor.math import Argmax, Dot, MaxAndArgmax, Mean, MulWithoutZeros
from aesara.tensor.shape import Shape, Shape_i
from aesara.tensor.sort import ArgSortOp, SortOp
from aesara.tensor.special import LogSoftmax, Softmax, SoftmaxGrad
from jax import lax

from fixed_modes.jax.demands import demand, same_length
from fixed_modes.jax.dispatch import jax_lower
from fixed_modes.jax.frame import Frame, is_concrete
from fixed_modes.jax.ragged import MOST_ENTRIES, Ragged, picked
from fixed_modes.jax.ragged_dispatch import (
    as_ragged,
    length_of,
    plain_or_ragged,
    ragged_lower,
    reason_of,
)

_PARTS = "parts have other lengths than the whole"

# Functions with an infinite slope somewhere: in a derivative that JAX makes, infinity times
# the 0 that comes back from what does not count would be NaN.  They get a number at which
# none of them, nor what is made of their results, is likely to be singular.
_SINGULAR = (
    *(aes.ArcCos, aes.ArcCosh, aes.ArcSin, aes.ArcTanh, aes.Log, aes.Log10, aes.Log1p),
    *(aes.Log2, aes.Pow, aes.Reciprocal, aes.Sqrt, aes.TrueDivide),
)
_HARMLESS = 0.6180339887498949


@ragged_lower.register(DeepCopyOp)
@ragged_lower.register(ViewOp)
def _same_value(op: Any, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    return [values[0]]


@ragged_lower.register(Shape_i)
def _shape_i(op: Shape_i, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    return [length_of(values[0], op.i)]


@ragged_lower.register(Shape)
def _shape(op: Shape, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    (x,) = values
    return [jnp.stack([jnp.asarray(length_of(x, axis), "int64") for axis in range(x.data.ndim)])]


@ragged_lower.register(Elemwise)
def _elemwise(op: Elemwise, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    reason = reason_of(values)
    parts = [as_ragged(value, reason) for value in values]
    ndim = node.outputs[0].type.ndim
    mask = _common_mask(node, parts)
    if mask is None:
        parts = [part.packed() for part in parts]
    arrays, lengths = [part.data for part in parts], [None] * ndim
    for axis in range(ndim):
        taking_part = [n for n, v in enumerate(node.inputs) if not v.type.broadcastable[axis]]
        found = [parts[n].lengths[axis] for n in taking_part]
        if all(length is None for length in found):
            continue
        sizes = [arrays[n].shape[axis] for n in taking_part]
        lengths[axis] = same_length(
            [size if length is None else length for length, size in zip(found, sizes)], frame
        )
        for n in taking_part:
            arrays[n] = lax.slice_in_dim(arrays[n], 0, min(sizes), axis=axis)
    size = math.prod(_common_shape(arrays))
    if size > max(MOST_ENTRIES, *(array.size for array in arrays)):
        raise NotImplementedError("An array with room for too many entries")
    # What doesn't count must not make a check fail.
    local = frame.branch()

    def compute(*arrays: Any) -> list[Any]:
        return jax_lower(op, node, list(arrays), local)

    if isinstance(op.scalar_op, _SINGULAR):
        whole = Ragged(jnp.zeros(_common_shape(arrays)), tuple(lengths), reason, mask)
        results = _without_slopes_beyond(compute, whole.counts(), *arrays)
    else:
        results = compute(*arrays)
    if local.checks.errors or local.last_call is not None:
        raise NotImplementedError(f"{op}, which has to be checked entry by entry")
    return [Ragged(jnp.asarray(result), tuple(lengths), reason, mask) for result in results]


def _common_shape(arrays: Sequence[Any]) -> tuple[int, ...]:
    return np.broadcast_shapes(*(array.shape for array in arrays))


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def _without_slopes_beyond(function: Any, counts: Any, *arrays: Any) -> list[Any]:
    """Apply a function whose derivative takes what does not count for a harmless number."""
    found: list[Any] = function(*arrays)
    return found


@_without_slopes_beyond.defjvp
def _slopes(function: Any, primals: Any, tangents: Any) -> tuple[Any, Any]:
    counts, *arrays = primals
    inside = [
        jnp.where(counts, a, jnp.asarray(_HARMLESS, a.dtype)) if a.dtype.kind in "fc" else a
        for a in arrays
    ]
    shape = _common_shape(inside)
    slopes = [
        jnp.broadcast_to(t, shape) if a.dtype.kind in "fc" else np.zeros(i.shape, jax.dtypes.float0)
        for a, i, t in zip(arrays, inside, tangents[1:])
    ]
    _, slope = jax.jvp(function, inside, slopes)
    return _without_slopes_beyond(function, *primals), slope


def _common_mask(node: Apply, parts: Sequence[Ragged]) -> Any:
    """Give the mask that says which rows of all count; None if there is not one for all."""
    masks = [
        part.mask
        for part, variable in zip(parts, node.inputs)
        if not variable.type.broadcastable[0]
    ]
    return masks[0] if masks and all(mask is masks[0] for mask in masks) else None


@ragged_lower.register(DimShuffle)
def _dim_shuffle(op: DimShuffle, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    (x,) = values
    kept = set(op.new_order) - {"x"}
    if any(length is not None and axis not in kept for axis, length in enumerate(x.lengths)):
        raise NotImplementedError("An axis to drop of which the length changes")
    (data,) = jax_lower(op, node, [x.data], frame)
    lengths = [None if axis == "x" else x.lengths[axis] for axis in op.new_order]
    return [Ragged(data, tuple(lengths), x.reason)]


@ragged_lower.register(CAReduce)
def _careduce(op: CAReduce, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    (x,) = values
    if isinstance(op, Mean):
        raise NotImplementedError("A mean as one op")
    axes = tuple(range(x.data.ndim)) if op.axis is None else tuple(op.axis)
    data = x.filled(_neutral(op.scalar_op, x.data.dtype), axes)
    if isinstance(op.scalar_op, (aes.ScalarMaximum, aes.ScalarMinimum)):
        _demand_entries(x, axes, frame)
    (result,) = jax_lower(op, node, [data], frame)
    return [_reduced(result, x, axes)]


def _neutral(op: aes.ScalarOp, dtype: Any) -> Any:
    """Give what changes no result of a reduction, after an entry at least."""
    if isinstance(op, (aes.Mul, MulWithoutZeros)):
        return 1
    if isinstance(op, aes.AND):
        return True if dtype.kind == "b" else -1
    if isinstance(op, (aes.Add, aes.OR, aes.XOR)):
        return 0
    if isinstance(op, aes.ScalarMaximum):
        return _least(dtype)
    if isinstance(op, aes.ScalarMinimum):
        return _greatest(dtype)
    raise NotImplementedError(f"A reduction by {op}")


def _least(dtype: Any) -> Any:
    if dtype.kind == "b":
        return False
    if dtype.kind == "c":
        raise NotImplementedError("An order of complex numbers")
    return -np.inf if dtype.kind == "f" else np.iinfo(dtype).min


def _greatest(dtype: Any) -> Any:
    if dtype.kind == "b":
        return True
    if dtype.kind == "c":
        raise NotImplementedError("An order of complex numbers")
    return np.inf if dtype.kind == "f" else np.iinfo(dtype).max


def _demand_entries(x: Ragged, axes: Sequence[int], frame: Frame) -> None:
    for axis in axes:
        if not x.data.shape[axis]:
            raise NotImplementedError("An extreme of nothing")
        if x.lengths[axis] is not None:
            demand(x.lengths[axis] > 0, "an array with a maximum or minimum is empty", frame)


def _reduced(result: Any, x: Ragged, axes: Sequence[int]) -> Any:
    """Give a result in which some axes are missing."""
    lengths = [n for axis, n in enumerate(x.lengths) if axis not in axes]
    return plain_or_ragged(result, lengths, x.reason, None if 0 in axes else x.mask)


@ragged_lower.register(Argmax)
@ragged_lower.register(MaxAndArgmax)
def _argmax(op: Any, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    (x,) = values
    axes = tuple(range(x.data.ndim)) if op.axis is None else tuple(int(a) for a in op.axis)
    if len(axes) != 1:
        raise NotImplementedError("The position of a maximum along several axes")
    _demand_entries(x, axes, frame)
    # Of equal entries the first one counts, and what was filled in comes last.
    results = jax_lower(op, node, [x.filled(_least(x.data.dtype), axes)], frame)
    return [_reduced(result, x, axes) for result in results]


@ragged_lower.register(CumOp)
def _cumulate(op: CumOp, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    (x,) = values
    if op.axis is None and x.data.ndim != 1:
        raise NotImplementedError("Sums along all axes")
    (data,) = jax_lower(op, node, [x.data], frame)
    return [x.with_data(data)]


@ragged_lower.register(SortOp)
@ragged_lower.register(ArgSortOp)
def _sort(op: Any, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    x, axis = values
    if not isinstance(x, Ragged) or axis is None or x.data.dtype.kind == "c":
        raise NotImplementedError("A sort of all axes")
    place = int(axis) % x.data.ndim
    last = np.nan if x.data.dtype.kind == "f" else _greatest(x.data.dtype)
    (data,) = jax_lower(op, node, [x.filled(last, (place,)), axis], frame)
    return [x.with_data(data)]


@ragged_lower.register(Dot)
def _dot(op: Dot, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    reason = reason_of(values)
    x, y = (as_ragged(value, reason) for value in values)
    if max(x.data.ndim, y.data.ndim) > 2 or min(x.data.ndim, y.data.ndim) < 1:
        raise NotImplementedError("A product of arrays that are no matrices")
    axis = x.data.ndim - 1
    sizes = x.data.shape[axis], y.data.shape[0]
    if x.lengths[axis] is not None or y.lengths[0] is not None:
        pairs = zip((x.lengths[axis], y.lengths[0]), sizes)
        same_length([size if n is None else n for n, size in pairs], frame)
    elif sizes[0] != sizes[1]:
        raise NotImplementedError("A product of matrices that don't fit")
    left = lax.slice_in_dim(x.filled(0, (axis,)), 0, min(sizes), axis=axis)
    right = lax.slice_in_dim(y.filled(0, (0,)), 0, min(sizes), axis=0)
    if left.ndim == right.ndim == 1:
        # XLA makes one loop of this, and a call of a library of a product.
        dtype = node.outputs[0].type.dtype
        return [jnp.sum(left.astype(dtype) * right.astype(dtype), dtype=dtype)]
    (data,) = jax_lower(op, node, [left, right], frame)
    return [plain_or_ragged(data, (*x.lengths[:-1], *y.lengths[1:]), reason)]


@ragged_lower.register(Join)
def _join(op: Join, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    reason = reason_of(values[1:])
    dtype, ndim = node.outputs[0].type.dtype, node.outputs[0].type.ndim
    if not is_concrete(values[0]) or not -ndim <= int(values[0]) < ndim:
        raise NotImplementedError("A join along an axis that is not known")
    axis = int(values[0]) % ndim
    parts = [as_ragged(value, reason) for value in values[1:]]
    lengths = parts[0].lengths
    for part in parts:
        others = [(a, b) for n, (a, b) in enumerate(zip(lengths, part.lengths)) if n != axis]
        if any(a is not b for a, b in others):
            raise NotImplementedError("A join of arrays with lengths of their own on other axes")
    shapes = [part.data.shape for part in parts]
    if len({(*shape[:axis], *shape[axis + 1 :]) for shape in shapes}) > 1:
        raise NotImplementedError("A join of arrays that don't fit")
    shape = list(shapes[0])
    shape[axis] = sum(sizes[axis] for sizes in shapes)
    data, end = jnp.zeros(shape, dtype), np.int64(0)
    for part in parts:
        # What is beyond its length is overwritten by the next one.
        data = lax.dynamic_update_slice_in_dim(data, part.data.astype(dtype), end, axis)
        end = end + jnp.asarray(length_of(part, axis))
    return [Ragged(data, tuple(end if a == axis else n for a, n in enumerate(lengths)), reason)]


@ragged_lower.register(Split)
def _split(op: Split, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    x, axis, lengths = values
    if not is_concrete(axis) or isinstance(lengths, Ragged):
        raise NotImplementedError("A split along an axis that is not known")
    return split(as_ragged(x, reason_of(values)), int(axis), lengths, op.len_splits, frame)


def split(x: Ragged, axis: int, lengths: Any, count: int, frame: Frame) -> list[Any]:
    """Give the parts of an array of which the lengths change."""
    axis %= x.data.ndim
    sizes = jnp.asarray(lengths).astype("int64")
    if sizes.shape != (count,):
        raise NotImplementedError("Lengths of other parts")
    demand((sizes >= 0).all() & (sizes.sum() == length_of(x, axis)), _PARTS, frame)
    starts = jnp.cumsum(sizes) - sizes
    room = x.data.shape[axis]
    return [
        Ragged(
            picked(x.data, axis, start, 1, room),
            tuple(size if a == axis else n for a, n in enumerate(x.lengths)),
            x.reason,
        )
        for start, size in zip(starts, sizes)
    ]


@ragged_lower.register(CheckAndRaise)
def _check_and_raise(op: CheckAndRaise, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    value, *conditions = values
    if any(isinstance(condition, Ragged) for condition in conditions):
        raise NotImplementedError("A condition on an array of which the length changes")
    (data,) = jax_lower(op, node, [value.data, *conditions], frame)
    return [value.with_data(data)]


@ragged_lower.register(Softmax)
@ragged_lower.register(LogSoftmax)
@ragged_lower.register(SoftmaxGrad)
def _softmax(op: Any, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    parts = [as_ragged(value, reason_of(values)) for value in values]
    (x, *others) = parts
    if any(a is not b for part in others for a, b in zip(x.lengths, part.lengths)):
        raise NotImplementedError("A softmax and its gradient with lengths of their own")
    axes = tuple(range(x.data.ndim)) if op.axis is None else (op.axis % x.data.ndim,)
    neutral = 0.0 if others else -np.inf
    if not others:
        _demand_entries(x, axes, frame)
    (data,) = jax_lower(op, node, [part.filled(neutral, axes) for part in parts], frame)
    return [x.with_data(data)]
