"""Allocation, shape and casting ops as statements."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import numpy as np
from aesara.compile.ops import DeepCopyOp
from aesara.graph.basic import Apply
from aesara.raise_op import CheckAndRaise
from aesara.tensor.basic import Alloc, AllocEmpty, MakeVector
from aesara.tensor.math import Dot
from aesara.tensor.random.type import RandomType
from aesara.tensor.shape import Reshape, Shape, SpecifyShape
from aesara.tensor.type import TensorType
from aesara.tensor.type_other import NoneTypeT

from fixed_modes.numba.allocation import allocate
from fixed_modes.numba.copying import write_assignment, write_fill
from fixed_modes.numba.folding import entries_of
from fixed_modes.numba.plan import NotKnown
from fixed_modes.numba.random import copy_of_generator
from fixed_modes.numba.scalar import Operand
from fixed_modes.numba.subtensor import integer
from fixed_modes.numba.writer import Writer, is_machine_scalar, numpy_dtype

# Up to so many multiplications a product is a loop.
_SMALL_PRODUCT = 512


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
    known = [writer.shape(x)[-1], writer.shape(y)[0]]
    if known[0] is None or known[1] is None or not writer.plan.equal(known[0], known[1]):
        inner = f"{left}.shape[{x.type.ndim - 1}]"
        with writer.block(f"if {inner} != {right}.shape[0]:"):
            writer.emit_failure(ValueError, _dot_message, inner, f"{right}.shape[0]")
    is_blas = np.dtype(dtype).kind in "fc" and {x.type.dtype, y.type.dtype} == {dtype}
    lengths = [writer.length(x, axis) for axis in range(x.type.ndim)]
    lengths += [writer.length(y, axis) for axis in range(1, y.type.ndim)]
    shape = [*lengths[: x.type.ndim - 1], *lengths[x.type.ndim :]]
    name = allocate(out, shape, "dot", writer) if shape else writer.define(out, "dot")
    small = _is_small_product(node, writer)
    # A call of BLAS, and the copies that it may need, cost more than a small
    # product; an outer product is a loop in any case.
    if not is_blas or small:
        _write_dot_loops(node, name, writer)
        return True
    if small is None:
        test = f"{' * '.join(lengths)} <= {_SMALL_PRODUCT} or {lengths[x.type.ndim - 1]} == 1"
        with writer.block(f"if {test}:"):
            _write_dot_loops(node, name, writer)
        with writer.block("else:"):
            _write_blas(name, shape, left, right, writer)
    else:
        _write_blas(name, shape, left, right, writer)
    return True


def _is_small_product(node: Apply, writer: Writer) -> bool | None:
    """Decide whether a product is a loop; None where its lengths are not known."""
    x, y = node.inputs
    lengths = [*writer.shape(x), *writer.shape(y)[1:]]
    known = [n for n in lengths if n is not None]
    if len(known) < len(lengths):
        return None
    template = " * ".join(["{}"] * len(known))
    try:
        if writer.plan.decide(f"{template} <= {_SMALL_PRODUCT}", *known):
            return True
        return writer.plan.decide("{} == 1", known[x.type.ndim - 1])
    except NotKnown:
        return False


def _write_blas(name: str, shape: list[str], left: str, right: str, writer: Writer) -> None:
    operands = ", ".join(f"np.ascontiguousarray({operand})" for operand in (left, right))
    if shape:
        writer.emit(f"np.dot({operands}, {name})")
    else:
        writer.emit(f"{name} = np.dot({operands})")


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
        write_fill(writer, name, len(row) + len(column), zero)
    else:
        writer.emit(f"{name} = {zero}")
    loops = [(i, writer.length(x, 0)) for i in row] + [(k, writer.length(y, 0))]
    loops += [(j, writer.length(y, 1)) for j in column]
    with ExitStack() as nest:
        for index, length in loops:
            nest.enter_context(writer.block(f"for {index} in range({length}):"))
        writer.emit(f"{target} = {numpy_dtype(dtype)}({target} + {a} * {b})")


def _dot_message(columns: int, rows: int) -> str:
    return (
        f"Shape mismatch: the left operand of dot has {columns} columns, the right one {rows} rows"
    )
