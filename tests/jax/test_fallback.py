"""Ops that have no conversion run in Python, wherever they stand."""

from __future__ import annotations

import warnings

import aesara
import aesara.tensor as at
import numpy as np
import pytest
from aesara.compile.builders import OpFromGraph
from aesara.graph.basic import Apply
from aesara.graph.op import Op
from aesara.graph.rewriting.basic import in2out, node_rewriter
from aesara.ifelse import ifelse
from aesara.printing import Print
from aesara.scalar.basic import UnaryScalarOp, upgrade_to_float
from aesara.scan.utils import until
from aesara.tensor.elemwise import Elemwise

from fixed_modes.errors import FixedModesWarning, UnsupportedOpError
from fixed_modes.inner_graphs import walk_nodes
from fixed_modes.modes import JAX_FIXED


class NotPositiveError(ArithmeticError):
    """An error of the user's own."""


class Root(Op):
    """Square roots, of positive numbers only."""

    __props__ = ()

    def make_node(self, x):
        return Apply(self, [x], [x.type()])

    def infer_shape(self, fgraph, node, shapes):
        return shapes

    def perform(self, node, inputs, outputs):
        if np.any(inputs[0] <= 0):
            raise NotPositiveError("not positive")
        outputs[0][0] = np.sqrt(inputs[0])


class Doubled(Op):
    """Twice a vector, and how many entries it has; shapes are not inferred."""

    __props__ = ("inplace",)

    def __init__(self, inplace=False):
        self.inplace = inplace
        if inplace:
            self.destroy_map = {0: [0]}

    def make_node(self, x):
        return Apply(self, [x], [x.type(), at.lscalar()])

    def perform(self, node, inputs, outputs):
        x = inputs[0] if self.inplace else inputs[0].copy()
        x *= 2
        outputs[0][0] = x
        outputs[1][0] = np.array(inputs[0].size)


@node_rewriter([Doubled])
def in_place(fgraph, node):
    return False if node.op.inplace else Doubled(inplace=True)(*node.inputs)


class Thunked(Op):
    """Negates a number; it has a thunk only."""

    __props__ = ()

    def make_node(self, x):
        return Apply(self, [x], [x.type()])

    def perform(self, node, inputs, outputs):
        raise NotImplementedError

    def make_thunk(self, node, storage_map, compute_map, no_recycling, impl=None):
        (x,), (out,) = node.inputs, node.outputs

        def thunk():
            storage_map[out][0] = -storage_map[x][0]

        return thunk


class Cubed(UnaryScalarOp):
    """A scalar op that nobody knows."""

    def impl(self, x):
        return x**3


cubed = Elemwise(Cubed(upgrade_to_float, name="cubed"))


def compiled(inputs, outputs, **kwargs):
    return aesara.function(inputs, outputs, mode="JAX_FIXED", **kwargs)


def test_op_with_perform_everywhere():
    x, c = at.dvector("x"), at.lscalar("c")
    mapped, _ = aesara.scan(lambda v: Root()(v) + 1.0, sequences=[at.outer(x, x)])
    ended, _ = aesara.scan(
        lambda s: (Root()(s), until(s < 2.0)), outputs_info=[x[0] * 100.0], n_steps=50
    )
    inner = OpFromGraph([x], [Root()(x * 2.0)])
    chosen = ifelse(c, Root()(x), x)
    f = compiled([x, c], [Root()(x), mapped, ended[-1], inner(x), chosen, Root()(x[0])])
    v = np.array([4.0, 9.0])
    root = 400.0
    while root >= 2.0:
        root = np.sqrt(root)
    with pytest.warns(FixedModesWarning, match="Root") as caught:
        got = f(v, 1)
    assert len({str(w.message) for w in caught}) == len(caught)
    wants = [
        [2.0, 3.0],
        np.sqrt(np.outer(v, v)) + 1,
        np.sqrt(root),
        np.sqrt(2 * v),
        [2.0, 3.0],
        2.0,
    ]
    for result, want in zip(got, wants):
        np.testing.assert_allclose(result, want)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        f(v, 0)


def test_error_of_perform_has_its_type_also_from_loops_and_not_from_other_branches():
    x, c = at.dvector("x"), at.lscalar("c")
    looped, _ = aesara.scan(lambda v: Root()(v), sequences=[x], name="rooting")
    chosen = ifelse(c, Root()(x), x)
    f, g = compiled([x], looped), compiled([x, c], chosen)
    with pytest.warns(FixedModesWarning):
        np.testing.assert_array_equal(f(np.array([4.0, 1.0])), [2.0, 1.0])
    with pytest.raises(NotPositiveError, match="Inside: rooting"):
        f(np.array([4.0, -1.0, 1.0]))
    np.testing.assert_array_equal(f(np.array([9.0])), [3.0])
    with pytest.warns(FixedModesWarning):
        np.testing.assert_array_equal(g(np.array([-4.0]), 0), [-4.0])
    with pytest.raises(NotPositiveError):
        g(np.array([-4.0]), 1)


@pytest.mark.parametrize("in_loop", [False, True])
def test_op_in_place_of_unknown_shape_leaves_arguments_alone(in_loop):
    x = at.dvector("x")
    if in_loop:
        # A row of a sequence may not be destroyed, a number made from it may.
        outputs, _ = aesara.scan(
            lambda v, s: [*Doubled()(v * s), s + 1.0],
            sequences=[at.stack([x, x + 1.0])],
            outputs_info=[None, None, at.constant(5.0)],
        )
    else:
        outputs = Doubled()(x)
    mode = JAX_FIXED.register((in2out(in_place, ignore_newtrees=True), 80))
    f = aesara.function([aesara.In(x, mutable=True)], [outputs[0] * 3.0, outputs[1]], mode=mode)
    assert any(
        getattr(node.op, "inplace", False) and isinstance(node.op, Doubled)
        for node, *_ in walk_nodes(f.maker.fgraph)
    )
    value = np.array([1.0, 2.0])
    with pytest.warns(FixedModesWarning, match="Doubled"):
        doubled, count = f(value)
    want = np.stack([5 * value, 6 * (value + 1)]) if in_loop else value
    np.testing.assert_array_equal(doubled, 6 * want)
    np.testing.assert_array_equal(count, [2, 2] if in_loop else 2)
    np.testing.assert_array_equal(value, [1.0, 2.0])


def test_op_with_a_thunk_only():
    x = at.dscalar("x")
    with pytest.warns(FixedModesWarning, match="Thunked"):
        assert compiled([x], Thunked()(x) + 1.0)(3.0) == -2.0


def test_unknown_scalar_op_alone_and_fused():
    x, y = at.dmatrix("x"), at.fvector("y")
    f = compiled([x, y], [cubed(y), at.exp(x) * cubed(x) + y])
    a, b = np.array([[1.0, 2.0]]), np.array([3.0, 0.5], "float32")
    with pytest.warns(FixedModesWarning, match="[cC]ubed"):
        first, second = f(a, b)
    assert first.dtype == "float32"
    np.testing.assert_allclose(first, b**3)
    np.testing.assert_allclose(second, np.exp(a) * a**3 + b)


def test_strict_flag_refuses_it():
    x = at.dvector("x")
    with aesara.config.change_flags(fixed_modes__strict=True):
        f = compiled([x], Root()(x))
    with pytest.raises(UnsupportedOpError, match="Root"):
        f(np.ones(2))


def test_wrong_dtype_and_shape_are_not_believed():
    class Liar(Root):
        def perform(self, node, inputs, outputs):
            outputs[0][0] = inputs[0][:1]

    x = at.dvector("x")
    f = compiled([x], Liar()(x))
    with pytest.warns(FixedModesWarning, match="Liar"), pytest.raises(ValueError, match="foretold"):
        f(np.ones(2))


def test_print_shows_each_value_in_order_and_passes_it_on(capsys):
    x, c = at.dvector("x"), at.lscalar("c")
    total, _ = aesara.scan(
        lambda v, s: s + Print("v")(v), sequences=[x], outputs_info=[at.zeros(())]
    )
    chosen = ifelse(c, Print("then")(x), Print("else")(x))
    size = Print("size")(x.shape[0])
    f = compiled([x, c], [total[-1], chosen, at.zeros((size,)), Print("sum", ("sum",))(x)])
    got = f(np.array([1.0, 2.5, -4.0]), 0)
    np.testing.assert_array_equal(got[0], -0.5)
    np.testing.assert_array_equal(got[2], np.zeros(3))
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line.startswith("v ")] == [
        "v __str__ = 1.0",
        "v __str__ = 2.5",
        "v __str__ = -4.0",
    ]
    assert "else __str__ = [ 1.   2.5 -4. ]" in lines
    assert "size __str__ = 3" in lines
    assert "sum sum = -0.5" in lines
    assert not any(line.startswith("then") for line in lines)
    f(np.array([1.0]), 1)
    assert "then __str__ = [1.]" in capsys.readouterr().out


def test_sparse_matrices_go_through():
    import scipy.sparse
    from aesara import sparse

    m, x = sparse.csr_matrix("m"), at.dvector("x")
    product = sparse.structured_dot(m, at.exp(x)[:, None])
    f = compiled([m, x], [product.sum() * 2.0, m])
    value = scipy.sparse.csr_matrix(np.array([[1.0, 0.0], [0.0, 3.0]]))
    with pytest.warns(FixedModesWarning):
        total, same = f(value, np.array([0.5, 1.0]))
    np.testing.assert_allclose(total, 2 * (np.exp(0.5) + 3 * np.exp(1.0)))
    assert (same != value).nnz == 0
