"""`Solve`: by Gaussian elimination, or by Cholesky's factors of a positive definite matrix."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from aesara.graph.basic import Apply
from aesara.tensor.slinalg import Solve

from fixed_modes.numba.nlinalg import cholesky_lower
from fixed_modes.numba.triangular import all_finite, substitute, write_shape_check
from fixed_modes.numba.writer import Writer

#: More equations are left to LAPACK.  For few, OpenBLAS wakes up its threads, which takes a
#: thousand times as long as the solution where they have to wait for a core.
_FEW = 48


@numba.njit(error_model="numpy")
def solve_general(a: Any, b: Any) -> Any:
    """Solve ``a @ x = b`` for the columns of `b`, by elimination with partial pivoting."""
    n = a.shape[0]
    if n > _FEW and all_finite(a) and all_finite(b):
        return np.ascontiguousarray(np.linalg.solve(a, b))
    a, x = a.copy(), b.copy()
    for k in range(n):
        pivot = k
        for i in range(k + 1, n):
            if abs(a[i, k]) > abs(a[pivot, k]):
                pivot = i
        if a[pivot, k] == 0:
            raise np.linalg.LinAlgError("Matrix is singular.")
        if pivot != k:
            for j in range(k, n):
                a[k, j], a[pivot, j] = a[pivot, j], a[k, j]
            for j in range(x.shape[1]):
                x[k, j], x[pivot, j] = x[pivot, j], x[k, j]
        for i in range(k + 1, n):
            factor = a[i, k] / a[k, k]
            for j in range(k + 1, n):
                a[i, j] -= factor * a[k, j]
            for j in range(x.shape[1]):
                x[i, j] -= factor * x[k, j]
    for k in range(n - 1, -1, -1):
        for j in range(x.shape[1]):
            total = x[k, j]
            for i in range(k + 1, n):
                total -= a[k, i] * x[i, j]
            x[k, j] = total / a[k, k]
    return x


@numba.njit(error_model="numpy")
def mirror_lower(a: Any) -> Any:
    """Give the symmetric matrix of which the lower triangle is that of `a`."""
    return np.tril(a) + np.tril(a, -1).T


@numba.njit(error_model="numpy")
def mirror_upper(a: Any) -> Any:
    """Give the symmetric matrix of which the upper triangle is that of `a`."""
    return np.triu(a) + np.triu(a, 1).T


@numba.njit(error_model="numpy")
def solve_positive_lower(a: Any, b: Any) -> Any:
    """Solve for a positive definite matrix, of which only the lower triangle is read."""
    x = b.copy()
    factor = cholesky_lower(a)
    substitute(factor, x, True, False, False)
    substitute(factor, x, True, True, False)
    return x


@numba.njit(error_model="numpy")
def solve_positive_upper(a: Any, b: Any) -> Any:
    """Solve for a positive definite matrix, of which only the upper triangle is read."""
    return solve_positive_lower(np.ascontiguousarray(a.T), b)


#: What solves the equations, by what is assumed of the matrix, for its lower triangle and
#: for its upper one.  Before that the matrix is made symmetric by one of `_MIRRORS`.
_SOLVERS = {
    "gen": (solve_general, solve_general),
    "her": (solve_general, solve_general),
    "pos": (solve_positive_lower, solve_positive_upper),
    "sym": (solve_general, solve_general),
}
_MIRRORS = {"her": (mirror_lower, mirror_upper), "sym": (mirror_lower, mirror_upper)}


def write_solve(op: Solve, node: Apply, writer: Writer) -> bool:
    """Write the solution of linear equations of real numbers; False for others."""
    a, b = node.inputs
    (out,) = node.outputs
    dtype = out.type.dtype
    if dtype not in ("float32", "float64") or op.assume_a not in _SOLVERS:
        return False
    if a.type.ndim != 2 or b.type.ndim not in (1, 2):
        return False
    if any(v.type.dtype.startswith(("complex", "float16")) for v in (a, b)):
        return False
    write_shape_check(a, b, writer)
    values = [
        writer.name(v) if v.type.dtype == dtype else f"{writer.name(v)}.astype(np.{dtype})"
        for v in (a, b)
    ]
    if b.type.ndim == 1:
        values[1] = f"{values[1]}.copy().reshape({writer.length(b, 0)}, 1)"
    matrix, sides = writer.fresh("matrix"), writer.fresh("sides")
    writer.emit(f"{matrix} = {values[0]}", f"{sides} = {values[1]}")
    if op.check_finite:
        finite = writer.use_global("all_finite", all_finite)
        with writer.block(f"if not ({finite}({matrix}) and {finite}({sides})):"):
            writer.emit_failure(ValueError, lambda: "array must not contain infs or NaNs")
    triangle = 0 if op.lower else 1
    if op.assume_a in _MIRRORS:
        mirror = _MIRRORS[op.assume_a][triangle]
        writer.emit(f"{matrix} = {writer.use_global(mirror.__name__, mirror)}({matrix})")
    solve = _SOLVERS[op.assume_a][triangle]
    solved = f"{writer.use_global(solve.__name__, solve)}({matrix}, {sides})"
    writer.emit(f"{writer.define(out, 'solved')} = {solved}{'[:, 0]' if b.type.ndim == 1 else ''}")
    return True
