"""What a user who does something that can't work is told."""

from __future__ import annotations

import sys

import aesara
import aesara.tensor as at
import numpy as np
import pytest
from aesara.graph.basic import Apply
from aesara.graph.op import Op

from fixed_modes.errors import UnsupportedOpError


@pytest.mark.parametrize(
    ("mode", "module", "remedy"),
    [
        ("NUMBA_FIXED", "numba", r"NUMBA_FIXED needs Numba.*pip install numba"),
        ("JAX_FIXED", "jax", r'JAX_FIXED needs JAX.*pip install "jax<0.7" "jaxlib<0.7"'),
        ("JAX_FIXED", "jaxlib", r'JAX_FIXED needs JAX.*pip install "jax<0.7" "jaxlib<0.7"'),
    ],
)
def test_a_missing_back_end_is_named_with_its_remedy(monkeypatch, mode, module, remedy):
    monkeypatch.setitem(sys.modules, module, None)
    x = at.dscalar("x")
    with pytest.raises(ImportError, match=remedy):
        aesara.function([x], x + 1.0, mode=mode)


class Unknown(Op):
    """An op that no back end has heard of."""

    __props__ = ()

    def make_node(self, x):
        return Apply(self, [x], [x.type()])

    def perform(self, node, inputs, outputs):
        outputs[0][0] = inputs[0] * 2.0


def test_an_op_that_can_t_be_converted_is_named_with_its_scan_and_line():
    x = at.dvector("x")
    out, _ = aesara.scan(lambda v: Unknown()(v), sequences=[at.outer(x, x)], name="doubling")
    with aesara.config.change_flags(fixed_modes__strict=True):
        strict = aesara.function([x], out, mode="JAX_FIXED")
    with pytest.raises(UnsupportedOpError) as caught:
        strict(np.ones(2))
    message = str(caught.value)
    assert "Unknown" in message
    assert "doubling" in message
    assert "test_bad_input.py" in message


def test_an_error_at_run_time_names_the_scan_and_the_line(mode):
    x = at.lvector("x")
    out, _ = aesara.scan(lambda v: 10 // v, sequences=[x], name="dividing")
    f = aesara.function([x], out, mode=mode)
    np.testing.assert_array_equal(f(np.array([2, 5])), [5, 2])
    with pytest.raises(ZeroDivisionError, match="integer division by zero"):
        f(np.array([2, 0]))


@pytest.mark.parametrize("shape", [(), (None,), (None, 1)])
def test_none_for_an_array_is_refused(mode, shape):
    x, unused = at.TensorType("float64", shape)("x"), at.dvector("unused")
    f = aesara.function([x, unused], x * 2.0, mode=mode, on_unused_input="ignore")
    value = np.full([1] * len(shape), 1.5)
    with pytest.raises(TypeError, match="expected an array for x, not None"):
        f(None, [1.0])
    np.testing.assert_array_equal(f(value, None), 2 * value)
    with pytest.raises(TypeError, match="expected an array for x, not None"):
        f(None, None)
    np.testing.assert_array_equal(f(value, [1.0]), 2 * value)
