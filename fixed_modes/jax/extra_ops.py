"""Cumulative sums, diagonals, searches and other ops of ``aesara.tensor.extra_ops``."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np
from aesara.graph.basic import Apply
from aesara.tensor.extra_ops import (
    Bartlett,
    CpuContiguous,
    CumOp,
    FillDiagonal,
    FillDiagonalOffset,
    RavelMultiIndex,
    Repeat,
    SearchsortedOp,
    Unique,
    UnravelIndex,
)

from fixed_modes.jax.dispatch import jax_lower
from fixed_modes.jax.frame import Frame, NeedsConcrete, NeedsEager, is_concrete


@jax_lower.register(CpuContiguous)
def _contiguous(op: CpuContiguous, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    return [values[0]]


@jax_lower.register(CumOp)
def _cumulate(op: CumOp, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    function = jnp.cumsum if op.mode == "add" else jnp.cumprod
    return [function(jnp.asarray(values[0]), axis=op.axis, dtype=node.outputs[0].type.dtype)]


@jax_lower.register(SearchsortedOp)
def _searchsorted(op: SearchsortedOp, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    dtype = np.result_type(*(variable.type.dtype for variable in node.inputs[:2]))
    entries, wanted = (jnp.asarray(value).astype(dtype) for value in values[:2])
    if len(values) == 3:
        sorter = jnp.asarray(values[2])
        if sorter.size != entries.size:
            raise ValueError("sorter.size must equal a.size")
        outside = ((sorter < 0) | (sorter >= entries.size)).any()
        frame.checks.add(outside, partial(ValueError, "Sorter index out of range."))
        entries = entries[sorter]
    return [jnp.searchsorted(entries, wanted, side=op.side)]


@jax_lower.register(Repeat)
def _repeat(op: Repeat, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    x, repeats = jnp.asarray(values[0]), values[1]
    if not is_concrete(repeats):
        if repeats.ndim == 0:
            raise NeedsConcrete(node.inputs[1:], "how often entries are repeated")
        raise NeedsEager("how often entries are repeated is known only when the function runs")
    repeats = np.asarray(repeats)
    if (repeats < 0).any():
        raise ValueError("repeats may not contain negative values.")
    length = x.size if op.axis is None else x.shape[op.axis]
    if repeats.ndim and repeats.size not in (1, length):
        raise ValueError(
            f"operands could not be broadcast together with shape ({length},) {repeats.shape}"
        )
    return [jnp.take(x, np.repeat(np.arange(length), repeats), axis=op.axis)]


@jax_lower.register(Bartlett)
def _bartlett(op: Bartlett, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    raise NeedsConcrete(node.inputs, "the length of a window")


@jax_lower.register(Unique)
def _unique(op: Unique, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    raise NeedsEager("the number of different entries is known only when the function runs")


@jax_lower.register(FillDiagonal)
def _fill_diagonal(op: FillDiagonal, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    a, value = jnp.asarray(values[0]), values[1]
    if a.ndim > 2 and len(set(a.shape)) > 1:
        raise ValueError("All dimensions of input must be of equal length")
    count = min(a.shape)
    return [a.at[(np.arange(count),) * a.ndim].set(value)]


@jax_lower.register(FillDiagonalOffset)
def _fill_diagonal_offset(
    op: FillDiagonalOffset, node: Apply, values: list[Any], frame: Frame
) -> list[Any]:
    a, value, offset = values
    rows, columns = np.ogrid[: np.shape(a)[0], : np.shape(a)[1]]
    return [jnp.where(columns - rows == offset, value, a)]


@jax_lower.register(UnravelIndex)
def _unravel_index(op: UnravelIndex, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    index, dims = (jnp.asarray(value).astype("int64") for value in values)
    size = jnp.prod(dims)
    outside = ((index < 0) | (index >= size)).any()
    frame.checks.add(outside, partial(ValueError, "index is out of bounds for array"))
    places = []
    order = range(len(dims)) if op.order == "F" else reversed(range(len(dims)))
    for axis in order:
        places.append(index % dims[axis])
        index = index // dims[axis]
    return places if op.order == "F" else places[::-1]


@jax_lower.register(RavelMultiIndex)
def _ravel_multi_index(
    op: RavelMultiIndex, node: Apply, values: list[Any], frame: Frame
) -> list[Any]:
    *places, dims = (jnp.asarray(value).astype("int64") for value in values)
    position: Any = jnp.zeros((), "int64")
    order = range(len(places)) if op.order == "C" else reversed(range(len(places)))
    for axis in order:
        place, size = places[axis], dims[axis]
        if op.mode == "raise":
            outside = ((place < 0) | (place >= size)).any()
            frame.checks.add(outside, partial(ValueError, "invalid entry in coordinates array"))
        place = jnp.clip(place, 0, size - 1) if op.mode == "clip" else place % size
        position = position * size + place
    return [position]
