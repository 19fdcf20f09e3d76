"""Arrays of which the lengths change while a loop runs, such as ``x[:t]`` in step `t`.

Compiled code has arrays of fixed shapes only.  Such an array stands in one that has
room for the most there can be, and what is beyond its length never counts: sums and
products leave it out, and results go on having a length.  Where that can't be done the
loop runs in Python, step by step.  It does so, too, if lengths turn out not to fit while
it runs, so that errors are those of the step that makes them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from fixed_modes.jax.lazy_rows import LazyRows

#: No axis gets more room: every step goes through all of it, which for more takes longer
#: than a step in Python (about 50 us).
MOST_ROWS = 1 << 17
#: Neither does an array with several axes, unless it is there already.
MOST_ENTRIES = 1 << 20


@dataclass(frozen=True, eq=False)
class Ragged:
    """An array with room.

    Attributes
    ----------
    data
        Shape (room, ...).  Beyond the lengths it may hold anything.
    lengths
        For each axis: how much of it belongs to the value, an int64 scalar that is
        traced and not negative; None for all of it.
    reason
        What would have to be known for an array of a fixed shape.
    mask
        If there is one, the rows that count are those for which it is true, and not the
        first ones; their number is the length.
    """

    data: Any
    lengths: tuple[Any, ...]
    reason: str
    mask: Any = None

    def with_data(self, data: Any) -> Ragged:
        """Give another array of the same lengths."""
        return replace(self, data=data)

    def packed(self) -> Ragged:
        """Give it with the rows that count side by side."""
        if self.mask is None:
            return self
        # The n-th row comes from where n rows have been chosen before.
        places = jnp.nonzero(self.mask, size=self.data.shape[0], fill_value=0)[0]
        return Ragged(self.data[places], self.lengths, self.reason)

    def filled(self, number: Any, axes: Any = None) -> Any:
        """Give the array with a number in the place of what doesn't count along `axes`."""
        data = self.data
        for axis, length in enumerate(self.lengths):
            if length is not None and (axes is None or axis in axes):
                inside = self._counts(axis)
                data = jnp.where(inside, data, jnp.asarray(number, data.dtype))
        return data

    def counts(self) -> Any:
        """Say which entries count, in a shape that broadcasts with that of the array."""
        found: Any = True
        for axis, length in enumerate(self.lengths):
            if length is not None:
                found = found & self._counts(axis)
        return found

    def _counts(self, axis: int) -> Any:
        if axis == 0 and self.mask is not None:
            return self.mask.reshape(-1, *(1,) * (self.data.ndim - 1))
        return positions(self.data.shape, axis) < self.lengths[axis]


def positions(shape: tuple[int, ...], axis: int) -> Any:
    """Give the positions along an axis, in a shape that broadcasts with `shape`."""
    return lax.broadcasted_iota("int64", [n if a == axis else 1 for a, n in enumerate(shape)], axis)


def moved(data: Any, axis: int, start: Any, room: int) -> Any:
    """Give `room` entries from a position on; zeros where there are none.

    Parameters
    ----------
    data
        The array.
    axis
        The axis.
    start
        The position, traced: from ``-room`` to the length of the axis.
    room
        How many.
    """
    pads = [(room if a == axis else 0, room if a == axis else 0, 0) for a in range(data.ndim)]
    longer = lax.pad(data, jnp.zeros((), data.dtype), pads)
    return lax.dynamic_slice_in_dim(longer, start + room, room, axis)


def picked(data: Any, axis: int, start: Any, step: int, room: int) -> Any:
    """Give `room` entries, a step apart, from a position on; anything where there are none."""
    length = data.shape[axis]
    if isinstance(start, int) and start == 0 and step == 1 and room <= length:
        return lax.slice_in_dim(data, 0, room, axis=axis)
    if step == 1:
        return moved(data, axis, start, room)
    if step == -1:
        return moved(lax.rev(data, (axis,)), axis, length - 1 - start, room)
    places = jnp.clip(start + step * jnp.arange(room), 0, length - 1)
    return jnp.take(data, places, axis)


def fitted(data: Any, axis: int, room: int) -> Any:
    """Give an array with another room along an axis."""
    size = data.shape[axis]
    if size == room:
        return data
    if size > room:
        return lax.slice_in_dim(data, 0, room, axis=axis)
    pads = [(0, room - size if a == axis else 0, 0) for a in range(data.ndim)]
    return lax.pad(data, jnp.zeros((), data.dtype), pads)


def rows_of(x: Ragged) -> LazyRows:
    """Give an array as the sequence of a loop."""
    data = x.data if x.data.shape[0] else jnp.zeros((1, *x.data.shape[1:]), x.data.dtype)
    return LazyRows(
        x.lengths[0],
        lambda index: lax.dynamic_index_in_dim(data, index, 0, keepdims=False),
        x.data.shape[0],
    )


def array_of(rows: LazyRows) -> Ragged | None:
    """Give the sequence of a loop as an array; None where there may be too many rows."""
    if rows.most is None or rows.most > MOST_ROWS:
        return None
    data = jax.vmap(rows.row)(jnp.arange(rows.most))
    return Ragged(data, (rows.length, *(None,) * (data.ndim - 1)), "the bounds of an arange")
