"""`CumOp`: cumulative sums and products, as loops."""

from __future__ import annotations

from contextlib import ExitStack

from aesara.graph.basic import Apply
from aesara.tensor.extra_ops import CumOp

from fixed_modes.numba.copying import shape_tuple
from fixed_modes.numba.writer import Writer, numpy_dtype


def write_cumulative(op: CumOp, node: Apply, writer: Writer) -> None:
    """Write a cumulative sum or product along one axis, or over the flat array."""
    (x,), (out,) = node.inputs, node.outputs
    source, ndim = writer.name(x), x.type.ndim
    name, running = writer.define(out, "cumulative"), writer.fresh("running")
    dtype = numpy_dtype(out.type.dtype)
    symbol, start = ("+", "0") if op.mode == "add" else ("*", "1")
    indices = [writer.fresh("i") for _ in range(ndim)]
    if op.axis is None:
        outer, inner, place = [], list(range(ndim)), writer.fresh("place")
        writer.emit(f"{name} = np.empty({source}.size, {dtype})", f"{place} = 0")
    else:
        axis = op.axis % ndim
        outer, inner = [other for other in range(ndim) if other != axis], [axis]
        place = ", ".join(indices)
        writer.emit(f"{name} = np.empty({shape_tuple(source, ndim)}, {dtype})")
    with ExitStack() as nest:
        for number in outer:
            header = f"for {indices[number]} in range({source}.shape[{number}]):"
            nest.enter_context(writer.block(header))
        writer.emit(f"{running} = {dtype}({start})")
        for number in inner:
            header = f"for {indices[number]} in range({source}.shape[{number}]):"
            nest.enter_context(writer.block(header))
        element = f"{dtype}({source}[{', '.join(indices)}])"
        writer.emit(
            f"{running} = {dtype}({running} {symbol} {element})", f"{name}[{place}] = {running}"
        )
        if op.axis is None:
            writer.emit(f"{place} += 1")
