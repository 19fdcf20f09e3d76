"""Inverses and decompositions of matrices (``aesara.tensor.nlinalg``)."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from aesara.graph.basic import Apply
from aesara.tensor.nlinalg import (
    SVD,
    Det,
    Eig,
    Eigh,
    EighGrad,
    Inv,
    Lstsq,
    MatrixInverse,
    MatrixPinv,
    QRFull,
    TensorInv,
    TensorSolve,
)

from fixed_modes.jax import small_matrices
from fixed_modes.jax.dispatch import jax_lower
from fixed_modes.jax.failures import refuse_nan, refuse_not_square, refuse_singular
from fixed_modes.jax.frame import Frame
from fixed_modes.jax.padded import PaddedTrace
from fixed_modes.jax.small_matrices import is_small

#: `numpy.linalg.pinv` takes singular values below this share of the largest for zero.
PINV_CUTOFF = 1e-15


def in_floats(x: Any) -> Any:
    """Give a matrix in the dtype that LAPACK computes in: whole numbers become float64."""
    x = jnp.asarray(x)
    return x if x.dtype.kind in "fc" else x.astype("float64")


def in_double(x: Any) -> Any:
    """Give a matrix in double precision, in which `numpy.linalg` computes in any case."""
    x = jnp.asarray(x)
    return x.astype("complex128" if x.dtype.kind == "c" else "float64")


def _rounded(results: list[Any], *matrices: Any) -> list[Any]:
    """Give results of double precision in single, where all matrices are of that."""
    if any(jnp.asarray(x).dtype not in ("float32", "complex64") for x in matrices):
        return results
    return [r.astype("complex64" if r.dtype.kind == "c" else "float32") for r in results]


def solve_general(a: Any, b: Any, frame: Frame) -> Any:
    """Solve ``a @ x = b``; a singular matrix raises after the run."""
    refuse_not_square(a)
    if is_small(a) and b.dtype == a.dtype and b.ndim <= 2:
        x, is_singular = small_matrices.solve(a, b if b.ndim > 1 else b[:, None])
        refuse_singular(jnp.where(is_singular, 0, 1)[None], frame)
        # What a later step makes of it is no other error.
        x = jnp.where(is_singular, 0, x)
        return x if b.ndim > 1 else x[:, 0]
    lu, _, permutation = jax.lax.linalg.lu(a)
    pivots = jnp.diagonal(lu, axis1=-2, axis2=-1)
    refuse_singular(pivots, frame)
    columns = b if b.ndim > 1 else b[:, None]
    rows = jnp.take_along_axis(
        jnp.broadcast_to(columns, (*a.shape[:-2], *columns.shape[-2:])),
        permutation[..., None],
        axis=-2,
    )
    half = jax.lax.linalg.triangular_solve(lu, rows, left_side=True, lower=True, unit_diagonal=True)
    x = jax.lax.linalg.triangular_solve(lu, half, left_side=True, lower=False)
    x = jnp.where((pivots == 0).any(), 0, x)
    return x if b.ndim > 1 else x[:, 0]


@jax_lower.register(Inv)
@jax_lower.register(MatrixInverse)
def _inv(op: Any, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    x = in_double(values[0])
    return _rounded([solve_general(x, jnp.eye(x.shape[-1], dtype=x.dtype), frame)], values[0])


@jax_lower.register(MatrixPinv)
def _pinv(op: MatrixPinv, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    x = in_double(values[0])
    if op.hermitian:
        w, right = jnp.linalg.eigh(x)
        left = right
    else:
        left, w, right = jnp.linalg.svd(x, full_matrices=False)
        right = right.conj().T
    refuse_nan(w, frame, "SVD did not converge")
    is_large = jnp.abs(w) > PINV_CUTOFF * jnp.abs(w).max(initial=0)
    inverse = jnp.where(is_large, 1 / jnp.where(is_large, w, 1), 0)
    return _rounded([(right * inverse) @ left.conj().T], values[0])


@jax_lower.register(Det)
def _det(op: Det, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    x = in_double(values[0])
    refuse_not_square(x)
    lu, pivots, _ = jax.lax.linalg.lu(x)
    swaps = (pivots != jnp.arange(x.shape[0])).sum()
    return _rounded([jnp.prod(jnp.diagonal(lu)) * jnp.where(swaps % 2, -1, 1)], values[0])


@jax_lower.register(Eig)
def _eig(op: Eig, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    x = in_double(values[0])
    refuse_not_square(x)
    error = np.linalg.LinAlgError("Array must not contain infs or NaNs")
    frame.checks.add(~jnp.isfinite(x).all(), lambda: error)
    w, v = jnp.linalg.eig(x)
    return _rounded([w, v], values[0])


@jax_lower.register(Eigh)
def _eigh(op: Eigh, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    x = in_double(values[0])
    refuse_not_square(x)
    w, v = jnp.linalg.eigh(x, UPLO=op.UPLO, symmetrize_input=False)
    return _rounded([w, v], values[0])


@jax_lower.register(EighGrad)
def _eigh_grad(op: EighGrad, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    _, w, v, grad_w, grad_v = map(jnp.asarray, values)
    gaps = w[None, :] - w[:, None]
    is_same = jnp.eye(len(w), dtype=bool)
    mixing = jnp.where(is_same, 0, (v.T @ grad_v) / jnp.where(is_same, 1, gaps))
    slope = v @ (jnp.diag(grad_w) + mixing.T) @ v.T
    if op.UPLO == "L":
        return [jnp.tril(slope) + jnp.triu(slope, 1).T]
    return [jnp.triu(slope) + jnp.tril(slope, -1).T]


@jax_lower.register(QRFull)
def _qr(op: QRFull, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    # NumPy still takes the older names.
    modes = {"full": "reduced", "f": "reduced", "reduced": "reduced", "complete": "complete"}
    modes["r"] = "r"
    if op.mode not in modes:
        raise NotImplementedError(f"QR decomposition in the mode {op.mode!r}")
    found = jnp.linalg.qr(in_double(values[0]), mode=modes[op.mode])
    return _rounded([found] if op.mode == "r" else list(found), values[0])


@jax_lower.register(SVD)
def _svd(op: SVD, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    x = in_double(values[0])
    found = jnp.linalg.svd(x, full_matrices=bool(op.full_matrices), compute_uv=op.compute_uv)
    parts = list(found) if op.compute_uv else [found]
    refuse_nan(parts[1] if op.compute_uv else parts[0], frame, "SVD did not converge")
    return _rounded(parts, values[0])


@jax_lower.register(Lstsq)
def _lstsq(op: Lstsq, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    x, y, rcond = values
    if x.ndim != 2 or y.ndim != 2 or any(value.dtype.kind == "c" for value in (x, y)):
        raise NotImplementedError("lstsq of vectors or of complex matrices")
    if x.shape[0] != y.shape[0]:
        raise np.linalg.LinAlgError("Incompatible dimensions")
    x, y = in_double(x), in_double(y)
    (rows, columns), count = x.shape, y.shape[1]
    if rows and columns:
        left, w, right = jnp.linalg.svd(x, full_matrices=False)
    else:
        left, w, right = jnp.zeros((rows, 0)), jnp.zeros(0), jnp.zeros((0, columns))
    refuse_nan(w, frame, "SVD did not converge in Linear Least Squares")
    # As LAPACK's gelsd does.
    rcond = jnp.asarray(rcond).astype("float64")
    share = jnp.where((rcond <= 0) | (rcond >= 1), np.finfo("float64").eps / 2, rcond)
    is_large = w > share * w.max(initial=0)
    inverse = jnp.where(is_large, 1 / jnp.where(is_large, w, 1), 0)
    solution = right.T @ (inverse[:, None] * (left.T @ y))
    rank = is_large.sum()
    if rows <= columns:
        residuals: Any = jnp.zeros(0)
    else:
        squares = ((y - x @ solution) ** 2).sum(axis=0)
        residuals = PaddedTrace(squares, jnp.where(rank == columns, count, 0))
    return [solution, residuals, rank.astype("int64"), w]


@jax_lower.register(TensorInv)
def _tensorinv(op: TensorInv, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    x = in_double(values[0])
    first, last = x.shape[: op.ind], x.shape[op.ind :]
    rows = int(np.prod(first))
    if rows * rows != x.size:
        raise np.linalg.LinAlgError("Last 2 dimensions of the array must be square")
    square = x.reshape(rows, rows)
    inverse = solve_general(square, jnp.eye(rows, dtype=x.dtype), frame)
    return _rounded([inverse.reshape(*last, *first)], values[0])


@jax_lower.register(TensorSolve)
def _tensorsolve(op: TensorSolve, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    if op.axes is not None:
        raise NotImplementedError("tensorsolve with axes")
    a, b = map(in_double, values)
    shape = a.shape[b.ndim :]
    if int(np.prod(shape)) != b.size:
        raise np.linalg.LinAlgError("Input arrays must satisfy prod(a.shape[b.ndim:]) == b.size")
    x = solve_general(a.reshape(b.size, b.size), b.ravel(), frame).reshape(shape)
    return _rounded([x], *values)
