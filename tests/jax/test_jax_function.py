"""`jax_function`: pure, and fit for jit, grad and vmap."""

from __future__ import annotations

import subprocess
import sys

import aesara
import aesara.tensor as at
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from aesara.raise_op import Assert
from aesara.tensor.random.utils import RandomStream

import fixed_modes
from fixed_modes.errors import UnsupportedOpError


@pytest.fixture(autouse=True)
def double_precision():
    """Switch 64 bits on for one test."""
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


def network():
    """Give the mean square of a recurrent network with states at two taps."""
    xs, weights = at.dmatrix("xs"), at.dmatrix("weights")

    def step(x, before, last, weights):
        return at.tanh(weights @ last + 0.3 * before + x)

    start = at.zeros((2, 3))
    trace, _ = aesara.scan(
        step,
        sequences=[xs],
        outputs_info=[{"initial": start, "taps": [-2, -1]}],
        non_sequences=[weights],
    )
    return xs, weights, (trace**2).mean()


def test_jit_grad_and_vmap_agree_with_aesara():
    xs, weights, loss = network()
    f = fixed_modes.jax_function([xs, weights], loss)
    reference = aesara.function(
        [xs, weights], [loss, aesara.grad(loss, weights)], mode="FAST_COMPILE"
    )
    rng = np.random.default_rng(2)
    x, batch = rng.normal(size=(7, 3)), rng.normal(size=(4, 3, 3))
    values, grads = zip(*(reference(x, w) for w in batch))
    np.testing.assert_allclose(f(x, batch[0]), values[0], rtol=1e-12)
    np.testing.assert_allclose(jax.jit(f)(x, batch[0]), values[0], rtol=1e-12)
    both = jax.jit(jax.vmap(jax.value_and_grad(f, argnums=1), in_axes=(None, 0)))
    for found, expected in zip(both(x, batch), (values, grads)):
        assert found.dtype == "float64"
        np.testing.assert_allclose(found, np.stack(expected), rtol=1e-10, atol=1e-13)


def test_gradient_of_a_graph_that_holds_aesaras_gradient():
    x = at.dscalar("x")
    trace, _ = aesara.scan(
        lambda y, x: y * at.sin(x), outputs_info=[x], non_sequences=[x], n_steps=3
    )
    slope = fixed_modes.jax_function([x], aesara.grad(trace[-1], x))
    # x sin(x)**3 and its derivatives, by hand.
    s, c = np.sin(0.7), np.cos(0.7)
    np.testing.assert_allclose(slope(0.7), s**3 + 2.1 * s**2 * c, rtol=1e-12)
    second = 6 * s**2 * c + 0.7 * (6 * s * c**2 - 3 * s**3)
    np.testing.assert_allclose(jax.grad(slope)(0.7), second, rtol=1e-12)


def test_shared_variables_are_arguments_and_updates_are_results():
    x = at.dscalar("x")
    total = aesara.shared(np.float64(1.0), name="total")
    factor = aesara.shared(np.arange(3.0), name="factor")
    f = fixed_modes.jax_function([x], [x * factor, total], updates={total: total + x})
    assert set(f.shared) == {total, factor}
    state = f.shared_values()
    (scaled, before), state = jax.jit(f)(2.0, *state)
    np.testing.assert_array_equal(scaled, [0.0, 2.0, 4.0])
    assert before == 1.0
    assert total.get_value() == 1.0
    (_, before), state = f(5.0, *state)
    assert before == 3.0
    f.store(state)
    assert total.get_value() == 8.0
    np.testing.assert_array_equal(factor.get_value(), np.arange(3.0))
    g = fixed_modes.jax_function([x], x * factor)
    np.testing.assert_array_equal(g(2.0, np.ones(2)), [2.0, 2.0])


def test_keys_go_in_and_come_out():
    mean = at.dscalar("mean")
    srng = RandomStream(8)
    draws = srng.normal(mean, 1.0, size=(400,))
    f = fixed_modes.jax_function([mean], draws, updates={})
    (key,) = f.shared_values()
    assert key.shape == (2,)
    assert key.dtype == "uint32"
    first, (after,) = jax.jit(f)(3.0, key)
    assert abs(np.mean(first) - 3.0) < 5 / 20
    np.testing.assert_allclose(f(3.0, key)[0], first, rtol=1e-13, atol=1e-13)
    second, _ = f(3.0, after)
    assert not set(np.asarray(first).round(9)) & set(np.asarray(second).round(9))
    typed, _ = f(3.0, jax.random.wrap_key_data(jax.numpy.asarray(key), impl="threefry2x32"))
    np.testing.assert_allclose(typed, first, rtol=1e-13, atol=1e-13)
    # The derivative by the mean, with the draws held fixed.
    assert jax.grad(lambda m: f(m, key)[0].mean())(3.0) == pytest.approx(1.0)
    f.store([after])
    (stored,) = f.shared_values()
    assert stored.tolist() not in (np.asarray(key).tolist(), np.asarray(after).tolist())
    only_draws = fixed_modes.jax_function([mean], draws)
    np.testing.assert_allclose(only_draws(3.0, key), first, rtol=1e-13, atol=1e-13)
    with pytest.raises(TypeError, match="key"):
        f(3.0, np.zeros(3))


def test_numbers_that_shapes_depend_on_are_python_ints():
    x0, n = at.dscalar("x0"), at.lscalar("n")
    trace, _ = aesara.scan(lambda x: 2 * x, outputs_info=[x0], n_steps=n)
    f = fixed_modes.jax_function([x0, n], trace)
    np.testing.assert_array_equal(f(1.0, 3), [2.0, 4.0, 8.0])
    np.testing.assert_array_equal(jax.jit(f, static_argnums=1)(1.0, 2), [2.0, 4.0])
    with pytest.raises(UnsupportedOpError, match=r"depends on n\. .*static_argnums"):
        jax.jit(f)(1.0, 3)


def test_what_is_no_pure_function_is_refused():
    x, i = at.dvector("x"), at.lscalar("i")
    with pytest.raises(UnsupportedOpError, match="can't be one JAX function"):
        jax.jit(fixed_modes.jax_function([x], x[(x > 0).nonzero()]))(np.ones(3))
    row = fixed_modes.jax_function([x, i], x[i])
    with pytest.raises(IndexError, match="out of bounds"):
        row(np.ones(3), 3)
    with pytest.raises(TypeError, match="takes 2 inputs"):
        row(np.ones(3))
    with pytest.raises(TypeError, match="1 dimensions, not 2"):
        row(np.ones((3, 3)), 0)
    with pytest.raises(TypeError, match="Only shared variables"):
        fixed_modes.jax_function([x], x, updates={i: i + 1})


def test_single_precision():
    xs = at.fvector("xs")
    start = at.constant(1.0, dtype="float32")
    trace, _ = aesara.scan(lambda x, y: x * y, sequences=[xs], outputs_info=[start])
    f = fixed_modes.jax_function([xs], trace.sum())
    values = np.arange(1, 5, dtype="float32")
    expected = (33.0, [33.0, 16.0, 10.0, 6.0])
    for function in (jax.value_and_grad(f), jax.jit(jax.value_and_grad(f))):
        found = function(values)
        assert found[0].dtype == found[1].dtype == "float32"
        np.testing.assert_allclose(found[0], expected[0], rtol=1e-6)
        np.testing.assert_allclose(found[1], expected[1], rtol=1e-6)
    g = fixed_modes.jax_function([at.dscalar("y")], at.constant(1.0, dtype="float64"))
    jax.config.update("jax_enable_x64", False)
    with pytest.raises(TypeError, match="jax_enable_x64"):
        g(1.0)
    if jax.version.__version_info__ >= (0, 4, 36):
        assert jax.jit(jax.grad(f))(values).dtype == "float32"


def test_importing_the_package_imports_no_back_end():
    code = (
        "import sys, fixed_modes\n"
        "assert 'jax_function' in fixed_modes.__all__\n"
        "assert issubclass(fixed_modes.FixedModesWarning, UserWarning)\n"
        "assert issubclass(fixed_modes.UnsupportedOpError, NotImplementedError)\n"
        "assert not {'jax', 'numba', 'aesara'} & set(sys.modules)\n"
        "fixed_modes.jax_function\n"
        "assert 'jax' in sys.modules and 'numba' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def graph_with_checks():
    x, i, d = at.dvector("x"), at.lscalar("i"), at.lscalar("d")
    sums, _ = aesara.scan(
        lambda v, total: Assert("total is negative")(total + v, at.ge(total + v, 0)),
        sequences=[x],
        outputs_info=[at.constant(0.0, dtype="float64")],
    )
    return [x, i, d], sums[-1] + x[i] + 7 // d


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (([1.0, 2.0], 1, 2), None),
        (([1.0, -2.0], 1, 2), AssertionError),
        (([1.0, 2.0], 2, 2), IndexError),
        (([1.0, 2.0], -3, 2), IndexError),
        (([1.0, 2.0], 0, 0), ZeroDivisionError),
    ],
)
def test_failed_checks_of_a_compiled_function(arguments, error):
    f = fixed_modes.jax_function(*graph_with_checks())
    x, i, d = np.array(arguments[0]), jnp.asarray(arguments[1]), jnp.asarray(arguments[2])
    for function in (f.checked, jax.jit(f.checked)):
        value, flags = function(x, i, d)
        if error is None:
            flags.raise_first()
            assert float(value) == float(f(x, i, d)) == 8.0
        else:
            with pytest.raises(error):
                flags.raise_first()
    if error is not None:
        with pytest.raises(error):
            f(x, i, d)
        jax.jit(f)(x, i, d)  # nothing can be raised there


def test_failed_checks_of_a_batch():
    inputs, value = graph_with_checks()
    f = fixed_modes.jax_function(inputs, [value, value * 2])
    batched = jax.jit(jax.vmap(f.checked, in_axes=(None, 0, None)))
    x = np.array([1.0, 2.0, 3.0])
    (values, twice), flags = batched(x, jnp.arange(3), jnp.asarray(3))
    np.testing.assert_array_equal(values, 6 + x + 2)
    np.testing.assert_array_equal(twice, 2 * values)
    assert flags.failed.shape[0] == 3
    assert not flags.failed.any()
    flags.raise_first()
    _, flags = batched(x, jnp.arange(1, 5), jnp.asarray(3))
    assert flags.failed.any(axis=1).tolist() == [False, False, True, True]
    with pytest.raises(IndexError, match="out of bounds"):
        flags.raise_first()


def test_a_function_without_checks_has_no_flags():
    x = at.dvector("x")
    value, flags = jax.jit(fixed_modes.jax_function([x], x * 2).checked)(np.ones(2))
    assert flags.failed.shape == (0,)
    flags.raise_first()
    np.testing.assert_array_equal(value, [2.0, 2.0])


def test_a_window_that_reaches_out_of_its_array_is_no_pure_function():
    x, i = at.dvector("x"), at.lscalar("i")
    f = fixed_modes.jax_function([x, i], x[i : i + 2])
    np.testing.assert_array_equal(jax.jit(f)(np.arange(5.0), jnp.asarray(2)), [2.0, 3.0])
    for function in (f, lambda *args: jax.jit(f.checked)(*args)[1].raise_first()):
        with pytest.raises(UnsupportedOpError, match="reaches out of an axis"):
            function(np.arange(5.0), jnp.asarray(4))
