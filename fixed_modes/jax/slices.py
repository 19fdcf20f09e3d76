"""Slices with bounds that change while a loop runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
from jax import lax

from fixed_modes.jax.demands import same_length
from fixed_modes.jax.frame import Frame
from fixed_modes.jax.ragged import Ragged, picked, positions


@dataclass(frozen=True, eq=False)
class MovingSlice:
    """A slice as NumPy understands it, of an axis of some length.

    Attributes
    ----------
    start
        The position of the first entry, from -1 to the length of the axis.
    step
        From one entry to the next; not zero.
    count
        How many entries there are.
    room
        No fewer than `count`.
    """

    start: Any
    step: int
    count: Any
    room: int


def moving_slice(start: Any, stop: Any, step: int, length: Any, room: int) -> MovingSlice:
    """Work out which entries a slice selects.

    Parameters
    ----------
    start, stop
        Integers, traced or not, or None.
    step
        Not zero.
    length
        That of the axis, traced or not.
    room
        No less than that.
    """
    if step > 0:
        first = 0 if start is None else _within(start, length, 0, length)
        end = length if stop is None else _within(stop, length, 0, length)
        count = (end - first + (step - 1)) // step
    else:
        first = length - 1 if start is None else _within(start, length, -1, length - 1)
        end = -1 if stop is None else _within(stop, length, -1, length - 1)
        count = (first - end + (-step - 1)) // -step
    most = -(-room // abs(step))
    known = stop if step > 0 and isinstance(stop, int) and stop >= 0 else room
    return MovingSlice(first, step, jnp.maximum(count, 0), min(most, -(-known // abs(step))))


def _within(bound: Any, length: Any, low: int, high: Any) -> Any:
    if isinstance(bound, int) and isinstance(length, int):
        assert isinstance(high, int)
        return min(max(bound + length if bound < 0 else bound, low), high)
    bound = jnp.asarray(bound).astype("int64")
    return jnp.clip(jnp.where(bound < 0, bound + length, bound), low, high)


def select(data: Any, axis: int, chosen: MovingSlice) -> Any:
    """Give the entries of a slice, in an array with the room for them."""
    return picked(data, axis, chosen.start, chosen.step, chosen.room)


def is_selected(shape: tuple[int, ...], axis: int, chosen: MovingSlice) -> Any:
    """Say which positions along an axis a slice selects."""
    number = _number(shape, axis, chosen)
    inside = (number >= 0) & (number < chosen.count)
    if abs(chosen.step) == 1:
        return inside
    return inside & (number * chosen.step == positions(shape, axis) - chosen.start)


def _number(shape: tuple[int, ...], axis: int, chosen: MovingSlice) -> Any:
    """Say which entry of the slice, rounded down, each position along an axis is."""
    return (positions(shape, axis) - chosen.start) // chosen.step


def spread(values: Any, axis: int, chosen: MovingSlice, length: int, frame: Frame) -> Any:
    """Put the entries for a slice where they belong along the whole axis.

    Parameters
    ----------
    values
        A `Ragged`, or an array, of as many entries along `axis`, or of one.
    axis
        The axis.
    chosen
        The slice.
    length
        Of the axis, or the room in it.
    frame
        Gets a check that there are as many entries as the slice selects.
    """
    data, count = values, None
    if isinstance(values, Ragged):
        data, count = values.data, values.lengths[axis]
    if count is None:
        if data.shape[axis] == 1:
            return data
        count = data.shape[axis]
    same_length([chosen.count, count], frame)
    if not data.shape[axis]:
        # No slice has an entry then.
        return lax.broadcast_in_dim(
            jnp.zeros((), data.dtype), [1 if a == axis else n for a, n in enumerate(data.shape)], ()
        )
    if chosen.step == 1:
        return picked(data, axis, -chosen.start, 1, length)
    if chosen.step == -1:
        return picked(data, axis, chosen.start, -1, length)
    places = _number((length,), 0, chosen)
    return jnp.take(data, jnp.clip(places, 0, data.shape[axis] - 1), axis)
