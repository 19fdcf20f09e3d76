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

# Up to so many multiplications a product is a loop.
_SMALL_PRODUCT = 512


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
    name = writer.define(out, "dot")
    if not is_blas:
        _write_dot_loops(node, name, writer)
        return True
    lengths = [f"{left}.shape[{axis}]" for axis in range(x.type.ndim)]
    lengths += [f"{right}.shape[{axis}]" for axis in range(1, y.type.ndim)]
    # A call of BLAS, and the copies that it may need, cost more than a small
    # product; an outer product is a loop in any case.
    small = f"{' * '.join(lengths)} <= {_SMALL_PRODUCT} or {inner} == 1"
    with writer.block(f"if {small}:"):
        _write_dot_loops(node, name, writer)
    with writer.block("else:"):
        writer.emit(f"{name} = np.dot(np.ascontiguousarray({left}), np.ascontiguousarray({right}))")
    return True


def _write_dot_loops(node: Apply, name: str, writer: Writer) -> None:
    """Write a product, computed in the dtype of the result."""
    x, y = node.inputs
    (out,) = node.outputs
    left, right = writer.name(x), writer.name(y)
    dtype = out.type.dtype
    row = [writer.fresh("i")] if x.type.ndim == 2 else []
    column = [writer.fresh("j")] if y.type.ndim == 2 else []
    k = writer.fresh("k")
    a = Operand(f"{left}[{', '.join([*row, k])}]", x.type.dtype).to(dtype)
    b = Operand(f"{right}[{', '.join([k, *column])}]", y.type.dtype).to(dtype)
    target = f"{name}[{', '.join([*row, *column])}]" if row or column else name
    zero = writer.literal(np.zeros((), dtype)[()])
    if row or column:
        shape = [f"{left}.shape[0]"] * len(row) + [f"{right}.shape[1]"] * len(column)
        writer.emit(f"{name} = np.full(({', '.join(shape)},), {zero}, {numpy_dtype(dtype)})")
    else:
        writer.emit(f"{name} = {zero}")
    loops = [(i, f"{left}.shape[0]") for i in row] + [(k, f"{right}.shape[0]")]
    loops += [(j, f"{right}.shape[1]") for j in column]
    with ExitStack() as nest:
        for index, length in loops:
            nest.enter_context(writer.block(f"for {index} in range({length}):"))
        writer.emit(f"{target} = {numpy_dtype(dtype)}({target} + {a} * {b})")


def _dot_message(columns: int, rows: int) -> str:
    return (
        f"Shape mismatch: the left operand of dot has {columns} columns, the right one {rows} rows"
    )
