"""Products of vectors and matrices: loops where they are small, BLAS where they are not."""

from __future__ import annotations

from contextlib import ExitStack

import numba
import numpy as np
from aesara.graph.basic import Apply, Constant, Variable
from aesara.tensor.math import Dot
from numba.extending import overload

from fixed_modes.numba.allocation import allocate
from fixed_modes.numba.copying import write_fill
from fixed_modes.numba.plan import NotKnown
from fixed_modes.numba.scalar import Operand
from fixed_modes.numba.writer import Writer, numpy_dtype

# Up to so many multiplications a product is a loop.
SMALL_PRODUCT = 512


def _contiguous(x):  # type: ignore[no-untyped-def]
    return np.ascontiguousarray(x)


@overload(_contiguous)
def _overload_contiguous(x):  # type: ignore[no-untyped-def]
    # BLAS takes a transposed array as it is.
    if x.layout in ("C", "F"):
        return lambda x: x
    return lambda x: np.ascontiguousarray(x)


@numba.njit
def contiguous(x):  # type: ignore[no-untyped-def]
    """Give an array that BLAS takes, without a copy where that is possible."""
    return _contiguous(x)


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
        test = f"{' * '.join(lengths)} <= {SMALL_PRODUCT} or {lengths[x.type.ndim - 1]} == 1"
        with writer.block(f"if {test}:"):
            _write_dot_loops(node, name, writer)
        with writer.block("else:"):
            _write_blas(node, name, shape, writer)
    else:
        _write_blas(node, name, shape, writer)
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
        if writer.plan.decide(f"{template} <= {SMALL_PRODUCT}", *known):
            return True
        return writer.plan.decide("{} == 1", known[x.type.ndim - 1])
    except NotKnown:
        return False


def _write_blas(node: Apply, name: str, shape: list[str], writer: Writer) -> None:
    operands = ", ".join(_blas_operand(i, writer) for i in node.inputs)
    writer.emit(f"np.dot({operands}, {name})" if shape else f"{name} = np.dot({operands})")


def _blas_operand(variable: Variable, writer: Writer) -> str:
    name = writer.name(variable)
    writer.globals["contiguous"] = contiguous
    if isinstance(variable, Constant) or not writer.facts(variable).is_fixed:
        return f"contiguous({name})"
    # The same in every step: at most one copy.
    operand = writer.fresh(f"{name}_operand")
    writer.hoist(f"{operand} = contiguous({name})")
    return operand


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
    loops = [(i, writer.length(x, 0)) for i in row] + [(k, writer.length(y, 0))]
    if not column:
        _write_dot_products(name, row, loops, f"{a} * {b}", zero, dtype, writer)
        return
    write_fill(writer, name, len(row) + len(column), zero)
    loops += [(j, writer.length(y, 1)) for j in column]
    with ExitStack() as nest:
        for index, length in loops:
            nest.enter_context(writer.block(f"for {index} in range({length}):"))
        writer.emit(f"{target} = {numpy_dtype(dtype)}({target} + {a} * {b})")


def _write_dot_products(
    name: str,
    row: list[str],
    loops: list[tuple[str, str]],
    term: str,
    zero: str,
    dtype: str,
    writer: Writer,
) -> None:
    """Write the product with a vector: a sum for each row, in a local variable."""
    total = writer.fresh("total")
    *around, (k, length) = loops
    with ExitStack() as nest:
        for index, rows in around:
            nest.enter_context(writer.block(f"for {index} in range({rows}):"))
        writer.emit(f"{total} = {zero}")
        with writer.block(f"for {k} in range({length}):"):
            writer.emit(f"{total} = {numpy_dtype(dtype)}({total} + {term})")
        if row:
            writer.emit(f"{name}[{row[0]}] = {total}")
    if not row:
        writer.emit(f"{name} = {total}")


def _dot_message(columns: int, rows: int) -> str:
    return (
        f"Shape mismatch: the left operand of dot has {columns} columns, the right one {rows} rows"
    )
