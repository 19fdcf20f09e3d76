"""Slices with bounds that change while a loop runs, as indices of arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
from aesara.graph.basic import Variable
from aesara.tensor.subtensor import indices_from_subtensor

from fixed_modes.jax import slices
from fixed_modes.jax.demands import demand, same_length
from fixed_modes.jax.frame import Frame, is_concrete
from fixed_modes.jax.ragged import Ragged, fitted
from fixed_modes.jax.selections import (
    AnySelection,
    Selection,
    Span,
    select,
    selections_of,
    size_of,
    value_of,
)
from fixed_modes.jax.slices import MovingSlice, moving_slice


def select_ragged(x: Ragged, selections: Sequence[AnySelection]) -> Ragged:
    """Take what is selected; lengths that change along axes that are not stay."""
    data, lengths = x.data, list(x.lengths)
    plain: list[Selection] = []
    for axis, selection in enumerate(selections):
        if isinstance(selection, MovingSlice):
            data = slices.select(data, axis, selection)
            lengths[axis] = selection.count
            plain.append(Span(0, data.shape[axis]))
        else:
            plain.append(selection)
    squeezed = [isinstance(s, Span) and s.squeezed for s in plain]
    kept = tuple(length for length, is_gone in zip(lengths, squeezed) if not is_gone)
    return Ragged(select(data, plain), kept, x.reason)


def update(
    x: Any, y: Ragged, selections: Sequence[AnySelection], replace: bool, frame: Frame
) -> Any:
    """Set, or add to, what is selected of an array by slices with bounds that change.

    Parameters
    ----------
    x
        The array.
    y
        What is assigned or added; it broadcasts with what is selected.
    selections
        One for each axis.
    replace
        Whether it is assigned.
    frame
        Gets checks that lengths fit.
    """
    kept = [axis for axis, s in enumerate(selections) if not (isinstance(s, Span) and s.squeezed)]
    if y.data.ndim > len(kept):
        raise NotImplementedError("More axes than are selected")
    # With an axis of one entry for each that it lacks, or that is indexed by a number.
    places = kept[len(kept) - y.data.ndim :]
    sizes, lengths = [1] * len(selections), [None] * len(selections)
    for axis, size, length in zip(places, y.data.shape, y.lengths):
        sizes[axis], lengths[axis] = size, length
    y = Ragged(y.data.reshape(sizes), tuple(lengths), y.reason)
    selected: Any = True
    for axis, selection in enumerate(selections):
        size = x.shape[axis]
        moving = _as_moving(selection, size)
        if moving is not None:
            selected = selected & slices.is_selected(x.shape, axis, moving)
            data = slices.spread(y, axis, moving, size, frame)
        elif y.lengths[axis] is not None:
            same_length([size, y.lengths[axis]], frame)
            data = fitted(y.data, axis, size)
        elif y.data.shape[axis] in (1, size):
            data = y.data
        else:
            raise NotImplementedError("An assignment that doesn't fit")
        y = Ragged(data, _without(y.lengths, axis), y.reason)
    return jnp.where(selected, y.data if replace else x + y.data, x)


def _without(lengths: Sequence[Any], axis: int) -> tuple[Any, ...]:
    return tuple(None if a == axis else length for a, length in enumerate(lengths))


def _as_moving(selection: AnySelection, size: int) -> MovingSlice | None:
    """Give a selection with a known length in the form of the others; None for a whole axis."""
    if isinstance(selection, MovingSlice):
        return selection
    if isinstance(selection, Span):
        if selection.is_static and selection.start == 0 and selection.size == size:
            return None
        return MovingSlice(selection.start, 1, selection.size, selection.size)
    start, _, step = selection.indices(size)
    count = size_of(selection, size)
    return MovingSlice(start, step, count, count)


def ragged_selections_of(
    idx_list: Any, index_inputs: list[Variable], x: Ragged, frame: Frame
) -> list[AnySelection]:
    """Work out what each axis of an array with lengths that change is indexed by."""
    entries = indices_from_subtensor(index_inputs, idx_list)
    found: list[AnySelection] = []
    for axis, (room, length) in enumerate(zip(x.data.shape, x.lengths)):
        entry = entries[axis] if axis < len(entries) else slice(None)
        if length is None:
            rest = selections_of([entry], [], (room,), frame) if axis < len(entries) else []
            found += rest or [Span(0, room)]
        elif isinstance(entry, slice):
            found.append(_part_of_room(entry, length, room, frame))
        else:
            index = jnp.asarray(value_of(entry, frame)).astype("int64")
            index = jnp.where(index < 0, index + length, index)
            demand((index >= 0) & (index < length), "an index is out of bounds", frame)
            found.append(Span(jnp.clip(index, 0, max(room - 1, 0)), 1, squeezed=True))
    return found


def _part_of_room(entry: slice, length: Any, room: int, frame: Frame) -> AnySelection:
    bounds = (value_of(bound, frame) for bound in (entry.start, entry.stop, entry.step))
    start, stop, step = (int(v) if v is not None and is_concrete(v) else v for v in bounds)
    if not (step is None or isinstance(step, int)) or step == 0:
        raise NotImplementedError("A step that is not known")
    if start is None and stop is None and step in (None, 1):
        return MovingSlice(0, 1, length, room)
    return moving_slice(start, stop, 1 if step is None else step, length, room)
