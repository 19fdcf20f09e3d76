"""`Split` as slices, each copied: the op's outputs are no views."""

from __future__ import annotations

from aesara.graph.basic import Apply, Constant
from aesara.tensor.basic import Split

from fixed_modes.numba.writer import Writer


def write_split(op: Split, node: Apply, writer: Writer) -> bool:
    """Write the parts of a split; False where the axis is not a constant."""
    x, axis, lengths = node.inputs
    if not isinstance(axis, Constant):
        return False
    source, sizes = writer.name(x), writer.name(lengths)
    along = int(axis.data) % x.type.ndim
    total, start = writer.fresh("total"), writer.fresh("start")
    with writer.block(f"if {sizes}.shape[0] != {op.len_splits}:"):
        writer.emit_failure(ValueError, _count_message, f"{sizes}.shape[0]", str(op.len_splits))
    writer.emit(f"{total} = 0")
    for part in range(op.len_splits):
        with writer.block(f"if {sizes}[{part}] < 0:"):
            writer.emit_failure(ValueError, _negative_message, f"{sizes}[{part}]")
        writer.emit(f"{total} += np.int64({sizes}[{part}])")
    with writer.block(f"if {total} != {source}.shape[{along}]:"):
        writer.emit_failure(ValueError, _sum_message, total, f"{source}.shape[{along}]")
    writer.emit(f"{start} = 0")
    before = ":, " * along
    for part, out in enumerate(node.outputs):
        end = f"{start} + np.int64({sizes}[{part}])"
        writer.emit(
            f"{writer.define(out, 'part')} = {source}[{before}{start}:{end}].copy()",
            f"{start} += np.int64({sizes}[{part}])",
        )
    return True


def _count_message(given: int, wanted: int) -> str:
    return f"Split: {given} lengths are given for {wanted} parts."


def _negative_message(length: int) -> str:
    return f"Split: you tried to make an ndarray with a negative number of elements ({length})."


def _sum_message(total: int, length: int) -> str:
    return f"Split: the splits sums to {total}, expected {length}."
