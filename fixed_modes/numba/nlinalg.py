"""`Det`, inverses and `Cholesky`, with NaN and errors where NumPy and SciPy have them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numba
import numpy as np
from aesara.graph.basic import Apply, Variable
from aesara.graph.op import Op
from aesara.tensor.math import Dot
from aesara.tensor.nlinalg import SVD, Det, Inv, MatrixInverse, MatrixPinv, QRFull
from aesara.tensor.slinalg import Cholesky, Solve

from fixed_modes.numba.lapack import reduced_qr
from fixed_modes.numba.triangular import all_finite
from fixed_modes.numba.writer import Writer


@numba.njit(error_model="numpy")
def eliminate(a: Any) -> Any:
    """Give the determinant of `a`, which is overwritten, by Gaussian elimination."""
    result = a.dtype.type(1)
    for k in range(a.shape[0]):
        pivot = k
        for i in range(k + 1, a.shape[0]):
            if abs(a[i, k]) > abs(a[pivot, k]):
                pivot = i
        if pivot != k:
            result = -result
            for j in range(a.shape[1]):
                a[k, j], a[pivot, j] = a[pivot, j], a[k, j]
        result *= a[k, k]
        for i in range(k + 1, a.shape[0]):
            factor = a[i, k] / a[k, k]
            for j in range(k + 1, a.shape[1]):
                a[i, j] -= factor * a[k, j]
    return result


@numba.njit(error_model="numpy")
def determinant(a: Any) -> Any:
    """Give the determinant of a matrix; Numba's own function refuses NaN and infinity."""
    if a.shape[0] != a.shape[1] or all_finite(a):
        return np.linalg.det(a)
    return eliminate(a.copy())


@numba.njit(error_model="numpy")
def eliminate_columns(a: Any, b: Any) -> Any:
    """Turn `b` into the solution of ``a @ x = b``, without an error where there is none."""
    for k in range(a.shape[0]):
        pivot = k
        for i in range(k + 1, a.shape[0]):
            if abs(a[i, k]) > abs(a[pivot, k]):
                pivot = i
        for j in range(a.shape[1]):
            a[k, j], a[pivot, j] = a[pivot, j], a[k, j]
            b[k, j], b[pivot, j] = b[pivot, j], b[k, j]
        scale = a[k, k]
        for j in range(a.shape[1]):
            a[k, j] /= scale
            b[k, j] /= scale
        for i in range(a.shape[0]):
            factor = a[i, k]
            for j in range(a.shape[1] if i != k else 0):
                a[i, j] -= factor * a[k, j]
                b[i, j] -= factor * b[k, j]
    return b


@numba.njit(error_model="numpy")
def inverse(a: Any) -> Any:
    """Give the inverse of a matrix; Numba's own function refuses NaN and infinity."""
    if a.shape[0] != a.shape[1] or all_finite(a):
        return np.linalg.inv(a)
    b = np.zeros_like(a)
    for k in range(a.shape[0]):
        b[k, k] = 1
    return np.asfortranarray(eliminate_columns(a.copy(), b))


@numba.njit
def pseudo_inverse(a: Any) -> Any:
    """Give the pseudo-inverse of a matrix."""
    return np.linalg.pinv(a)


def write_inverse(op: Op, node: Apply, writer: Writer) -> bool:
    """Write the inverse of a matrix of real numbers; False for others."""
    return _write_in_double(inverse, ["matrix"], node, writer)


def write_det(op: Det, node: Apply, writer: Writer) -> bool:
    """Write the determinant of real numbers; False for others."""
    return _write_in_double(determinant, ["det"], node, writer)


def write_pinv(op: MatrixPinv, node: Apply, writer: Writer) -> bool:
    """Write the pseudo-inverse of numbers in single precision; False for others."""
    is_single = node.inputs[0].type.dtype == "float32" and not op.hermitian
    return is_single and _write_in_double(pseudo_inverse, ["matrix"], node, writer)


def _write_in_double(
    function: Callable[..., Any], hints: Sequence[str], node: Apply, writer: Writer
) -> bool:
    """Write a call for a matrix of real numbers; False for others.

    `numpy.linalg` computes in double precision in any case.
    """
    (x,) = node.inputs
    dtype = x.type.dtype
    if dtype not in ("float32", "float64") or any(o.type.dtype != dtype for o in node.outputs):
        return False
    names = [writer.define(out, hint) for out, hint in zip(node.outputs, hints)]
    called, argument = writer.use_global(function.__name__, function), writer.name(x)
    if dtype == "float64":
        writer.emit(f"{', '.join(names)} = {called}({argument})")
        return True
    doubles = [writer.fresh(name) for name in names]
    writer.emit(f"{', '.join(doubles)} = {called}({argument}.astype(np.float64))")
    for name, double, out in zip(names, doubles, node.outputs):
        rounded = f"{double}.astype(np.float32)" if out.type.ndim else f"np.float32({double})"
        writer.emit(f"{name} = {rounded}")
    return True


def _write_call(function: Callable[..., Any], node: Apply, writer: Writer) -> bool:
    (x,), (out,) = node.inputs, node.outputs
    if x.type.dtype not in ("float32", "float64") or out.type.dtype != x.type.dtype:
        return False
    name = writer.use_global(function.__name__, function)
    writer.emit(f"{writer.define(out, 'matrix')} = {name}({writer.name(x)})")
    return True


@numba.njit
def cholesky_lower(a: Any) -> Any:
    """Give the lower factor of a matrix, of which only the lower triangle is read."""
    return np.linalg.cholesky(a)


@numba.njit
def cholesky_upper(a: Any) -> Any:
    """Give the upper factor of a matrix, of which only the upper triangle is read."""
    return np.linalg.cholesky(a.T).T


@numba.njit
def cholesky_lower_or_nan(a: Any) -> Any:
    """Give the lower factor, or NaN where there is none."""
    factor = np.zeros_like(a)
    for j in range(a.shape[0]):
        for i in range(j, a.shape[0]):
            rest = a[i, j]
            for k in range(j):
                rest -= factor[i, k] * factor[j, k]
            if i == j and not rest > 0:
                factor[:] = np.nan
                return factor
            factor[i, j] = math.sqrt(rest) if i == j else rest / factor[j, j]
    return factor


@numba.njit
def cholesky_upper_or_nan(a: Any) -> Any:
    """Give the upper factor, or NaN where there is none."""
    return cholesky_lower_or_nan(a.T).T


def write_cholesky(op: Cholesky, node: Apply, writer: Writer) -> bool:
    """Write the factor of a matrix of real numbers; False for others."""
    (x,) = node.inputs
    if x.type.dtype not in ("float32", "float64"):
        return False
    name = writer.name(x)
    write_square_check(x, writer)
    check = writer.use_global("all_finite", all_finite)
    with writer.block(f"if not {check}({name}):"):
        writer.emit_failure(ValueError, lambda: "array must not contain infs or NaNs")
    if op.on_error == "nan":
        function = cholesky_lower_or_nan if op.lower else cholesky_upper_or_nan
    else:
        function = cholesky_lower if op.lower else cholesky_upper
    return _write_call(function, node, writer)


def write_square_check(x: Variable, writer: Writer) -> None:
    """Write the check that a matrix is square."""
    rows, columns = writer.length(x, 0), writer.length(x, 1)
    with writer.block(f"if {rows} != {columns}:"):
        writer.emit_failure(ValueError, _not_square, rows, columns)


def write_solve_checks(op: Solve, node: Apply, writer: Writer) -> None:
    """Write the checks that a matrix is square, and of NaN and infinity."""
    write_square_check(node.inputs[0], writer)
    if not op.check_finite:
        return
    finite = " and ".join(f"np.isfinite({writer.name(v)}).all()" for v in node.inputs)
    with writer.block(f"if not ({finite}):"):
        writer.emit_failure(ValueError, lambda: "array must not contain infs or NaNs")


def _not_square(rows: int, columns: int) -> str:
    return f"Input array is expected to be square but has the shape: ({rows}, {columns})."


def write_qr(op: QRFull, node: Apply, writer: Writer) -> bool:
    """Write a reduced QR decomposition; False for the other modes and integers."""
    return op.mode == "reduced" and _write_in_double(reduced_qr, ["q", "r"], node, writer)


@numba.njit
def svd_full(a: Any) -> Any:
    """Decompose a matrix; Numba's own function refuses empty ones."""
    if a.size:
        return np.linalg.svd(a, True)
    rows, columns = a.shape
    u, v = np.eye(rows).astype(a.dtype), np.eye(columns).astype(a.dtype)
    return np.asfortranarray(u), np.zeros(0, a.real.dtype), np.asfortranarray(v)


@numba.njit
def svd_thin(a: Any) -> Any:
    """Decompose a matrix, without the vectors that belong to no singular value."""
    if a.size:
        return np.linalg.svd(a, False)
    u, v = np.zeros((a.shape[0], 0), a.dtype), np.zeros((0, a.shape[1]), a.dtype)
    return np.asfortranarray(u), np.zeros(0, a.real.dtype), np.asfortranarray(v)


def write_svd(op: SVD, node: Apply, writer: Writer) -> bool:
    """Write a singular value decomposition; False without vectors, and for other numbers."""
    function = svd_full if op.full_matrices else svd_thin
    return op.compute_uv and _write_in_double(function, ["u", "s", "v"], node, writer)


def loses_imaginary_parts(node: Apply) -> bool:
    """Say whether Aesara's conversion would take complex matrices for real ones."""
    is_algebra = type(node.op).__module__ in _OF_MATRICES or isinstance(node.op, Dot)
    return is_algebra and any(str(i.type.dtype).startswith("complex") for i in node.inputs)


_OF_MATRICES = ("aesara.tensor.nlinalg", "aesara.tensor.slinalg", "aesara.tensor.blas")

#: What writes each op; it says False for dtypes that it has nothing for.
LINEAR_ALGEBRA: dict[type[Op], Callable[..., bool]] = {
    Cholesky: write_cholesky,
    Det: write_det,
    Inv: write_inverse,
    MatrixInverse: write_inverse,
    MatrixPinv: write_pinv,
    QRFull: write_qr,
    SVD: write_svd,
}
