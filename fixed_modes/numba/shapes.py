"""Rules for the lengths of results, where those of the operands are known."""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch
from typing import Callable, Optional

from aesara.compile.ops import DeepCopyOp, ViewOp
from aesara.graph.basic import Apply, Variable
from aesara.graph.op import Op
from aesara.graph.type import Type
from aesara.raise_op import CheckAndRaise
from aesara.tensor.basic import Alloc, AllocEmpty, ARange, Eye, Join, MakeVector
from aesara.tensor.elemwise import CAReduce, DimShuffle, Elemwise
from aesara.tensor.extra_ops import CumOp
from aesara.tensor.math import Argmax, Dot, MaxAndArgmax
from aesara.tensor.nlinalg import MatrixInverse, MatrixPinv
from aesara.tensor.random.op import RandomVariable
from aesara.tensor.shape import Reshape, SpecifyShape, Unbroadcast
from aesara.tensor.slinalg import Cholesky, Solve, SolveBase, SolveTriangular
from aesara.tensor.special import LogSoftmax, Softmax, SoftmaxGrad
from aesara.tensor.subtensor import (
    AdvancedIncSubtensor,
    AdvancedIncSubtensor1,
    AdvancedSubtensor1,
    IncSubtensor,
    Subtensor,
)

from fixed_modes.numba.facts import Shape
from fixed_modes.numba.folding import entries_of, known_arange, known_slice
from fixed_modes.numba.plan import Known, NotKnown, Plan
from fixed_modes.numba.writer import Writer

_MaybeShape = Optional[Shape]


def note_shapes(op: Op, node: Apply, writer: Writer) -> None:
    """Note what is known of the lengths of the outputs of `node`."""
    try:
        shape = result_shape(op, node, writer)
    except NotKnown:
        return
    if shape is not None and shape:
        # Those with several results of one shape.
        is_alike = isinstance(op, (Elemwise, MaxAndArgmax))
        for out in node.outputs if is_alike else node.outputs[:1]:
            writer.facts(out).shape = shape


@singledispatch
def result_shape(op: Op, node: Apply, writer: Writer) -> _MaybeShape:
    """Give the shape of the first output; None where there is no rule for `op`.

    Raises
    ------
    NotKnown
        Where a length can't be worked out.
    """
    return None


def _register(*ops: type) -> Callable:
    def decorate(function: Callable) -> Callable:
        for op in ops:
            result_shape.register(op)(function)
        return function

    return decorate


@_register(
    DeepCopyOp, ViewOp, Unbroadcast, SpecifyShape, CheckAndRaise, Cholesky, MatrixInverse,
    Softmax, LogSoftmax, IncSubtensor, AdvancedIncSubtensor1, AdvancedIncSubtensor,
)  # fmt: skip
def _same(op: Op, node: Apply, writer: Writer) -> _MaybeShape:
    x = node.inputs[0]
    return writer.shape(x) if getattr(x.type, "ndim", 0) else None


@_register(SoftmaxGrad, Solve, SolveBase, SolveTriangular)
def _same_as_second(op: Op, node: Apply, writer: Writer) -> _MaybeShape:
    return writer.shape(node.inputs[1])


@_register(MatrixPinv)
def _turned(op: Op, node: Apply, writer: Writer) -> _MaybeShape:
    return tuple(reversed(writer.shape(node.inputs[0])))


@_register(CumOp)
def _cumulative(op: CumOp, node: Apply, writer: Writer) -> _MaybeShape:
    return writer.shape(node.inputs[0]) if op.axis is not None else None


@_register(Alloc)
def _alloc(op: Alloc, node: Apply, writer: Writer) -> _MaybeShape:
    return tuple(writer.known(i) for i in node.inputs[1:])


@_register(AllocEmpty)
def _alloc_empty(op: AllocEmpty, node: Apply, writer: Writer) -> _MaybeShape:
    return tuple(writer.known(i) for i in node.inputs)


@_register(Eye)
def _eye(op: Eye, node: Apply, writer: Writer) -> _MaybeShape:
    return tuple(writer.known(i) for i in node.inputs[:2])


@_register(MakeVector)
def _make_vector(op: MakeVector, node: Apply, writer: Writer) -> _MaybeShape:
    return (writer.plan.constant(len(node.inputs)),)


@_register(ARange)
def _arange(op: ARange, node: Apply, writer: Writer) -> _MaybeShape:
    return (known_arange(node, writer),)


@_register(CAReduce, Argmax, MaxAndArgmax)
def _reduction(op: Op, node: Apply, writer: Writer) -> _MaybeShape:
    shape = writer.shape(node.inputs[0])
    axes = range(len(shape)) if op.axis is None else op.axis
    return tuple(length for axis, length in enumerate(shape) if axis not in axes)


@_register(DimShuffle)
def _dimshuffle(op: DimShuffle, node: Apply, writer: Writer) -> _MaybeShape:
    x = node.inputs[0]
    shape = writer.shape(x) if x.type.ndim else ()
    return tuple(writer.plan.constant(1) if o == "x" else shape[o] for o in op.new_order)


@_register(Dot)
def _dot(op: Dot, node: Apply, writer: Writer) -> _MaybeShape:
    x, y = node.inputs
    return (*writer.shape(x)[:-1], *writer.shape(y)[1:])


@_register(AdvancedSubtensor1)
def _take(op: AdvancedSubtensor1, node: Apply, writer: Writer) -> _MaybeShape:
    x, indices = node.inputs
    return (*writer.shape(indices), *writer.shape(x)[1:])


@_register(Join)
def _join(op: Join, node: Apply, writer: Writer) -> _MaybeShape:
    axis = writer.known(node.inputs[0])
    if axis is None or not axis.is_constant:
        return None
    shapes = [writer.shape(x) for x in node.inputs[1:]]
    place = int(axis.value) % len(shapes[0])
    total: Known | None = writer.plan.constant(0)
    for shape in shapes:
        length = shape[place]
        if length is None or total is None:
            total = None
        else:
            total = writer.plan.apply("{} + {}", total, length)
    return tuple(total if a == place else n for a, n in enumerate(shapes[0]))


@_register(Reshape)
def _reshape(op: Reshape, node: Apply, writer: Writer) -> _MaybeShape:
    x, target = node.inputs
    lengths = entries_of(target, writer)
    if lengths is None or len(lengths) != op.ndim:
        return None
    plan = writer.plan
    left_open = [n for n, length in enumerate(lengths) if plan.decide("{} == -1", length)]
    if not left_open:
        return lengths
    size = writer.size(x) if x.type.ndim else plan.constant(1)
    if size is None or len(left_open) > 1:
        return None
    for n, length in enumerate(lengths):
        if n not in left_open:
            size = plan.apply("{} // {}", size, length)
    return tuple(size if n in left_open else length for n, length in enumerate(lengths))


@_register(Subtensor)
def _subtensor(op: Subtensor, node: Apply, writer: Writer) -> _MaybeShape:
    x, *indices = node.inputs
    return indexed_shape(op.idx_list, writer.shape(x), indices, writer)


def indexed_shape(
    idx_list: Sequence, shape: Shape, indices: Sequence[Variable], writer: Writer
) -> Shape:
    """Give the shape of what a basic index takes."""
    remaining = iter(indices)

    def value(part: object) -> Known | None:
        if isinstance(part, Type):
            return writer.known(next(remaining))
        return writer.plan.constant(part) if isinstance(part, int) else None

    lengths: list[Known | None] = []
    for part, length in zip(idx_list, shape):
        if isinstance(part, slice):
            ends = [value(part.start), value(part.stop), value(part.step)]
            taken = None if length is None else known_slice(part, ends, length, writer.plan)
            lengths.append(taken)
        elif isinstance(part, Type):
            next(remaining)
    return (*lengths, *shape[len(idx_list) :])


@_register(RandomVariable)
def _draw(op: RandomVariable, node: Apply, writer: Writer) -> _MaybeShape:
    entries = entries_of(node.inputs[1], writer)
    if entries and op.ndim_supp == 0:
        writer.facts(node.outputs[1]).shape = entries
    return None


@_register(Elemwise)
def _elemwise(op: Elemwise, node: Apply, writer: Writer) -> _MaybeShape:
    shape = broadcast_shape(node, writer)
    for out in node.outputs[1:]:
        writer.facts(out).shape = shape
    return shape


def broadcast_shape(node: Apply, writer: Writer) -> _MaybeShape:
    """Give the shape of the outputs of an `Elemwise`; None if its inputs don't fit."""
    ndim = node.outputs[0].type.ndim
    shapes = [writer.shape(i) for i in node.inputs if i.type.ndim]
    result: list[Known | None] = []
    for axis in range(ndim):
        length = _agreed([shape[axis] for shape in shapes], writer.plan)
        if isinstance(length, bool):
            return None
        result.append(length)
    return tuple(result)


def _agreed(lengths: list[Known | None], plan: Plan) -> Known | bool | None:
    """Give the length that all others are equal to, or stretched to; False if there is none."""
    known = [n for n in lengths if n is not None]
    if len(known) < len(lengths):
        return None
    leading = next((n for n in known if not (n.is_constant and n.value == 1)), None)
    if leading is None:
        return plan.constant(1)
    if all(n is leading or plan.equal(n, leading) for n in known):
        return leading
    leading = next((n for n in known if not plan.decide("{} == 1", n)), leading)
    fits = all(plan.decide("{} == 1", n) or plan.equal(n, leading) for n in known)
    return leading if fits else False
