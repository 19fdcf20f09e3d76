"""`ExtractDiag` and `AllocDiag` as loops, for any axes."""

from __future__ import annotations

from contextlib import ExitStack

from aesara.graph.basic import Apply
from aesara.tensor.basic import AllocDiag, ExtractDiag

from fixed_modes.numba.writer import Writer, numpy_dtype


def write_extract_diag(op: ExtractDiag, node: Apply, writer: Writer) -> bool:
    """Write the diagonals in the planes of two axes; they become the last axis."""
    (x,), (out,) = node.inputs, node.outputs
    ndim, source = x.type.ndim, writer.name(x)
    if not all(-ndim <= axis < ndim for axis in (op.axis1, op.axis2)):
        return False
    row, column = op.axis1 % ndim, op.axis2 % ndim
    if row == column:
        return False
    down, right = max(-op.offset, 0), max(op.offset, 0)
    length, k = writer.fresh("length"), writer.fresh("k")
    writer.emit(
        f"{length} = max(min({source}.shape[{row}] - {down}, "
        f"{source}.shape[{column}] - {right}), 0)"
    )
    others = {axis: writer.fresh("i") for axis in range(ndim) if axis not in (row, column)}
    name = writer.define(out, "diagonal")
    lengths = ", ".join([*(f"{source}.shape[{axis}]" for axis in others), length])
    writer.emit(f"{name} = np.empty(({lengths},), {numpy_dtype(out.type.dtype)})")
    place = {**others, row: f"{k} + {down}", column: f"{k} + {right}"}
    with ExitStack() as nest:
        for axis, index in others.items():
            nest.enter_context(writer.block(f"for {index} in range({source}.shape[{axis}]):"))
        nest.enter_context(writer.block(f"for {k} in range({length}):"))
        target = ", ".join([*others.values(), k])
        writer.emit(f"{name}[{target}] = {source}[{', '.join(place[n] for n in range(ndim))}]")
    return True


def write_alloc_diag(op: AllocDiag, node: Apply, writer: Writer) -> bool:
    """Write zeros with diagonals in the planes of two axes: the last axis of the input."""
    (x,), (out,) = node.inputs, node.outputs
    ndim, source = x.type.ndim, writer.name(x)
    row, column = min(op.axis1, op.axis2), max(op.axis1, op.axis2)
    if not 0 <= row < column <= ndim:
        return False
    if ndim == 1:
        row, column = 0, 1
    down, right = max(-op.offset, 0), max(op.offset, 0)
    name, k = writer.define(out, "diagonal"), writer.fresh("k")
    length = f"{source}.shape[{ndim - 1}]"
    others = [writer.fresh("i") for _ in range(ndim - 1)]
    sizes = [f"{source}.shape[{n}]" for n in range(ndim - 1)]
    side = f"{length} + {abs(op.offset)}"
    lengths = [*sizes[:row], side, *sizes[row:]]
    lengths = [*lengths[:column], side, *lengths[column:]]
    place = [*others[:row], f"{k} + {down}", *others[row:]]
    place = [*place[:column], f"{k} + {right}", *place[column:]]
    dtype = numpy_dtype(out.type.dtype)
    writer.emit(f"{name} = np.zeros(({', '.join(lengths)},), {dtype})")
    with ExitStack() as nest:
        for index, size in zip(others, sizes):
            nest.enter_context(writer.block(f"for {index} in range({size}):"))
        nest.enter_context(writer.block(f"for {k} in range({length}):"))
        writer.emit(f"{name}[{', '.join(place)}] = {source}[{', '.join([*others, k])}]")
    return True
