"""Positions of maxima, with NumPy's rule that the first NaN is the maximum."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from aesara.graph.basic import Apply, Variable

from fixed_modes.numba.reductions import empty_reduction_message
from fixed_modes.numba.writer import Writer, numpy_dtype


def write_argmax(node: Apply, axes: tuple[int, ...] | None, writer: Writer) -> None:
    """Write `MaxAndArgmax`, or with one output `Argmax`, over `axes` (``None``: over all).

    The position counts the elements along the axes in their order, as if they
    were one axis.
    """
    x = node.inputs[0]
    maximum: Variable | None = node.outputs[0] if len(node.outputs) == 2 else None
    position = node.outputs[-1]
    source, ndim = writer.name(x), x.type.ndim
    axes = tuple(range(ndim)) if axes is None else tuple(axes)
    if ndim == 0:
        if maximum is not None:
            writer.bind(maximum, source)
        writer.bind(position, "0")
        return
    for axis in axes:
        with writer.block(f"if {source}.shape[{axis}] == 0:"):
            writer.emit_failure(ValueError, empty_reduction_message("argmax", axis))
    kept = [axis for axis in range(ndim) if axis not in axes]
    results = [(out, writer.define(out, "maximum")) for out in node.outputs]
    if kept:
        shape = ", ".join(f"{source}.shape[{axis}]" for axis in kept)
        for out, name in results:
            writer.emit(f"{name} = np.empty(({shape},), {numpy_dtype(out.type.dtype)})")
    indices = [writer.fresh("i") for _ in range(ndim)]
    best, at, count, element = (writer.fresh(n) for n in ("best", "best_at", "count", "element"))

    def loop(axis: int) -> Any:
        return writer.block(f"for {indices[axis]} in range({source}.shape[{axis}]):")

    with ExitStack() as outer:
        for axis in kept:
            outer.enter_context(loop(axis))
        first = ", ".join(indices[axis] if axis in kept else "0" for axis in range(ndim))
        writer.emit(f"{best} = {source}[{first}]", f"{at} = 0", f"{count} = 0")
        with ExitStack() as inner:
            for axis in axes:
                inner.enter_context(loop(axis))
            writer.emit(f"{element} = {source}[{', '.join(indices)}]")
            is_nan = f"({element} != {element} and {best} == {best})"
            with writer.block(f"if {element} > {best} or {is_nan}:"):
                writer.emit(f"{best} = {element}", f"{at} = {count}")
            writer.emit(f"{count} += 1")
        place = f"[{', '.join(indices[axis] for axis in kept)}]" if kept else ""
        for out, name in results:
            writer.emit(f"{name}{place} = {at if out is position else best}")
