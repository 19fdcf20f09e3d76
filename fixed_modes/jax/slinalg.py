"""Solving equations with matrices (``aesara.tensor.slinalg``)."""

from __future__ import annotations

from typing import Any, Callable

import jax
import jax.numpy as jnp
import jax.scipy.linalg as jsl
import numpy as np
from aesara.graph.basic import Apply
from aesara.tensor.slinalg import (
    BilinearSolveDiscreteLyapunov,
    Cholesky,
    CholeskySolve,
    Eigvalsh,
    EigvalshGrad,
    Expm,
    ExpmGrad,
    Solve,
    SolveContinuousLyapunov,
    SolveTriangular,
)

from fixed_modes.jax import small_matrices
from fixed_modes.jax.dispatch import jax_lower
from fixed_modes.jax.failures import (
    refuse_nan,
    refuse_not_finite,
    refuse_singular,
)
from fixed_modes.jax.frame import Frame
from fixed_modes.jax.nlinalg import in_floats, solve_general
from fixed_modes.jax.small_matrices import is_small

NOT_POSITIVE = "the matrix is not positive definite"

#: Norms up to which the approximation of an exponential needs no squaring.
LARGEST_NORM = {"float32": 3.9, "complex64": 3.9, "float64": 5.3, "complex128": 5.3}

#: The coefficients of the Padé approximant of order 13 (Higham 2005).
PADE = (
    *(64764752532480000.0, 32382376266240000.0, 7771770303897600.0, 1187353796428800.0),
    *(129060195264000.0, 10559470521600.0, 670442572800.0, 33522128640.0, 1323241920.0),
    *(40840800.0, 960960.0, 16380.0, 182.0, 1.0),
)


#: For larger matrices the equations of a Lyapunov equation are too many to solve at once.
LARGEST_LYAPUNOV = 12


def _cholesky(x: Any, lower: bool) -> Any:
    """Factorise, reading only one triangle; nan where the matrix is not positive definite."""
    if not lower:
        x = x.T.conj()
    # All of it, from one triangle: JAX 0.4.20 takes means with the other one when it batches.
    x = jnp.tril(x) + jnp.tril(x, -1).T.conj()
    if is_small(x):
        return small_matrices.cholesky(x)
    return jax.lax.linalg.cholesky(x, symmetrize_input=False)


@jax_lower.register(Cholesky)
def _cholesky_op(op: Cholesky, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    x = in_floats(values[0])
    if x.shape[0] != x.shape[1]:
        raise ValueError(f"Input array is expected to be square but has the shape: {x.shape}.")
    refuse_not_finite(x, frame)
    factor = _cholesky(x, op.lower)
    failed = jnp.isnan(jnp.diagonal(factor)).any()
    if op.on_error == "raise":
        frame.checks.add(failed, lambda: np.linalg.LinAlgError(NOT_POSITIVE))
    # What a later step makes of it is no other error.
    factor = jnp.where(failed, 0 if op.on_error == "raise" else jnp.nan, jnp.tril(factor))
    return [factor if op.lower else factor.T.conj()]


def _equation(op: Any, node: Apply, values: list[Any], frame: Frame) -> tuple[Any, Any]:
    """Give matrix and right side in the dtype of the solution, checked."""
    a, b = (jnp.asarray(value).astype(node.outputs[0].type.dtype) for value in values)
    if a.shape[0] != a.shape[1]:
        raise ValueError(f"expected a square matrix, got the shape {a.shape}")
    if a.shape[0] != b.shape[0]:
        raise ValueError(f"incompatible dimensions: {a.shape} and {b.shape}")
    if op.check_finite:
        refuse_not_finite(a, frame)
        refuse_not_finite(b, frame)
    return a, b


def _substitute(a: Any, b: Any, lower: bool, trans: Any = 0, unit_diagonal: bool = False) -> Any:
    """Solve for a triangular matrix; the arguments are those of SciPy."""
    if not is_small(a) or b.ndim > 2:
        return jsl.solve_triangular(a, b, trans=trans, lower=lower, unit_diagonal=unit_diagonal)
    is_turned = trans not in (0, "N")
    columns = b if b.ndim > 1 else b[:, None]
    matrix = a.T if is_turned else a
    x = small_matrices.substitute(matrix, columns, lower != is_turned, unit_diagonal)
    return x if b.ndim > 1 else x[:, 0]


def _cho_solve(factor: Any, lower: bool, b: Any) -> Any:
    """Solve for a matrix whose factor of Cholesky's is given."""
    if not is_small(factor):
        return jsl.cho_solve((factor, lower), b)
    half = _substitute(factor, b, lower, trans=0 if lower else 1)
    return _substitute(factor, half, lower, trans=1 if lower else 0)


@jax_lower.register(CholeskySolve)
def _cholesky_solve(op: CholeskySolve, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    c, b = _equation(op, node, values, frame)
    return [_cho_solve(c, op.lower, b)]


@jax_lower.register(SolveTriangular)
def _solve_triangular(
    op: SolveTriangular, node: Apply, values: list[Any], frame: Frame
) -> list[Any]:
    a, b = _equation(op, node, values, frame)
    if not op.unit_diagonal:
        refuse_singular(jnp.diagonal(a), frame, "singular matrix: resolution failed")
    return [_substitute(a, b, op.lower, op.trans, op.unit_diagonal)]


@jax_lower.register(Solve)
def _solve(op: Solve, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    a, b = _equation(op, node, values, frame)
    if op.assume_a == "pos":
        factor = _cholesky(a, op.lower)
        refuse_nan(jnp.diagonal(factor), frame, NOT_POSITIVE)
        failed = jnp.isnan(jnp.diagonal(factor)).any()
        return [jnp.where(failed, 0, _cho_solve(factor, True, b))]
    if op.assume_a in ("sym", "her"):
        # SciPy reads one triangle only.
        part = jnp.tril(a, -1) if op.lower else jnp.triu(a, 1)
        mirrored = part.T.conj() if op.assume_a == "her" else part.T
        a = part + mirrored + jnp.diag(jnp.diagonal(a))
    return [solve_general(a, b, frame)]


def _generalised_eigh(op: Any, a: Any, b: Any | None, frame: Frame) -> tuple[Any, Any]:
    """Solve ``a @ v = b @ v * w`` by ``b = L @ L.T``, as LAPACK's sygvd does."""
    refuse_not_finite(a, frame)
    uplo = "L" if op.lower else "U"
    if b is None:
        return jnp.linalg.eigh(a, UPLO=uplo, symmetrize_input=False)
    refuse_not_finite(b, frame)
    part = jnp.tril(a, -1) if op.lower else jnp.triu(a, 1)
    a = part + part.T + jnp.diag(jnp.diagonal(a))
    factor = _cholesky(b, op.lower)
    refuse_nan(jnp.diagonal(factor), frame, NOT_POSITIVE)
    half = jsl.solve_triangular(factor, a, lower=True)
    reduced = jsl.solve_triangular(factor, half.T, lower=True)
    w, y = jnp.linalg.eigh(reduced)
    return w, jsl.solve_triangular(factor, y, trans=1, lower=True)


@jax_lower.register(Eigvalsh)
def _eigvalsh(op: Eigvalsh, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    matrices = [in_floats(value) for value in values if value is not None]
    if any(matrix.dtype.kind == "c" for matrix in matrices):
        raise NotImplementedError("generalised eigenvalues of complex matrices")
    a, b = (*matrices, None)[:2]
    return [_generalised_eigh(op, a, b, frame)[0]]


@jax_lower.register(EigvalshGrad)
def _eigvalsh_grad(op: EigvalshGrad, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    dtype = node.outputs[0].type.dtype
    a, b, grad_w = (jnp.asarray(value).astype(dtype) for value in values)
    w, v = _generalised_eigh(op, a, b, frame)
    slopes = [(v * grad_w) @ v.T, -(v * (grad_w * w)) @ v.T]
    if op.lower:
        return [jnp.tril(slope) + jnp.triu(slope, 1).T for slope in slopes]
    return [jnp.triu(slope) + jnp.tril(slope, -1).T for slope in slopes]


def _exponential(a: Any, frame: Frame) -> Any:
    """Scale a matrix, approximate its exponential, and square that as often as it takes.

    Not by `jax.scipy.linalg.expm`: it gives nan for norms beyond some hundred thousand, and
    with JAX 0.6.2 and the compile options that are chosen for the CPU the sum of what it
    gives is wrong.
    """
    norm = jnp.abs(a).sum(axis=0).max(initial=0)
    count = jnp.ceil(jnp.log2(norm / LARGEST_NORM[str(a.dtype)]))
    count = jnp.where(jnp.isfinite(norm) & (count > 0), count, 0).astype("int64")
    a = a / jnp.exp2(count.astype(norm.dtype))
    powers = [jnp.eye(a.shape[0], dtype=a.dtype), a @ a]
    powers += [powers[1] @ powers[1], powers[1] @ powers[1] @ powers[1]]

    def series(first: int) -> Any:
        low = sum(PADE[first + 2 * k] * power for k, power in enumerate(powers))
        high = sum(PADE[first + 6 + 2 * k] * power for k, power in enumerate(powers) if k)
        return powers[3] @ high + low

    even, odd = series(0), a @ series(1)
    small = solve_general(even - odd, even + odd, frame)
    return jax.lax.fori_loop(0, count, lambda _, power: jnp.dot(power, power), small)


@jax_lower.register(Expm)
def _expm(op: Expm, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    (a,) = values
    if a.shape[0] != a.shape[1]:
        raise np.linalg.LinAlgError("The matrix of an exponential must be square")
    return [_exponential(in_floats(a), frame)]


@jax_lower.register(ExpmGrad)
def _expm_grad(op: ExpmGrad, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    # The derivative is a block of a larger exponential (Mathias 1996, theorem 2.1).
    a, grad = (jnp.asarray(value).astype(node.outputs[0].type.dtype) for value in values)
    size = a.shape[0]
    blocks = jnp.block([[a.T, grad], [jnp.zeros_like(a), a.T]])
    return [_exponential(blocks, frame)[:size, size:]]


def _lyapunov(
    node: Apply, values: list[Any], frame: Frame, system: Callable[[Any, Any], Any]
) -> list[Any]:
    """Solve a linear equation for a matrix; `system` makes its matrix of `a` and the identity."""
    a, q = (in_floats(jnp.asarray(value)) for value in values)
    if a.ndim != 2 or a.shape[0] != a.shape[1]:
        raise ValueError("Matrix a should be square.")
    if a.shape != q.shape:
        raise ValueError("Matrix a and q should have the same shape.")
    size = a.shape[0]
    if size > LARGEST_LYAPUNOV:
        raise NotImplementedError("a Lyapunov equation with large matrices")
    refuse_not_finite(a, frame)
    refuse_not_finite(q, frame)
    dtype = jnp.promote_types(a.dtype, q.dtype)
    matrix = system(a.astype(dtype), jnp.eye(size, dtype=dtype))
    return [solve_general(matrix, q.astype(dtype).ravel(), frame).reshape(size, size)]


@jax_lower.register(SolveContinuousLyapunov)
def _continuous_lyapunov(
    op: SolveContinuousLyapunov, node: Apply, values: list[Any], frame: Frame
) -> list[Any]:
    def system(a: Any, identity: Any) -> Any:
        return jnp.kron(a, identity) + jnp.kron(identity, a.conj())

    return _lyapunov(node, values, frame, system)


@jax_lower.register(BilinearSolveDiscreteLyapunov)
def _discrete_lyapunov(
    op: BilinearSolveDiscreteLyapunov, node: Apply, values: list[Any], frame: Frame
) -> list[Any]:
    def system(a: Any, identity: Any) -> Any:
        return jnp.kron(identity, identity) - jnp.kron(a, a.conj())

    return _lyapunov(node, values, frame, system)
