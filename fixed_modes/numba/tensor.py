"""Allocation, shape and casting ops as statements."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import numpy as np
from aesara.compile.ops import DeepCopyOp
from aesara.graph.basic import Apply, Variable
from aesara.raise_op import CheckAndRaise
from aesara.tensor.basic import Alloc, AllocEmpty, MakeVector
from aesara.tensor.math import Dot
from aesara.tensor.random.type import RandomType
from aesara.tensor.shape import Reshape, Shape, SpecifyShape
from aesara.tensor.type import TensorType
from aesara.tensor.type_other import NoneTypeT

from fixed_modes.numba.copying import write_assignment
from fixed_modes.numba.elemwise import numpy_dtype
from fixed_modes.numba.random import copy_of_generator
from fixed_modes.numba.scalar import Operand
from fixed_modes.numba.subtensor import integer
from fixed_modes.numba.writer import Writer, is_machine_scalar


def lengths_tuple(variables: list[Variable], writer: Writer) -> str:
    """Give a tuple expression for lengths held in 0-d integers."""
    return f"({', '.join(integer(v, writer) for v in variables)},)"


def write_alloc_empty(op: AllocEmpty, node: Apply, writer: Writer) -> None:
    (out,) = node.outputs
    name = writer.define(out, "empty")
    if not node.inputs:
        writer.emit(f"{name} = {writer.literal(np.zeros((), out.type.dtype)[()])}")
        return
    shape = lengths_tuple(node.inputs, writer)
    writer.emit(f"{name} = np.empty({shape}, {numpy_dtype(out.type.dtype)})")


def write_alloc(op: Alloc, node: Apply, writer: Writer) -> None:
    value, *lengths = node.inputs
    (out,) = node.outputs
    if not lengths:
        writer.bind(out, writer.name(value))
        return
    shape = lengths_tuple(lengths, writer)
    dtype = numpy_dtype(out.type.dtype)
    if is_machine_scalar(value):
        text = f"np.full({shape}, {writer.name(value)}, {dtype})"
        writer.emit(f"{writer.define(out, 'alloc')} = {text}")
        return
    name = writer.define(out, "alloc")
    writer.emit(f"{name} = np.empty({shape}, {dtype})")
    write_assignment(writer, name, out.type.ndim, writer.name(value), value.type)


def write_make_vector(op: MakeVector, node: Apply, writer: Writer) -> None:
    (out,) = node.outputs
    name = writer.define(out, "vector")
    writer.emit(f"{name} = np.empty({len(node.inputs)}, {numpy_dtype(out.type.dtype)})")
    for position, value in enumerate(node.inputs):
        writer.emit(f"{name}[{position}] = {writer.name(value)}")


def write_shape(op: Shape, node: Apply, writer: Writer) -> None:
    (x,), (out,) = node.inputs, node.outputs
    name = writer.define(out, "shape")
    writer.emit(f"{name} = np.empty({x.type.ndim}, np.int64)")
    for axis in range(x.type.ndim):
        writer.emit(f"{name}[{axis}] = {writer.name(x)}.shape[{axis}]")


def write_reshape(op: Reshape, node: Apply, writer: Writer) -> None:
    x, shape = node.inputs
    (out,) = node.outputs
    source, target = writer.name(x), writer.name(shape)
    name = writer.define(out, "reshape")
    # Numba reshapes contiguous arrays only.
    flat = f"np.full((1,), {source}, {numpy_dtype(x.type.dtype)})"
    if x.type.ndim > 0:
        flat = f"np.ascontiguousarray({source})"
    if op.ndim == 0:
        writer.emit(f"{name} = {flat}.reshape((1,))[0]")
        return
    lengths = ", ".join(f"np.int64({target}[{axis}])" for axis in range(op.ndim))
    writer.emit(f"{name} = {flat}.reshape(({lengths},))")


def write_specify_shape(op: SpecifyShape, node: Apply, writer: Writer) -> None:
    x, *lengths = node.inputs
    source = writer.name(x)
    for axis, length in enumerate(lengths):
        if isinstance(length.type, NoneTypeT):
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
        test = writer.name(condition)
        if not is_machine_scalar(condition):
            test = f"np.all({test})"
        with writer.block(f"if not {test}:"):
            writer.emit_failure(op.exc_type, _fixed_message(op.msg), name=exception)
    writer.bind(node.outputs[0], writer.name(value))


def _fixed_message(text: str) -> Any:
    return lambda: text


def write_dot(op: Dot, node: Apply, writer: Writer) -> bool:
    """Write a product of vectors or matrices; False for operands of other ranks."""
    x, y = node.inputs
    (out,) = node.outputs
    dtype = out.type.dtype
    if not (1 <= x.type.ndim <= 2 and 1 <= y.type.ndim <= 2) or dtype == "float16":
        return False
    left, right = writer.name(x), writer.name(y)
    inner = f"{left}.shape[{x.type.ndim - 1}]"
    with writer.block(f"if {inner} != {right}.shape[0]:"):
        writer.emit_failure(ValueError, _dot_message, inner, f"{right}.shape[0]")
    is_blas = np.dtype(dtype).kind in "fc" and {x.type.dtype, y.type.dtype} == {dtype}
    if is_blas:
        writer.emit(
            f"{writer.define(out, 'dot')} = np.dot("
            f"np.ascontiguousarray({left}), np.ascontiguousarray({right}))"
        )
    else:
        _write_dot_loops(node, left, right, writer)
    return True


def _write_dot_loops(node: Apply, left: str, right: str, writer: Writer) -> None:
    """Write a product of integers, or of unlike dtypes, in the dtype of the result."""
    x, y = node.inputs
    (out,) = node.outputs
    dtype = out.type.dtype
    rows = [(writer.fresh("i"), f"{left}.shape[0]")] if x.type.ndim == 2 else []
    columns = [(writer.fresh("j"), f"{right}.shape[1]")] if y.type.ndim == 2 else []
    free = [*rows, *columns]
    name = writer.define(out, "dot")
    if free:
        shape = ", ".join(length for _, length in free)
        writer.emit(f"{name} = np.empty(({shape},), {numpy_dtype(dtype)})")
    k, total = writer.fresh("k"), writer.fresh("total")
    a = f"{left}[{', '.join([*(i for i, _ in rows), k])}]"
    b = f"{right}[{', '.join([k, *(j for j, _ in columns)])}]"
    product = f"{Operand(a, x.type.dtype).to(dtype)} * {Operand(b, y.type.dtype).to(dtype)}"
    with ExitStack() as nest:
        for index, length in free:
            nest.enter_context(writer.block(f"for {index} in range({length}):"))
        writer.emit(f"{total} = {writer.literal(np.zeros((), dtype)[()])}")
        with writer.block(f"for {k} in range({right}.shape[0]):"):
            writer.emit(f"{total} = {numpy_dtype(dtype)}({total} + {product})")
        if free:
            writer.emit(f"{name}[{', '.join(index for index, _ in free)}] = {total}")
    if not free:
        writer.emit(f"{name} = {total}")


def _dot_message(columns: int, rows: int) -> str:
    return (
        f"Shape mismatch: the left operand of dot has {columns} columns, the right one {rows} rows"
    )
