"""Assignments between arrays, as loops.

``a[i] = b`` for arrays is one line of source, but compiling it takes Numba
several times as long as compiling the loop (5.2 s against 0.5 s for a row of a
matrix, with Numba 0.68).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from aesara.tensor.type import TensorType

from fixed_modes.numba.broadcasting import write_step
from fixed_modes.numba.facts import Shape
from fixed_modes.numba.writer import Writer


def write_assignment(
    writer: Writer,
    target: str,
    free_axes: int,
    value: str,
    value_type: TensorType,
    fixed: str = "",
    sign: str = "=",
    message: Callable[[int, int], str] | None = None,
    target_shape: Shape = (),
    value_shape: Shape = (),
) -> None:
    """Write ``target[fixed] = value`` for an array `value`, which may be broadcast.

    Parameters
    ----------
    target
        The name of an array.
    free_axes
        How many axes of `target` the assignment runs over: the last ones.
    value, value_type
        The name and the type of the value, an array of one axis or more.
    fixed
        An index for the first axis of `target`, where that is not free.
    sign
        ``=`` or ``+=``.
    message
        What to say of a value whose length (first) does not fit (second).
    target_shape, value_shape
        What is known of the lengths of the free axes, and of the value.
    """
    skipped = 1 if fixed else 0
    lead = free_axes - value_type.ndim
    indices = [writer.fresh("k") for _ in range(free_axes)]
    positions = ["0"] * max(-lead, 0)
    for axis in range(max(lead, 0), free_axes):
        own_axis = axis - lead
        fit = _known_fit(target_shape[axis:][:1], value_shape[own_axis:][:1], writer)
        if value_type.broadcastable[own_axis] or fit == 0:
            positions.append("0")
        elif fit == 1:
            positions.append(indices[axis])
        else:
            length = f"{target}.shape[{axis + skipped}]"
            own = f"{value}.shape[{own_axis}]"
            step = write_step(writer, own, length, message or unfit_message)
            positions.append(f"{indices[axis]} * {step}")
    with ExitStack() as nest:
        for axis, index in enumerate(indices):
            loop = f"for {index} in range({target}.shape[{axis + skipped}]):"
            nest.enter_context(writer.block(loop))
        place = ", ".join([fixed, *indices] if fixed else indices)
        writer.emit(f"{target}[{place}] {sign} {value}[{', '.join(positions)}]")


def write_copied_row(
    writer: Writer, target: str, source: str, row: str, lengths: list[str]
) -> None:
    """Write ``target[row] = source[row]`` for rows of the same lengths."""
    indices = [writer.fresh("k") for _ in lengths]
    with ExitStack() as nest:
        for index, length in zip(indices, lengths):
            nest.enter_context(writer.block(f"for {index} in range({length}):"))
        place = ", ".join([row, *indices])
        writer.emit(f"{target}[{place}] = {source}[{place}]")


def _known_fit(target: Shape, value: Shape, writer: Writer) -> int | None:
    """Decide how far a value moves along an axis in a step; None where code has to find out."""
    if not target or not value or target[0] is None or value[0] is None:
        return None
    if writer.plan.equal(value[0], target[0]):
        return 1
    return 0 if writer.plan.decide("{} == 1", value[0]) else None


def write_fill(writer: Writer, target: str, ndim: int, value: str, sign: str = "=") -> None:
    """Write ``target[...] = value`` for a scalar value."""
    indices = [writer.fresh("k") for _ in range(ndim)]
    with ExitStack() as nest:
        for axis, index in enumerate(indices):
            nest.enter_context(writer.block(f"for {index} in range({target}.shape[{axis}]):"))
        writer.emit(f"{target}[{', '.join(indices)}] {sign} {value}")


def unfit_message(own: int, length: int) -> str:
    """Say that an array does not fit what it is assigned to."""
    return f"An array of length {own} can't be assigned to one of length {length}."


def shape_tuple(name: str, ndim: int) -> str:
    """Give the shape of an array as a tuple of integers."""
    return f"({', '.join(f'{name}.shape[{axis}]' for axis in range(ndim))},)"


def write_row_order(writer: Writer, name: str, ndim: int, dtype: Any, first: str) -> None:
    """Put the rows of a ring buffer in order, beginning with row `first`."""
    ordered, row = writer.fresh(f"{name}_ordered"), writer.fresh("row")
    indices = [writer.fresh("k") for _ in range(ndim)]
    writer.emit(f"{ordered} = np.empty({shape_tuple(name, ndim)}, {dtype})", f"{row} = {first}")
    with writer.block(f"for {indices[0]} in range({name}.shape[0]):"):
        with ExitStack() as nest:
            for axis, index in enumerate(indices[1:], start=1):
                nest.enter_context(writer.block(f"for {index} in range({name}.shape[{axis}]):"))
            rest = "".join(f", {index}" for index in indices[1:])
            writer.emit(f"{ordered}[{indices[0]}{rest}] = {name}[{row}{rest}]")
        writer.emit(f"{row} += 1")
        with writer.block(f"if {row} == {name}.shape[0]:"):
            writer.emit(f"{row} = 0")
    writer.emit(f"{name} = {ordered}")
