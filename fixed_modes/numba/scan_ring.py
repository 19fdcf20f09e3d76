"""Arrays whose first axis is time, and where a step of a loop stands in them."""

from __future__ import annotations

from dataclasses import dataclass, field

from fixed_modes.numba.plan import Known
from fixed_modes.numba.writer import Writer


@dataclass(frozen=True)
class Steps:
    """How many steps a loop takes.

    Attributes
    ----------
    text
        The expression for the number.
    known
        The number, where it is known before the code runs.
    """

    text: str
    known: Known | None


@dataclass
class Ring:
    """An array whose first axis is time, used as a ring where it is shorter than the loop.

    Attributes
    ----------
    name, length
        The name of the array, and the expression for its length.
    at
        The expression for the row that the present step writes.
    turn
        The name of the same where the array is used as a ring.
    full
        The name of a flag: no step comes around to the first row.
    is_full
        The same, where it is known before the code runs.
    known_length
        The length, where it is known before the code runs.
    is_single
        Whether it has one row, which every step reads and writes.
    """

    name: str = field(default="", init=False)
    length: str = field(default="", init=False)
    at: str = field(default="", init=False)
    turn: str = field(default="", init=False)
    full: str = field(default="", init=False)
    is_full: bool | None = field(default=None, init=False)
    known_length: Known | None = field(default=None, init=False)
    is_single: bool = field(default=False, init=False)

    @property
    def first_row(self) -> int:
        """The row that the first step writes."""
        return 0

    @property
    def reach(self) -> int:
        """How far beyond `at` a step reads or writes."""
        return 0

    def start(self, writer: Writer, steps: Steps) -> None:
        """Write where the first step stands; a ring without rows can't take one."""
        offset = self.first_row + self.reach
        if self.known_length is not None and steps.known is not None:
            plan = writer.plan
            is_empty = plan.decide("{} > 0 and {} == 0", steps.known, self.known_length)
            if not is_empty:
                template = f"{{}} >= {{}} + {offset}" if offset else "{} >= {}"
                self.is_full = plan.decide(template, self.known_length, steps.known)
        elif self._has_initial_rows_alone(writer):
            # Any step comes around to the first one.
            self.is_full = False
        if self.is_full:
            return
        if offset == 1 and self.is_full is False and self.known_length is not None:
            self.is_single = writer.plan.decide("{} == 1", self.known_length)
        if self.is_single:
            return
        if self.is_full is None:
            with writer.block(f"if {steps.text} > 0 and {self.length} == 0:"):
                writer.emit_failure(ZeroDivisionError, lambda: "integer modulo by zero")
            rows = f"{steps.text} + {offset}" if offset else steps.text
            self.full = writer.fresh(f"{self.name}_is_full")
            writer.emit(f"{self.full} = {self.length} >= {rows}")
        self.turn = writer.fresh(f"{self.name}_turn")
        start = f"{self.first_row} % max({self.length}, 1)" if self.first_row else "0"
        writer.emit(f"{self.turn} = {start}")

    def _has_initial_rows_alone(self, writer: Writer) -> bool:
        if self.known_length is None or not self.first_row or self.reach:
            return False
        return writer.plan.decide(f"{{}} == {self.first_row}", self.known_length)

    def place(self, writer: Writer, step: str) -> None:
        """Write which row the present step writes."""
        row = f"{step} + {self.first_row}" if self.first_row else step
        if self.is_full:
            self.at = row
        elif self.is_single:
            self.at = "0"
        elif self.is_full is None:
            self.at = writer.fresh(f"{self.name}_at")
            writer.emit(f"{self.at} = {row} if {self.full} else {self.turn}")
        else:
            self.at = self.turn

    def advance(self, writer: Writer) -> None:
        if self.is_single:
            return
        if self.is_full is None:
            with writer.block(f"if not {self.full}:"):
                self._write_turn(writer)
        elif not self.is_full:
            self._write_turn(writer)

    def _write_turn(self, writer: Writer) -> None:
        writer.emit(f"{self.turn} += 1")
        with writer.block(f"if {self.turn} == {self.length}:"):
            writer.emit(f"{self.turn} = 0")
