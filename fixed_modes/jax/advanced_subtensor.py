"""Indexing with arrays (``aesara.tensor.subtensor``, the advanced ops)."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
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
from fixed_modes.jax.ragged import Ragged
from fixed_modes.jax.ragged_indexing import select_where

_COUNT = "how many entries a mask selects is known only at run time"


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
    if len(values) == 2 and _is_changing_mask(node.inputs[1], frame):
        mask = jnp.asarray(values[1])
        _check_mask(mask.shape, x.shape, 0)
        everything = (None,) * x.ndim
        return [select_where(Ragged(x, everything, _COUNT), Ragged(mask, (None,), _COUNT), frame)]
    return [x[_index(node.inputs[1:], x.shape, frame)]]


def _is_changing_mask(variable: Variable, frame: Frame) -> bool:
    """Say whether a variable is a mask of rows that changes while a loop runs."""
    is_mask = getattr(variable.type, "dtype", "") == "bool" and variable.type.ndim == 1
    return is_mask and not is_concrete(frame.value(variable)) and not frame.is_fixed(variable)


@jax_lower.register(AdvancedIncSubtensor1)
def _inc_subtensor1(
    op: AdvancedIncSubtensor1, node: Apply, values: list[Any], frame: Frame
) -> list[Any]:
    x, y, rows = values
    x = jnp.asarray(x)
    rows = check_bounds(rows, 0, x.shape[0], frame, node.inputs[2])
    y = jnp.asarray(y).astype(x.dtype)
    _check_values(x, (rows,), y)
    return [_assigned(x, (rows,), y) if op.set_instead_of_inc else x.at[rows].add(y)]


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
    _check_values(x, index, y)
    if op.ignore_duplicates and not op.set_instead_of_inc:
        return [_assigned(x, index, x[index] + y)]
    return [_assigned(x, index, y) if op.set_instead_of_inc else x.at[index].add(y)]


def _check_values(x: Any, index: tuple[Any, ...], y: Any) -> None:
    """Raise `ValueError` where values don't fit what is indexed; JAX doesn't if that is empty."""
    shape = jax.eval_shape(lambda x: x[index], x).shape
    # Rows that no step of a loop has made have no length that could fit.
    if 0 not in shape or not y.size:
        return
    try:
        fits = np.broadcast_shapes(y.shape, shape)[-len(shape) :] == shape
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(f"values of shape {y.shape} can't be put where the shape is {shape}")


def _assigned(x: Any, index: tuple[Any, ...], y: Any) -> Any:
    """Assign `y`; of several values for one place the last one counts, as in NumPy.

    XLA promises no order.  Its simplifier takes an assignment by an index that is 0
    everywhere for one of the whole array, if as many values as that has are assigned.
    """
    axes: dict[int, int] = {}
    for place, part in enumerate(index):
        if part is not None:
            axes[place] = len(axes)
    arrays = {n: axis for n, axis in axes.items() if not isinstance(index[n], slice)}
    if not arrays:
        return x.at[index].set(y)
    if all(is_concrete(index[n]) for n in arrays):
        index, y = _without_repetitions(x.shape, index, arrays, y)
        return x.at[index].set(y)
    shape = jax.eval_shape(lambda x: x[index], x).shape
    if shape != x.shape or not x.size:
        return x.at[index].set(y)
    # With a row to spare the two shapes differ.
    place, axis = next(iter(arrays.items()))
    longer = jnp.concatenate([x, jnp.take(x, jnp.array([0]), axis)], axis)
    parts = list(index)
    parts[place] = jnp.where(parts[place] < 0, parts[place] + x.shape[axis], parts[place])
    return jax.lax.slice_in_dim(longer.at[tuple(parts)].set(y), 0, x.shape[axis], axis=axis)


def _without_repetitions(
    shape: tuple[int, ...], index: tuple[Any, ...], arrays: dict[int, int], y: Any
) -> tuple[tuple[Any, ...], Any]:
    """Leave out of an assignment what is overwritten by it itself.

    Parameters
    ----------
    shape
        That of the array that is assigned to.
    index
        Its index.
    arrays
        For the position of each array in the index, the axis that it indexes.
    y
        The values.
    """
    positions = np.broadcast_arrays(*(np.asarray(index[n]) for n in arrays))
    rank = positions[0].ndim
    flat = [p.ravel() % shape[axis] for p, axis in zip(positions, arrays.values()) if p.size]
    if not flat:
        return index, y
    places = np.ravel_multi_index(flat, [shape[axis] for axis in arrays.values()])
    # The first one from behind.
    _, found = np.unique(places[::-1], return_index=True)
    if found.size == places.size:
        return index, y
    kept = np.sort(places.size - 1 - found)
    first, last = min(arrays), max(arrays)
    # Where the arrays don't stand side by side, their axes come first.
    front = first if last - first == len(arrays) - 1 else 0
    values = np.broadcast_to(np.int8(0), shape)[index].shape
    y = jnp.broadcast_to(y, values)
    y = y.reshape(*values[:front], -1, *values[front + rank :])
    parts = list(index)
    for n, places in zip(arrays, flat):
        parts[n] = places[kept]
    return tuple(parts), y[(*(slice(None),) * front, kept)]


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
                raise NeedsEager(_COUNT)
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
