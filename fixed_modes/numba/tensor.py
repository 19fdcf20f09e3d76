"""Allocation, shape and casting ops as statements."""

from __future__ import annotations

from typing import Any

import numpy as np
from aesara.compile.ops import DeepCopyOp
from aesara.graph.basic import Apply
from aesara.raise_op import CheckAndRaise
from aesara.tensor.basic import Alloc, AllocEmpty, MakeVector
from aesara.tensor.random.type import RandomType
from aesara.tensor.shape import Reshape, Shape, SpecifyShape
from aesara.tensor.type import TensorType
from aesara.tensor.type_other import NoneTypeT

from fixed_modes.numba.allocation import allocate
from fixed_modes.numba.copying import write_assignment, write_fill
from fixed_modes.numba.folding import entries_of
from fixed_modes.numba.random import copy_of_generator
from fixed_modes.numba.subtensor import integer
from fixed_modes.numba.writer import Writer, is_machine_scalar, numpy_dtype


def write_alloc_empty(op: AllocEmpty, node: Apply, writer: Writer) -> None:
    (out,) = node.outputs
    if not node.inputs:
        zero = writer.literal(np.zeros((), out.type.dtype)[()])
        writer.emit(f"{writer.define(out, 'empty')} = {zero}")
        return
    allocate(out, [integer(v, writer) for v in node.inputs], "empty", writer)


def write_alloc(op: Alloc, node: Apply, writer: Writer) -> None:
    value, *lengths = node.inputs
    (out,) = node.outputs
    if not lengths:
        writer.bind(out, writer.name(value))
        return
    text = writer.name(value)
    name = allocate(out, [integer(v, writer) for v in lengths], "alloc", writer)
    if is_machine_scalar(value):
        write_fill(writer, name, out.type.ndim, text)
        return
    write_assignment(writer, name, out.type.ndim, text, value.type)


def write_make_vector(op: MakeVector, node: Apply, writer: Writer) -> None:
    (out,) = node.outputs
    values = [writer.name(i) for i in node.inputs]
    name = allocate(out, [str(len(node.inputs))], "vector", writer)
    for position, value in enumerate(values):
        writer.emit(f"{name}[{position}] = {value}")


def write_shape(op: Shape, node: Apply, writer: Writer) -> None:
    (x,), (out,) = node.inputs, node.outputs
    name = writer.define(out, "shape")
    writer.emit(f"{name} = np.empty({x.type.ndim}, np.int64)")
    for axis in range(x.type.ndim):
        writer.emit(f"{name}[{axis}] = {writer.length(x, axis)}")


def write_reshape(op: Reshape, node: Apply, writer: Writer) -> None:
    x, shape = node.inputs
    (out,) = node.outputs
    source = writer.name(x)
    known = entries_of(shape, writer)
    target = "" if known else writer.name(shape)
    name = writer.define(out, "reshape")
    # Numba reshapes contiguous arrays only.
    flat = f"np.full((1,), {source}, {numpy_dtype(x.type.dtype)})"
    if x.type.ndim > 0:
        flat = f"np.ascontiguousarray({source})"
    if op.ndim == 0:
        writer.emit(f"{name} = {flat}.reshape((1,))[0]")
        return
    lengths = ", ".join(
        writer.parameter(known[axis]) if known else f"np.int64({target}[{axis}])"
        for axis in range(op.ndim)
    )
    writer.emit(f"{name} = {flat}.reshape(({lengths},))")


def write_specify_shape(op: SpecifyShape, node: Apply, writer: Writer) -> None:
    x, *lengths = node.inputs
    source = writer.name(x)
    for axis, length in enumerate(lengths):
        if isinstance(length.type, NoneTypeT):
            continue
        own, wanted = writer.shape(x)[axis], writer.known(length)
        if own is not None and wanted is not None and writer.plan.equal(own, wanted):
            continue
        with writer.block(f"if {source}.shape[{axis}] != {writer.name(length)}:"):
            writer.emit_failure(
                AssertionError,
                _wrong_length_message(axis),
                f"{source}.shape[{axis}]",
                f"np.int64({writer.name(length)})",
            )
    writer.bind(node.outputs[0], source)


def _wrong_length_message(axis: int) -> Any:
    def message(length: int, wanted: int) -> str:
        return f"SpecifyShape: axis {axis} has length {length}, expected {wanted}."

    return message


def write_deep_copy(op: DeepCopyOp, node: Apply, writer: Writer) -> bool:
    """Write a copy; False for types that this module knows no copy of."""
    (x,), (out,) = node.inputs, node.outputs
    source = writer.name(x)
    if isinstance(x.type, RandomType):
        writer.globals["copy_of_generator"] = copy_of_generator
        writer.emit(f"{writer.define(out, 'copy')} = copy_of_generator({source})")
    elif is_machine_scalar(x):
        writer.bind(out, source)
    elif isinstance(x.type, TensorType):
        writer.emit(f"{writer.define(out, 'copy')} = {source}.copy()")
    else:
        return False
    return True


def write_check(op: CheckAndRaise, node: Apply, writer: Writer) -> None:
    """Write the conditions of an `Assert`: all must hold."""
    value, *conditions = node.inputs
    exception = writer.use_global(op.exc_type.__name__, op.exc_type)
    for condition in conditions:
        known = writer.known(condition)
        if known is not None and writer.plan.decide("{} != 0", known):
            continue
        test = writer.name(condition)
        if not is_machine_scalar(condition):
            test = f"np.all({test})"
        with writer.block(f"if not {test}:"):
            writer.emit_failure(op.exc_type, _fixed_message(op.msg), name=exception)
    writer.share(node.outputs[0], writer.facts_of_value(value))


def _fixed_message(text: str) -> Any:
    return lambda: text
