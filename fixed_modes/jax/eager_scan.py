"""Loops that run step by step in Python: lengths vary from step to step, for example."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Callable

import numpy as np
from aesara.graph.basic import Apply

from fixed_modes.jax.kinds import is_array
from fixed_modes.jax.perform import as_declared


class Buffer:
    """The rows of a state or a trace; the writing position wraps around.

    Attributes
    ----------
    taps
        The taps that a step reads.
    depth
        The position that the first step writes at tap 0.
    length
        The number of rows.
    rows
        None as long as the shape of a row is not known.
    """

    def __init__(self, taps: Sequence[int], length: int, dtype: Any, rows: Any = None) -> None:
        self.taps, self.length, self.dtype = taps, length, dtype
        self.depth = -min(taps, default=0)
        self.rows = None if rows is None else np.array(rows, dtype)

    def read(self, step: int) -> list[Any]:
        rows = self.rows if self.rows is not None else ()
        return [np.asarray(rows[(step + self.depth + t) % self.length]) for t in self.taps]

    def write(self, step: int, value: Any, tap: int = 0) -> None:
        if self.rows is None:
            self.rows = np.zeros((self.length, *np.shape(value)), self.dtype)
        if not self.length:
            return
        try:
            self.rows[(step + self.depth + tap) % self.length] = value
        except ValueError as exc:
            raise ValueError(
                f"An output of the Scan has changed shape: {np.shape(value)} "
                f"after {self.rows.shape[1:]}"
            ) from exc

    def finish(self, done: int, steps: int) -> Any:
        """Give the rows in order after `done` of `steps` steps."""
        assert self.rows is not None
        written = done + self.depth
        if self.length < written:
            return (
                np.roll(self.rows, -(written % self.length), axis=0) if self.length else self.rows
            )
        self.rows[written:] = 0
        if self.length > written and done < steps:
            return self.rows[: self.length - (steps - done)]
        return self.rows


class EagerLoop:
    """A Scan node as a function of its outer values.

    Parameters
    ----------
    node
        The node.
    inner
        Computes the inner outputs from the inner inputs.
    """

    def __init__(self, node: Apply, inner: Callable[[Sequence[Any]], list[Any]]) -> None:
        self.node, self.op, self.inner = node, node.op, inner

    def __call__(self, values: Sequence[Any]) -> list[Any]:
        """Run the loop.

        Raises
        ------
        IndexError
            If the number of steps is negative.
        ValueError
            If a sequence is shorter than that, or a state changes shape.
        """
        op, info, node = self.op, self.op.info, self.node
        values = [
            as_declared(v, value) if is_array(v.type) else value
            for v, value in zip(node.inputs, values)
        ]
        steps = self._steps(values)
        mit_mots = [
            Buffer(taps, len(rows), rows.dtype, rows)
            for taps, rows in zip(info.mit_mot_in_slices, op.outer_mitmot(values))
        ]
        states = (*op.outer_mitsot(values), *op.outer_sitsot(values))
        taps_of_states = (*info.mit_sot_in_slices, *info.sit_sot_in_slices)
        traces = [
            Buffer(taps, len(rows), rows.dtype, rows) for taps, rows in zip(taps_of_states, states)
        ]
        shared = list(op.outer_shared(values))
        nit_sots = op.outer_nitsot_outs(node.outputs)
        if not steps:
            empty = [np.zeros((0,) * out.type.ndim, out.type.dtype) for out in nit_sots]
            return [*(buffer.rows for buffer in (*mit_mots, *traces)), *empty, *shared]
        traces += [
            Buffer((), int(length), out.type.dtype)
            for length, out in zip(op.outer_nitsot(values), nit_sots)
        ]
        done, stop = 0, False
        while done < steps and not stop:
            shared, stop = self._step(done, values, mit_mots, traces, shared)
            done += 1
        finished = [buffer.finish(done, steps) for buffer in traces]
        return [*(buffer.rows for buffer in mit_mots), *finished, *shared]

    def _step(
        self,
        step: int,
        values: Sequence[Any],
        mit_mots: Sequence[Buffer],
        traces: Sequence[Buffer],
        shared: Sequence[Any],
    ) -> tuple[list[Any], bool]:
        """Do one step; give the new shared states, and whether it was the last one."""
        op, info = self.op, self.op.info
        rows = [row for buffer in (*mit_mots, *traces) for row in buffer.read(step)]
        slices = [np.asarray(sequence[step]) for sequence in op.outer_seqs(values)]
        outputs = self.inner([*slices, *rows, *shared, *op.outer_non_seqs(values)])
        stop = bool(np.any(outputs.pop())) if info.as_while else False
        # No output may be a view of a buffer that is about to be written.
        outputs = [np.array(v) if isinstance(v, np.ndarray) else v for v in outputs]
        remaining = iter(outputs)
        for buffer, taps in zip(mit_mots, info.mit_mot_out_slices):
            for tap in taps:
                buffer.write(step, next(remaining), tap)
        for buffer in traces:
            buffer.write(step, next(remaining))
        return list(remaining), stop

    def _steps(self, values: Sequence[Any]) -> int:
        steps = int(values[0])
        if steps < 0:
            raise IndexError(f"Scan was asked to run for negative number of step {steps}")
        for index, sequence in enumerate(self.op.outer_seqs(values)):
            if len(sequence) < steps:
                raise ValueError(
                    f"Sequence {index} has shape {sequence.shape} "
                    f"but the Scan's required number of steps is {steps}"
                )
        return steps
