"""Writes a `Scan` as a loop; `Scan.perform` is the semantics.

Each recurrent or mapped output of a scan has a buffer: an array whose first
axis is time, used as a ring where it is shorter than the loop.  Row ``at`` is
where the present step writes; a tap of -1 is the row before it.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Callable

from aesara.graph.basic import Apply, Constant, Variable, ancestors
from aesara.graph.fg import FunctionGraph
from aesara.scan.op import Scan
from aesara.tensor.random.type import RandomType
from aesara.tensor.type import TensorType

from fixed_modes.aliasing import memory_root
from fixed_modes.numba.allocation import initial_allocation
from fixed_modes.numba.copying import write_row_order
from fixed_modes.numba.elemwise import Elements
from fixed_modes.numba.facts import Shape
from fixed_modes.numba.plan import Known
from fixed_modes.numba.scan_parts import Buffer
from fixed_modes.numba.scan_ring import Steps
from fixed_modes.numba.scan_rows import write_row
from fixed_modes.numba.scan_traces import Carried, Trace, copy_generator
from fixed_modes.numba.subtensor import integer
from fixed_modes.numba.views import name_of_whole, row_text
from fixed_modes.numba.writer import Literal, Writer, is_machine_scalar
from fixed_modes.supervisor import may_destroy_outer_input

#: The name of a sequence, its shape, and the name of the array that it is a view of.
_Rows = tuple[str, Shape, str]


class ScanLoop:
    """The loop of one `Scan` node, in the order in which it is written."""

    def __init__(self, op: Scan, node: Apply, fgraph: FunctionGraph, writer: Writer) -> None:
        self.op, self.node, self.fgraph, self.writer = op, node, fgraph, writer
        self.steps = Steps("", None)
        self.done = ""
        self.step = ""
        self.buffers = [*self._mit_mots(), *self._states()]
        self.traces = [
            Trace(outer, result)
            for outer, result in zip(
                op.outer_nitsot(node.inputs), op.inner_nitsot_outs(op.inner_outputs)
            )
        ]
        self.carried = [
            Carried(outer, inner, result, may_destroy_outer_input(fgraph, outer))
            for outer, inner, result in zip(
                op.outer_shared(node.inputs),
                op.inner_shared(op.inner_inputs),
                op.inner_shared_outs(op.inner_outputs),
            )
        ]

    def _traced(self) -> list[Buffer | Trace]:
        return [*self.buffers, *self.traces]

    def _mit_mots(self) -> list[Buffer]:
        op, info = self.op, self.op.info
        inputs = iter(op.inner_mitmot(op.inner_inputs))
        results = iter(op.inner_mitmot_outs(op.inner_outputs))
        return [
            Buffer(
                outer=outer,
                taps_in=tuple(taps_in),
                inputs=[next(inputs) for _ in taps_in],
                taps_out=tuple(taps_out),
                results=[next(results) for _ in taps_out],
                may_destroy=index in op.destroy_map,
                is_mit_mot=True,
            )
            for index, (outer, taps_in, taps_out) in enumerate(
                zip(
                    op.outer_mitmot(self.node.inputs),
                    info.mit_mot_in_slices,
                    info.mit_mot_out_slices,
                )
            )
        ]

    def _states(self) -> list[Buffer]:
        op, info = self.op, self.op.info
        outers = [*op.outer_mitsot(self.node.inputs), *op.outer_sitsot(self.node.inputs)]
        taps = [*info.mit_sot_in_slices, *info.sit_sot_in_slices]
        inputs = iter([*op.inner_mitsot(op.inner_inputs), *op.inner_sitsot(op.inner_inputs)])
        results = [*op.inner_mitsot_outs(op.inner_outputs), *op.inner_sitsot_outs(op.inner_outputs)]
        return [
            Buffer(
                outer=outer,
                taps_in=tuple(taps_in),
                inputs=[next(inputs) for _ in taps_in],
                taps_out=(0,),
                results=[result],
                may_destroy=info.n_mit_mot + index in op.destroy_map,
                may_break=info.as_while,
                allocation=initial_allocation(outer, -min(taps_in), self.fgraph),
            )
            for index, (outer, taps_in, result) in enumerate(zip(outers, taps, results))
        ]

    # -- the loop, top to bottom --------------------------------------------

    def write(self, lower_graph: Callable[[FunctionGraph, Writer], None]) -> None:
        """Write the checks, the allocations, the loop and the outer outputs."""
        writer = self.writer
        self._write_checks()
        sequences = self._sequences()
        outside = [writer.facts_of_value(v) for v in self.op.outer_non_seqs(self.node.inputs)]
        for traced in self._traced():
            traced.allocate(writer, self.steps)
        self.step = writer.fresh("step")
        self.done = self.steps.text
        if self.op.info.as_while:
            self.done = writer.fresh("steps_done")
            writer.emit(f"{self.done} = {self.steps.text}")
        carried = [(c.outer, writer.facts_of_value(c.outer)) for c in self.carried]
        with writer.inside_scan(str(self.op)), writer.inner_scope():
            for outer, facts in carried:
                writer.share(outer, facts)
            for part in self.carried:
                part.allocate(writer)
            for inner, facts in zip(self.op.inner_non_seqs(self.op.inner_inputs), outside):
                writer.share(inner, replace(facts, is_fixed=True))
            with writer.loop(f"for {self.step} in range({self.steps.text}):"):
                self._write_step(sequences, lower_graph)
            trace_shapes = [self._row_shape(trace.result) for trace in self.traces]
        self._write_outputs(trace_shapes)

    def _row_shape(self, result: Variable) -> Shape:
        return self.writer.shape(result) if result.type.ndim else ()

    def _sequences(self) -> list[Elements | _Rows]:
        """Give what the steps read: elements that they compute, or an array and its shape."""
        writer = self.writer
        return [
            Elements(v, writer)
            if self._is_put_off(v)
            else (writer.name(v), writer.shape(v), name_of_whole(v, writer))
            for v in self._outer_sequences()
        ]

    def _is_put_off(self, variable: Variable) -> bool:
        return self.writer.facts_of_value(variable).put_off is not None

    def _outer_sequences(self) -> list[Variable]:
        return list(self.op.outer_seqs(self.node.inputs))

    def _write_checks(self) -> None:
        writer, plan = self.writer, self.writer.plan
        known = writer.known(self.node.inputs[0])
        text = integer(self.node.inputs[0], writer)
        if known is None:
            text = writer.fresh("n_steps")
            writer.emit(f"{text} = {integer(self.node.inputs[0], writer)}")
        self.steps = Steps(text, known)
        if known is None or plan.decide("{} < 0", known):
            with writer.block(f"if {text} < 0:"):
                writer.emit_failure(
                    IndexError,
                    lambda n: f"Scan was asked to run for negative number of step {n}",
                    text,
                )
        for index, sequence in enumerate(self._outer_sequences()):
            length = writer.shape(sequence)[0]
            if known is not None and length is not None and plan.decide("{} >= {}", length, known):
                continue
            if self._is_put_off(sequence):
                lengths = Elements(sequence, writer).lengths
            else:
                lengths = [writer.length(sequence, n) for n in range(sequence.type.ndim)]
            with writer.block(f"if {lengths[0]} < {text}:"):
                writer.emit_failure(ValueError, _short_sequence_message(index), text, *lengths)

    def _write_step(
        self,
        sequences: list[Elements | _Rows],
        lower_graph: Callable[[FunctionGraph, Writer], None],
    ) -> None:
        writer, op = self.writer, self.op
        for inner, source in zip(op.inner_seqs(op.inner_inputs), sequences):
            if isinstance(source, Elements):
                writer.bind(inner, source.read([self.step], writer))
                continue
            sequence, shape, whole = source
            row = f"{sequence}[{self.step}]"
            if inner.type.ndim:
                row = row_text(sequence, self.step, whole, writer)
            writer.emit(f"{writer.define(inner, f'{sequence}_i')} = {row}")
            if inner.type.ndim:
                writer.facts(inner).shape = shape[1:]
                writer.facts(inner).is_lasting = True
        for traced in self._traced():
            traced.place(writer, self.step)
        for buffer in self.buffers:
            buffer.read(writer)
        self._offer_destinations()
        lower_graph(op.fgraph, writer)
        for trace in self.traces:
            trace.write(writer, self.step)
        self._write_states()
        for traced in self._traced():
            traced.advance(writer)
        if op.info.as_while:
            ends = writer.name(op.inner_outputs[-1])
            if isinstance(ends, Literal) or _is_constant(op.inner_outputs[-1]):
                # Numba would see that there is one step, and take back the memory of what is
                # borrowed in it before it is read.
                ends = f"{writer.hidden(1)} != 0 and {ends}"
            with writer.block(f"if {ends}:"):
                writer.emit(f"{self.done} = {self.step} + 1", "break")

    def _offer_destinations(self) -> None:
        """Say which results may be written into their rows at once."""
        destinations = self.writer.destinations
        for buffer in self.buffers:
            if buffer.is_mit_mot or buffer.small_row is not None or buffer.ndim == 1:
                continue
            if buffer.may_be_placed(self.writer):
                destinations.setdefault(buffer.results[0], partial(buffer.destination, self.writer))
        for trace in self.traces:
            destinations.setdefault(trace.result, partial(trace.destination, self.writer))

    def _write_states(self) -> None:
        """Write the new states; whatever aliases a row is copied before any row changes."""
        writer = self.writer
        rows = [
            (buffer, tap, result)
            for buffer in self.buffers
            for tap, result in zip(buffer.taps_out, buffer.results)
        ]
        taken: set[Variable] = set()
        elements = [buffer.values(result, writer) for buffer, _, result in rows]
        values = [
            "" if e is not None else self._value_for_row(*row) for e, row in zip(elements, rows)
        ]
        carried = [self._value_to_carry(part, taken) for part in self.carried]
        for (buffer, tap, result), numbers, value in zip(rows, elements, values):
            if buffer.placed or self._is_in_its_row(buffer, tap, result):
                continue
            if numbers is not None:
                buffer.write_values(tap, numbers, writer)
            else:
                shape = self._row_shape(result)
                row = buffer.row(tap, writer)
                write_row(writer, buffer.name, row, value, result, buffer.row_shape, shape)
        moves = list(zip((part.name for part in self.carried), carried))
        for (buffer, _, _), numbers in zip(rows, elements):
            moves += buffer.shift(numbers)
        # All at once: two states may have swapped.
        if moves:
            names, new = zip(*moves)
            writer.emit(f"{', '.join(names)} = {', '.join(new)}")

    def _is_in_its_row(self, buffer: Buffer, tap: int, result: Variable) -> bool:
        """Say whether a result has been computed in the memory that it belongs to."""
        if is_machine_scalar(result) or self.writer.facts_of_value(result).elements is not None:
            return False
        root, same_memory = memory_root(result)
        own_row = root is buffer.overwritten_by(tap, self.writer)
        # An op may have been written otherwise than in place.
        return own_row and same_memory and self.writer.name(result) == self.writer.name(root)

    def _value_for_row(self, buffer: Buffer, tap: int, result: Variable) -> str:
        value = self.writer.name(result)
        root, _ = memory_root(result)
        if (
            buffer.placed
            or not any(root in other.inputs for other in self.buffers)
            or self._is_in_its_row(buffer, tap, result)
        ):
            return value
        return self._copied(value, ".copy()")

    def _value_to_carry(self, part: Carried, taken: set[Variable]) -> str:
        value = self.writer.name(part.result)
        if isinstance(part.result.type, RandomType):
            root, _ = memory_root(part.result)
            # A generator that two states share, or that comes from outside the
            # loop, must not be advanced in place by the next step.
            is_carried = root.owner is not None or any(root is c.input for c in self.carried)
            if root not in taken and is_carried:
                taken.add(root)
                return value
            return copy_generator(self.writer, value)
        if isinstance(part.result.type, TensorType) and part.result.type.ndim > 0:
            # The array of a result may be used again by the next step.
            return f"{value}.copy()"
        return f"np.{part.result.type.dtype}({value})" if is_machine_scalar(part.result) else value

    def _copied(self, value: str, suffix: str) -> str:
        copied = self.writer.fresh(f"{value}_copy")
        self.writer.emit(f"{copied} = {value}{suffix}")
        return copied

    # -- after the loop ---------------------------------------------------

    def _write_outputs(self, trace_shapes: list[Shape]) -> None:
        writer, outputs = self.writer, self.node.outputs
        for buffer in self.buffers:
            if buffer.is_short:
                buffer.write_short(writer)
            buffer.write_excess(writer)
        finished: list[Buffer | Trace] = []
        finished += [b for b in self.buffers if not b.is_mit_mot and not b.is_short]
        finished += self.traces
        if self.steps.known is None and finished:
            with writer.block(f"if {self.steps.text} > 0:"):
                for part in finished:
                    self._write_finish(part)
        elif self.steps.known is not None and writer.plan.decide("{} > 0", self.steps.known):
            for part in finished:
                self._write_finish(part)
        for trace in self.traces:
            if trace.is_nothing:
                whole, trace.name = trace.name, writer.fresh("nothing")
                trace.known_length = writer.plan.constant(0)
                writer.emit(f"{trace.name} = {whole}[:0]")
        n_traced = len(self.buffers) + len(self.traces)
        shapes = [buffer.row_shape for buffer in self.buffers] + trace_shapes
        for traced, output, shape in zip(self._traced(), outputs, shapes):
            writer.bind(output, traced.name)
            writer.facts(output).shape = (self._rows_after(traced), *shape)
        for carried, output in zip(self.carried, outputs[n_traced:]):
            writer.bind(output, carried.name)

    def _rows_after(self, part: Buffer | Trace) -> Known | None:
        """Give the length of an outer output, where it is known."""
        if isinstance(part, Buffer) and part.is_mit_mot:
            return part.known_length
        if self.steps.known is None:
            return None
        if self.op.info.as_while and not self._is_filled_by_one_step(part):
            return None
        if isinstance(part, Buffer) or self.writer.plan.decide("{} > 0", self.steps.known):
            return part.known_length
        return self.writer.plan.constant(0)

    def _is_filled_by_one_step(self, part: Buffer | Trace) -> bool:
        """Say whether a buffer is full however soon a condition ends the loop."""
        known, plan = part.known_length, self.writer.plan
        if known is None or self.steps.known is None or not plan.decide("{} > 0", self.steps.known):
            return False
        return plan.decide(f"{{}} <= {part.first_row + 1}", known)

    def _write_finish(self, part: Buffer | Trace) -> None:
        """Put the rows in order of time, and give rows that no step wrote as `Scan` does."""
        writer = self.writer
        written = f"{self.done} + {part.first_row}" if part.first_row else self.done
        if isinstance(part, Buffer) and part.excess is not None:
            return
        if part.is_full and not self.op.info.as_while:
            assert part.known_length is not None
            assert self.steps.known is not None
            template = f"{{}} > {{}} + {part.first_row}"
            if writer.plan.decide(template, part.known_length, self.steps.known):
                writer.emit(f"{part.name}[{written}:] = 0")
            return
        if part.is_full:
            if not self._is_filled_by_one_step(part):
                self._write_end(part, written, "if")
            return
        if part.is_single:
            return
        if part.is_full is False and not self.op.info.as_while:
            # A ring that takes in future rows may be long enough for the past ones.
            with writer.block(f"if {part.turn} > 0 and {part.length} < {written}:"):
                write_row_order(writer, part.name, part.ndim, part.dtype, part.turn)
            return
        with writer.block(f"if {part.length} < {written}:"), writer.block(f"if {part.turn} > 0:"):
            write_row_order(writer, part.name, part.ndim, part.dtype, part.turn)
        if not self._is_filled_by_one_step(part):
            self._write_end(part, written, "elif")

    def _write_end(self, part: Buffer | Trace, written: str, keyword: str) -> None:
        """Write what becomes of rows that no step wrote."""
        writer = self.writer
        with writer.block(f"{keyword} {part.length} > {written}:"):
            if not self.op.info.as_while:
                writer.emit(f"{part.name}[{written}:] = 0")
                return
            kept = writer.fresh("kept")
            writer.emit(
                f"{kept} = max({part.length} - ({self.steps.text} - {self.done}), 0)",
                f"{part.name}[{written}:{kept}] = 0",
                f"{part.name} = {part.name}[:{kept}]",
            )


def _short_sequence_message(index: int) -> Callable[..., str]:
    def message(steps: int, *shape: int) -> str:
        return (
            f"Sequence {index} has shape {tuple(shape)} "
            f"but the Scan's required number of steps is {steps}"
        )

    return message


def _is_constant(variable: Variable) -> bool:
    """Say whether a variable of a step is made of nothing that the step gets."""
    return all(isinstance(v, Constant) or v.owner is not None for v in ancestors([variable]))
