"""What each axis of an array is indexed by: a number, a slice or a *window*.

A window is a slice of known length at a traced position.  Numbers and windows at traced
positions become one `lax.dynamic_slice`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Union

import jax
import jax.numpy as jnp
import numpy as np
from aesara.graph.basic import Variable
from aesara.tensor.subtensor import indices_from_subtensor

from fixed_modes.jax.affine import known_difference
from fixed_modes.jax.bounds import position
from fixed_modes.jax.frame import Frame, NeedsConcrete, RunByItself, is_concrete
from fixed_modes.jax.ragged import MOST_ROWS
from fixed_modes.jax.slices import MovingSlice, moving_slice
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


BOUNDS = "the bounds of a slice"

#: A slice with a step that is not 1, with known bounds; anything else is a `Span`.
Selection = Union[Span, slice]
AnySelection = Union[Span, slice, MovingSlice]


def select(x: Any, selections: list[Selection]) -> Any:
    """Take what is selected, which has a known length along each axis."""
    parts = [static_part(selection) for selection in selections]
    if any(is_moving(selection) for selection in selections):
        # All at once: XLA would copy a slice of all rows before it takes one of them.
        pairs = zip(selections, np.shape(x))
        x = window(x, [s if isinstance(s, Span) else Span(0, size) for s, size in pairs])
        parts = [slice(None) if isinstance(s, Span) else s for s in selections]
    if any(part != slice(None) for part in parts):
        x = static_slice(x, parts)
    squeezed = tuple(
        axis for axis, s in enumerate(selections) if isinstance(s, Span) and s.squeezed
    )
    return jax.lax.squeeze(jnp.asarray(x), squeezed)


def is_moving(selection: Selection) -> bool:
    """Say whether a selection begins at a traced position."""
    return isinstance(selection, Span) and not selection.is_static


def is_moving_window(selection: Selection) -> bool:
    """Say whether a selection is a slice that begins at a traced position."""
    return isinstance(selection, Span) and is_moving(selection) and not selection.squeezed


def size_of(selection: Selection, length: int) -> int:
    """Count what is selected of an axis of this length."""
    if isinstance(selection, Span):
        return int(selection.size)
    return len(range(*selection.indices(length)))


def static_part(selection: Selection) -> slice:
    """Give a selection as a slice with known bounds; all of the axis if it begins elsewhere."""
    if isinstance(selection, slice):
        return selection
    if selection.is_static:
        return slice(selection.start, selection.start + selection.size)
    return slice(None)


def window(x: Any, spans: list[Any]) -> Any:
    """Take a span of each axis at once."""
    x = jnp.asarray(x)
    return jax.lax.dynamic_slice(x, starts_of(spans, x.shape), [span.size for span in spans])


def starts_of(spans: list[Any], shape: tuple[int, ...]) -> list[Any]:
    """Give all starts one dtype, as `dynamic_slice` wants it.

    With an unsigned one, neither JAX nor XLA looks for negative numbers again, which
    takes a fifth of the time of a short loop.  With uint64, `jax.vmap` of an update
    does nothing (JAX 0.6.2).
    """
    dtype = "uint32" if max(shape) < 2**32 else "int64"
    return [jnp.asarray(span.start).astype(dtype) for span in spans]


def plain_of(selections: Sequence[AnySelection]) -> list[Selection] | None:
    """Give selections of which none is a `MovingSlice`; None if one is."""
    plain = [s for s in selections if not isinstance(s, MovingSlice)]
    return plain if len(plain) == len(selections) else None


def selections_of(
    idx_list: Any, index_inputs: list[Variable], shape: tuple[int, ...], frame: Frame
) -> list[AnySelection]:
    """Work out what each axis of an array of this shape is indexed by."""
    entries = indices_from_subtensor(index_inputs, idx_list)
    selections: list[AnySelection] = []
    for axis, entry in enumerate(entries):
        length = shape[axis]
        if isinstance(entry, slice):
            selections.append(_slice_selection(entry, length, frame))
        else:
            selections.append(_number_selection(entry, axis, length, frame))
    selections.extend(Span(0, length) for length in shape[len(entries) :])
    return selections


def value_of(entry: Any, frame: Frame) -> Any:
    """Give the value of an index, or of a bound of a slice."""
    return frame.value(entry) if isinstance(entry, Variable) else entry


def _number_selection(entry: Any, axis: int, length: int, frame: Frame) -> Span:
    index = value_of(entry, frame)
    variable = entry if isinstance(entry, Variable) else None
    return Span(position(index, axis, length, frame, variable), 1, squeezed=True)


def _slice_selection(entry: slice, length: int, frame: Frame) -> AnySelection:
    bounds = [entry.start, entry.stop, entry.step]
    values = [value_of(bound, frame) for bound in bounds]
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
    changes = frame.outer is not None and not all(map(frame.is_fixed, traced))
    if changes and is_concrete(values[2]) and length <= MOST_ROWS:
        start, stop, step = (v if v is None or not is_concrete(v) else int(v) for v in values)
        return moving_slice(start, stop, 1 if step is None else step, length, length)
    raise NeedsConcrete(traced, BOUNDS)


def _moving_window(entry: slice, values: list[Any], length: int, frame: Frame) -> Span | None:
    """Recognise ``x[i : i + k]`` with a known `k`."""
    start, stop, step = values
    if is_concrete(start) or is_concrete(stop) or not is_concrete(step):
        return None
    if frame.outer is not None and not frame.settings.windows:
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
    frame.checks.add(jnp.any(outside), RunByItself(reason, is_window=True))
    return Span(start, size)
