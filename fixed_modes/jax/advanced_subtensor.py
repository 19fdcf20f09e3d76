"""Indexing with arrays (``aesara.tensor.subtensor``, the advanced ops)."""

from __future__ import annotations

from functools import partial
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
from fixed_modes.jax.frame import Frame, NeedsConcrete, NeedsEager, is_concrete


@jax_lower.register(MakeSlice)
def _make_slice(op: MakeSlice, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    traced = [v for v, value in zip(node.inputs, values) if not is_concrete(value)]
    raise NeedsConcrete(traced, "the bounds of a slice")


@jax_lower.register(AdvancedSubtensor1)
def _subtensor1(op: AdvancedSubtensor1, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    x, rows = values
    rows = check_bounds(rows, 0, np.shape(x)[0], frame, node.inputs[1])
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
    rows = check_bounds(rows, 0, x.shape[0], frame, node.inputs[2])
    place = x.at[rows]
    y = jnp.asarray(y).astype(x.dtype)
    return [place.set(y) if op.set_instead_of_inc else place.add(y)]


@jax_lower.register(AdvancedIncSubtensor)
def _inc_subtensor(
    op: AdvancedIncSubtensor, node: Apply, values: list[Any], frame: Frame
) -> list[Any]:
    x, y = jnp.asarray(values[0]), values[1]
    y = jnp.asarray(y).astype(x.dtype)
    mask = frame.value(node.inputs[2])
    is_mask = getattr(node.inputs[2].type, "dtype", "") == "bool" and np.ndim(mask) > 0
    if is_mask and len(node.inputs) == 3 and not is_concrete(mask):
        return [_update_where(mask, x, y, op.set_instead_of_inc, frame)]
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
            _check_mask(np.shape(value), shape, axis)
            if not is_concrete(value):
                raise NeedsEager("how many entries a mask selects is known only at run time")
            mask = np.asarray(value)
            index.extend(np.nonzero(mask))
            axis += mask.ndim
            continue
        index.append(check_bounds(value, axis, shape[axis], frame))
        axis += 1
    _check_shapes(index)
    return tuple(index)


def _check_shapes(index: list[Any]) -> None:
    shapes = [np.shape(part) for part in index if part is not None and not isinstance(part, slice)]
    try:
        np.broadcast_shapes(*shapes)
    except ValueError:
        text = " ".join(map(str, shapes))
        raise IndexError(
            f"shape mismatch: indexing arrays could not be broadcast together with shapes {text}"
        ) from None


def _check_mask(mask: tuple[int, ...], shape: tuple[int, ...], axis: int) -> None:
    if mask != shape[axis : axis + len(mask)]:
        raise IndexError(
            f"boolean index of shape {mask} did not match the indexed "
            f"array of shape {shape} along dimension {axis}"
        )


def _update_where(mask: Any, x: Any, y: Any, replace: bool, frame: Frame) -> Any:
    """Set, or add to, the entries of `x` that a traced mask selects.

    Entry by entry: the n-th selected one gets the n-th row of `y`.
    """
    _check_mask(mask.shape, x.shape, 0)
    rest = x.shape[mask.ndim :]
    if y.ndim > len(rest) and y.shape[0] != 1:
        count = mask.sum()
        wrong = partial(ValueError, f"shape mismatch: values of shape {y.shape} don't fit the mask")
        frame.checks.add(count != y.shape[0], wrong)
        order = (jnp.cumsum(mask.ravel()) - 1).reshape(mask.shape)
        y = jnp.broadcast_to(y, (y.shape[0], *rest))
        if not y.shape[0]:
            return x
        y = y[jnp.clip(order, 0, y.shape[0] - 1)]
    elif y.ndim > len(rest):
        y = y[0]
    y = jnp.broadcast_to(y, x.shape)
    selected = mask.reshape(*mask.shape, *(1,) * len(rest))
    return jnp.where(selected, y if replace else x + y, x)


def _plain_slice(value: slice) -> slice:
    parts = (value.start, value.stop, value.step)
    return slice(*(None if part is None else int(part) for part in parts))
