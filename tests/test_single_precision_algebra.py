"""Matrices in single precision: NumPy decomposes them in double, and rounds the result."""

from __future__ import annotations

import warnings

import aesara
import aesara.tensor as at
import numpy as np
import pytest
from aesara.tensor import nlinalg

from fixed_modes.errors import FixedModesWarning

EPS = np.finfo("float32").eps


@pytest.fixture(params=["NUMBA_FIXED", "JAX_FIXED"])
def mode(request):
    return request.param


def matrix() -> np.ndarray:
    """Give a matrix with singular values from 1 down to 1e-5."""
    rng = np.random.default_rng(3)
    left, right = (np.linalg.qr(rng.normal(size=(6, 6)))[0] for _ in range(2))
    return ((left * np.logspace(0, -5, 6)) @ right).astype("float32")


# Each with what NumPy gives for the same matrix in double precision.
GRAPHS = {
    "inverse": (nlinalg.matrix_inverse, np.linalg.inv),
    "determinant": (nlinalg.det, np.linalg.det),
    "pseudo-inverse": (nlinalg.pinv, np.linalg.pinv),
    "tensor inverse": (
        lambda x: nlinalg.tensorinv(x.reshape((2, 3, 6)), ind=2),
        lambda x: np.linalg.tensorinv(x.reshape(2, 3, 6), ind=2),
    ),
    "eigenvectors": (lambda x: nlinalg.eigh(x + x.T), lambda x: np.linalg.eigh(x + x.T)),
    "singular vectors": (lambda x: nlinalg.svd(x), np.linalg.svd),
    "singular values": (
        lambda x: nlinalg.svd(x, compute_uv=False),
        lambda x: np.linalg.svd(x, compute_uv=False),
    ),
    "QR": (nlinalg.qr, np.linalg.qr),
    "R": (lambda x: nlinalg.qr(x, mode="r"), lambda x: np.linalg.qr(x, mode="r")),
    "gradient of log det": (
        lambda x: at.grad(at.log(at.abs(nlinalg.det(x))), x),
        lambda x: np.linalg.inv(x).T,
    ),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_decompositions_are_exact_to_single_precision(mode, name):
    build, reference = GRAPHS[name]
    x = at.fmatrix("x")
    outputs = build(x)
    outputs = list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FixedModesWarning)
        found = aesara.function([x], outputs, mode=mode)(matrix())
    a = matrix()
    if name == "eigenvectors":
        a = ((a + a.T) / 2).astype("float64")  # the sum, as it is rounded in the graph
    wanted = reference(a.astype("float64"))
    wanted = list(wanted) if isinstance(wanted, tuple) else [wanted]
    assert len(found) == len(wanted)
    for got, want in zip(found, wanted):
        assert got.dtype == np.float32
        assert got.shape == want.shape
        # The sign of a vector is anyone's choice.
        got, want = (np.abs(v) if "vector" in name or name == "QR" else v for v in (got, want))
        np.testing.assert_allclose(got, want, rtol=0, atol=4 * EPS * np.abs(want).max())


def test_the_pseudo_inverse_of_a_singular_matrix(mode):
    x = at.fmatrix("x")
    a = np.array([[1, 2, 3], [2, 4, 6], [1, 0, 1]], "float32")
    want = np.linalg.pinv(a.astype("float64"))
    got = aesara.function([x], nlinalg.pinv(x), mode=mode)(a)
    np.testing.assert_allclose(got, want, rtol=0, atol=4 * EPS)


def test_decompositions_of_a_loop(mode):
    x = at.ftensor3("x")
    (inverses, values), _ = aesara.scan(
        lambda a: [nlinalg.matrix_inverse(a), nlinalg.svd(a, full_matrices=False)[1]],
        sequences=[x],
    )
    f = aesara.function([x], [inverses, values], mode=mode)
    a = np.stack([matrix(), matrix().T])
    got = f(a)
    exact = a.astype("float64")
    for found, want in zip(got, (np.linalg.inv(exact), np.linalg.svd(exact)[1])):
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, want, rtol=0, atol=4 * EPS * np.abs(want).max())
