"""Indexing with numbers and slices: `Subtensor` and `IncSubtensor`.

Each axis is selected by a number, a slice with known bounds, or a *window*: a
slice of known length at a traced position.  Numbers and windows at traced
positions become one `lax.dynamic_slice`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Union

import jax
import jax.numpy as jnp
import numpy as np
from aesara.graph.basic import Apply, Variable
from aesara.tensor.subtensor import IncSubtensor, Subtensor, indices_from_subtensor

from fixed_modes.jax.affine import known_difference
from fixed_modes.jax.bounds import position
from fixed_modes.jax.dispatch import jax_lower
from fixed_modes.jax.frame import Frame, NeedsConcrete, RunByItself, is_concrete
from fixed_modes.jax.lazy_rows import LazyRows
from fixed_modes.jax.lengths import Extent, as_extent
from fixed_modes.jax.padded import PaddedTrace
from fixed_modes.jax.static_slice import static_slice


@dataclass
class Span:
    """What is selected along one axis: `size` rows from `start` on.

    `start` is an int or a traced scalar, not negative.  A `squeezed` axis, one
    indexed by a number, is dropped.
    """

    start: Any
    size: int
    squeezed: bool = False

    @property
    def is_static(self) -> bool:
        return isinstance(self.start, int)


#: A slice with a step that is not 1, with known bounds; anything else is a `Span`.
Selection = Union[Span, slice]


@jax_lower.register(Subtensor)
def _subtensor(op: Subtensor, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    x = values[0]
    if isinstance(x, PaddedTrace):
        return _padded_subtensor(op, node, x, frame)
    if isinstance(x, LazyRows):
        return [_part_of_lazy_rows(op, node, x, frame)]
    return [_select(x, _selections(op.idx_list, node.inputs[1:], np.shape(x), frame))]


def _select(x: Any, selections: list[Selection]) -> Any:
    parts = [_static_part(selection) for selection in selections]
    if any(_is_moving(selection) for selection in selections):
        # All at once: XLA would copy a slice of all rows before it takes one of them.
        pairs = zip(selections, np.shape(x))
        x = _window(x, [s if isinstance(s, Span) else Span(0, size) for s, size in pairs])
        parts = [slice(None) if isinstance(s, Span) else s for s in selections]
    if any(part != slice(None) for part in parts):
        x = static_slice(x, parts)
    squeezed = tuple(
        axis for axis, s in enumerate(selections) if isinstance(s, Span) and s.squeezed
    )
    return jax.lax.squeeze(jnp.asarray(x), squeezed)


def _part_of_lazy_rows(op: Subtensor, node: Apply, x: LazyRows, frame: Frame) -> Any:
    (entry,) = indices_from_subtensor(node.inputs[1:], op.idx_list)
    if isinstance(entry, slice):
        start, stop, step = (_value(b, frame) for b in (entry.start, entry.stop, entry.step))
        if step is None or (is_concrete(step) and int(step) == 1):
            return x.part(start, stop)
    raise NeedsConcrete(node.inputs[:1], "the bounds of an arange")


def _padded_subtensor(op: Subtensor, node: Apply, x: PaddedTrace, frame: Frame) -> list[Any]:
    """Index the output of an ``until`` loop: a row of it, or ``[k:]``."""
    first, *others = indices_from_subtensor(node.inputs[1:], op.idx_list)
    rows = x.buffer.shape[0]
    rest = _selections(others, [], x.buffer.shape[1:], frame)
    if not isinstance(first, slice):
        return [_padded_row(x, first, rest, frame)]
    start, stop, step = (_bound(bound, frame) for bound in (first.start, first.stop, first.step))
    to_the_end = stop is None or _is_end(stop, x) or (is_concrete(stop) and int(stop) >= rows)
    from_start = start is None or (is_concrete(start) and int(start) >= 0)
    if not (to_the_end and from_start and (step is None or (is_concrete(step) and step == 1))):
        raise NeedsConcrete(node.inputs[:1], "the number of steps that an until loop has run")
    skipped = min(int(start or 0), rows)
    buffer = _select(x.buffer, [Span(skipped, rows - skipped), *rest])
    least = max(0, x.least - skipped)
    tail = [_select(row[None], [Span(0, 1, True), *rest]) for row in x.tail[-least:] if least]
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
        return _select(x.tail[-back][None], [Span(0, 1, squeezed=True), *rest])
    if isinstance(number, int) and 0 <= number < x.least:
        return _select(x.buffer, [Span(number, 1, squeezed=True), *rest])
    index = jnp.asarray(_value(first, frame), dtype="int64")
    place = jnp.where(index < 0, index + x.length, index)
    if frame.settings.index_checks and not (back is not None and 1 <= back <= x.least):
        frame.checks.add(
            (place < 0) | (place >= x.length),
            lambda: IndexError("index out of bounds of what an until loop has computed"),
        )
    return _select(x.buffer, [Span(place, 1, squeezed=True), *rest])


def _bound(bound: Any, frame: Frame) -> Any:
    """Give a bound of a slice: known, an `Extent`, or traced."""
    value = _value(bound, frame)
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
    selections = _selections(op.idx_list, node.inputs[2:], x.shape, frame)
    if not y.size and not all(_size(*pair) for pair in zip(selections, x.shape)):
        # Rows that no step of a loop has made have no length that could fit.
        return [x]
    if all(isinstance(selection, Span) for selection in selections):
        return [_update_window(x, y, selections, op.set_instead_of_inc)]
    if any(_is_moving_window(selection) for selection in selections):
        raise NotImplementedError("A moving window beside a slice with another step")
    index = tuple(
        jnp.asarray(s.start, "int64") if isinstance(s, Span) and s.squeezed else _static_part(s)
        for s in selections
    )
    place = x.at[index]
    return [place.set(y) if op.set_instead_of_inc else place.add(y)]


def _is_moving(selection: Selection) -> bool:
    return isinstance(selection, Span) and not selection.is_static


def _is_moving_window(selection: Selection) -> bool:
    return isinstance(selection, Span) and _is_moving(selection) and not selection.squeezed


def _size(selection: Selection, length: int) -> int:
    if isinstance(selection, Span):
        return int(selection.size)
    return len(range(*selection.indices(length)))


def _static_part(selection: Selection) -> slice:
    if isinstance(selection, slice):
        return selection
    if selection.is_static:
        return slice(selection.start, selection.start + selection.size)
    return slice(None)


def _window(x: Any, spans: list[Any]) -> Any:
    x = jnp.asarray(x)
    return jax.lax.dynamic_slice(x, _starts(spans, x.shape), [span.size for span in spans])


def _starts(spans: list[Any], shape: tuple[int, ...]) -> list[Any]:
    """Give all starts one dtype, as `dynamic_slice` wants it.

    With an unsigned one, neither JAX nor XLA looks for negative numbers again, which
    takes a fifth of the time of a short loop.  With uint64, `jax.vmap` of an update
    does nothing (JAX 0.6.2).
    """
    dtype = "uint32" if max(shape) < 2**32 else "int64"
    return [jnp.asarray(span.start).astype(dtype) for span in spans]


def _update_window(x: Any, y: Any, spans: list[Any], replace: bool) -> Any:
    """Set, or add to, the window of `x` that `spans` select."""
    sizes = [span.size for span in spans]
    kept = [span.size for span in spans if not span.squeezed]
    y = jnp.broadcast_to(y.reshape(_without_extra_axes(y.shape, len(kept))), kept).reshape(sizes)
    if not replace:
        y = _window(x, spans) + y
    return jax.lax.dynamic_update_slice(x, y, _starts(spans, x.shape))


def _without_extra_axes(shape: tuple[int, ...], ndim: int) -> tuple[int, ...]:
    """Drop leading axes of size 1 that NumPy ignores in an assignment."""
    extra = max(0, len(shape) - ndim)
    if any(size != 1 for size in shape[:extra]):
        raise ValueError(f"could not broadcast input array from shape {shape} to {ndim} axes")
    return shape[extra:]


def _selections(
    idx_list: Any, index_inputs: list[Variable], shape: tuple[int, ...], frame: Frame
) -> list[Selection]:
    """Work out what each axis of an array of this shape is indexed by."""
    entries = indices_from_subtensor(index_inputs, idx_list)
    selections: list[Selection] = []
    for axis, entry in enumerate(entries):
        length = shape[axis]
        if isinstance(entry, slice):
            selections.append(_slice_selection(entry, length, frame))
        else:
            selections.append(_number_selection(entry, axis, length, frame))
    selections.extend(Span(0, length) for length in shape[len(entries) :])
    return selections


def _value(entry: Any, frame: Frame) -> Any:
    return frame.value(entry) if isinstance(entry, Variable) else entry


def _number_selection(entry: Any, axis: int, length: int, frame: Frame) -> Span:
    index = _value(entry, frame)
    variable = entry if isinstance(entry, Variable) else None
    return Span(position(index, axis, length, frame, variable), 1, squeezed=True)


def _slice_selection(entry: slice, length: int, frame: Frame) -> Selection:
    bounds = [entry.start, entry.stop, entry.step]
    values = [_value(bound, frame) for bound in bounds]
    if all(is_concrete(value) for value in values):
        numbers = [None if value is None else int(value) for value in values]
        start, stop, step = slice(*numbers).indices(length)
        if step == 1:
            return Span(start, max(0, stop - start))
        count = len(range(start, stop, step))
        last = start + count * step
        return slice(start, None if last < 0 else last, step) if count else slice(0, 0, step)
    window = _moving_window(entry, values, length, frame)
    if window is not None:
        return window
    traced = [
        bound
        for bound, value in zip(bounds, values)
        if isinstance(bound, Variable) and not is_concrete(value)
    ]
    raise NeedsConcrete(traced, "the bounds of a slice")


def _moving_window(entry: slice, values: list[Any], length: int, frame: Frame) -> Span | None:
    """Recognise ``x[i : i + k]`` with a known `k`."""
    start, stop, step = values
    if is_concrete(start) or is_concrete(stop) or not is_concrete(step):
        return None
    if step is not None and int(step) != 1:
        return None
    size = known_difference(entry.start, entry.stop, frame)
    if size is None or not 0 <= size <= length:
        return None
    start = jnp.asarray(start, dtype="int64")
    outside = (start < 0) | (start + size > length)
    reason = (
        f"a window x[i:i+{size}] reaches out of an axis of length {length}, and is shorter then"
    )
    frame.checks.add(jnp.any(outside), RunByItself(reason))
    return Span(start, size)
