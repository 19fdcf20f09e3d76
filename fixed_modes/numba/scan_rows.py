"""Where the results of a step go: into rows of arrays whose first axis is time."""

from __future__ import annotations

from typing import Protocol

from aesara.graph.basic import Variable

from fixed_modes.numba.copying import write_assignment
from fixed_modes.numba.facts import Shape
from fixed_modes.numba.writer import Writer, is_machine_scalar


class _Placed(Protocol):
    placed: bool


def entry(name: str, row: str, place: tuple[int, ...]) -> str:
    return f"{name}[{', '.join([row, *map(str, place)])}]"


def note_placed(part: _Placed, writer: Writer) -> None:
    """Note that the result of the step is in its row, unless its lowering is taken back."""

    def take_back() -> None:
        part.placed = False

    part.placed = True
    writer.when_taken_back(take_back)


def write_row(
    writer: Writer,
    name: str,
    row: str,
    value: str,
    result: Variable,
    target_shape: Shape = (),
    value_shape: Shape = (),
) -> None:
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
            message=changed_shape_message,
            target_shape=target_shape,
            value_shape=value_shape,
        )


def changed_shape_message(own: int, length: int) -> str:
    return (
        "An output of the Scan has changed shape: "
        f"it has length {own} along an axis where it had {length}."
    )
