"""Indexing with arrays of integers and with masks, as loops.

NumPy's rules: the arrays among the indices are broadcast against each other; the
axes of the result that come from them stand where the arrays stand, or in front
where something stands between the arrays.  A mask stands for the positions of
its true elements.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from aesara.graph.basic import Apply, Constant, Variable
from aesara.tensor.subtensor import AdvancedIncSubtensor, AdvancedSubtensor
from aesara.tensor.type import TensorType
from aesara.tensor.type_other import MakeSlice, NoneTypeT, SliceType

from fixed_modes.numba.broadcasting import write_common_length, write_step
from fixed_modes.numba.subtensor import write_bounds_check
from fixed_modes.numba.writer import Writer, numpy_dtype


class NotWritten(NotImplementedError):
    """An index that this module does not write."""


@dataclass
class _ArrayIndex:
    """An array of integers that indexes one axis."""

    axis: int
    name: str
    ndim: int
    steps: list[str] = field(default_factory=list)


@dataclass
class _Plan:
    """Where the axes of the result come from.

    Attributes
    ----------
    source
        The array, with the slices among the indices applied.
    arrays
        The arrays of integers among the indices.
    lengths
        What the arrays are broadcast to.
    axes
        For each axis of the result: ("array", axis of `lengths`), ("free", axis
        of the source) or ("new", 0).
    """

    source: str
    arrays: list[_ArrayIndex]
    lengths: list[str]
    axes: list[tuple[str, int]]

    def length(self, axis: int) -> str:
        kind, number = self.axes[axis]
        if kind == "array":
            return self.lengths[number]
        return f"{self.source}.shape[{number}]" if kind == "free" else "1"


def write_advanced_subtensor(op: AdvancedSubtensor, node: Apply, writer: Writer) -> bool:
    """Write ``x[indices]``; False for an index that this module does not write."""
    x, *indices = node.inputs
    (out,) = node.outputs
    try:
        with writer.all_or_nothing(NotWritten):
            plan = _plan(writer.name(x), x, indices, writer)
    except NotWritten:
        return False
    result = writer.define(out, "taken")
    shape = ", ".join(plan.length(axis) for axis in range(len(plan.axes)))
    writer.emit(f"{result} = np.empty(({shape},), {numpy_dtype(out.type.dtype)})")
    with ExitStack() as nest:
        loops, position = _write_loops(plan, nest, writer)
        writer.emit(f"{result}[{', '.join(loops)}] = {plan.source}[{position}]")
    return True


def write_advanced_inc_subtensor(op: AdvancedIncSubtensor, node: Apply, writer: Writer) -> bool:
    """Write ``x[indices] = y`` or ``+= y``; repeated indices count each time."""
    x, y, *indices = node.inputs
    (out,) = node.outputs
    if op.ignore_duplicates:
        return False
    try:
        with writer.all_or_nothing(NotWritten):
            if not writer.is_in_place(node):
                writer.emit(f"{writer.define(out, 'updated')} = {writer.name(x)}.copy()")
            else:
                writer.bind(out, writer.name(x))
            plan = _plan(writer.name(out), x, indices, writer)
    except NotWritten:
        return False
    value = writer.name(y)
    lead = len(plan.axes) - y.type.ndim
    steps = [
        write_step(
            writer,
            f"{value}.shape[{axis}]",
            plan.length(axis + lead) if axis + lead >= 0 else "1",
            _value_message,
        )
        for axis in range(y.type.ndim)
    ]
    with ExitStack() as nest:
        loops, position = _write_loops(plan, nest, writer)
        own = [
            f"{loops[axis + lead]} * {step}" if axis + lead >= 0 else "0"
            for axis, step in enumerate(steps)
        ]
        element = f"{value}[{', '.join(own)}]" if own else value
        sign = "=" if op.set_instead_of_inc else "+="
        dtype = numpy_dtype(x.type.dtype)
        writer.emit(f"{plan.source}[{position}] {sign} {dtype}({element})")
    return True


def _plan(source: str, x: Variable, indices: list[Variable], writer: Writer) -> _Plan:
    axis = 0
    slices: list[str] = []
    arrays: list[_ArrayIndex] = []
    entries: list[tuple[str, int]] = []
    for index in indices:
        if isinstance(index.type, NoneTypeT):
            entries.append(("new", 0))
        elif isinstance(index.type, SliceType):
            slices.append(_slice_text(index, writer))
            entries.append(("free", axis))
            axis += 1
        elif isinstance(index.type, TensorType) and index.type.dtype == "bool":
            arrays += _mask_positions(index, source, axis, writer)
            slices += [":"] * index.type.ndim
            entries.append(("array", 0))
            axis += index.type.ndim
        elif isinstance(index.type, TensorType):
            arrays.append(_ArrayIndex(axis, writer.name(index), index.type.ndim))
            slices.append(":")
            entries.append(("array", 0))
            axis += 1
        else:
            raise NotWritten(str(index.type))
    entries += [("free", rest) for rest in range(axis, x.type.ndim)]
    if any(part != ":" for part in slices):
        view = writer.fresh("part")
        writer.emit(f"{view} = {source}[{', '.join(slices)}]")
        source = view
    lengths = _write_broadcast(arrays, writer)
    return _Plan(source, arrays, lengths, _place(entries, len(lengths)))


def _place(entries: list[tuple[str, int]], broadcast_ndim: int) -> list[tuple[str, int]]:
    positions = [n for n, (kind, _) in enumerate(entries) if kind == "array"]
    if not positions:
        raise NotWritten("no array among the indices")
    adjacent = positions == list(range(positions[0], positions[-1] + 1))
    at = positions[0] if adjacent else 0
    others = [entry for entry in entries if entry[0] != "array"]
    return [*others[:at], *(("array", n) for n in range(broadcast_ndim)), *others[at:]]


def _slice_text(index: Variable, writer: Writer) -> str:
    if isinstance(index, Constant):
        parts = [index.data.start, index.data.stop, index.data.step]
        texts = ["" if part is None else str(int(part)) for part in parts]
    elif index.owner is not None and isinstance(index.owner.op, MakeSlice):
        texts = [
            "" if isinstance(part.type, NoneTypeT) else f"np.int64({writer.name(part)})"
            for part in index.owner.inputs
        ]
    else:
        raise NotWritten("a slice of unknown origin")
    return ":".join(texts[:2]) + (f":{texts[2]}" if texts[2] else "")


def _mask_positions(mask: Variable, source: str, axis: int, writer: Writer) -> list[_ArrayIndex]:
    ndim, name = mask.type.ndim, writer.name(mask)
    if ndim == 0:
        raise NotWritten("a mask without axes")
    for own in range(ndim):
        with writer.block(f"if {name}.shape[{own}] != {source}.shape[{axis + own}]:"):
            writer.emit_failure(
                IndexError,
                _mask_message(axis + own),
                f"{source}.shape[{axis + own}]",
                f"{name}.shape[{own}]",
            )
    positions = writer.fresh("positions")
    writer.emit(f"{positions} = np.nonzero({name})")
    result = []
    for own in range(ndim):
        single = writer.fresh("positions")
        writer.emit(f"{single} = {positions}[{own}]")
        result.append(_ArrayIndex(axis + own, single, 1))
    return result


def _mask_message(axis: int) -> Any:
    def message(length: int, mask_length: int) -> str:
        return (
            f"boolean index did not match indexed array along dimension {axis}; dimension is "
            f"{length} but corresponding boolean dimension is {mask_length}"
        )

    return message


def _write_broadcast(arrays: list[_ArrayIndex], writer: Writer) -> list[str]:
    """Name the lengths that the arrays are broadcast to, and how far each moves in a step."""
    ndim = max((array.ndim for array in arrays), default=0)
    lengths = [
        write_common_length(
            writer,
            [
                f"{array.name}.shape[{axis - (ndim - array.ndim)}]"
                for array in arrays
                if axis >= ndim - array.ndim
            ],
            IndexError,
            _broadcast_message,
        )
        for axis in range(ndim)
    ]
    for array in arrays:
        lead = ndim - array.ndim
        array.steps = [
            write_step(writer, f"{array.name}.shape[{own}]", lengths[own + lead], _value_message)
            for own in range(array.ndim)
        ]
    return lengths


def _broadcast_message(one: int, other: int) -> str:
    return (
        "shape mismatch: indexing arrays could not be broadcast together: "
        f"they have lengths {one} and {other} along one axis"
    )


def _value_message(own: int, length: int) -> str:
    return (
        f"shape mismatch: values of length {own} can't be assigned where the index "
        f"gives length {length}"
    )


def _write_loops(plan: _Plan, nest: ExitStack, writer: Writer) -> tuple[list[str], str]:
    """Open the loops over the result; give their indices and the position in the source."""
    loops = [writer.fresh("k") for _ in plan.axes]
    last_array = max((n for n, (kind, _) in enumerate(plan.axes) if kind == "array"), default=-1)
    of_arrays = [loops[n] for n, (kind, _) in enumerate(plan.axes) if kind == "array"]
    places = {axis: loops[n] for n, (kind, axis) in enumerate(plan.axes) if kind == "free"}
    if last_array < 0:
        _write_positions(plan, of_arrays, places, writer)
    for n, loop in enumerate(loops):
        nest.enter_context(writer.block(f"for {loop} in range({plan.length(n)}):"))
        if n == last_array:
            _write_positions(plan, of_arrays, places, writer)
    return loops, ", ".join(places[axis] for axis in sorted(places))


def _write_positions(plan: _Plan, loops: list[str], places: dict[int, str], writer: Writer) -> None:
    for array in plan.arrays:
        own = loops[len(loops) - array.ndim :]
        index = ", ".join(f"{loop} * {step}" for loop, step in zip(own, array.steps))
        position = writer.fresh("index")
        element = f"{array.name}[{index}]" if index else array.name
        writer.emit(f"{position} = np.int64({element})")
        write_bounds_check(position, f"{plan.source}.shape[{array.axis}]", array.axis, writer)
        places[array.axis] = position
