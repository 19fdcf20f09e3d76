"""A small graph for each op of Aesara: what stands in no other graph of these tests too.

``GROUPS`` maps a name to a function that gives pairs of a name and an output.
All graphs are made from the same inputs, see `Inputs`.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import aesara.scalar as aes
import aesara.scalar.math as aesm
import aesara.tensor as at
import numpy as np
from aesara.raise_op import Assert
from aesara.tensor import basic as atb
from aesara.tensor import blas, extra_ops, fft, math, nlinalg, slinalg, special
from aesara.tensor.elemwise import CAReduce, Elemwise
from aesara.tensor.nnet import basic as nnet
from aesara.tensor.shape import Shape_i, unbroadcast
from aesara.tensor.sort import SortOp, argtopk, topk
from aesara.tensor.subtensor import AdvancedSubtensor1
from aesara.tensor.type_other import MakeSlice, NoneConst

from tests.conformance import rare_ops

Graphs = list[tuple[str, Any]]


def inputs() -> tuple[SimpleNamespace, list[Any]]:
    """Make the inputs, and their values."""
    rng = np.random.default_rng(5)
    square = rng.normal(size=(3, 3))
    values = {
        "x": (at.dmatrix, rng.normal(size=(3, 4))),
        "y": (at.fmatrix, rng.normal(size=(3, 4)).astype("float32")),
        "square": (at.dmatrix, square),
        "spd": (at.dmatrix, square @ square.T + 3 * np.eye(3)),
        "lower": (at.dmatrix, np.tril(square) + 3 * np.eye(3)),
        "v": (at.dvector, np.array([0.3, -1.2, 2.5, 0.3])),
        "p": (at.dvector, np.array([0.11, 0.35, 0.62, 0.93])),
        "positive": (at.dvector, np.array([0.4, 1.7, 5.5, 12.25])),
        "t": (at.dtensor3, rng.normal(size=(2, 3, 3))),
        "c": (at.zvector, np.array([1 + 2j, -0.5j, 3.0 + 0j])),
        "k": (at.lvector, np.array([2, 0, 1, 2])),
        "b": (at.bvector, np.array([3, -4, 0, 7], "int8")),
        "mask": (lambda name: at.vector(name, dtype="bool"), np.array([True, False, True, True])),
        "i": (at.lscalar, np.array(2)),
        "image": (at.dtensor4, rng.normal(size=(2, 1, 5, 4))),
        "kernel": (at.dtensor4, rng.normal(size=(3, 1, 2, 2))),
        "volume": (at.dtensor5, rng.normal(size=(1, 1, 3, 4, 3))),
        "kernel3": (at.dtensor5, rng.normal(size=(1, 1, 2, 2, 2))),
    }
    made = {name: make(name) for name, (make, _) in values.items()}
    return SimpleNamespace(**made), [value for _, value in values.values()]


def basic(g: Any) -> Graphs:
    scalar = atb.scalar_from_tensor(g.i)
    return [
        ("scalars", atb.tensor_from_scalar(scalar) + 1),
        ("nonzero", at.nonzero(g.x > 0)[1]),
        ("tri", at.tri(g.i, g.i + 1, 0)),
        ("tri of constants", at.tri(3, 4, 1) * g.x),
        ("eye", at.eye(g.i, 3, 1) * g.v[0]),
        ("alloc", at.alloc(g.v, g.i, 4)),
        ("make vector", at.stack([g.v[0], g.x[0, 0]])),
        ("default", atb.default(g.v, at.zeros(4))),
        ("split", at.split(g.x, [1, 3], 2, axis=1)[1]),
        ("join", at.concatenate([g.x, g.y], axis=0)),
        ("join with an axis", at.join(g.i - 2, g.x, g.y)),
        ("arange", at.arange(g.i) + 0.5),
        ("permute", at.permute_row_elements(g.x, g.k)),
        ("permute with rows", at.permute_row_elements(g.x, at.stack([g.k * 0 + at.arange(4)] * 3))),
        ("diagonal", at.diag(g.square)),
        ("diagonal of axes", at.diagonal(g.t, 1, 2, 1)),
        ("matrix of a diagonal", at.diag(g.v)),
        ("shifted diagonal", atb.AllocDiag(offset=-1)(g.v)),
        ("stack of diagonals", atb.AllocDiag(offset=1, axis1=0, axis2=2)(g.x)),
        ("choose", at.choose(g.k, at.stack([g.v, g.v * 2, g.v * 3]))),
        ("choose and wrap", at.choose(g.k + 5, at.stack([g.v, -g.v]), mode="wrap")),
        ("empty", at.empty((2, 3)).shape),
        ("tile", at.tile(g.x, (2, 1))),
        ("roll", at.roll(g.v, 2)),
        ("swap", at.swapaxes(g.t, 0, 2)),
        ("mgrid", at.mgrid[0:2, 0:3][1] * g.v[0]),
        ("inverse permutation", at.inverse_permutation(at.argsort(g.v))),
        ("identity like", at.identity_like(g.square)),
    ]


def reductions(g: Any) -> Graphs:
    return [
        ("max and argmax", math.max_and_argmax(g.x, axis=1)[0]),
        ("its place", math.max_and_argmax(g.t, axis=(0, 2))[1]),
        ("argmax", math.Argmax((1,))(g.x)),
        ("argmin", at.argmin(g.v)),
        ("max", at.max(g.b)),
        ("min", at.min(g.x, axis=0)),
        ("max without its place", math.Max(1)(g.x)),
        ("min op", math.Min(0)(g.x)),
        ("mean op", math.Mean(axis=1)(g.x)),
        ("mean", at.mean(g.b)),
        ("var", at.var(g.x, axis=0, ddof=1)),
        ("median of any", math.Any(axis=0)(g.x > 0)),
        ("all", math.All()(g.mask)),
        ("sum", at.sum(g.b)),
        ("sum of bools", at.sum(g.mask)),
        ("product", at.prod(g.x, axis=1)),
        ("product without zeros", math.ProdWithoutZeros()(g.b)),
        ("dot", at.dot(g.x, g.v)),
        ("matmul", at.matmul(g.t, g.square)),
        ("tensordot", at.tensordot(g.t, g.square, axes=[[1], [0]])),
        ("dot22", blas.Dot22()(g.square, g.spd)),
        ("scaled dot22", blas.Dot22Scalar()(g.square, g.spd, g.v[0])),
        ("gemm", blas.gemm_no_inplace(g.spd, g.v[0], g.square, g.spd, g.v[1])),
        ("gemv", blas.gemv_no_inplace(g.v[:3], g.v[0], g.square, g.v[1:], g.v[2])),
        ("ger", blas.ger(g.x, g.v[0], g.v[:3], g.v)),
        ("batched dot", at.batched_dot(g.t, g.t)),
        ("logical reductions", CAReduce(aes.xor)(g.b)),
        ("and", CAReduce(aes.and_, axis=(0,))(g.mask)),
        ("logsumexp", at.logsumexp(g.x, axis=1)),
        ("reduction by an odd op", CAReduce(aes.sub)(g.v)),
        ("convolve", math.convolve(g.v, g.p[:2], mode="valid")),
        ("full convolution", math.convolve(g.v[:2], g.p, mode="full")),
        ("allclose", at.allclose(g.v, g.v + 1e-9)),
    ]


def extras(g: Any) -> Graphs:
    ordered = at.sort(g.positive)
    return [
        ("contiguous", extra_ops.cpu_contiguous(g.x.T)),
        ("search", at.searchsorted(ordered, g.v)),
        ("search from the right", at.searchsorted(ordered, g.positive, side="right")),
        ("search with a sorter", at.searchsorted(g.v, g.p, sorter=at.argsort(g.v))),
        ("cumsum", at.cumsum(g.x, axis=1)),
        ("cumsum of all", at.cumsum(g.k)),
        ("cumprod", at.cumprod(g.y, axis=0)),
        ("difference", at.diff(g.x, n=2, axis=1)),
        ("bincount", at.bincount(g.k)),
        ("weighted bincount", at.bincount(g.k, weights=g.v, minlength=5)),
        ("squeeze", at.squeeze(at.atleast_3d(g.x), axis=0)),
        ("compress", at.compress(g.mask, g.x, axis=1)),
        ("repeat", at.repeat(g.x, 2, axis=1)),
        ("repeat by counts", at.repeat(g.v, g.k)),
        ("repeat all by counts", at.repeat(g.x, at.concatenate([g.k, g.k, g.k]))),
        ("bartlett", at.bartlett(g.i + 3)),
        ("fill diagonal", at.fill_diagonal(g.x, g.v[0])),
        ("fill a long diagonal", at.fill_diagonal(at.concatenate([g.x.T, g.x.T]), 7.0)),
        ("fill a cube's diagonal", at.fill_diagonal(g.t[:, :2, :2], 7.0)),
        ("fill shifted", at.fill_diagonal_offset(g.x, g.v[0], g.i - 1)),
        ("fill shifted down", at.fill_diagonal_offset(g.x, g.v[0], -1)),
        ("unique", at.unique(g.v)),
        ("unique and more", at.unique(g.v, True, True, True)[2]),
        ("unique rows", at.unique(at.stack([g.v, g.v, -g.v]), axis=0)),
        ("unravel", at.unravel_index(g.k, (2, 3))[1]),
        ("ravel", at.ravel_multi_index((g.k, g.k), (4, 3), mode="clip")),
        ("broadcast", at.broadcast_to(g.v, (g.i, 4))),
        ("geomspace", at.geomspace(1.0, g.positive[3], 4)),
        ("percentile", at.cumsum(ordered)[-1]),
    ]


def matrices(g: Any) -> Graphs:
    return [
        ("pinv", nlinalg.pinv(g.x)),
        ("inv", nlinalg.Inv()(g.square)),
        ("matrix inverse", nlinalg.matrix_inverse(g.square)),
        ("det", nlinalg.det(g.square)),
        ("eigenvalues", at.sort(at.real(nlinalg.eig(g.spd)[0]))),
        ("eigh", nlinalg.eigh(g.spd)[0]),
        ("gradient of eigh", at.grad(nlinalg.eigh(g.spd)[0][1], g.spd)),
        ("qr", at.abs(nlinalg.qr(g.square, "full")[1])),
        ("incomplete qr", at.abs(nlinalg.qr(g.x.T, "reduced")[0])),
        ("r", at.abs(nlinalg.qr(g.x, "r"))),
        ("svd", nlinalg.svd(g.x, compute_uv=False)),
        ("svd with vectors", at.abs(nlinalg.svd(g.square, True, True)[0])),
        ("thin svd", at.abs(nlinalg.svd(g.x, False, True)[2])),
        ("lstsq", nlinalg.lstsq(g.x.T, g.v, g.p[0] * 0 - 1)[0]),
        ("its residuals", nlinalg.lstsq(g.x.T, g.v, g.p[0] * 0 - 1)[1]),
        ("its rank", nlinalg.lstsq(g.x.T, g.v, g.p[0] * 0 - 1)[2]),
        ("tensorinv", nlinalg.tensorinv(g.square.reshape((3, 1, 3)), ind=2)),
        ("tensorsolve", nlinalg.tensorsolve(g.square[:, :, None], g.v[:3])),
        ("cholesky", slinalg.cholesky(g.spd)),
        ("upper cholesky", slinalg.Cholesky(lower=False)(g.spd)),
        ("cholesky solve", slinalg.cho_solve((slinalg.cholesky(g.spd), True), g.v[:3])),
        ("triangular", slinalg.solve_triangular(g.lower, g.v[:3], lower=True)),
        ("transposed", slinalg.solve_triangular(g.lower, g.square, trans=1, lower=True)),
        ("unit diagonal", slinalg.SolveTriangular(unit_diagonal=True)(g.lower.T, g.v[:3])),
        ("solve", slinalg.solve(g.square, g.v[:3])),
        ("solve many", slinalg.solve(g.square, g.spd)),
        ("solve positive", slinalg.solve(g.spd, g.v[:3], assume_a="pos")),
        ("solve symmetric", slinalg.solve(g.spd, g.v[:3], assume_a="sym", lower=True)),
        ("eigvalsh", slinalg.eigvalsh(g.square, g.spd)),
        ("gradient of eigvalsh", at.grad(slinalg.eigvalsh(g.square, g.spd)[1], g.square)),
        ("plain eigvalsh", slinalg.Eigvalsh().make_node(g.spd, NoneConst).outputs[0]),
        ("expm", slinalg.expm(g.square)),
        ("gradient of expm", at.grad(slinalg.expm(g.square).sum(), g.square)),
        ("kron", slinalg.kron(g.square, g.x)),
        ("lyapunov", slinalg.solve_continuous_lyapunov(g.lower, g.spd)),
        ("discrete lyapunov", slinalg.solve_discrete_lyapunov(g.square / 9, g.spd)),
        ("bilinear", slinalg.solve_discrete_lyapunov(g.square / 9, g.spd, method="bilinear")),
        ("trace", nlinalg.trace(g.square)),
        ("power", nlinalg.matrix_power(g.square, 3)),
        ("norm", nlinalg.norm(g.x, ord=None)),
    ]


def sorting(g: Any) -> Graphs:
    return [
        ("sort", at.sort(g.x, axis=1)),
        ("sort all", at.sort(g.x, axis=None)),
        ("sort along what is given", SortOp("quicksort")(g.x, g.i - 2)),
        ("argsort", at.argsort(g.x, axis=0)),
        ("stable argsort", at.argsort(g.v, kind="mergesort")),
        ("argsort all", at.argsort(g.x, axis=None)),
        ("largest", at.sort(topk(g.v, 2, sorted=False))),
        ("smallest", at.sort(topk(g.x, -3, axis=0, sorted=False), axis=0)),
        ("places", at.sort(argtopk(g.x, 2, axis=1, sorted=False), axis=1)),
        ("as many as given", at.sort(topk(g.v, g.i, sorted=False))),
        ("rfft", fft.rfft(g.x)),
        ("rfft with a norm", fft.rfft(g.y, norm="ortho")),
        ("irfft", fft.irfft(fft.rfft(g.x))),
        ("odd irfft", fft.irfft(fft.rfft(g.x[:, :3]), is_odd=True)),
    ]


def indexing(g: Any) -> Graphs:
    make_slice = MakeSlice()
    return [
        ("row", g.x[g.i]),
        ("slice", g.x[: g.i, ::-1]),
        ("set", at.set_subtensor(g.x[g.i], 0.0)),
        ("add", at.inc_subtensor(g.x[1:, ::2], 1.0)),
        ("rows", AdvancedSubtensor1()(g.x, g.k)),
        ("set rows", at.set_subtensor(g.v[g.k], g.v)[3]),
        ("add rows", at.inc_subtensor(g.x[g.k], g.x[:1])),
        ("entries", g.x[g.k, g.k]),
        ("set entries", at.set_subtensor(g.x[g.k, g.k], 1.0)),
        ("add entries", at.inc_subtensor(g.x[g.k, g.k], 1.0)),
        ("mask", g.v[g.mask]),
        ("mask of a matrix", g.x[g.x > 0]),
        ("set by a mask", at.set_subtensor(g.v[g.v > 0], 7.0)),
        ("add by a mask", at.inc_subtensor(g.x[g.x > 0], 1.0)),
        ("add values by a mask", at.inc_subtensor(g.v[g.mask], at.arange(3) + 0.5)),
        ("mask and slice", g.x[:, g.mask]),
        ("made slice", g.x[make_slice(g.i, None, None), g.k[:1]]),
        ("new axes", g.x[g.k[:, None], None, g.k]),
        ("shape", g.x.shape),
        ("one length", Shape_i(1)(g.x)),
        ("specified", at.specify_shape(g.x, (3, None))),
        ("reshaped", g.x.reshape((g.i, -1))),
        ("flat", at.flatten(g.t, 2)),
        ("unbroadcast", unbroadcast(at.atleast_2d(g.v), 0)),
        ("transposed", g.t.dimshuffle(2, "x", 0, 1)),
        ("take", at.take(g.x, g.k, axis=1)),
        ("checked", Assert("no")(g.v, g.i > 0)),
    ]


def networks(g: Any) -> Graphs:
    bias = g.v
    places = g.k[:3]
    shares = nnet.crossentropy_softmax_argmax_1hot_with_bias(g.x, bias, places)
    likely = special.softmax(g.x, axis=1)
    return [
        ("softmax", special.softmax(g.x, axis=0)),
        ("softmax of all", special.softmax(g.x, axis=None)),
        ("log softmax", special.log_softmax(g.x, axis=1)),
        ("gradient", special.SoftmaxGrad(1)(g.x, likely)),
        ("biased softmax", nnet.softmax_with_bias(g.x, bias)),
        ("cross entropy", shares[0]),
        ("its softmax", shares[1]),
        ("its argmax", shares[2]),
        ("its gradient", nnet.crossentropy_softmax_1hot_with_bias_dx(shares[0], likely, places)),
        ("categorical", nnet.crossentropy_categorical_1hot(likely, places)),
        ("its slope", at.grad(nnet.crossentropy_categorical_1hot(likely, places).sum(), g.x)),
        ("prepended", nnet.Prepend_scalar_to_each_row()(g.v[0], g.x)),
        ("prepended constant", nnet.Prepend_scalar_constant_to_each_row(2.0)(g.x)),
        ("softsign", nnet.softsign(g.v)),
        ("relu", nnet.relu(g.v)),
        ("elu", nnet.elu(g.v)),
        ("hard sigmoid", nnet.hard_sigmoid(g.v) if hasattr(nnet, "hard_sigmoid") else g.v),
        ("convolution", at.nnet.conv2d(g.image, g.kernel)),
        ("its gradient by weights", at.grad(at.nnet.conv2d(g.image, g.kernel).sum(), g.kernel)),
        ("its gradient by inputs", at.grad(at.nnet.conv2d(g.image, g.kernel).sum(), g.image)),
        ("in three dimensions", at.nnet.conv3d(g.volume, g.kernel3)),
    ]


_UNARY = [
    *(
        "abs",
        "sgn",
        "ceil",
        "floor",
        "trunc",
        "round_half_to_even",
        "round_half_away_from_zero",
        "neg",
        "log1p",
    ),
    *("exp", "exp2", "expm1", "square", "deg2rad", "rad2deg", "cos", "sin", "tan"),
    *("arctan", "cosh", "sinh", "arcsinh", "tanh", "identity", "isnan", "isinf"),
]
_ON_POSITIVE = ["log", "log2", "log10", "sqrt", "reciprocal"]
_BELOW_ONE = ["arccos", "arcsin", "arctanh"]


def scalars(g: Any) -> Graphs:
    aes_v, aes_p = atb.scalar_from_tensor(g.v[1]), atb.scalar_from_tensor(g.p[1])
    found = [(name, Elemwise(getattr(aes, name))(g.v)) for name in _UNARY]
    found += [(name, Elemwise(getattr(aes, name))(g.positive)) for name in _ON_POSITIVE]
    found += [(name, Elemwise(getattr(aes, name))(g.p)) for name in _BELOW_ONE]
    binary = "lt gt le ge eq neq maximum minimum add mul sub true_divide mod arctan2 second"
    names = {"maximum": "scalar_maximum", "minimum": "scalar_minimum"}
    found += [
        (name, Elemwise(getattr(aes, names.get(name, name)))(g.v, g.p)) for name in binary.split()
    ]
    bits = [("or_", g.b | g.k), ("xor", g.b ^ g.k), ("and_", g.b & g.k), ("invert", ~g.b)]
    complexes = [
        ("real", at.real(g.c)),
        ("imag", at.imag(g.c)),
        ("angle", at.angle(g.c)),
        ("conj", at.conj(g.c)),
        ("complex", at.complex(g.v, g.p)),
        ("polar", at.complex_from_polar(g.positive, g.p)),
        ("absolute value", at.abs(g.c)),
        ("exponential", at.exp(g.c)),
    ]
    return [
        *found,
        *bits,
        *complexes,
        ("mean", atb.tensor_from_scalar(aes.mean(aes_v, aes_p))),
        ("arccosh", at.arccosh(g.positive + 1)),
        ("in range", Elemwise(aes.InRange(True, False))(g.v, g.p, g.positive)),
        ("switch", at.switch(g.mask, g.v, g.b)),
        ("floor division", g.v // g.p),
        ("division of integers", g.b / at.constant(np.int8(4))),
        ("quotient of integers", g.b // 4),
        ("remainder", g.b % 4),
        ("power", g.positive**g.v),
        ("integer power", g.k**g.k),
        ("clip", at.clip(g.v, -0.5, 0.5)),
        ("cast", at.cast(g.v, "int8")),
        ("whole numbers", at.exp(g.b)),
    ]


def special_functions(g: Any) -> Graphs:
    unary = "erf erfc erfcx gamma gammaln psi tri_gamma i0 i1 j0 j1 sigmoid softplus"
    on = {"gamma": g.positive, "gammaln": g.positive, "psi": g.positive, "tri_gamma": g.positive}
    found = [(name, Elemwise(getattr(aesm, name))(on.get(name, g.v))) for name in unary.split()]
    a, x = g.positive, g.p * 4
    return [
        *found,
        ("erfinv", at.erfinv(g.p)),
        ("erfcinv", at.erfcinv(g.p)),
        ("owens_t", at.owens_t(g.v, g.p)),
        ("log1mexp", at.log1mexp(-g.p)),
        ("chi2sf", at.chi2sf(x, a)),
        ("gammainc", at.gammainc(a, x)),
        ("gammaincc", at.gammaincc(a, x)),
        ("gammainc_der", Elemwise(aesm.gammainc_der)(a, x)),
        ("gammaincc_der", Elemwise(aesm.gammaincc_der)(a, x)),
        ("gammau", at.gammau(a, x)),
        ("gammal", at.gammal(a, x)),
        ("jv", at.jv(a, x)),
        ("iv", at.iv(a, x)),
        ("betainc", at.betainc(a, a + 1, g.p)),
        ("betainc_der", Elemwise(aesm.betainc_der)(a, a + 1, g.p, at.constant(1.0))),
        ("hyp2f1", at.hyp2f1(g.p, a, a + 1, g.p)),
        ("hyp2f1_der", Elemwise(aesm.hyp2f1_der)(g.p, a, a + 1, g.p, at.constant(1.0))),
    ]


_COMMON = (
    basic,
    reductions,
    extras,
    matrices,
    sorting,
    indexing,
    networks,
    scalars,
    special_functions,
)
_RARE = (
    rare_ops.sparse_matrices,
    rare_ops.typed_lists,
    rare_ops.pools,
    rare_ops.odds_and_ends,
)
COMMON_GROUPS = {function.__name__: function for function in _COMMON}
GROUPS = {**COMMON_GROUPS, **{function.__name__: function for function in _RARE}}
