"""Indexing as statements: views, gathers and updates, with bounds checked."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from aesara.graph.basic import Apply, Constant, Variable
from aesara.graph.type import Type
from aesara.tensor.subtensor import (
    AdvancedIncSubtensor1,
    AdvancedSubtensor1,
    IncSubtensor,
    Subtensor,
    get_idx_list,
)
from aesara.tensor.type import TensorType

from fixed_modes.numba.allocation import allocate, has_destination
from fixed_modes.numba.broadcasting import write_step
from fixed_modes.numba.copying import unfit_message, write_assignment, write_fill
from fixed_modes.numba.elemwise import Elements
from fixed_modes.numba.facts import Shape
from fixed_modes.numba.loops import open_loops
from fixed_modes.numba.plan import Known
from fixed_modes.numba.shapes import indexed_shape
from fixed_modes.numba.views import lasting, note_view
from fixed_modes.numba.writer import Writer, is_machine_scalar, numpy_dtype


def write_subtensor(op: Subtensor, node: Apply, writer: Writer) -> None:
    """Write basic indexing; the result is a view, or a scalar."""
    x = node.inputs[0]
    if is_machine_scalar(x):
        writer.bind(node.outputs[0], writer.name(x))
        return
    index = write_index(op.idx_list, node.inputs[1:], x, writer)
    (out,) = node.outputs
    if is_machine_scalar(out):
        writer.emit(f"{writer.define(out, 'subtensor')} = {writer.name(x)}[{index}]")
        return
    writer.emit(f"{writer.define(out, 'subtensor')} = {lasting(x, writer)}[{index}]")
    note_view(out, x, writer)


def write_inc_subtensor(op: IncSubtensor, node: Apply, writer: Writer) -> None:
    """Write an update of a basic index: in place, or on a copy."""
    x, y, *indices = node.inputs
    (out,) = node.outputs
    target = writer.name(x)
    if is_machine_scalar(x):
        new = f"{numpy_dtype(x.type.dtype)}({writer.name(y)})"
        new = new if op.set_instead_of_inc else f"{target} + {new}"
        writer.emit(f"{writer.define(out, 'updated')} = {new}")
        return
    index = write_index(op.idx_list, indices, x, writer)
    in_place = writer.is_in_place(node)
    if in_place:
        writer.bind(out, target)
    else:
        target = _write_copy(node, writer)
    whole = lasting(x if in_place else out, writer)
    sign = "=" if op.set_instead_of_inc else "+="
    free_axes = x.type.ndim - sum(not isinstance(part, slice) for part in op.idx_list)
    part = indexed_shape(op.idx_list, writer.shape(x), indices, writer)
    if _write_put_off(y, whole, index, sign, part, x.type.dtype, writer):
        return
    value = writer.name(y)
    if y.type.ndim > 0 and all(y.type.broadcastable):
        value = f"{value}[{', '.join(['0'] * y.type.ndim)}]"
        y = None
    if free_axes == 0:
        dtype = numpy_dtype(x.type.dtype)
        writer.emit(f"{target}[{index}] {sign} {dtype}({value})")
        return
    view = writer.fresh("part")
    writer.emit(f"{view} = {whole}[{index}]")
    if y is None or is_machine_scalar(y):
        write_fill(writer, view, free_axes, value, sign)
    else:
        write_assignment(
            writer,
            view,
            free_axes,
            value,
            y.type,
            sign=sign,
            target_shape=part,
            value_shape=writer.shape(y),
        )


def _write_copy(node: Apply, writer: Writer) -> str:
    """Write a copy of the array that a node updates; give its name."""
    x, (out,) = node.inputs[0], node.outputs
    source = writer.name(x)
    if not writer.is_in_loop and not has_destination(out, writer):
        writer.emit(f"{writer.define(out, 'updated')} = {source}.copy()")
        return writer.name(out)
    # No allocation in each step.
    lengths = [writer.length(x, axis) for axis in range(x.type.ndim)]
    name = allocate(out, lengths, "updated", writer)
    for first, after in _rows_to_copy(node, writer) or [("0", lengths[0])]:
        row = writer.fresh("i")
        rows = after if first == "0" else f"{first}, {after}"
        with ExitStack() as nest:
            nest.enter_context(writer.block(f"for {row} in range({rows}):"))
            place = ", ".join([row, *open_loops(nest, lengths[1:], writer)])
            writer.emit(f"{name}[{place}] = {source}[{place}]")
    return name


def _rows_to_copy(node: Apply, writer: Writer) -> list[tuple[str, str]] | None:
    """Give the first row and the one after the last of those that a new value leaves as they are.

    Returns
    -------
    Two ranges of rows; None where all may have to be copied.
    """
    op, plan = node.op, writer.plan
    x, _, *indices = node.inputs
    length = writer.shape(x)[0]
    (part, *others) = get_idx_list([x, *indices], op.idx_list)
    if others or not isinstance(part, slice) or not op.set_instead_of_inc:
        return None
    taken = indexed_shape(op.idx_list, writer.shape(x), indices, writer)[0]
    if length is None or taken is None or getattr(part.step, "data", part.step) not in (None, 1):
        return None
    ends = [None if end is None else writer.known(end) for end in (part.start, part.stop)]
    texts = ["None" if end is None else "{}" for end in (part.start, part.stop)]
    known = [end for end in ends if end is not None]
    if len(known) < texts.count("{}"):
        return None
    first = plan.apply(f"slice({', '.join(texts)}).indices({{}})[0]", *known, length)
    after = plan.apply("{} + {}", first, taken)
    return [("0", writer.parameter(first)), (writer.parameter(after), writer.parameter(length))]


def _write_put_off(
    y: Variable, target: str, index: str, sign: str, part: Shape, dtype: str, writer: Writer
) -> bool:
    """Write an update by an `Elemwise` that has been put off until here."""
    if writer.facts_of_value(y).put_off is None:
        return False
    own = writer.shape(y)
    fits = [a is not None and b is not None and writer.plan.equal(a, b) for a, b in zip(own, part)]
    source = Elements(y, writer)
    if len(own) == len(part) and all(fits):
        view = writer.fresh("part")
        writer.emit(f"{view} = {target}[{index}]")
        source.compute_ahead(writer)
        with ExitStack() as nest:
            indices = open_loops(nest, source.lengths, writer)
            nest.enter_context(writer.elements_of(y))
            value = source.read(indices, writer).to(dtype)
            writer.emit(f"{view}[{', '.join(indices)}] {sign} {value}")
            source.step()
        return True
    name = writer.define(y, "elemwise")
    shape = ", ".join(source.lengths)
    writer.emit(f"{name} = np.empty(({shape},), {numpy_dtype(y.type.dtype)})")
    source.compute_ahead(writer)
    with ExitStack() as nest:
        indices = open_loops(nest, source.lengths, writer)
        nest.enter_context(writer.elements_of(y))
        writer.emit(f"{name}[{', '.join(indices)}] = {source.read(indices, writer)}")
        source.step()
    return False


def write_index(
    idx_list: tuple[Any, ...], values: list[Variable], x: Variable, writer: Writer
) -> str:
    """Write the bounds checks of a basic index into `x`, and give the index expression."""
    remaining = iter(values)

    def entry(part: Any) -> str:
        if part is None:
            return ""
        return integer(next(remaining), writer) if isinstance(part, Type) else str(part)

    parts = []
    for axis, part in enumerate(idx_list):
        if isinstance(part, slice):
            start, stop, step = entry(part.start), entry(part.stop), entry(part.step)
            # With a step Numba doesn't know that the rows are still contiguous.
            step = "" if step == "1" else step
            parts.append(f"{start}:{stop}" + (f":{step}" if step else ""))
            continue
        known = writer.shape(x)[axis]
        place = writer.plan.constant(part) if isinstance(part, int) else None
        if isinstance(part, Type):
            variable = next(remaining)
            place = writer.known(variable)
            text = integer(variable, writer) if known is None or place is None else ""
        else:
            text = str(part)
        where = None if known is None or place is None else _known_position(place, known, writer)
        length = writer.length(x, axis)
        if not text and place is not None:
            text = writer.parameter(place)
        parts.append(where or write_position(text, length, axis, writer))
    return ", ".join(parts) or "..."


def _known_position(place: Known, length: Known, writer: Writer) -> str | None:
    """Give where an index points, if it is inside."""
    plan = writer.plan
    if plan.decide("-{} <= {} < 0", length, place):
        return writer.parameter(plan.apply("{} + {}", place, length))
    return writer.parameter(place) if plan.decide("0 <= {} < {}", place, length) else None


def integer(variable: Variable, writer: Writer) -> str:
    """Give an expression of type int64 for an integer."""
    known = writer.known(variable)
    if known is not None:
        return writer.parameter(known)
    if isinstance(variable, Constant):
        return str(int(variable.data))
    return f"np.int64({writer.name(variable)})"


def write_position(value: str, length: str, axis: int, writer: Writer) -> str:
    """Write the check of one index, and give where it points, counted from the front."""
    value = value.strip("()") if value.strip("()-").isdigit() else value
    if value.lstrip("-").isdigit():
        outside = f"{length} < {-int(value)}" if value[0] == "-" else f"{value} >= {length}"
        with writer.block(f"if {outside}:"):
            writer.emit_failure(IndexError, _bounds_message(axis), value, length)
        return f"{length} - {value[1:]}" if value[0] == "-" else value
    position = writer.fresh("index")
    writer.emit(f"{position} = {value}")
    write_bounds_check(position, length, axis, writer)
    return position


def write_bounds_check(position: str, length: str, axis: int, writer: Writer) -> None:
    """Make `position` count from the front; raise `IndexError` where it is outside."""
    with writer.block(f"if {position} < -{length} or {position} >= {length}:"):
        writer.emit_failure(IndexError, _bounds_message(axis), position, length)
    with writer.block(f"if {position} < 0:"):
        writer.emit(f"{position} += {length}")


def _bounds_message(axis: int) -> Any:
    def message(position: int, length: int) -> str:
        return f"index {position} is out of bounds for axis {axis} with size {length}"

    return message


def write_take(op: AdvancedSubtensor1, node: Apply, writer: Writer) -> None:
    """Write ``x[indices]`` for a vector of indices into the first axis."""
    x, indices = node.inputs
    (out,) = node.outputs
    source, taken = writer.name(x), writer.name(indices)
    name = writer.define(out, "taken")
    writer.emit(
        f"{name} = np.empty(({taken}.shape[0],) + {source}.shape[1:], "
        f"{numpy_dtype(out.type.dtype)})"
    )
    i, position = writer.fresh("i"), writer.fresh("index")
    with writer.block(f"for {i} in range({taken}.shape[0]):"):
        writer.emit(f"{position} = np.int64({taken}[{i}])")
        write_bounds_check(position, f"{source}.shape[0]", 0, writer)
        if x.type.ndim == 1:
            writer.emit(f"{name}[{i}] = {source}[{position}]")
        else:
            row = writer.fresh("row")
            writer.emit(f"{row} = {source}[{position}]")
            row_type = TensorType(x.type.dtype, shape=(None,) * (x.type.ndim - 1))
            write_assignment(writer, name, x.type.ndim - 1, row, row_type, fixed=i)


def write_put(op: AdvancedIncSubtensor1, node: Apply, writer: Writer) -> None:
    """Write ``x[indices] = y`` or ``+= y`` along the first axis; repeated indices count."""
    x, y, indices = node.inputs
    (out,) = node.outputs
    target, value, taken = (writer.name(v) for v in (x, y, indices))
    if writer.is_in_place(node):
        writer.bind(out, target)
    else:
        writer.emit(f"{writer.define(out, 'updated')} = {target}.copy()")
        target = writer.name(out)
    i, position = writer.fresh("i"), writer.fresh("index")
    rows_differ = y.type.ndim == x.type.ndim and not y.type.broadcastable[0]
    if rows_differ:
        with writer.block(f"if {value}.shape[0] != {taken}.shape[0] and {value}.shape[0] != 1:"):
            writer.emit_failure(
                ValueError, _count_message, f"{value}.shape[0]", f"{taken}.shape[0]"
            )
    ends = range(1, min(x.type.ndim - 1, y.type.ndim) + 1)
    columns = [end for end in ends if not y.type.broadcastable[-end]]
    if columns:
        # Else the first row finds it out.
        with writer.block(f"if {taken}.shape[0] == 0:"):
            for end in columns:
                own = f"{value}.shape[{y.type.ndim - end}]"
                length = f"{target}.shape[{x.type.ndim - end}]"
                write_step(writer, own, length, unfit_message)
    with writer.block(f"for {i} in range({taken}.shape[0]):"):
        writer.emit(f"{position} = np.int64({taken}[{i}])")
        write_bounds_check(position, f"{target}.shape[0]", 0, writer)
        row = value
        if y.type.ndim == x.type.ndim:
            at = f"{i} if {value}.shape[0] > 1 else 0" if rows_differ else "0"
            row = f"{value}[{at}]"
        sign = "=" if op.set_instead_of_inc else "+="
        _write_row(target, position, row, x, y, sign, writer)


def _write_row(
    target: str, position: str, row: str, x: Variable, y: Variable, sign: str, writer: Writer
) -> None:
    dtype = numpy_dtype(x.type.dtype)
    if x.type.ndim == 1:
        writer.emit(f"{target}[{position}] {sign} {dtype}({row})")
        return
    free_axes = x.type.ndim - 1
    view = writer.fresh("row")
    writer.emit(f"{view} = {target}[{position}]")
    row_ndim = y.type.ndim - (y.type.ndim == x.type.ndim)
    if row_ndim == 0:
        write_fill(writer, view, free_axes, row, sign)
        return
    values = writer.fresh("values")
    writer.emit(f"{values} = {row}")
    row_type = TensorType(y.type.dtype, shape=y.type.shape[y.type.ndim - row_ndim :])
    write_assignment(writer, view, free_axes, values, row_type, sign=sign)


def _count_message(values: int, indices: int) -> str:
    return f"{values} values can't be put at {indices} indices"
