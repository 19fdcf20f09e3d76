"""Exponentials that are not computed, and what they would have been."""

from __future__ import annotations

import aesara
import aesara.tensor as at
import numpy as np
import pytest
from aesara.tensor.special import softmax
from scipy import special

from fixed_modes.modes import NUMBA_FIXED

MODES = ("NUMBA_FIXED", "JAX_FIXED")
INFINITE = np.array([[1.0, 2.0], [-np.inf, -np.inf], [np.inf, 1.0], [-np.inf, 3.0], [np.nan, 1.0]])


def ops_after_rewriting(x, output):
    f = aesara.function([x], output, mode=NUMBA_FIXED.excluding("fusion", "inplace"))
    return [str(node.op) for node in f.maker.fgraph.toposort()]


@pytest.mark.parametrize("mode", MODES)
def test_logsumexp_computes_no_exponential_of_the_maximum(mode):
    x = at.dmatrix("x")
    value = at.logsumexp(x, axis=1)
    f = aesara.function([x], value, mode=mode)
    with np.errstate(all="ignore"):
        expected = special.logsumexp(INFINITE, axis=1)
    np.testing.assert_allclose(f(INFINITE), expected, rtol=1e-14)
    assert sum("{exp" in op for op in ops_after_rewriting(x, value)) == 1


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("axis", [0, 1, None])
def test_softmax_subtracts_the_maximum_once(mode, axis):
    x = at.dmatrix("x")
    shifted = x - x.max(axis=axis, keepdims=True)
    value = softmax(shifted, axis=axis)
    f = aesara.function([x], value, mode=mode)
    data = np.array([[1.0, 2.0, 1000.0], [-1000.0, 3.0, 0.0]])
    np.testing.assert_allclose(f(data), special.softmax(data, axis=axis), rtol=1e-13)
    assert not any("Max{" in op for op in ops_after_rewriting(x, value))


def test_other_shifts_stay():
    x = at.dmatrix("x")
    for shift in (x.min(axis=1, keepdims=True), x.max(axis=0, keepdims=True)):
        ops = ops_after_rewriting(x, softmax(x - shift, axis=1))
        assert any(op.startswith("Max{") for op in ops)


SLICES = [slice(1, None), slice(None, -1), slice(2, None), slice(-1, None), slice(None, None, -1)]


@pytest.mark.parametrize("rows", SLICES, ids=str)
def test_slices_of_what_has_one_row(mode, rows):
    """Aesara makes the whole of a slice of an elementwise op whose inputs have one row each."""
    x = at.dvector("x")
    trace, _ = aesara.scan(lambda s: s * 3.0 + s, outputs_info=[x.sum()], n_steps=1)
    pair, _ = aesara.scan(
        lambda before: before + before**2, outputs_info=[{"initial": x, "taps": [-2]}], n_steps=1
    )
    a, b = x.sum().dimshuffle("x", "x"), x.prod().dimshuffle("x", "x")
    f = aesara.function([x], [trace[rows], pair[rows], (a * b + a)[0, rows]], mode=mode)
    data = np.array([2.0, 0.5])
    expected = np.array([4 * 2.5]), np.array([2.0 + 4.0]), np.array([2.5 * 1.0 + 2.5])
    for result, whole in zip(f(data), expected):
        np.testing.assert_allclose(result, whole[rows], rtol=1e-15)
        assert result.shape == whole[rows].shape


def test_an_element_is_still_computed_alone():
    x, y = at.dvectors("xy")
    f = aesara.function([x, y], (at.exp(x) * y)[3], mode=NUMBA_FIXED.excluding("fusion"))
    ops = [node.op for node in f.maker.fgraph.toposort()]
    assert all(out.type.ndim == 0 for node in f.maker.fgraph.toposort() for out in node.outputs)
    assert any("exp" in str(op) for op in ops)
    np.testing.assert_allclose(f(np.arange(5.0), np.ones(5)), np.exp(3.0))
