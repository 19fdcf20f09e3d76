"""Indices of arrays of which the lengths change, and indices that are such arrays."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from aesara.graph.basic import Apply
from aesara.tensor.basic import Nonzero
from aesara.tensor.subtensor import (
    AdvancedIncSubtensor,
    AdvancedIncSubtensor1,
    AdvancedSubtensor,
    AdvancedSubtensor1,
    IncSubtensor,
    Subtensor,
)

from fixed_modes.jax.demands import demand, same_length
from fixed_modes.jax.frame import Frame
from fixed_modes.jax.ragged import Ragged, fitted, positions
from fixed_modes.jax.ragged_dispatch import (
    as_ragged,
    length_of,
    plain_or_ragged,
    ragged_lower,
    reason_of,
)
from fixed_modes.jax.ragged_subtensor import ragged_selections_of, select_ragged, update

_OUTSIDE = "an index is out of bounds"


@ragged_lower.register(Subtensor)
def _subtensor(op: Subtensor, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    x = values[0]
    if not isinstance(x, Ragged):
        raise NotImplementedError("An index of which the length changes")
    selections = ragged_selections_of(op.idx_list, node.inputs[1:], x, frame)
    result = select_ragged(x, selections)
    return [plain_or_ragged(result.data, result.lengths, result.reason)]


@ragged_lower.register(IncSubtensor)
def _inc_subtensor(op: IncSubtensor, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    reason = reason_of(values[:2])
    x, y = (as_ragged(value, reason) for value in values[:2])
    selections = ragged_selections_of(op.idx_list, node.inputs[2:], x, frame)
    y = y.with_data(y.data.astype(x.data.dtype))
    data = update(x.data, y, selections, op.set_instead_of_inc, frame)
    return [plain_or_ragged(data, x.lengths, reason)]


@ragged_lower.register(AdvancedSubtensor1)
def _subtensor1(op: AdvancedSubtensor1, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    reason = reason_of(values)
    x, rows = (as_ragged(value, reason) for value in values)
    size = length_of(x, 0)
    wanted = rows.filled(0).astype("int64")
    if not x.data.shape[0]:
        raise NotImplementedError("Rows of nothing")
    is_inside = (wanted >= -size) & (wanted < size)
    if rows.lengths[0] is not None:
        is_inside |= positions(wanted.shape, 0) >= rows.lengths[0]
    demand(is_inside.all(), _OUTSIDE, frame)
    places = jnp.clip(jnp.where(wanted < 0, wanted + size, wanted), 0, x.data.shape[0] - 1)
    return [plain_or_ragged(x.data[places], (rows.lengths[0], *x.lengths[1:]), reason)]


@ragged_lower.register(AdvancedIncSubtensor1)
def _inc_subtensor1(
    op: AdvancedIncSubtensor1, node: Apply, values: list[Any], frame: Frame
) -> list[Any]:
    x, y, rows = (as_ragged(value, reason_of(values)) for value in values)
    if op.set_instead_of_inc or any(n is not None for n in (*x.lengths, *y.lengths[1:])):
        raise NotImplementedError("An assignment to rows of which the number changes")
    has_rows = y.data.ndim == x.data.ndim
    if not has_rows and any(length is not None for length in y.lengths):
        raise NotImplementedError("An addition to columns of which the number changes")
    size = x.data.shape[0]
    wanted, count = rows.data.astype("int64"), length_of(rows, 0)
    data = y.data.astype(x.data.dtype)
    if has_rows and (y.data.shape[0] != 1 or y.lengths[0] is not None):
        demand(count == length_of(y, 0), "there are more or fewer rows than values", frame)
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
    x, y, mask = (as_ragged(value, reason_of(values)) for value in values)
    if mask.data.dtype != bool or mask.data.ndim != 1 or y.data.ndim != x.data.ndim:
        raise NotImplementedError("An index that is no mask of rows")
    if any(length is not None for length in (*x.lengths[1:], *y.lengths[1:])):
        raise NotImplementedError("Values with lengths of their own")
    room = x.data.shape[0]
    _demand_mask(x, mask, frame)
    chosen = fitted(mask.filled(False), 0, room)
    demand(chosen.sum() == length_of(y, 0), "a mask selects more or fewer rows", frame)
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
    reason = reason_of(values)
    if len(index) != 1 or not all(v.type.ndim for v in node.inputs):
        raise NotImplementedError("Several indices, of which one has no fixed length")
    (entry,) = index
    if entry is None or isinstance(entry, slice):
        raise NotImplementedError("A new axis")
    mask = as_ragged(entry, reason)
    if mask.data.dtype != bool or mask.data.ndim != 1:
        raise NotImplementedError("An index that is no mask of rows")
    return [select_where(as_ragged(x, reason), mask, frame)]


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
