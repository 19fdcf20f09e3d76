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
from fixed_modes.numba.elementary import plus_product
from fixed_modes.numba.plan import NotKnown
from fixed_modes.numba.scalar import Operand
from fixed_modes.numba.writer import Writer, numpy_dtype

# Which numbers of multiplications are a loop, in a product of two matrices, of the rows
# of a matrix and a vector, and of its columns and one.  LLVM sums a vector of the
# processor at a time, and BLAS is slow to begin: with 64 rows of 64 numbers the loop takes
# 0.8 times as long, with 256 rows of 256 less than half.  Columns have to be written
# again and again, which pays up to 32 x 32, and where OpenBLAS starts threads.
SMALL_PRODUCT = 512
_SMALL_ROWS = "{0} <= 65536"
_SMALL_COLUMNS = "{0} <= 1024 or 9216 < {0} <= 65536"

# So many columns of a matrix are added up before the sums are written.
_COLUMNS = 4


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
        test = _small(node, writer).format(f"({' * '.join(lengths)})")
        test = f"{test} or {lengths[x.type.ndim - 1]} == 1"
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
        product = writer.plan.apply(template, *known)
        if writer.plan.decide(_small(node, writer), product):
            return True
        return writer.plan.decide("{} == 1", known[x.type.ndim - 1])
    except NotKnown:
        return False


def _small(node: Apply, writer: Writer) -> str:
    """Say for which numbers of multiplications a product is a loop."""
    x, y = node.inputs
    has_vector = x.type.ndim == 1 or y.type.ndim == 1
    if not has_vector or node.outputs[0].type.dtype not in ("float64", "float32"):
        return f"{{0}} <= {SMALL_PRODUCT}"
    return _SMALL_ROWS if _is_along_rows(x, y, writer) else _SMALL_COLUMNS


def _is_along_rows(x: Variable, y: Variable, writer: Writer) -> bool:
    """Say whether each sum of a product with a vector is over numbers side by side."""
    if y.type.ndim == 1:
        return x.type.ndim == 1 or not _is_transposed(x, writer)
    return _is_transposed(y, writer)


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
    zero = writer.literal(np.zeros((), dtype)[()])
    inner = (k, writer.length(y, 0))
    outer = [(i, writer.length(x, 0)) for i in row] + [(j, writer.length(y, 1)) for j in column]
    if len(outer) < 2 and _is_along_rows(x, y, writer):
        _write_sums(name, outer, inner, (a, b), zero, dtype, writer)
        return
    write_fill(writer, name, len(outer), zero)
    if len(outer) < 2:
        _write_columns(node, name, outer[0], inner, dtype, writer)
        return
    target = f"{name}[{', '.join(index for index, _ in outer)}]"
    loops = [*outer[:-1], inner, outer[-1]]
    with ExitStack() as nest:
        for index, length in loops:
            nest.enter_context(writer.block(f"for {index} in range({length}):"))
        writer.emit(f"{target} = {_sum_of_products(target, a, b, dtype, writer)}")


def _write_sums(
    name: str,
    outer: list[tuple[str, str]],
    inner: tuple[str, str],
    factors: tuple[str, str],
    zero: str,
    dtype: str,
    writer: Writer,
) -> None:
    """Write a product with a vector: a sum for each element, in a local variable."""
    total = writer.fresh("total")
    with ExitStack() as nest:
        for index, length in outer:
            nest.enter_context(writer.block(f"for {index} in range({length}):"))
        writer.emit(f"{total} = {zero}")
        with writer.block(f"for {inner[0]} in range({inner[1]}):"):
            writer.emit(f"{total} = {_sum_of_products(total, *factors, dtype, writer)}")
        if outer:
            writer.emit(f"{name}[{outer[0][0]}] = {total}")
    if not outer:
        writer.emit(f"{name} = {total}")


def _write_columns(
    node: Apply,
    name: str,
    outer: tuple[str, str],
    inner: tuple[str, str],
    dtype: str,
    writer: Writer,
) -> None:
    """Write a product as a sum of columns of the matrix, some of them at a time."""
    x, y = node.inputs
    (i, length), (k, n) = outer, inner

    def factors(k: str) -> tuple[str, str]:
        """Give the number and the element of the column for one column."""
        matrix, vector = (x, y) if x.type.ndim == 2 else (y, x)
        place = f"{i}, {k}" if x.type.ndim == 2 else f"{k}, {i}"
        number = Operand(f"{writer.name(vector)}[{k}]", vector.type.dtype).to(dtype)
        return number, Operand(f"{writer.name(matrix)}[{place}]", matrix.type.dtype).to(dtype)

    def add_columns(columns: list[str]) -> None:
        numbers = [writer.fresh("number") for _ in columns]
        text = f"{name}[{i}]"
        for number, column in zip(numbers, columns):
            value, element = factors(column)
            writer.emit(f"{number} = {value}")
            text = _sum_of_products(text, number, element, dtype, writer)
        with writer.block(f"for {i} in range({length}):"):
            writer.emit(f"{name}[{i}] = {text}")

    with writer.block(f"for {k} in range(0, {n} - {_COLUMNS - 1}, {_COLUMNS}):"):
        add_columns([k, *(f"{k} + {more}" for more in range(1, _COLUMNS))])
    with writer.block(f"for {k} in range({n} - {n} % {_COLUMNS}, {n}):"):
        add_columns([k])


def _sum_of_products(total: str, a: str, b: str, dtype: str, writer: Writer) -> str:
    if dtype not in ("float64", "float32"):
        return f"{numpy_dtype(dtype)}({total} + {a} * {b})"
    writer.globals["plus_product"] = plus_product
    return f"plus_product({total}, {a}, {b})"


def _is_transposed(variable: Variable, writer: Writer) -> bool:
    """Say whether a matrix is another one with its axes exchanged."""
    return not isinstance(variable, Constant) and writer.facts(variable).is_transposed


def _dot_message(columns: int, rows: int) -> str:
    return (
        f"Shape mismatch: the left operand of dot has {columns} columns, the right one {rows} rows"
    )
