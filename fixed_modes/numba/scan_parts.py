"""What a loop carries: state buffers, traces of mapped outputs, shared values.

Each knows how it is allocated before the loop, where it reads and writes in a
step, and how it moves on.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from aesara.graph.basic import Variable
from aesara.tensor.random.type import RandomType

from fixed_modes.numba.copying import shape_tuple, write_assignment
from fixed_modes.numba.elemwise import numpy_dtype
from fixed_modes.numba.random import copy_of_generator
from fixed_modes.numba.subtensor import integer
from fixed_modes.numba.writer import Writer, is_machine_scalar

# So many earlier values of a state are kept in local variables.
_MOST_REGISTERS = 8


@dataclass
class Ring:
    """An array whose first axis is time, used as a ring where it is shorter than the loop.

    Attributes
    ----------
    name, length
        The names of the array and of its length.
    at
        The name of the row that the present step writes.
    turn
        The name of the same where the array is used as a ring.
    full
        The name of a flag: no step comes around to the first row.
    """

    name: str = field(default="", init=False)
    length: str = field(default="", init=False)
    at: str = field(default="", init=False)
    turn: str = field(default="", init=False)
    full: str = field(default="", init=False)

    @property
    def first_row(self) -> int:
        """The row that the first step writes."""
        return 0

    @property
    def reach(self) -> int:
        """How far beyond `at` a step reads or writes."""
        return 0

    def take_names(self, hint: str, writer: Writer) -> None:
        self.name = writer.fresh(hint)
        self.length = writer.fresh(f"{self.name}_length")
        self.full = writer.fresh(f"{self.name}_is_full")
        self.turn = writer.fresh(f"{self.name}_turn")
        self.at = writer.fresh(f"{self.name}_at")

    def start(self, writer: Writer, steps: str) -> None:
        """Write where the first step stands; a ring without rows can't take one."""
        with writer.block(f"if {steps} > 0 and {self.length} == 0:"):
            writer.emit_failure(ZeroDivisionError, lambda: "integer modulo by zero")
        rows = f"{steps} + {self.first_row + self.reach}" if self.first_row + self.reach else steps
        writer.emit(f"{self.full} = {self.length} >= {rows}")
        start = f"{self.first_row} % max({self.length}, 1)" if self.first_row else "0"
        writer.emit(f"{self.turn} = {start}")

    def place(self, writer: Writer, step: str) -> None:
        """Write which row the present step writes."""
        row = f"{step} + {self.first_row}" if self.first_row else step
        writer.emit(f"{self.at} = {row} if {self.full} else {self.turn}")

    def advance(self, writer: Writer) -> None:
        with writer.block(f"if not {self.full}:"):
            writer.emit(f"{self.turn} += 1")
            with writer.block(f"if {self.turn} == {self.length}:"):
                writer.emit(f"{self.turn} = 0")


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
    registers
        Local variables that hold the last values of a scalar state, newest first.
    """

    outer: Variable
    taps_in: tuple[int, ...]
    inputs: list[Variable]
    taps_out: tuple[int, ...]
    results: list[Variable]
    may_destroy: bool
    is_mit_mot: bool = False
    registers: list[str] = field(default_factory=list)
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

    def allocate(self, writer: Writer, steps: str) -> None:
        source = writer.name(self.outer)
        self.take_names((self.outer.name or "state") + "_buffer", writer)
        writer.emit(
            f"{self.name} = {source}" if self.may_destroy else f"{self.name} = {source}.copy()",
            f"{self.length} = {self.name}.shape[0]",
        )
        self.start(writer, steps)
        if not self.is_mit_mot and self.ndim == 1 and self.first_row <= _MOST_REGISTERS:
            zero = writer.literal(np.zeros((), self.outer.type.dtype)[()])
            for back in range(1, self.first_row + 1):
                register = writer.fresh(f"{self.name}_tm{back}")
                self.registers.append(register)
                row = f"({self.turn} - {back}) % {self.length}"
                writer.emit(f"{register} = {self.name}[{row}] if {self.length} > 0 else {zero}")

    def read(self, writer: Writer) -> None:
        self.rows = {}
        for tap, inner in zip(self.taps_in, self.inputs):
            if self.registers:
                writer.bind(inner, self.registers[-tap - 1])
            else:
                value = writer.define(inner, f"{self.name}_tap")
                writer.emit(f"{value} = {self.name}[{self.row(tap, writer)}]")

    def row(self, tap: int, writer: Writer) -> str:
        """Give an expression for the row of `tap` in the present step."""
        if tap == 0:
            return self.at
        if tap not in self.rows:
            row = self.rows[tap] = writer.fresh(f"{self.name}_row")
            writer.emit(f"{row} = {self.at} {'+' if tap > 0 else '-'} {abs(tap)}")
            with writer.block(f"if not {self.full}:"):
                writer.emit(f"{row} %= {self.length}")
        return self.rows[tap]

    def shift(self, value: str) -> list[tuple[str, str]]:
        """Give the assignments to the registers after a step that gave `value`."""
        cast = value if not self.registers else f"{self.dtype}({value})"
        return list(zip(self.registers, [cast, *self.registers]))


@dataclass
class Trace(Ring):
    """The buffer of a mapped output (nit-sot), allocated by the first step."""

    outer: Variable
    result: Variable

    @property
    def dtype(self) -> str:
        return numpy_dtype(self.result.type.dtype)

    @property
    def ndim(self) -> int:
        return self.result.type.ndim + 1

    def allocate(self, writer: Writer, steps: str) -> None:
        self.take_names((self.result.name or "mapped") + "_trace", writer)
        writer.emit(f"{self.length} = {integer(self.outer, writer)}")
        self.start(writer, steps)
        if is_machine_scalar(self.result):
            shape = f"{self.length} if {steps} > 0 else 0"
        else:
            shape = f"({', '.join(['0'] * (self.result.type.ndim + 1))},)"
        writer.emit(f"{self.name} = np.empty({shape}, {self.dtype})")

    def write(self, writer: Writer, step: str) -> None:
        value = writer.name(self.result)
        if not is_machine_scalar(self.result):
            with writer.block(f"if {step} == 0:"):
                row_shape = shape_tuple(value, self.result.type.ndim)
                writer.emit(f"{self.name} = np.empty(({self.length}, *{row_shape}), {self.dtype})")
        write_row(writer, self.name, self.at, value, self.result)


@dataclass
class Carried:
    """A shared state without a trace: a generator, or the value of a shared variable."""

    outer: Variable
    input: Variable
    result: Variable
    may_destroy: bool
    name: str = ""

    def allocate(self, writer: Writer) -> None:
        self.name = writer.fresh(self.outer.name or "shared")
        source = writer.name(self.outer)
        if isinstance(self.outer.type, RandomType) and not self.may_destroy:
            source = copy_generator(writer, source)
        writer.emit(f"{self.name} = {source}")
        writer.bind(self.input, self.name)


def copy_generator(writer: Writer, source: str) -> str:
    """Give an expression for a copy of the generator `source`."""
    writer.globals["copy_of_generator"] = copy_of_generator
    return f"copy_of_generator({source})"


def write_row(writer: Writer, name: str, row: str, value: str, result: Variable) -> None:
    """Write an inner output into a row of a buffer."""
    if is_machine_scalar(result):
        writer.emit(f"{name}[{row}] = {value}")
    else:
        write_assignment(
            writer,
            name,
            result.type.ndim,
            value,
            result.type,
            fixed=row,
            message=_changed_shape_message,
        )


def _changed_shape_message(own: int, length: int) -> str:
    return (
        "An output of the Scan has changed shape: "
        f"it has length {own} along an axis where it had {length}."
    )
