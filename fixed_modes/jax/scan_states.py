"""The kinds of tap of a `Scan`: how each starts, is read, written and finished.

``Scan.perform`` keeps every output in a buffer that it reads and writes by
position.  Here a loop carries only the rows that the next step reads, its
*window*, and leaves the rest to stacked outputs: XLA then copies no buffer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

#: Of a longer trace of which only the end is kept, all rows are stacked and cut.
LONGEST_WINDOW = 8

Rows = tuple[Any, ...]


def fit_row(value: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """Give a step's output the shape and dtype of a row of its buffer.

    Raises
    ------
    ValueError
        If it can't be broadcast to that shape.
    """
    try:
        return jnp.broadcast_to(jnp.asarray(value).astype(dtype), shape)
    except ValueError as exc:
        raise ValueError(
            f"An output of the Scan has changed shape: {jnp.shape(value)} after {shape}"
        ) from exc


@dataclass
class Trace:
    """A mit-sot, sit-sot or nit-sot: one output, written once a step.

    Attributes
    ----------
    taps
        The taps that a step reads, all negative; none for a nit-sot.
    length
        The number of rows of the outer buffer.
    first
        Shape (depth, ...): the initial rows, as deep as the oldest tap.
    row_shape, dtype
        Of one row.
    steps
        The number of steps, or the bound on it; None if it is traced.
    may_end_early
        Whether `steps` is only a bound.
    """

    taps: tuple[int, ...]
    length: int
    first: Any
    row_shape: tuple[int, ...]
    dtype: Any
    steps: int | None
    may_end_early: bool

    @property
    def depth(self) -> int:
        return -min(self.taps, default=0)

    @property
    def is_cut(self) -> bool:
        """Whether the buffer may be too short for the whole trace."""
        return self.steps is None or self.length < self.depth + self.steps

    @property
    def in_window(self) -> bool:
        """Whether the window alone holds the rows that are returned."""
        if self.length <= self.depth:
            return True
        if self.steps is None or self.may_end_early:
            # One step fills so few rows; with none at all the buffer is returned as it is.
            return self.length == self.depth + 1
        return self.is_cut and self.length <= LONGEST_WINDOW

    @property
    def width(self) -> int:
        """The number of rows in the window."""
        if self.in_window:
            return max(self.depth, self.length)
        # The last row of a trace is often all that is read of it, see `PaddedTrace`.
        return max(self.depth, 1) if self.may_end_early else self.depth

    def start(self) -> Rows:
        rows = [self.first[i] for i in range(self.depth)]
        # Rows in front of the initial ones are gone before the loop ends.
        missing = [self._zeros(())] * (self.width - self.depth)
        return (*missing, *rows)

    def read(self, window: Rows) -> list[Any]:
        return [window[len(window) + tap] for tap in self.taps]

    def push(self, window: Rows, value: Any) -> Rows:
        return (*window, value)[1:] if window else ()

    def fit(self, value: Any) -> Any:
        return fit_row(value, self.row_shape, self.dtype)

    # A loop with a known number of steps

    def finish_stacked(self, window: Rows, stacked: Any) -> Any:
        """Put the returned buffer together; `stacked` has one row for each step."""
        assert self.steps is not None
        if self.in_window:
            return jnp.stack(window[len(window) - self.length :]) if self.length else self._none()
        surplus = self.depth + self.steps - self.length
        if surplus >= self.depth:
            return stacked[surplus - self.depth :]
        parts = [self.first[max(surplus, 0) :], stacked]
        if surplus < 0:
            # Rows that no step has written read as zero.
            parts.append(self._zeros((-surplus,)))
        return jnp.concatenate([part for part in parts if part.shape[0]])

    # A loop that ends when the run says so

    def start_buffer(self) -> Any:
        """Make the carried buffer: zeros, after the initial rows if these are overwritten.

        Where they are not, they join the rest after the loop.  XLA then copies
        nothing if only the rest is used, as it nearly always is.
        """
        if self.in_window:
            return None
        rest = self._zeros((self.length - self.depth,))
        return jnp.concatenate([self.first, rest]) if self.is_cut and self.depth else rest

    def write(self, buffer: Any, value: Any, step: Any) -> Any:
        if buffer is None:
            return None
        position = (self.depth + step) % self.length if self.is_cut else step
        return jax.lax.dynamic_update_index_in_dim(buffer, value, position, 0)

    def finish_buffer(self, window: Rows, buffer: Any, done: Any) -> Any:
        """Bring the rows into order after `done` steps."""
        if buffer is None:
            return jnp.stack(window[len(window) - self.length :]) if self.length else self._none()
        if not self.is_cut:
            return jnp.concatenate([self.first, buffer]) if self.depth else buffer
        written = self.depth + done
        turned = jnp.roll(buffer, -(written % self.length), axis=0)
        return jnp.where(written > self.length, turned, buffer)

    def _none(self) -> Any:
        return self._zeros((0,))

    def _zeros(self, leading: tuple[int, ...]) -> Any:
        return jnp.zeros((*leading, *self.row_shape), self.dtype)


@dataclass
class MitMot:
    """A mit-mot, what gradients of states are summed in: read and written at several taps.

    The rows that a step may touch are a window that slides over the buffer: one
    row enters at its top before a step, one leaves at its bottom after it.

    Attributes
    ----------
    reads, writes
        The taps.
    buffer
        Shape (rows, ...): the outer buffer.
    steps
        The number of steps, None if it is traced.
    """

    reads: tuple[int, ...]
    writes: tuple[int, ...]
    buffer: Any
    steps: int | None

    @property
    def lowest(self) -> int:
        return min(*self.reads, *self.writes)

    @property
    def overlap(self) -> int:
        """The number of rows that a window shares with the next one."""
        return max(*self.reads, *self.writes) - self.lowest

    @property
    def bottom(self) -> int:
        """The position of the first window's lowest row."""
        return self._position(0) + self.lowest

    @property
    def slides(self) -> bool:
        """Whether the window never leaves the buffer, so that no position wraps."""
        if self.steps is None or self.bottom < 0:
            return False
        return self.bottom + self.overlap + self.steps <= self.buffer.shape[0]

    def fit(self, value: Any) -> Any:
        return fit_row(value, self.buffer.shape[1:], self.buffer.dtype)

    # A window that slides

    def start(self) -> Rows:
        return tuple(self.buffer[self.bottom + i] for i in range(self.overlap))

    def entering(self) -> Any:
        """Stack the rows that enter, one for each step."""
        assert self.steps is not None
        top = self.bottom + self.overlap
        return self.buffer[top : top + self.steps]

    def read(self, window: Rows) -> list[Any]:
        return [window[tap - self.lowest] for tap in self.reads]

    def write(self, window: Rows, values: Sequence[Any]) -> Rows:
        rows = list(window)
        for tap, value in zip(self.writes, values):
            rows[tap - self.lowest] = self.fit(value)
        return tuple(rows)

    def finish_stacked(self, window: Rows, left: Any) -> Any:
        """Put the buffer together; `left` stacks the rows that left the window."""
        assert self.steps is not None
        end = self.bottom + self.steps + self.overlap
        parts = [self.buffer[: self.bottom], left]
        parts += [row[None] for row in window]
        parts.append(self.buffer[end:])
        return jnp.concatenate([part for part in parts if part.shape[0]])

    # Positions that wrap, or an unknown number of steps

    def read_buffer(self, buffer: Any, step: Any) -> list[Any]:
        length = buffer.shape[0]
        return [
            jax.lax.dynamic_index_in_dim(
                buffer, (self._position(step) + tap) % length, 0, keepdims=False
            )
            for tap in self.reads
        ]

    def write_buffer(self, buffer: Any, values: Sequence[Any], step: Any) -> Any:
        for tap, value in zip(self.writes, values):
            position = (self._position(step) + tap) % buffer.shape[0]
            buffer = jax.lax.dynamic_update_index_in_dim(buffer, self.fit(value), position, 0)
        return buffer

    def _position(self, step: Any) -> Any:
        return (step - min(self.reads)) % self.buffer.shape[0]
