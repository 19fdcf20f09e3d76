"""The states of a loop, with their buffers.

Each knows how it is allocated before the loop, where it reads and writes in a
step, and how it moves on.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from aesara.graph.basic import Variable

from fixed_modes.numba.broadcasting import write_step
from fixed_modes.numba.copying import write_copied_row
from fixed_modes.numba.elements import (
    elements_of,
    fixed_length,
    fixed_shape,
    set_elements,
    small_shape,
)
from fixed_modes.numba.facts import Shape
from fixed_modes.numba.plan import Known
from fixed_modes.numba.scan_ring import Ring, Steps
from fixed_modes.numba.scan_rows import changed_shape_message, entry, note_placed
from fixed_modes.numba.views import name_of_whole, row_text
from fixed_modes.numba.writer import Writer, is_machine_scalar, numpy_dtype

# So many earlier values of a state are kept in local variables, and so many numbers in all.
_MOST_REGISTERS = 8
_MOST_NUMBERS = 18
# A buffer that is short by so many rows more than its initial ones is made longer.
_FEW_ROWS = 4


@dataclass
class Buffer(Ring):
    """A recurrent state with its buffer: mit-mot, mit-sot or sit-sot.

    Attributes
    ----------
    outer
        The outer input: the buffer with the initial rows.
    taps_in, inputs
        The taps that a step reads, and the inner inputs that get them.
    taps_out, results
        The taps that a step writes, and the inner outputs that go there.
    may_destroy
        Whether the outer graph hands over the buffer itself.
    is_mit_mot
        A mit-mot buffer is returned as it stands after the last step.
    may_break
        Whether a condition may end the loop.
    allocation
        The allocation that the buffer is, if nothing but the initial rows has been written
        to it and nothing else uses it.
    row_shape
        What is known of the shape of a row.
    small_row
        The lengths of a row that is handled element by element.
    registers
        Local variables that hold the last rows, newest first, each element by element.
    is_short
        Whether only the registers are used in the loop: the last rows are all there is.
    placed
        Whether the result of the step has been written into its row already.
    excess
        How many rows the buffer has that the outer graph has no use for, if any.
    whole
        The name of the array that the buffer is a view of, backwards, if it is one.
    """

    outer: Variable
    taps_in: tuple[int, ...]
    inputs: list[Variable]
    taps_out: tuple[int, ...]
    results: list[Variable]
    may_destroy: bool
    is_mit_mot: bool = False
    may_break: bool = False
    allocation: Variable | None = None
    row_shape: Shape = ()
    small_row: tuple[int, ...] | None = None
    registers: list[list[str]] = field(default_factory=list)
    is_short: bool = False
    placed: bool = False
    excess: Known | None = None
    whole: str = ""
    rows: dict[int, str] = field(default_factory=dict)

    @property
    def first_row(self) -> int:
        return -min(self.taps_in)

    @property
    def reach(self) -> int:
        return max(0, *self.taps_in, *self.taps_out)

    @property
    def dtype(self) -> str:
        return numpy_dtype(self.outer.type.dtype)

    @property
    def ndim(self) -> int:
        return self.outer.type.ndim

    def allocate(self, writer: Writer, steps: Steps) -> None:
        source = writer.name(self.outer)
        self.known_length, *row_shape = writer.shape(self.outer)
        self.row_shape = tuple(row_shape)
        self.small_row = small_shape(self.row_shape, writer)
        self.name = writer.fresh((self.outer.name or "state") + "_buffer")
        self.length = writer.length(self.outer, 0)
        if self.known_length is None:
            self.length = writer.fresh(f"{self.name}_length")
            writer.emit(f"{self.length} = {source}.shape[0]")
        self._decide_short(writer, steps)
        if self.is_short:
            self._read_registers(writer, source)
            return
        if self._is_slightly_short(writer, steps):
            self._allocate_in_full(writer, source, steps)
            return
        is_own = self.may_destroy
        self.whole = name_of_whole(self.outer, writer) if is_own else ""
        writer.emit(f"{self.name} = {source}" if is_own else f"{self.name} = {source}.copy()")
        self.start(writer, steps)
        self._read_registers(writer, self.name)

    def _decide_short(self, writer: Writer, steps: Steps) -> None:
        if self.known_length is None or steps.known is None or not self._may_have_registers():
            return
        plan = writer.plan
        if plan.decide("{} == 0", steps.known):
            return
        # More rows would be a trace, whose length may be another one at the next call,
        # and where a condition may end the loop they need not all be filled.
        most = min(self.first_row + 1, self._most_rows())
        if not plan.decide(f"{self.first_row} <= {{}} <= {most}", self.known_length):
            return
        template = f"{{}} >= {{}} + {self.first_row + self.reach}"
        if not plan.decide(template, self.known_length, steps.known):
            self.is_short, self.is_full = True, False
            fixed_length(self.known_length, writer)

    def _is_slightly_short(self, writer: Writer, steps: Steps) -> bool:
        """Decide whether a few more rows make a buffer full, which is faster than a ring."""
        if self.is_mit_mot or self.may_break:
            return False
        if self.known_length is None or steps.known is None:
            return False
        most = self.first_row + _FEW_ROWS
        template = f"{{}} >= {self.first_row} and 0 < {{}} + {self.first_row} - {{}} <= {most}"
        return writer.plan.decide(template, self.known_length, steps.known, self.known_length)

    def _allocate_in_full(self, writer: Writer, source: str, steps: Steps) -> None:
        """Write a buffer of its own, with a row for every step."""
        assert self.known_length is not None
        assert steps.known is not None
        rows = writer.plan.apply(f"{{}} + {self.first_row}", steps.known)
        self.excess = writer.plan.apply("{} - {}", rows, self.known_length)
        lengths = [writer.parameter(rows)]
        lengths += [writer.length(self.outer, axis) for axis in range(1, self.ndim)]
        writer.hoist(
            f"{self.name} = np.empty(({', '.join(lengths)},), {self.dtype})", outermost=True
        )
        for row in range(self.first_row):
            write_copied_row(writer, self.name, source, str(row), lengths[1:])
        if self.allocation is not None:
            # Memory for twice the trace would go back to the system after each call.
            writer.shorten(self.allocation, self.first_row)
        self.is_full = True
        self._read_registers(writer, self.name)

    def write_excess(self, writer: Writer) -> None:
        """Write what leaves out the rows that the outer graph has no use for."""
        if self.excess is not None:
            whole, self.name = self.name, writer.fresh(f"{self.name}_rows")
            writer.emit(f"{self.name} = {whole}[{writer.parameter(self.excess)}:]")

    def _most_rows(self) -> int:
        lanes = int(np.prod(self.small_row)) if self.small_row else 1
        return min(_MOST_REGISTERS, _MOST_NUMBERS // lanes)

    def _may_have_registers(self) -> bool:
        is_small = self.ndim == 1 or self.small_row is not None
        return is_small and not self.is_mit_mot and self.first_row <= self._most_rows()

    def _read_registers(self, writer: Writer, source: str) -> None:
        """Write what takes the initial rows into local variables."""
        if not self._may_have_registers():
            return
        known = self.known_length
        is_there = known is not None and writer.plan.decide(f"{{}} >= {self.first_row}", known)
        if not is_there and self.ndim > 1:
            return
        zero = writer.literal(np.zeros((), self.outer.type.dtype)[()])
        n_rows = int(known.value) if known is not None and self.is_short else self.first_row
        for back in range(1, n_rows + 1):
            row = []
            for place in self._places():
                register = writer.fresh("_".join([f"{self.name}_tm{back}", *map(str, place)]))
                row.append(register)
                text: str
                if back > self.first_row:
                    text = zero  # so many steps come that this is never read
                elif is_there:
                    text = entry(source, str(self.first_row - back), place)
                else:
                    at = f"({self.turn} - {back}) % {self.length}"
                    text = f"{self.name}[{at}] if {self.length} > 0 else {zero}"
                writer.emit(f"{register} = {text}")
            self.registers.append(row)

    def _places(self) -> list[tuple[int, ...]]:
        return list(np.ndindex(*(self.small_row or ())))

    def place(self, writer: Writer, step: str) -> None:
        if not self.is_short:
            super().place(writer, step)

    def advance(self, writer: Writer) -> None:
        if not self.is_short:
            super().advance(writer)

    def read(self, writer: Writer) -> None:
        """Write what reads the taps of a step."""
        self.rows = {}
        for tap, inner in zip(self.taps_in, self.inputs):
            if self.registers:
                self._bind(inner, self.registers[-tap - 1], writer)
            elif self.small_row is not None:
                row = self.row(tap, writer)
                elements = []
                for place in self._places():
                    name = writer.fresh("_".join([f"{self.name}_tap", *map(str, place)]))
                    writer.emit(f"{name} = {entry(self.name, row, place)}")
                    elements.append(name)
                self._bind(inner, elements, writer)
            else:
                value, row = writer.define(inner, f"{self.name}_tap"), self.row(tap, writer)
                if self.ndim == 1:
                    writer.emit(f"{value} = {self.name}[{row}]")
                    continue
                writer.emit(f"{value} = {row_text(self.name, row, self.whole, writer)}")
                writer.facts(inner).shape = self.row_shape
                writer.facts(inner).is_lasting = True

    def _bind(self, inner: Variable, elements: list[str], writer: Writer) -> None:
        if self.ndim == 1:
            writer.bind(inner, elements[0])
        else:
            assert self.small_row is not None
            set_elements(inner, elements, self.small_row, writer)

    def row(self, tap: int, writer: Writer) -> str:
        """Give an expression for the row of `tap` in the present step."""
        if tap == 0 or self.is_single:
            return self.at
        sign = "+" if tap > 0 else "-"
        if self.is_full:
            return _sum(self.at, tap)
        if tap not in self.rows:
            row = self.rows[tap] = writer.fresh(f"{self.name}_row")
            writer.emit(f"{row} = {self.at} {sign} {abs(tap)}")
            if self.is_full is None:
                with writer.block(f"if not {self.full}:"):
                    writer.emit(f"{row} %= {self.length}")
            elif self._reaches_around_once(tap, writer):
                # A division takes as long as many a step.
                past, turn = ("< 0", "+=") if tap < 0 else (f">= {self.length}", "-=")
                with writer.block(f"if {row} {past}:"):
                    writer.emit(f"{row} {turn} {self.length}")
            else:
                writer.emit(f"{row} %= {self.length}")
        return self.rows[tap]

    def _reaches_around_once(self, tap: int, writer: Writer) -> bool:
        known = self.known_length
        return known is not None and writer.plan.decide(f"{{}} >= {abs(tap)}", known)

    def values(self, result: Variable, writer: Writer) -> list[str] | None:
        """Give the elements of a result, if its row is handled element by element."""
        if is_machine_scalar(result):
            return [writer.name(result)]
        if self.small_row is None:
            return None
        if writer.is_known_shape(result) and fixed_shape(result, writer) == self.small_row:
            return list(elements_of(result, writer))
        value = writer.name(result)
        steps = [
            write_step(writer, f"{value}.shape[{axis}]", str(length), changed_shape_message)
            for axis, length in enumerate(self.small_row)
        ]
        elements = []
        for place in self._places():
            elements.append(writer.fresh("_".join([value, *map(str, place)])))
            index = ", ".join(f"{k} * {step}" for k, step in zip(place, steps))
            writer.emit(f"{elements[-1]} = {value}[{index}]")
        return elements

    def write_values(self, tap: int, values: list[str], writer: Writer) -> None:
        """Write the elements of a row."""
        if self.is_short:
            return
        row = self.row(tap, writer)
        for place, value in zip(self._places(), values):
            writer.emit(f"{entry(self.name, row, place)} = {value}")

    def shift(self, values: list[str] | None) -> list[tuple[str, str]]:
        """Give the assignments to the registers after a step."""
        if not self.registers:
            return []
        assert values is not None
        is_same = self.results[0].type.dtype == self.outer.type.dtype
        if is_same and self.outer.type.dtype in ("float64", "int64", "bool"):
            cast = values
        else:
            cast = [f"{self.dtype}({value})" for value in values]
        rows = [cast, *self.registers]
        return [(a, b) for new, old in zip(self.registers, rows) for a, b in zip(new, old)]

    def write_short(self, writer: Writer) -> None:
        """Write the rows, which are all in registers, into a buffer of their own."""
        lengths = [str(len(self.registers)), *map(str, self.small_row or ())]
        writer.emit(f"{self.name} = np.empty(({', '.join(lengths)},), {self.dtype})")
        for back, row in enumerate(self.registers, start=1):
            for place, register in zip(self._places(), row):
                target = entry(self.name, str(len(self.registers) - back), place)
                writer.emit(f"{target} = {register}")

    def destination(self, writer: Writer, result: Variable) -> str | None:
        """Give the row for the result of a step, if it may be written before the step is over."""
        if self.is_mit_mot or result.type.dtype != self.outer.type.dtype:
            return None
        if not self.is_full and not self._has_free_row(writer):
            return None
        if not _same_shape(writer.shape(result), self.row_shape, writer):
            return None
        note_placed(self, writer)
        return row_text(self.name, self.at, self.whole, writer)

    def overwritten_by(self, tap: int, writer: Writer) -> Variable | None:
        """Give the inner input whose row a step overwrites where it writes that of `tap`."""
        known = self.known_length
        if self.is_full is False and not self.is_mit_mot and known is not None:
            # In a ring without a row to spare the oldest row gives way.
            tight = writer.plan.decide(f"{{}} == {self.first_row}", known)
            tap = -self.first_row if tight else tap
        return self.inputs[self.taps_in.index(tap)] if tap in self.taps_in else None

    def may_be_placed(self, writer: Writer) -> bool:
        """Decide whether a step may write its row before it is over."""
        return self.is_full is not False or self._has_free_row(writer)

    def _has_free_row(self, writer: Writer) -> bool:
        """Decide whether the row that a step writes in a ring is none that it reads."""
        known = self.known_length
        return known is not None and writer.plan.decide(f"{{}} > {self.first_row}", known)


def _sum(text: str, offset: int) -> str:
    """Give a sum that is easy to read where `text` is one already."""
    head, sign, tail = text.rpartition(" + ")
    if sign and tail.isdigit():
        text, offset = head, int(tail) + offset
    return text if offset == 0 else f"{text} {'+' if offset > 0 else '-'} {abs(offset)}"


def _same_shape(one: Shape, other: Shape, writer: Writer) -> bool:
    return len(one) == len(other) and all(
        a is not None and b is not None and writer.plan.equal(a, b) for a, b in zip(one, other)
    )
