"""Indexing with arrays (``aesara.tensor.subtensor``, the advanced ops)."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from aesara.graph.basic import Apply, Variable
from aesara.tensor.subtensor import (
    AdvancedIncSubtensor,
    AdvancedIncSubtensor1,
    AdvancedSubtensor,
    AdvancedSubtensor1,
)
from aesara.tensor.type_other import MakeSlice

from fixed_modes.jax.bounds import check_bounds
from fixed_modes.jax.dispatch import jax_lower
from fixed_modes.jax.frame import Frame, NeedsConcrete, is_concrete


@jax_lower.register(MakeSlice)
def _make_slice(op: MakeSlice, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    traced = [v for v, value in zip(node.inputs, values) if not is_concrete(value)]
    raise NeedsConcrete(traced, "the bounds of a slice")


@jax_lower.register(AdvancedSubtensor1)
def _subtensor1(op: AdvancedSubtensor1, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    x, rows = values
    check_bounds(rows, 0, np.shape(x)[0], frame, node.inputs[1])
    return [jnp.asarray(x)[rows]]


@jax_lower.register(AdvancedSubtensor)
def _subtensor(op: AdvancedSubtensor, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    x = jnp.asarray(values[0])
    return [x[_index(node.inputs[1:], x.shape, frame)]]


@jax_lower.register(AdvancedIncSubtensor1)
def _inc_subtensor1(
    op: AdvancedIncSubtensor1, node: Apply, values: list[Any], frame: Frame
) -> list[Any]:
    x, y, rows = values
    x = jnp.asarray(x)
    check_bounds(rows, 0, x.shape[0], frame, node.inputs[2])
    place = x.at[rows]
    y = jnp.asarray(y).astype(x.dtype)
    return [place.set(y) if op.set_instead_of_inc else place.add(y)]


@jax_lower.register(AdvancedIncSubtensor)
def _inc_subtensor(
    op: AdvancedIncSubtensor, node: Apply, values: list[Any], frame: Frame
) -> list[Any]:
    x, y = jnp.asarray(values[0]), values[1]
    y = jnp.asarray(y).astype(x.dtype)
    index = _index(node.inputs[2:], x.shape, frame)
    if op.ignore_duplicates and not op.set_instead_of_inc:
        return [x.at[index].set(x[index] + y)]
    place = x.at[index]
    return [place.set(y) if op.set_instead_of_inc else place.add(y)]


def _index(entries: list[Variable], shape: tuple[int, ...], frame: Frame) -> tuple[Any, ...]:
    """Make the index tuple; masks become the positions of their true entries."""
    index: list[Any] = []
    axis = 0
    for variable in entries:
        value = frame.value(variable)
        if value is None:
            index.append(None)
            continue
        if isinstance(value, slice):
            index.append(_plain_slice(value))
            axis += 1
            continue
        if np.ndim(value) > 0 and value.dtype.kind == "b":
            mask = np.asarray(frame.concrete(variable, "the positions that a mask selects"))
            if mask.shape != shape[axis : axis + mask.ndim]:
                raise IndexError(
                    f"boolean index of shape {mask.shape} did not match the indexed "
                    f"array of shape {shape} along dimension {axis}"
                )
            index.extend(np.nonzero(mask))
            axis += mask.ndim
            continue
        check_bounds(value, axis, shape[axis], frame)
        index.append(value)
        axis += 1
    return tuple(index)


def _plain_slice(value: slice) -> slice:
    parts = (value.start, value.stop, value.step)
    return slice(*(None if part is None else int(part) for part in parts))
