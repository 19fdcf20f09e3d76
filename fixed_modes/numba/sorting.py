"""Sorts by a stable merge sort of positions, with NaN last as in NumPy; `Unique` of a scalar."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import numba
import numpy as np
from aesara.graph.basic import Apply, Constant
from aesara.graph.op import Op
from aesara.tensor.extra_ops import Unique
from aesara.tensor.sort import ArgSortOp, SortOp

from fixed_modes.numba.copying import shape_tuple
from fixed_modes.numba.writer import Writer, numpy_dtype


@numba.njit
def _is_before(a: Any, b: Any) -> Any:
    return a < b or (b != b and a == a)


@numba.njit
def order_into(values: Any, order: Any) -> None:
    """Write the positions that sort `values` into `order`; equal ones keep their order."""
    count = len(values)
    source, target = np.arange(count), np.empty(count, np.int64)
    width = 1
    while width < count:
        for start in range(0, count, 2 * width):
            middle, stop = min(start + width, count), min(start + 2 * width, count)
            left, right = start, middle
            for place in range(start, stop):
                takes_left = right >= stop or (
                    left < middle and not _is_before(values[source[right]], values[source[left]])
                )
                if takes_left:
                    target[place] = source[left]
                    left += 1
                else:
                    target[place] = source[right]
                    right += 1
        source, target = target, source
        width *= 2
    for place in range(count):
        order[place] = source[place]


@numba.njit
def sort_into(values: Any, out: Any) -> None:
    """Write `values`, sorted, into `out`."""
    order = np.empty(len(values), np.int64)
    order_into(values, order)
    for place in range(len(values)):
        out[place] = values[order[place]]


def write_sort(op: SortOp | ArgSortOp, node: Apply, writer: Writer) -> bool:
    """Write a sort along one axis, or of all elements; False for an axis that is not known."""
    x, axis = node.inputs
    (out,) = node.outputs
    ndim = x.type.ndim
    if not isinstance(axis, Constant) or ndim == 0 or np.dtype(x.type.dtype).kind not in "biuf":
        return False
    function = sort_into if isinstance(op, SortOp) else order_into
    source, sorter = writer.name(x), writer.use_global(function.__name__, function)
    dtype = numpy_dtype(out.type.dtype)
    if axis.data is None:
        if out.type.ndim != 1:
            return False
        source = f"np.ascontiguousarray({source}).reshape((-1,))"
        flat = writer.fresh("flat")
        name = writer.define(out, "sorted")
        writer.emit(f"{flat} = {source}", f"{name} = np.empty({flat}.shape[0], {dtype})")
        writer.emit(f"{sorter}({flat}, {name})")
        return True
    along = int(axis.data)
    if along != axis.data or not -ndim <= along < ndim:
        return False
    name = writer.define(out, "sorted")
    writer.emit(f"{name} = np.empty({shape_tuple(source, ndim)}, {dtype})")
    places = [":" if n == along % ndim else writer.fresh("i") for n in range(ndim)]
    with ExitStack() as nest:
        for n, place in enumerate(places):
            if place != ":":
                nest.enter_context(writer.block(f"for {place} in range({source}.shape[{n}]):"))
        part = ", ".join(places)
        writer.emit(f"{sorter}({source}[{part}], {name}[{part}])")
    return True


def write_unique(op: Unique, node: Apply, writer: Writer) -> bool:
    """Write the array of a scalar; False for arrays, which Aesara's conversion takes."""
    (x,) = node.inputs
    if x.type.ndim or len(node.outputs) > 1:
        return False
    value = writer.name(x)
    name, dtype = writer.define(node.outputs[0], "unique"), numpy_dtype(x.type.dtype)
    writer.emit(f"{name} = np.full(1, {value}, {dtype})")
    return True


SORTING: dict[type[Op], Callable[..., bool]] = {
    SortOp: write_sort,
    ArgSortOp: write_sort,
    Unique: write_unique,
}
