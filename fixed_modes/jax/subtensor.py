"""Indexing with numbers and slices: `Subtensor` and `IncSubtensor`."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from aesara.graph.basic import Apply, Variable
from aesara.tensor.subtensor import IncSubtensor, Subtensor, indices_from_subtensor

from fixed_modes.jax.dispatch import jax_lower
from fixed_modes.jax.frame import Frame, NeedsConcrete, is_concrete
from fixed_modes.jax.lazy_rows import LazyRows
from fixed_modes.jax.lengths import Extent, as_extent
from fixed_modes.jax.padded import PaddedTrace
from fixed_modes.jax.ragged import Ragged
from fixed_modes.jax.ragged_subtensor import select_ragged, update
from fixed_modes.jax.selections import (
    BOUNDS,
    Selection,
    Span,
    is_moving_window,
    plain_of,
    select,
    selections_of,
    size_of,
    starts_of,
    static_part,
    value_of,
    window,
)


@jax_lower.register(Subtensor)
def _subtensor(op: Subtensor, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    x = values[0]
    if isinstance(x, PaddedTrace):
        return _padded_subtensor(op, node, x, frame)
    if isinstance(x, LazyRows):
        return [_part_of_lazy_rows(op, node, x, frame)]
    selections = selections_of(op.idx_list, node.inputs[1:], np.shape(x), frame)
    plain = plain_of(selections)
    if plain is None:
        return [select_ragged(Ragged(jnp.asarray(x), (None,) * np.ndim(x), BOUNDS), selections)]
    return [select(x, plain)]


def _part_of_lazy_rows(op: Subtensor, node: Apply, x: LazyRows, frame: Frame) -> Any:
    (entry,) = indices_from_subtensor(node.inputs[1:], op.idx_list)
    if isinstance(entry, slice):
        start, stop, step = (value_of(b, frame) for b in (entry.start, entry.stop, entry.step))
        if step is None or (is_concrete(step) and int(step) == 1):
            return x.part(start, stop)
    raise NeedsConcrete(node.inputs[:1], "the bounds of an arange")


def _padded_subtensor(op: Subtensor, node: Apply, x: PaddedTrace, frame: Frame) -> list[Any]:
    """Index the output of an ``until`` loop: a row of it, or ``[k:]``."""
    first, *others = indices_from_subtensor(node.inputs[1:], op.idx_list)
    rows = x.buffer.shape[0]
    rest = plain_of(selections_of(others, [], x.buffer.shape[1:], frame))
    if rest is None:
        raise NeedsConcrete(node.inputs[:1], BOUNDS)
    if not isinstance(first, slice):
        return [_padded_row(x, first, rest, frame)]
    start, stop, step = (_bound(bound, frame) for bound in (first.start, first.stop, first.step))
    to_the_end = stop is None or _is_end(stop, x) or (is_concrete(stop) and int(stop) >= rows)
    from_start = start is None or (is_concrete(start) and int(start) >= 0)
    if not (to_the_end and from_start and (step is None or (is_concrete(step) and step == 1))):
        raise NeedsConcrete(node.inputs[:1], "the number of steps that an until loop has run")
    skipped = min(int(start or 0), rows)
    buffer = select(x.buffer, [Span(skipped, rows - skipped), *rest])
    least = max(0, x.least - skipped)
    tail = [select(row[None], [Span(0, 1, True), *rest]) for row in x.tail[-least:] if least]
    length = x.length - skipped if least else jnp.maximum(x.length - skipped, 0)
    return [PaddedTrace(buffer, length, tuple(tail), least)]


def _padded_row(x: PaddedTrace, first: Any, rest: list[Selection], frame: Frame) -> Any:
    """Take one row; the last ones are at hand without a search in the buffer."""
    number = as_extent(first, frame) if isinstance(first, Variable) else int(first)
    back = None
    if isinstance(number, Extent) and number.trace is x:
        back = -number.offset
    elif isinstance(number, int) and number < 0:
        back = -number
    if back is not None and 1 <= back <= min(len(x.tail), x.least):
        return select(x.tail[-back][None], [Span(0, 1, squeezed=True), *rest])
    if isinstance(number, int) and 0 <= number < x.least:
        return select(x.buffer, [Span(number, 1, squeezed=True), *rest])
    index = jnp.asarray(value_of(first, frame), dtype="int64")
    place = jnp.where(index < 0, index + x.length, index)
    if frame.settings.index_checks and not (back is not None and 1 <= back <= x.least):
        frame.checks.add(
            (place < 0) | (place >= x.length),
            lambda: IndexError("index out of bounds of what an until loop has computed"),
        )
    return select(x.buffer, [Span(place, 1, squeezed=True), *rest])


def _bound(bound: Any, frame: Frame) -> Any:
    """Give a bound of a slice: known, an `Extent`, or traced."""
    value = value_of(bound, frame)
    if not isinstance(bound, Variable) or is_concrete(value):
        return value
    extent = as_extent(bound, frame)
    return value if extent is None else extent if isinstance(extent, Extent) else np.int64(extent)


def _is_end(stop: Any, x: PaddedTrace) -> bool:
    return isinstance(stop, Extent) and stop.trace is x and stop.offset >= 0


@jax_lower.register(IncSubtensor)
def _inc_subtensor(op: IncSubtensor, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    x, y = jnp.asarray(values[0]), jnp.asarray(values[1])
    y = y.astype(x.dtype)
    found = selections_of(op.idx_list, node.inputs[2:], x.shape, frame)
    selections = plain_of(found)
    if selections is None:
        y = Ragged(y, (None,) * y.ndim, BOUNDS)
        return [update(x, y, found, op.set_instead_of_inc, frame)]
    if not y.size and not all(size_of(*pair) for pair in zip(selections, x.shape)):
        # Rows that no step of a loop has made have no length that could fit.
        return [x]
    if all(isinstance(selection, Span) for selection in selections):
        return [_update_window(x, y, selections, op.set_instead_of_inc)]
    if any(is_moving_window(selection) for selection in selections):
        raise NotImplementedError("A moving window beside a slice with another step")
    index = tuple(
        jnp.asarray(s.start, "int64") if isinstance(s, Span) and s.squeezed else static_part(s)
        for s in selections
    )
    place = x.at[index]
    return [place.set(y) if op.set_instead_of_inc else place.add(y)]


def _update_window(x: Any, y: Any, spans: list[Any], replace: bool) -> Any:
    """Set, or add to, the window of `x` that `spans` select."""
    sizes = [span.size for span in spans]
    kept = [span.size for span in spans if not span.squeezed]
    y = jnp.broadcast_to(y.reshape(_without_extra_axes(y.shape, len(kept))), kept).reshape(sizes)
    if not replace:
        y = window(x, spans) + y
    return jax.lax.dynamic_update_slice(x, y, starts_of(spans, x.shape))


def _without_extra_axes(shape: tuple[int, ...], ndim: int) -> tuple[int, ...]:
    """Drop leading axes of size 1 that NumPy ignores in an assignment."""
    extra = max(0, len(shape) - ndim)
    if any(size != 1 for size in shape[:extra]):
        raise ValueError(f"could not broadcast input array from shape {shape} to {ndim} axes")
    return shape[extra:]
