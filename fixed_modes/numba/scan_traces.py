"""What a loop gives or carries beside its states: mapped outputs and shared values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from aesara.graph.basic import Variable
from aesara.tensor.random.type import RandomType

from fixed_modes.numba.copying import shape_tuple
from fixed_modes.numba.elements import elements_of, fixed_shape
from fixed_modes.numba.random import copy_of_generator
from fixed_modes.numba.scan_ring import Ring, Steps
from fixed_modes.numba.scan_rows import entry, note_placed, write_row
from fixed_modes.numba.subtensor import integer
from fixed_modes.numba.views import row_text
from fixed_modes.numba.writer import Writer, is_machine_scalar, numpy_dtype


@dataclass
class Trace(Ring):
    """The buffer of a mapped output (nit-sot), allocated before the loop or by the first step.

    Attributes
    ----------
    outer
        The outer input that gives the number of rows.
    result
        The inner output.
    is_nothing
        Whether no row is kept; the steps then write to one that is left out.
    """

    outer: Variable
    result: Variable
    steps: Steps | None = None
    placed: bool = False
    is_allocated: bool = False
    is_nothing: bool = False

    @property
    def dtype(self) -> str:
        return numpy_dtype(self.result.type.dtype)

    @property
    def ndim(self) -> int:
        return self.result.type.ndim + 1

    def allocate(self, writer: Writer, steps: Steps) -> None:
        self.steps = steps
        self.name = writer.fresh((self.result.name or "mapped") + "_trace")
        self.known_length = writer.known(self.outer)
        self.length = integer(self.outer, writer)
        if self.known_length is None:
            self.length = writer.fresh(f"{self.name}_length")
            writer.emit(f"{self.length} = {integer(self.outer, writer)}")
        if self.known_length is not None and steps.known is not None:
            # Aesara keeps no row where a part is read that begins after the last step.
            template = "{} > 0 and {} == 0"
            self.is_nothing = writer.plan.decide(template, steps.known, self.known_length)
        if self.is_nothing:
            self.length, self.known_length = "1", writer.plan.constant(1)
        self.start(writer, steps)
        if is_machine_scalar(self.result):
            statement = f"{self.name} = np.empty({self._rows(writer)}, {self.dtype})"
            if self.known_length is None or steps.known is None:
                writer.emit(statement)
            else:
                writer.hoist(statement, outermost=True)
            self.is_allocated = True

    def _rows(self, writer: Writer) -> str:
        assert self.steps is not None
        if self.steps.known is None:
            return f"{self.length} if {self.steps.text} > 0 else 0"
        return self.length if writer.plan.decide("{} > 0", self.steps.known) else "0"

    def _allocate_rows(self, writer: Writer) -> bool:
        """Write the allocation before the loop, if the shape of a row is known."""
        if self.is_allocated:
            return True
        assert self.steps is not None
        if not writer.is_known_shape(self.result) or self.steps.known is None:
            return False
        lengths = [writer.length(self.result, axis) for axis in range(self.ndim - 1)]
        if not writer.plan.decide("{} > 0", self.steps.known):
            lengths = ["0"] * len(lengths)
        shape = ", ".join([self._rows(writer), *lengths])
        writer.hoist(f"{self.name} = np.empty(({shape},), {self.dtype})")
        self.is_allocated = True
        return True

    def write(self, writer: Writer, step: str) -> None:
        if self.placed:
            return
        result = self.result
        if not is_machine_scalar(result) and not self._allocate_rows(writer):
            self._write_first_allocation(writer, step)
        if self.is_allocated and writer.facts_of_value(result).elements is not None:
            lengths = fixed_shape(result, writer) or ()
            for at, value in zip(np.ndindex(*lengths), elements_of(result, writer)):
                writer.emit(f"{entry(self.name, self.at, at)} = {value}")
            return
        shape = writer.shape(result) if result.type.ndim and self.is_allocated else ()
        write_row(writer, self.name, self.at, writer.name(result), result, shape, shape)

    def _write_first_allocation(self, writer: Writer, step: str) -> None:
        empty = f"({', '.join(['0'] * self.ndim)},)"
        writer.hoist(f"{self.name} = np.empty({empty}, {self.dtype})")
        with writer.block(f"if {step} == 0:"):
            row_shape = shape_tuple(writer.name(self.result), self.ndim - 1)
            writer.emit(f"{self.name} = np.empty(({self.length}, *{row_shape}), {self.dtype})")

    def destination(self, writer: Writer, result: Variable) -> str | None:
        """Give the row for the result of a step."""
        if not self.is_full or is_machine_scalar(result) or not self._allocate_rows(writer):
            return None
        note_placed(self, writer)
        return row_text(self.name, self.at, "", writer)


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
