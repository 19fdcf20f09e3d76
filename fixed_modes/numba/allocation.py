"""Where the array of a result comes from.

Inside a loop an array whose lengths are known is allocated once, before the outermost
loop, and used again in each step; the result of a step goes straight into its row of a
buffer, where `fixed_modes.numba.scan` has said so.
"""

from __future__ import annotations

from aesara.graph.basic import Variable
from aesara.graph.fg import FunctionGraph
from aesara.tensor.basic import AllocEmpty
from aesara.tensor.subtensor import IncSubtensor, get_idx_list

from fixed_modes.numba.writer import Writer, numpy_dtype


def has_destination(out: Variable, writer: Writer) -> bool:
    """Say whether a result is to be written into a row of a buffer."""
    return out in writer.destinations and writer.is_known_shape(out)


def allocate(out: Variable, lengths: list[str], hint: str, writer: Writer) -> str:
    """Write the allocation of an array for a result, which has any values; give its name.

    Parameters
    ----------
    lengths
        Expressions for the lengths, for an array that is allocated where it is written.
    """
    if has_destination(out, writer):
        # Only the first: a second output that is the same variable is a copy of it.
        row = writer.destinations.pop(out)(out)
        if row is not None:
            name = writer.define(out, hint)
            writer.emit(f"{name} = {row}")
            writer.facts(out).is_lasting = True
            return name
    name = writer.define(out, hint)
    dtype = numpy_dtype(out.type.dtype)
    if writer.is_in_loop and writer.is_known_shape(out):
        known = ", ".join(writer.length(out, axis) for axis in range(out.type.ndim))
        writer.hoist(f"{name} = np.empty(({known},), {dtype})", outermost=True)
        writer.facts(out).is_lasting = True
    else:
        writer.emit(f"{name} = np.empty(({', '.join(lengths)},), {dtype})")
    return name


def initial_allocation(buffer: Variable, n_rows: int, fgraph: FunctionGraph) -> Variable | None:
    """Give the allocation that the buffer of a loop is, if nothing else uses it.

    None but its first rows, `n_rows` at most, may have been written.
    """
    start = buffer.owner
    if start is None or not isinstance(start.op, IncSubtensor) or not start.op.inplace:
        return None
    empty, _, *places = start.inputs
    rows, *others = get_idx_list([empty, *places], start.op.idx_list)
    if empty.owner is None or not isinstance(empty.owner.op, AllocEmpty) or others:
        return None
    if len(fgraph.clients[buffer]) > 1 or len(fgraph.clients[empty]) > 1:
        return None
    if not isinstance(rows, slice) or rows.start is not None or rows.step is not None:
        return None
    stop = getattr(rows.stop, "data", None)
    return empty if stop is not None and 0 <= stop <= n_rows else None
