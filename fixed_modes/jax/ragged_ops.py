"""Ops on arrays of which the lengths change while a loop runs; see `fixed_modes.jax.ragged`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial, singledispatch
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from aesara.compile.ops import DeepCopyOp, ViewOp
from aesara.graph.basic import Apply
from aesara.graph.op import Op
from aesara.raise_op import CheckAndRaise
from aesara.scalar import basic as aes
from aesara.tensor.basic import Join, Nonzero, Split
from aesara.tensor.elemwise import CAReduce, DimShuffle, Elemwise
from aesara.tensor.extra_ops import CumOp
from aesara.tensor.math import Argmax, Dot, MaxAndArgmax, Mean, MulWithoutZeros
from aesara.tensor.shape import Shape, Shape_i
from aesara.tensor.sort import ArgSortOp, SortOp
from aesara.tensor.special import LogSoftmax, Softmax, SoftmaxGrad
from aesara.tensor.subtensor import (
    AdvancedIncSubtensor,
    AdvancedIncSubtensor1,
    AdvancedSubtensor,
    AdvancedSubtensor1,
    IncSubtensor,
    Subtensor,
)
from jax import lax

from fixed_modes.jax.demands import demand, same_length
from fixed_modes.jax.dispatch import jax_lower
from fixed_modes.jax.frame import Frame, is_concrete
from fixed_modes.jax.ragged import Ragged, fitted, picked, positions
from fixed_modes.jax.ragged_subtensor import ragged_selections_of, select_ragged, update

_OUTSIDE = "an index is out of bounds"
_PARTS = "parts have other lengths than the whole"


# Functions with an infinite slope somewhere: in a derivative that JAX makes, infinity times
# the 0 that comes back from what does not count would be NaN.  They get a number at which
# none of them, nor what is made of their results, is likely to be singular.
_SINGULAR = (
    *(aes.ArcCos, aes.ArcCosh, aes.ArcSin, aes.ArcTanh, aes.Log, aes.Log10, aes.Log1p),
    *(aes.Log2, aes.Pow, aes.Reciprocal, aes.Sqrt, aes.TrueDivide),
)
_HARMLESS = 0.6180339887498949

# Ops for which it makes no difference which rows count.
_TAKES_MASKED = (CAReduce, DeepCopyOp, Elemwise, Shape, Shape_i, ViewOp)


def lower_ragged(node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    """Trace a node that has a `Ragged` among its inputs.

    Raises
    ------
    NotImplementedError
        If there is no conversion for that.
    """
    if not isinstance(node.op, _TAKES_MASKED):
        values = [v.packed() if isinstance(v, Ragged) else v for v in values]
    return ragged_lower(node.op, node, values, frame)


@singledispatch
def ragged_lower(op: Op, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    """Do what `lower_ragged` does, for an op that may need the rows side by side."""
    raise NotImplementedError(f"{op} of an array of which the length changes")


@ragged_lower.register(DeepCopyOp)
@ragged_lower.register(ViewOp)
def _same_value(op: Any, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    return [values[0]]


@ragged_lower.register(Shape_i)
def _shape_i(op: Shape_i, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    return [_length(values[0], op.i)]


@ragged_lower.register(Shape)
def _shape(op: Shape, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    (x,) = values
    return [jnp.stack([jnp.asarray(_length(x, axis), "int64") for axis in range(x.data.ndim)])]


def _length(x: Ragged, axis: int) -> Any:
    length = x.lengths[axis]
    return np.array(x.data.shape[axis], "int64") if length is None else length


@ragged_lower.register(Elemwise)
def _elemwise(op: Elemwise, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    reason = _reason(values)
    parts = [_as_ragged(value, reason) for value in values]
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
    lengths = tuple(n for axis, n in enumerate(x.lengths) if axis not in axes)
    is_plain = all(length is None for length in lengths)
    mask = None if 0 in axes else x.mask
    return result if is_plain else Ragged(jnp.asarray(result), lengths, x.reason, mask)


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
    reason = _reason(values)
    x, y = (_as_ragged(value, reason) for value in values)
    if max(x.data.ndim, y.data.ndim) > 2 or min(x.data.ndim, y.data.ndim) < 1:
        raise NotImplementedError("A product of arrays that are no matrices")
    axis = x.data.ndim - 1
    sizes = x.data.shape[axis], y.data.shape[0]
    if x.lengths[axis] is not None or y.lengths[0] is not None:
        found = [
            size if n is None else n for n, size in zip((x.lengths[axis], y.lengths[0]), sizes)
        ]
        same_length(found, frame)
    left = lax.slice_in_dim(x.filled(0, (axis,)), 0, min(sizes), axis=axis)
    right = lax.slice_in_dim(y.filled(0, (0,)), 0, min(sizes), axis=0)
    if left.ndim == right.ndim == 1:
        # XLA makes one loop of this, and a call of a library of a product.
        dtype = node.outputs[0].type.dtype
        return [jnp.sum(left.astype(dtype) * right.astype(dtype), dtype=dtype)]
    (data,) = jax_lower(op, node, [left, right], frame)
    lengths = (*x.lengths[:-1], *y.lengths[1:])
    is_plain = all(length is None for length in lengths)
    return [data if is_plain else Ragged(data, lengths, reason)]


@ragged_lower.register(Join)
def _join(op: Join, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    reason = _reason(values[1:])
    dtype, ndim = node.outputs[0].type.dtype, node.outputs[0].type.ndim
    if not is_concrete(values[0]) or not -ndim <= int(values[0]) < ndim:
        raise NotImplementedError("A join along an axis that is not known")
    axis = int(values[0]) % ndim
    parts = [_as_ragged(value, reason) for value in values[1:]]
    lengths = parts[0].lengths
    for part in parts:
        others = [(a, b) for n, (a, b) in enumerate(zip(lengths, part.lengths)) if n != axis]
        if any(a is not b for a, b in others):
            raise NotImplementedError("A join of arrays with lengths of their own on other axes")
    room = sum(part.data.shape[axis] for part in parts)
    shape = list(parts[0].data.shape)
    shape[axis] = room
    data, end = jnp.zeros(shape, dtype), np.int64(0)
    for part in parts:
        # What is beyond its length is overwritten by the next one.
        data = lax.dynamic_update_slice_in_dim(data, part.data.astype(dtype), end, axis)
        end = end + jnp.asarray(_length(part, axis))
    return [Ragged(data, tuple(end if a == axis else n for a, n in enumerate(lengths)), reason)]


@ragged_lower.register(Split)
def _split(op: Split, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    x, axis, lengths = values
    if not is_concrete(axis) or isinstance(lengths, Ragged):
        raise NotImplementedError("A split along an axis that is not known")
    return split(_as_ragged(x, _reason(values)), int(axis), lengths, op.len_splits, frame)


def split(x: Ragged, axis: int, lengths: Any, count: int, frame: Frame) -> list[Any]:
    """Give the parts of an array of which the lengths change."""
    axis %= x.data.ndim
    sizes = jnp.asarray(lengths).astype("int64")
    if sizes.shape != (count,):
        raise NotImplementedError("Lengths of other parts")
    demand((sizes >= 0).all() & (sizes.sum() == _length(x, axis)), _PARTS, frame)
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
    parts = [_as_ragged(value, _reason(values)) for value in values]
    (x, *others) = parts
    if any(a is not b for part in others for a, b in zip(x.lengths, part.lengths)):
        raise NotImplementedError("A softmax and its gradient with lengths of their own")
    axes = tuple(range(x.data.ndim)) if op.axis is None else (op.axis % x.data.ndim,)
    neutral = 0.0 if others else -np.inf
    if not others:
        _demand_entries(x, axes, frame)
    (data,) = jax_lower(op, node, [part.filled(neutral, axes) for part in parts], frame)
    return [x.with_data(data)]


@ragged_lower.register(Subtensor)
def _subtensor(op: Subtensor, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    x = values[0]
    if not isinstance(x, Ragged):
        raise NotImplementedError("An index of which the length changes")
    selections = ragged_selections_of(op.idx_list, node.inputs[1:], x, frame)
    result = select_ragged(x, selections)
    is_plain = all(length is None for length in result.lengths)
    return [result.data if is_plain else result]


@ragged_lower.register(IncSubtensor)
def _inc_subtensor(op: IncSubtensor, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    reason = _reason(values[:2])
    x, y = (_as_ragged(value, reason) for value in values[:2])
    selections = ragged_selections_of(op.idx_list, node.inputs[2:], x, frame)
    y = y.with_data(y.data.astype(x.data.dtype))
    data = update(x.data, y, selections, op.set_instead_of_inc, frame)
    is_plain = all(length is None for length in x.lengths)
    return [data if is_plain else x.with_data(data)]


@ragged_lower.register(AdvancedSubtensor1)
def _subtensor1(op: AdvancedSubtensor1, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    reason = _reason(values)
    x, rows = (_as_ragged(value, reason) for value in values)
    size = _length(x, 0)
    wanted = rows.filled(0).astype("int64")
    if not x.data.shape[0]:
        raise NotImplementedError("Rows of nothing")
    is_inside = (wanted >= -size) & (wanted < size)
    if rows.lengths[0] is not None:
        is_inside |= positions(wanted.shape, 0) >= rows.lengths[0]
    demand(is_inside.all(), _OUTSIDE, frame)
    places = jnp.clip(jnp.where(wanted < 0, wanted + size, wanted), 0, x.data.shape[0] - 1)
    lengths = (rows.lengths[0], *x.lengths[1:])
    is_plain = all(length is None for length in lengths)
    data = x.data[places]
    return [data if is_plain else Ragged(data, lengths, reason)]


@ragged_lower.register(AdvancedIncSubtensor1)
def _inc_subtensor1(
    op: AdvancedIncSubtensor1, node: Apply, values: list[Any], frame: Frame
) -> list[Any]:
    x, y, rows = (_as_ragged(value, _reason(values)) for value in values)
    if op.set_instead_of_inc or any(n is not None for n in (*x.lengths, *y.lengths[1:])):
        raise NotImplementedError("An assignment to rows of which the number changes")
    size = x.data.shape[0]
    wanted, count = rows.data.astype("int64"), _length(rows, 0)
    data = y.data.astype(x.data.dtype)
    if y.data.ndim == x.data.ndim and y.data.shape[0] != 1:
        demand(count == _length(y, 0), "there are more or fewer rows than values", frame)
        data = fitted(data, 0, wanted.shape[0])
    counts = positions(wanted.shape, 0) < count
    demand((~counts | ((wanted >= -size) & (wanted < size))).all(), _OUTSIDE, frame)
    # What does not count is added to a row that there is not.
    places = jnp.where(counts, jnp.where(wanted < 0, wanted + size, wanted), size)
    return [x.data.at[places].add(data, mode="drop")]


@ragged_lower.register(AdvancedIncSubtensor)
def _update_where(
    op: AdvancedIncSubtensor, node: Apply, values: list[Any], frame: Frame
) -> list[Any]:
    if len(values) != 3 or values[2] is None or isinstance(values[2], slice):
        raise NotImplementedError("Several indices, of which one has no fixed length")
    x, y, mask = (_as_ragged(value, _reason(values)) for value in values)
    if mask.data.dtype != bool or mask.data.ndim != 1 or y.data.ndim != x.data.ndim:
        raise NotImplementedError("An index that is no mask of rows")
    if any(length is not None for length in (*x.lengths[1:], *y.lengths[1:])):
        raise NotImplementedError("Values with lengths of their own")
    room = x.data.shape[0]
    _demand_mask(x, mask, frame)
    chosen = fitted(mask.filled(False), 0, room)
    demand(chosen.sum() == _length(y, 0), "a mask selects more or fewer rows", frame)
    if not y.data.shape[0]:
        return [values[0]]
    order = jnp.clip(jnp.cumsum(chosen) - 1, 0, y.data.shape[0] - 1)
    new = y.data.astype(x.data.dtype)[order]
    selected = chosen.reshape(-1, *(1,) * (x.data.ndim - 1))
    data = jnp.where(selected, new if op.set_instead_of_inc else x.data + new, x.data)
    return [x.with_data(data) if isinstance(values[0], Ragged) else data]


def _demand_mask(x: Ragged, mask: Ragged, frame: Frame) -> None:
    """See that a mask is as long as the array that it is for."""
    sizes = x.data.shape[0], mask.data.shape[0]
    if x.lengths[0] is not None or mask.lengths[0] is not None:
        pairs = zip((x.lengths[0], mask.lengths[0]), sizes)
        same_length([size if n is None else n for n, size in pairs], frame)
    elif sizes[0] != sizes[1]:
        raise NotImplementedError("A mask of another length")


@ragged_lower.register(AdvancedSubtensor)
def _mask(op: AdvancedSubtensor, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    x, *index = values
    reason = _reason(values)
    if len(index) != 1 or not all(v.type.ndim for v in node.inputs):
        raise NotImplementedError("Several indices, of which one has no fixed length")
    (entry,) = index
    if entry is None or isinstance(entry, slice):
        raise NotImplementedError("A new axis")
    mask = _as_ragged(entry, reason)
    if mask.data.dtype != bool or mask.data.ndim != 1:
        raise NotImplementedError("An index that is no mask of rows")
    return [select_where(_as_ragged(x, reason), mask, frame)]


@ragged_lower.register(Nonzero)
def _nonzero(op: Nonzero, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    (x,) = values
    if x.data.ndim != 1:
        raise NotImplementedError("The places of what is not zero in a matrix")
    mask = x.with_data(x.data != 0)
    rows = jnp.arange(x.data.shape[0], dtype="int64")
    return [select_where(Ragged(rows, x.lengths, x.reason), mask, frame)]


def select_where(x: Ragged, mask: Ragged, frame: Frame) -> Ragged:
    """Give the rows for which a mask is true."""
    x, mask = x.packed(), mask.packed()
    _demand_mask(x, mask, frame)
    room = min(x.data.shape[0], mask.data.shape[0])
    # The same array for each use of a mask, so that it is known to be one.
    chosen = fitted(mask.filled(False), 0, room)
    count = chosen.sum(dtype="int64")
    return Ragged(fitted(x.data, 0, room), (count, *x.lengths[1:]), x.reason, chosen)


def _as_ragged(value: Any, reason: str) -> Ragged:
    if isinstance(value, Ragged):
        return value
    array = jnp.asarray(value)
    return Ragged(array, (None,) * array.ndim, reason)


def _reason(values: Sequence[Any]) -> str:
    return next(value.reason for value in values if isinstance(value, Ragged))
