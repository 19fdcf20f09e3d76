"""`Softmax`, `LogSoftmax` and the gradient of the first, as loops."""

from __future__ import annotations

import math
from contextlib import ExitStack
from typing import Any

from aesara.graph.basic import Apply
from aesara.tensor.special import LogSoftmax, Softmax, SoftmaxGrad

from fixed_modes.numba.allocation import allocate
from fixed_modes.numba.elementary import exp, of_rank, plus, rank
from fixed_modes.numba.writer import Writer, numpy_dtype

NO_MAXIMUM = "zero-size array to reduction operation maximum which has no identity"


class _Slices:
    """Loops over the slices that are normalised, and over the elements of one."""

    def __init__(self, node: Apply, writer: Writer) -> None:
        op, self.writer = node.op, writer
        self.x = writer.name(node.inputs[-1])
        self.ndim = node.inputs[-1].type.ndim
        axes = range(self.ndim) if op.axis is None else [op.axis % self.ndim]
        self.inside = list(axes)
        self.outside = [axis for axis in range(self.ndim) if axis not in self.inside]
        self.indices = [writer.fresh("i") for _ in range(self.ndim)]
        self.position = ", ".join(self.indices)
        lengths = [f"{self.x}.shape[{axis}]" for axis in range(self.ndim)]
        self.out = allocate(node.outputs[0], lengths, "softmax", writer)
        writer.globals["plus"] = plus

    def over(self, axes: list[int]) -> ExitStack:
        nest = ExitStack()
        for axis in axes:
            header = f"for {self.indices[axis]} in range({self.x}.shape[{axis}]):"
            nest.enter_context(self.writer.block(header))
        return nest


def write_softmax(op: Softmax | LogSoftmax, node: Apply, writer: Writer) -> None:
    """Write a (log-)softmax; the maximum of each slice is subtracted first."""
    if not node.inputs[0].type.ndim:
        _write_of_scalar(
            "math.exp({0} - {0})" if isinstance(op, Softmax) else "{0} - {0}", node, writer
        )
        return
    writer.globals.update(vector_exp=exp, rank=rank, of_rank=of_rank, math=math)
    slices = _Slices(node, writer)
    top, total, element = (writer.fresh(name) for name in ("top", "total", "element"))
    x, out, at = slices.x, slices.out, slices.position
    # The maximum of nothing.
    empty = " or ".join(f"{x}.shape[{axis}] == 0" for axis in slices.inside)
    with writer.block(f"if {empty}:"):
        writer.emit_failure(ValueError, lambda: NO_MAXIMUM)
    with slices.over(slices.outside):
        writer.emit(f"{top} = rank(-np.inf)", f"{total} = 0.0")
        with slices.over(slices.inside):
            writer.emit(f"{element} = rank({x}[{at}])")
            writer.emit(f"{top} = {element} if {element} > {top} else {top}")
        largest = writer.fresh("largest")
        writer.emit(f"{largest} = of_rank({top})")
        with slices.over(slices.inside):
            power = writer.fresh("power")
            writer.emit(f"{power} = vector_exp({x}[{at}] - {largest})")
            writer.emit(f"{total} = plus({total}, {power})")
            if isinstance(op, Softmax):
                writer.emit(f"{out}[{at}] = {power}")
        if isinstance(op, Softmax):
            with slices.over(slices.inside):
                writer.emit(f"{out}[{at}] /= {total}")
        else:
            shift = writer.fresh("shift")
            writer.emit(f"{shift} = math.log({total})")
            with slices.over(slices.inside):
                writer.emit(f"{out}[{at}] = {x}[{at}] - {largest} - {shift}")


def write_softmax_grad(op: SoftmaxGrad, node: Apply, writer: Writer) -> None:
    """Write ``dy * sm - sum(dy * sm) * sm`` for each slice."""
    if not node.inputs[1].type.ndim:
        _write_of_scalar("{0} * {1} - {0} * {1} * {1}", node, writer)
        return
    dy = writer.name(node.inputs[0])
    slices = _Slices(node, writer)
    total = writer.fresh("total")
    sm, at = slices.x, slices.position
    for axis in range(slices.ndim):
        with writer.block(f"if {dy}.shape[{axis}] != {sm}.shape[{axis}]:"):
            writer.emit_failure(
                ValueError, _mismatch_message(axis), f"{dy}.shape[{axis}]", f"{sm}.shape[{axis}]"
            )
    with slices.over(slices.outside):
        writer.emit(f"{total} = 0.0")
        with slices.over(slices.inside):
            writer.emit(f"{total} = plus({total}, np.float64({dy}[{at}] * {sm}[{at}]))")
        with slices.over(slices.inside):
            writer.emit(f"{slices.out}[{at}] = {dy}[{at}] * {sm}[{at}] - {total} * {sm}[{at}]")


def _write_of_scalar(template: str, node: Apply, writer: Writer) -> None:
    writer.globals["math"] = math
    text = template.format(*(writer.name(i) for i in node.inputs))
    (out,) = node.outputs
    name = writer.define(out, "softmax")
    writer.emit(f"{name} = {numpy_dtype(out.type.dtype)}({text})")


def _mismatch_message(axis: int) -> Any:
    def message(one: int, other: int) -> str:
        return f"dy and the softmax have lengths {one} and {other} along axis {axis}"

    return message
