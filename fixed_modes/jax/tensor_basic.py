"""Making, joining and reshaping arrays (``aesara.tensor.basic`` and ``.shape``)."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from aesara.compile.ops import DeepCopyOp, ViewOp
from aesara.graph.basic import Apply
from aesara.raise_op import CheckAndRaise
from aesara.tensor.basic import (
    Alloc,
    AllocEmpty,
    ARange,
    Eye,
    Join,
    MakeVector,
    Nonzero,
    ScalarFromTensor,
    Split,
    TensorFromScalar,
)
from aesara.tensor.extra_ops import BroadcastTo
from aesara.tensor.shape import Reshape, Shape, Shape_i, SpecifyShape, Unbroadcast

from fixed_modes.jax.capped import capped_length
from fixed_modes.jax.concrete import LARGEST_LITERAL
from fixed_modes.jax.demands import demand
from fixed_modes.jax.dispatch import jax_lower
from fixed_modes.jax.frame import Frame, NeedsConcrete, NeedsEager, is_concrete
from fixed_modes.jax.lazy_rows import LazyRows, progression
from fixed_modes.jax.padded import PaddedTrace
from fixed_modes.jax.ragged import MOST_ENTRIES, MOST_ROWS, Ragged
from fixed_modes.jax.ragged_dispatch import plain_or_ragged
from fixed_modes.jax.ragged_indexing import select_where
from fixed_modes.jax.ragged_ops import split
from fixed_modes.jax.ranges import value_range

_COUNT = "the number of entries that are not zero is known only when the function runs"


def _sizes(node: Apply, first: int, frame: Frame, what: str) -> list[int]:
    """Give the known lengths that the inputs from `first` on stand for."""
    variables = node.inputs[first:]
    traced = [v for v in variables if not is_concrete(frame.value(v))]
    if traced:
        raise NeedsConcrete(traced, what)
    return [int(frame.value(variable)) for variable in variables]


def _broadcast(node: Apply, value: Any, frame: Frame, what: str) -> Any:
    """Broadcast a value to a shape, of which lengths may change while a loop runs."""
    sizes: list[int] = []
    lengths: list[Any] = []
    own = (*[1] * (len(node.inputs) - 1 - np.ndim(value)), *np.shape(value))
    for variable, size in zip(node.inputs[1:], own):
        length = frame.value(variable)
        if is_concrete(length):
            sizes.append(int(length))
            lengths.append(None)
            continue
        found = None if frame.is_fixed(variable) else value_range(variable, frame)
        if found is None or found.high > MOST_ROWS or size != 1:
            raise NeedsConcrete([variable], what)
        demand(length >= 0, "a length is negative", frame)
        sizes.append(max(0, found.high))
        lengths.append(length.astype("int64"))
    varying = [v for v, length in zip(node.inputs[1:], lengths) if length is not None]
    if varying and math.prod(sizes) > MOST_ENTRIES:
        raise NeedsConcrete(varying, what)
    return plain_or_ragged(jnp.broadcast_to(value, sizes), lengths, what)


@jax_lower.register(Shape)
def _shape(op: Shape, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    (x,) = values
    if isinstance(x, PaddedTrace):
        return [jnp.stack([x.length, *(np.int64(size) for size in x.buffer.shape[1:])])]
    return [np.array(np.shape(x), dtype="int64")]


@jax_lower.register(Shape_i)
def _shape_i(op: Shape_i, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    (x,) = values
    if isinstance(x, LazyRows):
        return [x.length]
    if isinstance(x, PaddedTrace):
        return [x.length if op.i == 0 else np.array(x.buffer.shape[op.i], dtype="int64")]
    return [np.array(np.shape(x)[op.i], dtype="int64")]


@jax_lower.register(SpecifyShape)
def _specify_shape(op: SpecifyShape, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    x, *expected = values
    for axis, size in enumerate(expected):
        if size is None:
            continue
        size = frame.concrete(node.inputs[1 + axis], "a shape that is asserted")
        if int(size) != np.shape(x)[axis]:
            shown = tuple(None if s is None or not is_concrete(s) else int(s) for s in expected)
            raise AssertionError(f"SpecifyShape: Got shape {np.shape(x)}, expected {shown}.")
    return [x]


@jax_lower.register(Unbroadcast)
def _unbroadcast(op: Unbroadcast, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    return [values[0]]


@jax_lower.register(Reshape)
def _reshape(op: Reshape, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    shape = [int(s) for s in frame.concrete(node.inputs[1], "the shape of a reshape")]
    return [jnp.reshape(values[0], shape)]


@jax_lower.register(Alloc)
def _alloc(op: Alloc, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    return [_broadcast(node, values[0], frame, "the shape of an alloc")]


@jax_lower.register(BroadcastTo)
def _broadcast_to(op: BroadcastTo, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    return [_broadcast(node, values[0], frame, "the shape of a broadcast")]


@jax_lower.register(AllocEmpty)
def _alloc_empty(op: AllocEmpty, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    # Zeros, so that no result depends on what the memory held.
    sizes = [capped_length(size, frame, "the shape of an alloc") for size in node.inputs]
    zeros = np.zeros if np.prod(sizes) <= LARGEST_LITERAL else jnp.zeros
    return [zeros(sizes, dtype=op.dtype)]


@jax_lower.register(ARange)
def _arange(op: ARange, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    traced = [v for v in node.inputs if not is_concrete(frame.value(v))]
    start, stop, step = values
    is_steady = is_concrete(step) and int(step) != 0 and np.dtype(op.dtype).kind in "iu"
    if is_steady and not all(frame.is_fixed(variable) for variable in traced):
        most = _most_entries(node, int(step), frame)
        return [progression(start, stop, int(step), op.dtype, most)]
    raise NeedsConcrete(traced, "the bounds of an arange")


def _most_entries(node: Apply, step: int, frame: Frame) -> int | None:
    """Say how many entries an arange can have, if the bounds of its bounds are known."""
    start, stop = (value_range(variable, frame) for variable in node.inputs[:2])
    if start is None or stop is None:
        return None
    longest = stop.high - start.low if step > 0 else start.high - stop.low
    return max(0, -(-longest // abs(step)))


@jax_lower.register(Eye)
def _eye(op: Eye, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    rows, columns, diagonal = _sizes(node, 0, frame, "the shape of an eye")
    return [jnp.eye(rows, columns, diagonal, dtype=op.dtype)]


@jax_lower.register(Nonzero)
def _nonzero(op: Nonzero, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    x = jnp.asarray(values[0])
    if x.ndim == 1 and not frame.is_fixed(node.inputs[0]):
        rows = Ragged(jnp.arange(x.shape[0], dtype="int64"), (None,), _COUNT)
        return [select_where(rows, Ragged(x != 0, (None,), _COUNT), frame)]
    raise NeedsEager(_COUNT)


@jax_lower.register(MakeVector)
def _make_vector(op: MakeVector, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    return [jnp.stack([jnp.asarray(value).astype(op.dtype) for value in values])]


@jax_lower.register(Join)
def _join(op: Join, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    axis = int(frame.concrete(node.inputs[0], "the axis of a join"))
    ndim = node.outputs[0].type.ndim
    if not -ndim <= axis < ndim:
        raise IndexError(f"Join axis {axis} out of bounds [0, {ndim})")
    dtype = node.outputs[0].type.dtype
    return [jnp.concatenate([jnp.asarray(v).astype(dtype) for v in values[1:]], axis=axis)]


@jax_lower.register(Split)
def _split(op: Split, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    x = jnp.asarray(values[0])
    axis = int(frame.concrete(node.inputs[1], "the axis of a split"))
    if not -x.ndim <= axis < x.ndim:
        raise IndexError(f"Split axis {axis} out of bounds for {x.ndim} axes")
    axis %= x.ndim
    if not is_concrete(values[2]) and not frame.is_fixed(node.inputs[2]):
        whole = Ragged(x, (None,) * x.ndim, "the lengths of a split")
        return split(whole, axis, values[2], op.len_splits, frame)
    lengths = [int(s) for s in frame.concrete(node.inputs[2], "the lengths of a split")]
    if len(lengths) != op.len_splits:
        raise ValueError(f"A split into {op.len_splits} parts got {len(lengths)} lengths")
    if any(length < 0 for length in lengths):
        raise ValueError("Split sizes cannot be negative")
    if sum(lengths) != x.shape[axis]:
        raise ValueError(f"Split sizes sum to {sum(lengths)}; expected {x.shape[axis]}")
    ends = np.cumsum([0, *lengths])
    return [
        jax.lax.slice_in_dim(x, int(start), int(end), axis=axis)
        for start, end in zip(ends[:-1], ends[1:])
    ]


@jax_lower.register(TensorFromScalar)
@jax_lower.register(ScalarFromTensor)
@jax_lower.register(ViewOp)
@jax_lower.register(DeepCopyOp)
def _same_value(op: Any, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    # JAX's values don't change, so a copy is the value.
    return [values[0]]


@jax_lower.register(CheckAndRaise)
def _check_and_raise(op: CheckAndRaise, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    value, *conditions = values
    traced = []
    for condition in conditions:
        if not is_concrete(condition):
            traced.append(condition)
        elif not np.all(condition):
            raise op.exc_type(op.msg)
    if traced:
        failed = ~jnp.stack([jnp.asarray(c) != 0 for c in traced]).all()
        frame.checks.add(failed, lambda: op.exc_type(op.msg))
    return [value]
