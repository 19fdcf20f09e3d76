"""`BatchedDot`: a product for each entry of the first axis."""

from __future__ import annotations

from contextlib import ExitStack

import numpy as np
from aesara.graph.basic import Apply
from aesara.tensor.blas import BatchedDot

from fixed_modes.numba.allocation import allocate
from fixed_modes.numba.products import SMALL_PRODUCT, contiguous
from fixed_modes.numba.writer import Writer, numpy_dtype


def write_batched_dot(op: BatchedDot, node: Apply, writer: Writer) -> None:
    """Write the products as a loop over the batch: loops where they are small, else BLAS."""
    x, y = node.inputs
    (out,) = node.outputs
    left, right = writer.name(x), writer.name(y)
    lengths = [[writer.length(v, axis) for axis in range(v.type.ndim)] for v in (x, y)]
    for one, other, what in (
        (lengths[0][0], lengths[1][0], "entries"),
        (lengths[0][-1], lengths[1][1], "terms"),
    ):
        with writer.block(f"if {one} != {other}:"):
            writer.emit_failure(ValueError, _message(what), one, other)
    rows, columns = lengths[0][1:-1], lengths[1][2:]
    name = allocate(out, [lengths[0][0], *rows, *columns], "batched_dot", writer)
    is_blas = np.dtype(out.type.dtype).kind in "fc"
    size = " * ".join([*rows, lengths[0][-1], *columns])
    entry = writer.fresh("entry")
    with writer.block(f"for {entry} in range({lengths[0][0]}):"):
        if not is_blas:
            _write_loops(node, name, entry, lengths, writer)
            return
        with writer.block(f"if {size} <= {SMALL_PRODUCT} or {lengths[0][-1]} == 1:"):
            _write_loops(node, name, entry, lengths, writer)
        with writer.block("else:"):
            writer.globals["contiguous"] = contiguous
            operands = f"contiguous({left}[{entry}]), contiguous({right}[{entry}])"
            if rows or columns:
                writer.emit(f"np.dot({operands}, {name}[{entry}])")
            else:
                writer.emit(f"{name}[{entry}] = np.dot({operands})")


def _write_loops(
    node: Apply, name: str, entry: str, lengths: list[list[str]], writer: Writer
) -> None:
    left, right = (writer.name(v) for v in node.inputs)
    dtype = numpy_dtype(node.outputs[0].type.dtype)
    row = [writer.fresh("i") for _ in lengths[0][1:-1]]
    column = [writer.fresh("j") for _ in lengths[1][2:]]
    k, total = writer.fresh("k"), writer.fresh("total")
    around = zip([*row, *column], [*lengths[0][1:-1], *lengths[1][2:]])
    with ExitStack() as nest:
        for index, length in around:
            nest.enter_context(writer.block(f"for {index} in range({length}):"))
        writer.emit(f"{total} = {dtype}(0)")
        with writer.block(f"for {k} in range({lengths[0][-1]}):"):
            a = f"{left}[{', '.join([entry, *row, k])}]"
            b = f"{right}[{', '.join([entry, k, *column])}]"
            writer.emit(f"{total} = {dtype}({total} + {a} * {b})")
        writer.emit(f"{name}[{', '.join([entry, *row, *column])}] = {total}")


def _message(what: str):  # type: ignore[no-untyped-def]
    return lambda one, other: (
        f"Shape mismatch: the left operand of batched_dot has {one} {what}, the right one {other}"
    )
