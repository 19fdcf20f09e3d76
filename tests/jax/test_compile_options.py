"""The flags of JAX_FIXED: compile options, index checks, variants; and JAX's own for 64 bits."""

from __future__ import annotations

import aesara
import aesara.tensor as at
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from aesara import config
from aesara.raise_op import Assert

from fixed_modes.errors import FixedModesWarning
from fixed_modes.jax.compile_options import chosen_options, options_for

MODE = "JAX_FIXED"


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ((0, 4, 20), {}),
        ((0, 4, 30), {}),
        ((0, 4, 38), {"xla_cpu_use_thunk_runtime": False}),
        ((0, 6, 2), {"xla_cpu_use_thunk_runtime": False}),
        ((0, 7, 1), {"xla_cpu_use_fusion_emitters": False}),
    ],
)
def test_options_of_a_version_are_for_the_processor_only(version, expected):
    assert options_for(version, "cpu") == expected
    assert options_for(version, "gpu") == options_for(version, "tpu") == {}


def test_users_options_are_added_and_win():
    chosen = options_for(jax.version.__version_info__[:3], jax.default_backend())
    own = {"xla_cpu_use_thunk_runtime": True, "xla_backend_optimization_level": 1}
    assert chosen_options({}) == chosen
    assert chosen_options(own) == {**chosen, **own}


def test_users_options_reach_xla():
    x = at.dvector("x")
    with config.change_flags(fixed_modes__jax_compile_options="xla_backend_optimization_level=1"):
        f = aesara.function([x], x + 1, mode=MODE)
    assert f.vm.jit_fn.variants.settings.compile_options == {"xla_backend_optimization_level": 1}
    np.testing.assert_array_equal(f([1.0, 2.0]), [2.0, 3.0])
    bad = config.change_flags(fixed_modes__jax_compile_options="xla_no_such_option=1")
    with bad, pytest.raises(ValueError, match=r"fixed_modes__jax_compile_options=xla_no_such_op"):
        aesara.function([x], x + 1, mode=MODE)


def test_index_checks_can_be_switched_off():
    x, i, indices = at.dvector("x"), at.lscalar("i"), at.lvector("indices")
    checked = Assert("too large")(x, (x < 100).all())
    rows, _ = aesara.scan(lambda j, x: x[j], sequences=[indices], non_sequences=[checked])
    with config.change_flags(fixed_modes__index_checks=False):
        f = aesara.function([x, i, indices], [x[i], x[indices], rows], mode=MODE)
    # The flag counts as it was then, not as it is when the function is traced.
    values = np.arange(3.0)
    row, taken, gathered = f(values, 1, [0, -1])
    assert row == 1
    np.testing.assert_array_equal(taken, [0, 2])
    np.testing.assert_array_equal(gathered, [0, 2])
    f(values, 7, [8, 9])  # whatever it is, it is no error
    with pytest.raises(AssertionError, match="too large"):
        f(100 * values, 1, [0, 1])
    g = aesara.function([x, i], x[i], mode=MODE)
    with config.change_flags(fixed_modes__index_checks=False), pytest.raises(IndexError):
        g(values, 7)


def test_number_of_variants_that_are_kept():
    k = at.lscalar("k")
    with config.change_flags(fixed_modes__jax_variants=2):
        f = aesara.function([k], at.arange(k), mode=MODE)
    for n in (1, 2, 3, 2, 4):
        np.testing.assert_array_equal(f(n), np.arange(n))
    assert len(f.vm.jit_fn.variants.children) == 2


def test_users_own_computations_stay_in_single_precision():
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", False)
    try:
        mine = jax.jit(lambda x: x * 2)
        assert mine(jnp.ones(2)).dtype == "float32"
        x = at.dvector("x")
        f = aesara.function([x], x / 3, mode=MODE)
        np.testing.assert_array_equal(f([1.0]), [1.0 / 3.0])
        assert not jax.config.jax_enable_x64
        assert mine(jnp.ones(2)).dtype == jnp.ones(2).dtype == "float32"
        jax.config.update("jax_enable_x64", True)
        np.testing.assert_array_equal(f([1.0]), [1.0 / 3.0])
    finally:
        jax.config.update("jax_enable_x64", before)


def test_double_precision_that_was_switched_off_on_purpose(monkeypatch, recwarn):
    monkeypatch.setenv("JAX_ENABLE_X64", "0")
    x, y = at.dvector("x"), at.fvector("y")
    with pytest.warns(FixedModesWarning, match="JAX_ENABLE_X64 is off.*float64 for x"):
        f = aesara.function([x], x / 3, mode=MODE)
    np.testing.assert_array_equal(f([1.0]), [1.0 / 3.0])
    recwarn.clear()
    aesara.function([y], y + y, mode=MODE)
    assert not recwarn.list
