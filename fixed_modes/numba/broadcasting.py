"""Lengths that are broadcast at run time: one of 1 goes with any other."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from fixed_modes.numba.writer import Writer


def write_common_length(
    writer: Writer,
    lengths: Iterable[str],
    exception: type[Exception],
    message: Callable[[int, int], str],
) -> str:
    """Write what `lengths` are broadcast to, and name it.

    Parameters
    ----------
    lengths
        Expressions for the lengths.
    exception, message
        What is raised where two lengths, neither of them 1, differ.
    """
    common = writer.fresh("n")
    writer.emit(f"{common} = 1")
    for length in lengths:
        with writer.block(f"if {length} != 1:"):
            with writer.block(f"if {common} != 1 and {length} != {common}:"):
                writer.emit_failure(exception, message, common, length)
            writer.emit(f"{common} = {length}")
    return common


def write_step(writer: Writer, own: str, length: str, message: Callable[[int, int], str]) -> str:
    """Write how far an array of length `own` moves for one step of a loop of `length`, and name it.

    That is 1, or 0 where it is broadcast; `ValueError` where it does not fit.
    """
    step = writer.fresh("step")
    writer.emit(f"{step} = 1")
    with writer.block(f"if {own} != {length}:"):
        with writer.block(f"if {own} != 1:"):
            writer.emit_failure(ValueError, message, own, length)
        writer.emit(f"{step} = 0")
    return step
