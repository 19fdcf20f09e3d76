"""Graphs for the catalogue: ops that both modes, or all but one, run in Python."""

from __future__ import annotations

from typing import Any

import aesara.sparse as sparse
import aesara.tensor as at
import numpy as np
from aesara.breakpoint import PdbBreakpoint
from aesara.printing import Print
from aesara.sparse.basic import csm_grad
from aesara.tensor import blas_scipy, fourier, xlogx
from aesara.tensor.elemwise import Elemwise
from aesara.tensor.nnet import blocksparse, conv, sigm
from aesara.tensor.random.op import RandomState, default_rng
from aesara.tensor.signal.pool import pool_2d
from aesara.typed_list import basic as lists

Graphs = list[tuple[str, Any]]


def sparse_matrices(g: Any) -> Graphs:
    dense = sparse.dense_from_sparse
    # Its zeros are not stored.
    thin = at.switch(g.square > 0, g.square, 0.0)
    a, b = sparse.csc_from_dense(thin), sparse.csr_from_dense(g.spd)
    row = sparse.csr_from_dense(thin)
    data, indices, pointers, shape = sparse.csm_properties(a)
    v = g.v[:3]
    compared = {
        "equal": sparse.eq,
        "not equal": sparse.neq,
        "less": sparse.lt,
        "greater": sparse.gt,
        "less or equal": sparse.le,
        "greater or equal": sparse.ge,
    }
    found = [(f"{name} of sparse ones", dense(op(row, b))) for name, op in compared.items()]
    found += [(f"{name} of a dense one", op(row, g.lower)) for name, op in compared.items()]
    return [
        *found,
        ("there and back", dense(a)),
        ("data", data),
        ("indices", indices),
        ("pointers", pointers),
        ("shape", shape),
        ("made of its parts", dense(sparse.CSC(data * 2, indices, pointers, shape))),
        (
            "gradient by the data",
            at.grad(dense(sparse.CSR(data, indices, pointers, shape)).sum(), data),
        ),
        (
            "its op",
            csm_grad()(data, indices, pointers, shape, 2 * data, indices, pointers, shape),
        ),
        ("cast", dense(sparse.cast(a, "float32"))),
        ("transpose", dense(sparse.transpose(a))),
        ("negative", dense(sparse.neg(a))),
        ("scaled columns", dense(sparse.col_scale(a, v))),
        ("scaled rows", dense(sparse.row_scale(a, v))),
        ("sum", sparse.sp_sum(a)),
        ("sum of rows", sparse.sp_sum(a, axis=1)),
        ("gradient of a sum", at.grad((sparse.sp_sum(a, axis=0) ** 2).sum(), g.square)),
        ("diagonal", sparse.diag(b)),
        ("square diagonal", dense(sparse.square_diagonal(v))),
        ("sorted indices", dense(sparse.ensure_sorted_indices(a))),
        ("cleaned", dense(sparse.clean(a))),
        ("without zeros", dense(sparse.remove0(a))),
        ("sum of two", dense(sparse.add(row, b))),
        ("sum of the data", dense(sparse.add_s_s_data(a, a))),
        ("sum with a dense one", sparse.add(a, g.spd)),
        ("sum with a vector", dense(sparse.structured_add_s_v(a, v))),
        ("product of two", dense(sparse.mul(row, b))),
        ("product with a dense one", dense(sparse.mul(a, g.spd))),
        ("product with a vector", dense(sparse.mul_s_v(a, v))),
        ("item", a[1, 2]),
        ("part", dense(a[0:2, 1:3])),
        ("rows", dense(sparse.get_item_list(row, g.k))),
        (
            "gradient of rows",
            at.grad(dense(sparse.get_item_list(row, g.k[:3])).sum(), g.square),
        ),
        ("items", sparse.get_item_2lists(row, g.k, g.k)),
        (
            "gradient of items",
            at.grad(at.sum(sparse.get_item_2lists(row, g.k[:2], g.k[1:3])), g.square),
        ),
        ("side by side", dense(sparse.hstack([a, a], format="csc"))),
        ("one above the other", dense(sparse.vstack([a, a], format="csc"))),
        ("structured dot", sparse.structured_dot(a, g.spd)),
        ("gradient of it", at.grad(sparse.structured_dot(a, g.spd).sum(), g.square)),
        ("gradient by rows", at.grad(sparse.structured_dot(row, g.spd).sum(), g.square)),
        ("true dot", dense(sparse.true_dot(row, b))),
        ("dot", sparse.dot(a, g.spd)),
        ("usmm", sparse.usmm(g.v[0], a, g.spd, g.lower)),
        ("sampling dot", dense(sparse.sampling_dot(g.spd, g.lower, row))),
        (
            "from a list",
            dense(sparse.construct_sparse_from_list(g.x, g.square[:, :1] + g.x, g.k[:3])),
        ),
        ("structured function", dense(sparse.tanh(a))),
    ]


def typed_lists(g: Any) -> Graphs:
    three = lists.make_list([g.v, 2 * g.v, g.p])
    return [
        ("length", lists.length(three)),
        ("item", lists.getitem(three, g.i - 1)),
        ("slice", lists.length(three[1:])),
        ("append", lists.getitem(lists.append(three, g.positive), 3)),
        ("extend", lists.getitem(lists.extend(three, three), 4)),
        ("insert", lists.getitem(lists.insert(three, g.i - 1, g.positive), 1)),
        ("remove", lists.getitem(lists.remove(three, g.v), 0)),
        ("reverse", lists.getitem(lists.reverse(three), 0)),
        ("index", lists.index_(three, g.p)),
        ("count", lists.count(three, 2 * g.v)),
    ]


def pools(g: Any) -> Graphs:
    largest = pool_2d(g.image, (2, 2), ignore_border=True)
    mean = pool_2d(g.image, (2, 2), ignore_border=True, mode="average_exc_pad")
    slope = at.grad((largest**2).sum(), g.image)
    return [
        ("largest", largest),
        ("largest with the border", pool_2d(g.image, (2, 3), ignore_border=False)),
        ("mean", mean),
        ("sum", pool_2d(g.image, (3, 2), ignore_border=True, mode="sum", stride=(1, 2))),
        ("gradient", slope),
        ("gradient of the mean", at.grad((mean**2).sum(), g.image)),
        ("second derivative", at.grad((slope**2).sum(), g.image)),
    ]


def odds_and_ends(g: Any) -> Graphs:
    blocks = g.t.dimshuffle("x", 0, 1, 2)
    places = at.constant(np.array([[1, 0]]))
    products = blocksparse.sparse_block_gemv(
        at.zeros((1, 1, 3)),
        g.t.dimshuffle(0, "x", 1, 2),
        g.t[:, 0].dimshuffle("x", 0, 1),
        places,
        at.constant(np.array([[0]])),
    )
    generator, state = default_rng(at.constant(5)), RandomState(at.constant(5))
    return [
        ("a condition to stop at", PdbBreakpoint("never")(g.i > 9, g.v)),
        ("printed", Print("v", attrs=())(g.v)),
        ("ger by SciPy", blas_scipy.scipy_ger_no_inplace(g.x, g.v[0], g.v[:3], g.v)),
        ("fft", at.abs(fourier.fft(g.x, g.i + 1, 1))),
        ("x log x", xlogx.xlogx(g.p)),
        ("x log y", xlogx.xlogy0(g.p - g.p[0], g.positive)),
        ("fast sigmoid", Elemwise(sigm.ultra_fast_scalar_sigmoid)(g.v)),
        ("blocks", products),
        ("gradient by blocks", at.grad(products.sum(), g.t)),
        ("convolution of the old kind", conv.conv2d(g.image, g.kernel, (2, 1, 5, 4), (3, 1, 2, 2))),
        ("sum of blocks", blocks.sum(axis=1)),
        ("from a new generator", at.random.normal(g.v, 0.0, rng=generator)),
        ("from a new state", at.random.normal(g.v, 0.0, rng=state)),
    ]
