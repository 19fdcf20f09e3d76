"""`Scan`: its inputs and outputs, and the loop as `lax.scan`; see `scan_while` for the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from aesara.graph.basic import Apply, Variable
from aesara.scan.op import Scan

from fixed_modes.jax import scan_ahead
from fixed_modes.jax.capped import capped_length
from fixed_modes.jax.dispatch import jax_lower
from fixed_modes.jax.evaluate import evaluate
from fixed_modes.jax.frame import Checks, Frame, NeedsConcrete, NeedsEager, is_concrete
from fixed_modes.jax.lazy_rows import LazyRows
from fixed_modes.jax.scan_shared import Drawn, SharedState, shared_states
from fixed_modes.jax.scan_states import MitMot, Trace
from fixed_modes.jax.scan_while import run_while


@dataclass
class StepResult:
    """The inner outputs of one step, by kind; `stop` is None without a condition."""

    mit_mots: list[list[Any]]
    traces: list[Any]
    shared: list[Any]
    stop: Any
    failed: list[Any]


class Loop:
    """A Scan node and its outer values, ready to be run.

    Attributes
    ----------
    steps
        The number of steps: an int, or traced.
    sequences
        At least as long as the loop, where the number of steps is known.
    mit_mots, traces
        The states in the order of the inner inputs: `traces` holds mit-sots,
        sit-sots and nit-sots.
    shared, non_sequences
        Outer values.
    checks
        The run-time checks of the inner graph, as the last trace found them.
    """

    def __init__(self, op: Scan, node: Apply, values: list[Any], frame: Frame) -> None:
        self.op, self.node, self.frame = op, node, frame
        info = op.info
        steps = values[0]
        self.steps: Any = int(steps) if is_concrete(steps) else steps
        self.static_steps: int | None = self.steps if is_concrete(steps) else None
        self.sequences: list[Any] = [
            value if isinstance(value, LazyRows) else jnp.asarray(value)
            for value in op.outer_seqs(values)
        ]
        self.shared = [_traced(value) for value in op.outer_shared(values)]
        self.non_sequences = list(op.outer_non_seqs(values))
        self.checks = Checks()
        arrays = [rows for rows in self.sequences if not isinstance(rows, LazyRows)]
        if self.static_steps is None and not all(len(rows) for rows in arrays):
            raise NeedsConcrete(node.inputs[:1], "the number of steps over an empty sequence")
        self._check_lengths()
        self.mit_mots = [
            MitMot(tuple(reads), tuple(writes), jnp.asarray(buffer), self.static_steps)
            for reads, writes, buffer in zip(
                info.mit_mot_in_slices, info.mit_mot_out_slices, op.outer_mitmot(values)
            )
        ]
        buffers = [jnp.asarray(v) for v in (*op.outer_mitsot(values), *op.outer_sitsot(values))]
        taps = (*info.mit_sot_in_slices, *info.sit_sot_in_slices)
        self.traces = [self._state(*pair) for pair in zip(taps, buffers)]
        self.buffers = buffers
        lengths = [
            capped_length(v, frame, "the length of a loop's output")
            for v in op.outer_nitsot(node.inputs)
        ]
        if self.static_steps != 0:
            self._add_nit_sots(lengths)

    def _check_lengths(self) -> None:
        if self.static_steps is None:
            self.frame.checks.add(self.steps < 0, lambda: IndexError(_NEGATIVE))
        elif self.static_steps < 0:
            raise IndexError(f"{_NEGATIVE} {self.static_steps}")
        for index, sequence in enumerate(self.sequences):
            if isinstance(sequence, LazyRows):
                self._check_lazy_rows(index, sequence)
                continue
            text = f"Sequence {index} has shape {sequence.shape} but the Scan's required number "
            if self.static_steps is None:
                too_short = partial(ValueError, f"{text}of steps is larger")
                self.frame.checks.add(self.steps > sequence.shape[0], too_short)
            elif sequence.shape[0] < self.static_steps:
                raise ValueError(f"{text}of steps is {self.static_steps}")

    def _check_lazy_rows(self, index: int, sequence: LazyRows) -> None:
        text = f"Sequence {index} is shorter than the Scan's required number of steps"
        self.frame.checks.add(self.steps > sequence.length, partial(ValueError, text))
        if self.static_steps is not None:
            self.sequences[index] = jax.vmap(sequence.row)(jnp.arange(self.static_steps))

    def _state(self, taps: Sequence[int], buffer: Any) -> Trace:
        depth = -min(taps)
        return Trace(
            tuple(taps),
            buffer.shape[0],
            buffer[:depth],
            buffer.shape[1:],
            buffer.dtype,
            self.static_steps,
            self.op.info.as_while,
        )

    def _add_nit_sots(self, lengths: Sequence[int]) -> None:
        """Find the shapes of what has no initial value by tracing a step."""
        if not lengths:
            return
        n_states = len(self.traces)
        shapes = jax.eval_shape(lambda: [jnp.asarray(row) for row in self.first_step().traces])
        variables = self.op.outer_nitsot_outs(self.node.outputs)
        for length, variable, row in zip(lengths, variables, shapes[n_states:]):
            first = jnp.zeros((0, *row.shape), variable.type.dtype)
            self.traces.append(
                Trace(
                    (),
                    length,
                    first,
                    row.shape,
                    first.dtype,
                    self.static_steps,
                    self.op.info.as_while,
                )
            )

    def first_step(self) -> StepResult:
        """Evaluate the inner graph on the initial values."""
        mit_mots = [mit_mot.read_buffer(mit_mot.buffer, 0) for mit_mot in self.mit_mots]
        reads = [trace.read(trace.start()) for trace in self.traces]
        return self.step(self.slices(0), mit_mots, reads, self.shared)

    def slices(self, step: Any) -> list[Any]:
        """Give the row of each sequence that a step reads."""
        return [
            sequence.row(step)
            if isinstance(sequence, LazyRows)
            else jax.lax.dynamic_index_in_dim(sequence, step, 0, keepdims=False)
            for sequence in self.sequences
        ]

    def step(
        self,
        slices: Sequence[Any],
        mit_mots: Sequence[Sequence[Any]],
        traces: Sequence[Sequence[Any]],
        shared: Sequence[Any],
    ) -> StepResult:
        """Evaluate the inner graph once.

        `mit_mots` and `traces` hold for each state the rows at its taps.
        """
        op, info = self.op, self.op.info
        rows = [row for group in (*mit_mots, *traces) for row in group]
        values = [*slices, *rows, *shared, *self.non_sequences]
        inner = self.frame.inner(
            op.fgraph.inputs,
            values,
            self.origins(),
            scan=op.name or "scan",
            fixed=op.inner_non_seqs(op.fgraph.inputs),
        )
        try:
            outputs = evaluate(inner, op.fgraph.outputs)
        except NeedsConcrete as need:
            raise self._outside(inner, need) from None
        self.checks = inner.checks
        written = iter(outputs[: info.n_mit_mot_outs])
        end = len(outputs) - int(info.as_while)
        first_shared = end - info.n_shared_outs
        return StepResult(
            mit_mots=[[next(written) for _ in taps] for taps in info.mit_mot_out_slices],
            traces=outputs[info.n_mit_mot_outs : first_shared],
            shared=outputs[first_shared:end],
            stop=outputs[end] if info.as_while else None,
            failed=[jnp.asarray(flag) for flag in inner.checks.unpack()],
        )

    def shared_states(self) -> list[SharedState]:
        """Choose how the shared states are handed on in a loop of known length."""
        assert self.static_steps is not None
        fgraph = self.op.fgraph
        return shared_states(
            fgraph,
            self.op.inner_shared(fgraph.inputs),
            self.op.inner_shared_outs(fgraph.outputs),
            self.shared,
            self.static_steps,
        )

    def report(self, words: list[Any]) -> None:
        """Hand the checks of the inner graph on; `words` says which failed in any step."""
        self.frame.checks.extend(words, self.checks.errors)

    def _outside(self, inner: Frame, need: NeedsConcrete) -> Exception:
        """Say in terms of the outer graph what must be known inside the loop."""
        sources = inner.traced_sources(need.variables)
        fixed = self.op.inner_non_seqs(inner.inputs)
        if sources and all(source in fixed for source in sources):
            outer = [inner.origins[source] for source in sources]
            return NeedsConcrete(outer, need.reason, need.where)
        return NeedsEager(
            f"{need.reason} must be known to compile the loop, but it depends on what the loop "
            "computes or iterates over",
            need.where,
        )

    def origins(self) -> dict[Variable, Variable]:
        """Say which outer variable an inner input is, or is a row of."""
        op, inner, outer = self.op, self.op.fgraph.inputs, self.node.inputs
        return {
            **dict(zip(op.inner_seqs(inner), op.outer_seqs(outer))),
            **dict(zip(op.inner_non_seqs(inner), op.outer_non_seqs(outer))),
        }


_NEGATIVE = "Scan was asked to run for negative number of step"


def _traced(value: Any) -> Any:
    return jax.tree_util.tree_map(jnp.asarray, value)


@jax_lower.register(Scan)
def _scan(op: Scan, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    loop = Loop(op, node, values, frame)
    if loop.static_steps == 0:
        return _no_steps(loop)
    if op.info.as_while or loop.static_steps is None:
        return run_while(loop)
    if not all(mit_mot.slides for mit_mot in loop.mit_mots):
        return run_while(loop)
    return run_scan(loop)


def _no_steps(loop: Loop) -> list[Any]:
    nit_sots = loop.op.outer_nitsot_outs(loop.node.outputs)
    empty = [jnp.zeros((0,) * v.type.ndim, v.type.dtype) for v in nit_sots]
    mit_mots = [mit_mot.buffer for mit_mot in loop.mit_mots]
    return [*mit_mots, *loop.buffers, *empty, *loop.shared]


def run_scan(loop: Loop) -> list[Any]:
    """Run a loop with a known number of steps."""
    mit_mots, traces = loop.mit_mots, loop.traces
    shared = loop.shared_states()

    def body(carry: Any, entering: Any) -> tuple[Any, Any, list[Any]]:
        kept, windows, states = carry
        (slices, rows), keys = entering
        slid = [(*window, row) for window, row in zip(kept, rows)]
        result = loop.step(
            slices,
            [mit_mot.read(window) for mit_mot, window in zip(mit_mots, slid)],
            [trace.read(window) for trace, window in zip(traces, windows)],
            [s.read(state, key) for s, state, key in zip(shared, states, keys)],
        )
        slid = [m.write(w, values) for m, w, values in zip(mit_mots, slid, result.mit_mots)]
        new = [trace.fit(value) for trace, value in zip(traces, result.traces)]
        stacked = [None if t.in_window else value for t, value in zip(traces, new)]
        carry = (
            [window[1:] for window in slid],
            [t.push(window, value) for t, window, value in zip(traces, windows, new)],
            [s.write(value) for s, value in zip(shared, result.shared)],
        )
        return carry, ([window[0] for window in slid], stacked), result.failed

    carry = tuple([state.start() for state in kind] for kind in (mit_mots, traces, shared))
    entering = (
        [sequence[: loop.static_steps] for sequence in loop.sequences],
        [mit_mot.entering() for mit_mot in mit_mots],
    )
    draws = [state if isinstance(state, Drawn) else None for state in shared]
    steps = loop.static_steps or 0
    words, known = loop.frame.checks.pack(), len(loop.frame.checks.failed)
    carry, (left, stacked), words = scan_ahead.scan(
        body, carry, entering, draws, steps, words, known, loop.frame.outer is None
    )
    loop.report(words)
    kept, windows, states = carry
    return [
        *(m.finish_stacked(*pair) for m, *pair in zip(mit_mots, kept, left)),
        *(t.finish_stacked(*pair) for t, *pair in zip(traces, windows, stacked)),
        *(s.finish(state) for s, state in zip(shared, states)),
    ]
