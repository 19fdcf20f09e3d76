"""`Nonzero`, `Repeat` with a count for each entry, and `Tri`, as loops."""

from __future__ import annotations

from contextlib import ExitStack

from aesara.graph.basic import Apply
from aesara.tensor.basic import Nonzero, Tri
from aesara.tensor.extra_ops import Repeat

from fixed_modes.numba.writer import Writer, numpy_dtype


def write_nonzero(op: Nonzero, node: Apply, writer: Writer) -> None:
    """Write the positions of the elements that are not zero: one vector for each axis."""
    (x,) = node.inputs
    source, ndim = writer.name(x), x.type.ndim
    count, place = writer.fresh("count"), writer.fresh("place")
    writer.emit(f"{count} = 0")
    indices = [writer.fresh("i") for _ in range(ndim)]

    def loops() -> ExitStack:
        nest = ExitStack()
        for axis, index in enumerate(indices):
            nest.enter_context(writer.block(f"for {index} in range({source}.shape[{axis}]):"))
        nest.enter_context(writer.block(f"if {source}[{', '.join(indices)}] != 0:"))
        return nest

    with loops():
        writer.emit(f"{count} += 1")
    names = [writer.define(out, "nonzero") for out in node.outputs]
    for name in names:
        writer.emit(f"{name} = np.empty({count}, np.int64)")
    writer.emit(f"{place} = 0")
    with loops():
        for name, index in zip(names, indices):
            writer.emit(f"{name}[{place}] = {index}")
        writer.emit(f"{place} += 1")


def write_repeat(op: Repeat, node: Apply, writer: Writer) -> bool:
    """Write a repetition with one count for each entry along the axis; False for one count."""
    x, repeats = node.inputs
    (out,) = node.outputs
    if repeats.type.ndim != 1 or x.type.ndim == 0:
        return False
    axis = 0 if op.axis is None else op.axis % x.type.ndim
    ndim = 1 if op.axis is None else x.type.ndim
    source = writer.name(x)
    if op.axis is None and x.type.ndim > 1:
        flat = writer.fresh("flat")
        writer.emit(f"{flat} = np.ascontiguousarray({source}).reshape((-1,))")
        source = flat
    counts, total, k = writer.name(repeats), writer.fresh("total"), writer.fresh("k")
    step = writer.fresh("step")
    length = f"{source}.shape[{axis}]"
    writer.emit(f"{total} = 0", f"{step} = 1 if {counts}.shape[0] != 1 else 0")
    with writer.block(f"if {counts}.shape[0] != 1 and {counts}.shape[0] != {length}:"):
        writer.emit_failure(ValueError, _count_message, f"{counts}.shape[0]", length)
    with writer.block(f"for {k} in range({length}):"):
        with writer.block(f"if {counts}[{k} * {step}] < 0:"):
            writer.emit_failure(ValueError, lambda: "repeats may not contain negative values.")
        writer.emit(f"{total} += np.int64({counts}[{k} * {step}])")
    name, place, again = writer.define(out, "repeated"), writer.fresh("place"), writer.fresh("r")
    lengths = [total if n == axis else f"{source}.shape[{n}]" for n in range(ndim)]
    dtype = numpy_dtype(out.type.dtype)
    writer.emit(f"{name} = np.empty(({', '.join(lengths)},), {dtype})", f"{place} = 0")
    others = [writer.fresh("i") for _ in range(ndim)]
    with (
        writer.block(f"for {k} in range({length}):"),
        writer.block(f"for {again} in range({counts}[{k} * {step}]):"),
    ):
        with ExitStack() as nest:
            for n, index in enumerate(others):
                if n != axis:
                    nest.enter_context(writer.block(f"for {index} in range({source}.shape[{n}]):"))
            to = ", ".join(place if n == axis else index for n, index in enumerate(others))
            at = ", ".join(k if n == axis else index for n, index in enumerate(others))
            writer.emit(f"{name}[{to}] = {source}[{at}]")
        writer.emit(f"{place} += 1")
    return True


def _count_message(counts: int, length: int) -> str:
    return f"{counts} counts of repetitions don't fit an axis of length {length}"


def write_tri(op: Tri, node: Apply, writer: Writer) -> None:
    """Write a matrix of ones at and below a diagonal, and zeros above it."""
    rows, columns, k = (f"np.int64({writer.name(i)})" for i in node.inputs)
    (out,) = node.outputs
    dtype = numpy_dtype(out.type.dtype)
    name, i, j = writer.define(out, "tri"), writer.fresh("i"), writer.fresh("j")
    writer.emit(f"{name} = np.empty((max({rows}, 0), max({columns}, 0)), {dtype})")
    with (
        writer.block(f"for {i} in range({name}.shape[0]):"),
        writer.block(f"for {j} in range({name}.shape[1]):"),
    ):
        writer.emit(f"{name}[{i}, {j}] = {j} <= {i} + {k}")
