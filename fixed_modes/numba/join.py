"""`Join` as copies of its parts into one array."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from aesara.graph.basic import Apply, Variable
from aesara.tensor.basic import Join

from fixed_modes.numba.allocation import allocate
from fixed_modes.numba.loops import open_loops
from fixed_modes.numba.scalar import Operand
from fixed_modes.numba.writer import Writer


def write_join(op: Join, node: Apply, writer: Writer) -> bool:
    """Write the parts of a join one after the other; False where the axis is not constant."""
    axis, *parts = node.inputs
    (out,) = node.outputs
    known = writer.known(axis)
    ndim = out.type.ndim
    if known is None or not known.is_constant or any(p.type.ndim != ndim for p in parts):
        return False
    if "float16" in {v.type.dtype for v in (*parts, out)} or not -ndim <= known.value < ndim:
        return False
    along = int(known.value) % ndim
    names = [writer.name(part) for part in parts]
    lengths = [[writer.length(part, n) for n in range(ndim)] for part in parts]
    for number, part in enumerate(parts[1:], start=1):
        _write_checks(parts[0], part, (0, number), along, lengths, writer)
    shape = list(lengths[0])
    shape[along] = " + ".join(own[along] for own in lengths)
    joined = allocate(out, shape, "joined", writer)
    start = "0"
    for number, (part, name, own) in enumerate(zip(parts, names, lengths)):
        with ExitStack() as nest:
            indices = open_loops(nest, own, writer)
            place = list(indices)
            if start != "0":
                place[along] = start if place[along] == "0" else f"{start} + {place[along]}"
            value = Operand(f"{name}[{', '.join(indices)}]", part.type.dtype).to(out.type.dtype)
            writer.emit(f"{joined}[{', '.join(place)}] = {value}")
        if number < len(parts) - 1:
            after = writer.fresh("start")
            writer.emit(f"{after} = {own[along] if start == '0' else f'{start} + {own[along]}'}")
            start = after
    return True


def _write_checks(
    first: Variable,
    part: Variable,
    numbers: tuple[int, int],
    along: int,
    lengths: list[list[str]],
    writer: Writer,
) -> None:
    """Write what raises an error where a part has another length along the other axes."""
    pairs = zip(writer.shape(first), writer.shape(part))
    for axis, (one, other) in enumerate(pairs):
        if axis == along:
            continue
        if one is not None and other is not None and writer.plan.equal(one, other):
            continue
        texts = [lengths[number][axis] for number in numbers]
        with writer.block(f"if {texts[0]} != {texts[1]}:"):
            writer.emit_failure(ValueError, _mismatch(axis, numbers[1]), *texts)


def _mismatch(axis: int, number: int) -> Any:
    def message(first: int, other: int) -> str:
        return (
            f"Join: the parts must have the same lengths along the other axes, but along "
            f"axis {axis} part 0 has length {first} and part {number} has length {other}."
        )

    return message
