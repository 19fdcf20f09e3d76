"""`SolveTriangular` and `CholeskySolve`: substitution in loops."""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np
from aesara.graph.basic import Apply, Constant, Variable
from aesara.tensor.slinalg import CholeskySolve, SolveTriangular

from fixed_modes.numba.writer import Writer, numpy_dtype


@numba.njit(error_model="numpy")
def all_finite(values: Any) -> Any:
    """Say whether no element is infinite or NaN."""
    for i in range(values.shape[0]):
        for j in range(values.shape[1]):
            if not math.isfinite(values[i, j]):
                return False
    return True


@numba.njit(error_model="numpy")
def substitute(a: Any, x: Any, is_lower: Any, is_transposed: Any, is_unit: Any) -> Any:
    """Solve for a triangular `a`; `x` has the right sides, and then the solutions.

    Returns
    -------
    0, or the number of the row, from 1, whose diagonal element is 0.
    """
    count = a.shape[0]
    if not is_unit:
        for i in range(count):
            if a[i, i] == 0:
                return i + 1
    runs_down = is_lower != is_transposed
    for step in range(count):
        i = step if runs_down else count - 1 - step
        first, last = (0, i) if runs_down else (i + 1, count)
        for k in range(x.shape[1]):
            total = x[i, k]
            for j in range(first, last):
                total -= (a[j, i] if is_transposed else a[i, j]) * x[j, k]
            x[i, k] = total if is_unit else total / a[i, i]
    return 0


def write_solve_triangular(op: SolveTriangular, node: Apply, writer: Writer) -> bool:
    """Write the solution of a triangular system; False for complex or mixed dtypes."""
    trans = {"N": 0, "T": 1, "C": 2}.get(op.trans, op.trans)
    if trans not in (0, 1, 2):
        return False
    turns = [(op.lower, trans != 0, op.unit_diagonal)]
    return _write_substitutions(turns, op.check_finite, node, writer)


def write_cholesky_solve(op: CholeskySolve, node: Apply, writer: Writer) -> bool:
    """Write the solution of ``A x = b`` for the Cholesky factor of A; False as above."""
    # A is L L' for a lower factor, U' U for an upper one.
    turns = [(op.lower, not op.lower, False), (op.lower, op.lower, False)]
    return _write_substitutions(turns, op.check_finite, node, writer)


def _write_substitutions(
    turns: list[tuple[bool, bool, bool]], is_checked: bool, node: Apply, writer: Writer
) -> bool:
    a, b = node.inputs
    (out,) = node.outputs
    if {a.type.dtype, b.type.dtype, out.type.dtype} not in ({"float64"}, {"float32"}):
        return False
    if a.type.ndim != 2:
        return False
    matrix, sides = writer.name(a), writer.name(b)
    sizes = write_shape_check(a, b, writer)
    solution, index = writer.fresh("solution"), [writer.fresh("i"), writer.fresh("k")]
    columns = "1" if b.type.ndim == 1 else writer.length(b, 1)
    statement = f"{solution} = np.empty(({sizes[2]}, {columns}), {numpy_dtype(out.type.dtype)})"
    if writer.is_in_loop and writer.is_known_shape(b):
        writer.hoist(statement, outermost=True)
    else:
        writer.emit(statement)
    with (
        writer.block(f"for {index[0]} in range({sizes[2]}):"),
        writer.block(f"for {index[1]} in range({columns}):"),
    ):
        element = ", ".join(index[: b.type.ndim])
        writer.emit(f"{solution}[{', '.join(index)}] = {sides}[{element}]")
    if is_checked:
        _write_finite_check(a, solution, writer)
    solve, singular = writer.use_global("substitute", substitute), writer.fresh("singular")
    error = writer.use_global("LinAlgError", np.linalg.LinAlgError)
    for is_lower, is_transposed, is_unit in turns:
        flags = f"{is_lower}, {is_transposed}, {is_unit}"
        writer.emit(f"{singular} = {solve}({matrix}, {solution}, {flags})")
        with writer.block(f"if {singular}:"):
            writer.emit_failure(
                np.linalg.LinAlgError, _singular_message, f"{singular} - 1", name=error
            )
    if b.type.ndim == 1:
        name = writer.define(out, "solved")
        writer.emit(f"{name} = {solution}[:, 0]")
    else:
        writer.bind(out, solution)
    return True


def write_shape_check(a: Variable, b: Variable, writer: Writer) -> list[str]:
    """Write the check that equations have as many rows as unknowns and right sides.

    Returns
    -------
    Expressions for the three numbers.
    """
    sizes = [writer.length(a, 0), writer.length(a, 1), writer.length(b, 0)]
    known = [writer.shape(a)[0], writer.shape(a)[1], writer.shape(b)[0]]
    lengths = [length for length in known if length is not None]
    if len(lengths) == 3 and all(writer.plan.equal(lengths[0], n) for n in lengths[1:]):
        return sizes
    with writer.block(f"if {sizes[0]} != {sizes[1]} or {sizes[0]} != {sizes[2]}:"):
        writer.emit_failure(ValueError, _shape_message, *sizes)
    return sizes


def _write_finite_check(a: Variable, solution: str, writer: Writer) -> None:
    finite, is_finite = writer.use_global("all_finite", all_finite), writer.fresh("is_finite")
    statement = f"{is_finite} = {finite}({writer.name(a)})"
    if writer.is_in_loop and not isinstance(a, Constant) and writer.facts(a).is_fixed:
        writer.hoist(statement)
    else:
        writer.emit(statement)
    with writer.block(f"if not ({is_finite} and {finite}({solution})):"):
        writer.emit_failure(ValueError, lambda: "array must not contain infs or NaNs")


def _shape_message(rows: int, columns: int, sides: int) -> str:
    return f"incompatible dimensions: a matrix of shape ({rows}, {columns}), {sides} right sides"


def _singular_message(row: int) -> str:
    return f"singular matrix: resolution failed at diagonal {row}"
