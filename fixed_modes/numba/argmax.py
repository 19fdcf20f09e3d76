"""Positions of maxima, with NumPy's rule that the first NaN is the maximum."""

from __future__ import annotations

from contextlib import ExitStack

import numpy as np
from aesara.graph.basic import Apply, Variable

from fixed_modes.numba.allocation import allocate
from fixed_modes.numba.elemwise import Elements
from fixed_modes.numba.reductions import empty_reduction_message
from fixed_modes.numba.writer import Writer

# From so many maxima on they are found a vector at a time.
_LONG_ROW = 16


def write_argmax(node: Apply, axes: tuple[int, ...] | None, writer: Writer) -> None:
    """Write `MaxAndArgmax`, or with one output `Argmax`, over `axes` (``None``: over all).

    The position counts the elements along the axes in their order, as if they
    were one axis.
    """
    x = node.inputs[0]
    ndim = x.type.ndim
    axes = tuple(range(ndim)) if axes is None else tuple(axes)
    maximum: Variable | None = node.outputs[0] if len(node.outputs) == 2 else None
    if ndim == 0:
        if maximum is not None:
            writer.bind(maximum, writer.name(x))
        writer.bind(node.outputs[-1], "0")
        return
    source = Elements(x, writer)
    for axis in axes:
        known = writer.shape(x)[axis]
        if known is not None and writer.plan.decide("{} > 0", known):
            continue
        with writer.block(f"if {source.lengths[axis]} == 0:"):
            writer.emit_failure(ValueError, empty_reduction_message("argmax", axis))
    kept = [axis for axis in range(ndim) if axis not in axes]
    lengths = [source.lengths[axis] for axis in kept]
    if kept:
        results = [allocate(out, lengths, "maximum", writer) for out in node.outputs]
    else:
        results = [writer.define(out, "maximum") for out in node.outputs]
    last = writer.shape(x)[-1]
    is_along_rows = len(axes) == 1 and axes[0] < ndim - 1 and maximum is not None
    if is_along_rows and last is not None and writer.plan.decide(f"{{}} >= {_LONG_ROW}", last):
        _write_along_rows(x, source, axes[0], results, writer)
    else:
        _write_each(x, source, axes, results, writer)


def _least(variable: Variable, writer: Writer) -> str:
    """Give a value that no element is below."""
    dtype = np.dtype(variable.type.dtype)
    if dtype.kind in "iu":
        return writer.literal(dtype.type(np.iinfo(dtype).min))
    return "False" if dtype.kind == "b" else writer.literal(dtype.type(-np.inf))


def _open(nest: ExitStack, axes: list[int], source: Elements, writer: Writer) -> dict[int, str]:
    """Open loops over some axes; give the index along each."""
    indices = {}
    for axis in axes:
        indices[axis] = writer.fresh("i")
        header = f"for {indices[axis]} in range({source.lengths[axis]}):"
        nest.enter_context(writer.block(header))
    return indices


def _write_each(
    x: Variable, source: Elements, axes: tuple[int, ...], results: list[str], writer: Writer
) -> None:
    """Write one maximum after the other.

    Whether there is a NaN is noted, and the first one found only then: a comparison that
    sees to it takes twice as long.
    """
    kept = [axis for axis in range(x.type.ndim) if axis not in axes]
    best, at, count = (writer.fresh(n) for n in ("best", "best_at", "count"))
    has_nan = writer.fresh("has_nan") if np.dtype(x.type.dtype).kind == "f" else ""
    with ExitStack() as outer:
        indices = _open(outer, kept, source, writer)
        writer.emit(f"{best} = {_least(x, writer)}", f"{at} = 0", f"{count} = 0")
        place = f"[{', '.join(indices.values())}]" if kept else ""
        if has_nan:
            writer.emit(f"{has_nan} = False")
        with ExitStack() as inner:
            element = _element(indices, inner, axes, source, writer)
            if has_nan:
                writer.emit(f"{has_nan} |= {element} != {element}")
            with writer.block(f"if {element} > {best}:"):
                writer.emit(f"{best} = {element}", f"{at} = {count}")
            writer.emit(f"{count} += 1")
        if has_nan:
            with writer.block(f"if {has_nan}:"), ExitStack() as inner:
                writer.emit(f"{count} = 0")
                element = _element(indices, inner, axes, source, writer)
                with writer.block(f"if {element} != {element} and {best} == {best}:"):
                    writer.emit(f"{best} = {element}", f"{at} = {count}")
                writer.emit(f"{count} += 1")
        for result, value in zip(reversed(results), (at, best)):
            writer.emit(f"{result}{place} = {value}")


def _element(
    outer: dict[int, str],
    nest: ExitStack,
    axes: tuple[int, ...],
    source: Elements,
    writer: Writer,
) -> str:
    """Open the loops along the axes of a maximum, and read an element there."""
    indices = {**outer, **_open(nest, list(axes), source, writer)}
    return str(source.read([indices[axis] for axis in sorted(indices)], writer))


def _write_along_rows(
    x: Variable, source: Elements, axis: int, results: list[str], writer: Writer
) -> None:
    """Write all maxima over an axis that is not the last at once.

    The elements are read as they lie in memory; a vector of them is compared at a time.
    """
    maxima, positions = results
    axes = list(range(x.type.ndim))
    with ExitStack() as nest:
        indices = _open(nest, [n for n in axes if n != axis], source, writer)
        place = ", ".join(indices.values())
        writer.emit(f"{maxima}[{place}] = {_least(x, writer)}", f"{positions}[{place}] = 0")
    source.compute_ahead(writer)
    with ExitStack() as nest:
        indices = _open(nest, axes, source, writer)
        nest.enter_context(writer.elements_of(x))
        place = ", ".join(indices[n] for n in axes if n != axis)
        element = source.read(list(indices.values()), writer)
        best, at, is_better = (writer.fresh(n) for n in ("best", "at", "is_better"))
        writer.emit(
            f"{best} = {maxima}[{place}]",
            f"{at} = {positions}[{place}]",
            f"{is_better} = ({element} > {best}) | (({element} != {element}) & ({best} == {best}))",
            f"{maxima}[{place}] = {element} if {is_better} else {best}",
            f"{positions}[{place}] = {indices[axis]} if {is_better} else {at}",
        )
        source.step()
