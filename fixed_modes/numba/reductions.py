"""`CAReduce` as a loop nest over its input."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import aesara.scalar.basic as aes
import numpy as np
from aesara.graph.basic import Apply, Variable
from aesara.tensor.elemwise import CAReduce

from fixed_modes.numba.allocation import allocate
from fixed_modes.numba.copying import write_fill
from fixed_modes.numba.elementary import of_rank, plus, rank
from fixed_modes.numba.elemwise import Elements
from fixed_modes.numba.loops import open_loops
from fixed_modes.numba.scalar import NoExpression, Operand, expression
from fixed_modes.numba.writer import Writer, numpy_dtype


def write_reduction(op: CAReduce, node: Apply, writer: Writer) -> None:
    """Write a reduction as one loop nest over its input.

    Raises
    ------
    NoExpression
        If the scalar op has no expression or no identity; nothing is written then.
    """
    with writer.all_or_nothing(NoExpression):
        _write_reduction(op, node, writer)


def _write_reduction(op: CAReduce, node: Apply, writer: Writer) -> None:
    (x,), (out,) = node.inputs, node.outputs
    ndim, dtype = x.type.ndim, out.type.dtype
    acc_dtype = getattr(op, "acc_dtype", None) or dtype
    axes = tuple(range(ndim)) if op.axis is None else tuple(op.axis)
    kept = [axis for axis in range(ndim) if axis not in axes]
    if ndim == 0:
        writer.bind(out, Operand(writer.name(x), x.type.dtype).to(dtype))
        return
    source = Elements(x, writer)
    start = _identity(op, acc_dtype, writer)
    if isinstance(op.scalar_op, (aes.ScalarMaximum, aes.ScalarMinimum)):
        for axis in axes:
            known = writer.shape(x)[axis]
            if known is not None and writer.plan.decide("{} > 0", known):
                continue
            with writer.block(f"if {source.lengths[axis]} == 0:"):
                writer.emit_failure(ValueError, empty_reduction_message(str(op.scalar_op), axis))
    if kept and acc_dtype == dtype:
        lengths = [source.lengths[axis] for axis in kept]
        total = allocate(out, lengths, "total", writer)
    elif kept:
        total = writer.fresh(out.name or "total")
        shape = ", ".join(source.lengths[axis] for axis in kept)
        writer.emit(f"{total} = np.empty(({shape},), {numpy_dtype(acc_dtype)})")
    else:
        total = writer.fresh(out.name or "total")
    if kept == list(range(len(kept))):
        _write_totals(op, x, source, total, len(kept), start, acc_dtype, writer)
    else:
        _write_running_totals(op, x, source, total, kept, start, acc_dtype, writer)
    if acc_dtype == dtype:
        writer.bind(out, total)
    elif kept:
        writer.emit(f"{writer.define(out, 'reduced')} = {total}.astype({numpy_dtype(dtype)})")
    else:
        writer.bind(out, Operand(total, acc_dtype).to(dtype))


def _write_totals(
    op: CAReduce,
    x: Variable,
    source: Elements,
    total: str,
    n_kept: int,
    start: str,
    dtype: str,
    writer: Writer,
) -> None:
    """Write a reduction of the last axes: each total is a local variable first."""
    scalar_op = op.scalar_op
    is_float = np.dtype(dtype).kind == "f"
    by_rank = is_float and isinstance(scalar_op, (aes.ScalarMaximum, aes.ScalarMinimum))
    # The least number is the one whose negative is the greatest.
    sign = "-" if isinstance(scalar_op, aes.ScalarMinimum) else ""
    source.compute_ahead(writer)
    with ExitStack() as nest:
        indices = open_loops(nest, source.lengths[:n_kept], writer)
        own = writer.fresh(f"{total}_i") if n_kept else total
        if by_rank:
            own, result = writer.fresh("ranked"), own
            writer.globals.update(rank=rank, of_rank=of_rank)
            start = f"rank({sign}{start})"
        writer.emit(f"{own} = {start}")
        with ExitStack() as inner:
            indices += open_loops(inner, source.lengths[n_kept:], writer, around=n_kept)
            inner.enter_context(writer.elements_of(x))
            element = source.read(indices, writer).to(dtype)
            if by_rank:
                name = writer.fresh("element")
                writer.emit(f"{name} = rank({sign}{element})")
                writer.emit(f"{own} = {name} if {name} > {own} else {own}")
            elif (
                is_float
                and isinstance(scalar_op, aes.Add)
                and not (x.type.ndim > 1 and writer.is_short(source.lengths[-1]))
            ):
                writer.globals["plus"] = plus
                writer.emit(f"{own} = plus({own}, {element})")
            else:
                operands = [Operand(own, dtype), Operand(element, dtype)]
                writer.emit(f"{own} = {expression(scalar_op, operands, dtype, writer)}")
            source.step()
        if by_rank:
            writer.emit(f"{result} = {numpy_dtype(dtype)}({sign}of_rank({own}))")
            own = result
        if n_kept:
            writer.emit(f"{total}[{', '.join(indices[:n_kept])}] = {own}")


def _write_running_totals(
    op: CAReduce,
    x: Variable,
    source: Elements,
    total: str,
    kept: list[int],
    start: str,
    dtype: str,
    writer: Writer,
) -> None:
    """Write a reduction of other axes: each element goes to its total in the array."""
    write_fill(writer, total, len(kept), start)
    source.compute_ahead(writer)
    with ExitStack() as nest:
        indices = open_loops(nest, source.lengths, writer)
        nest.enter_context(writer.elements_of(x))
        target = f"{total}[{', '.join(indices[axis] for axis in kept)}]"
        element = source.read(indices, writer)
        operands = [Operand(target, dtype), Operand(element.to(dtype), dtype)]
        writer.emit(f"{target} = {expression(op.scalar_op, operands, dtype, writer)}")
        source.step()


def _identity(op: CAReduce, dtype: str, writer: Writer) -> str:
    identity = getattr(op.scalar_op, "identity", None)
    if identity is None or dtype == "float16":
        raise NoExpression(f"{op} has no identity")
    if np.dtype(dtype).kind in "iu" and not np.isfinite(identity):
        limits = np.iinfo(dtype)
        identity = limits.max if identity > 0 else limits.min
    if dtype == "bool" and not np.isfinite(identity):
        identity = identity > 0
    return writer.literal(np.asarray(identity).astype(dtype)[()])


def empty_reduction_message(name: str, axis: int) -> Any:
    """Give the message for a reduction over an axis without elements."""
    return lambda: f"Input of CAReduce{{{name}}} has zero-size on axis {axis}"
