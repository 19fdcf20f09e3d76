"""What a caller of a compiled function sees: types, ownership, options."""

from __future__ import annotations

import copy
import pickle
import threading

import aesara
import aesara.tensor as at
import numpy as np
import pytest

from fixed_modes.jax.compile_options import AheadOfTime, options_for
from fixed_modes.jax.linker import FixedJAXLinker
from fixed_modes.modes import JAX_FIXED


def mode_with(**options):
    return type(JAX_FIXED)(FixedJAXLinker(**options), JAX_FIXED._optimizer)


def test_results_are_numpy_arrays_that_the_caller_owns(evaluate):
    x = at.dvector("x")
    value = np.arange(3.0)
    shared = aesara.shared(value, borrow=True)
    same, doubled, total, again = evaluate([x], [x, 2 * x, x.sum(), shared * 1.0], value)
    for result in (same, doubled, total, again):
        assert type(result) is np.ndarray
        assert result.flags.writeable
    assert total.shape == ()
    same[0] = again[0] = 99.0
    assert value[0] == 0.0
    assert shared.get_value()[0] == 0.0


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int64", "float32", "complex128"])
def test_inputs_of_every_dtype_and_layout(evaluate, dtype):
    x = at.tensor(dtype=dtype, shape=(None, None))
    base = (np.arange(24).reshape(4, 6) % 3).astype(dtype)
    views = [base, base.T, base[::-2, 1::2], base[:0]]
    views[0].flags.writeable = False
    f = aesara.function([x], x.T, mode="JAX_FIXED")
    for view in views:
        result = f(view)
        assert result.dtype == dtype
        np.testing.assert_array_equal(result, view.T)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_precision_is_that_of_the_graph_and_not_of_jax_or_floatx(dtype):
    import jax

    before = jax.config.jax_enable_x64
    with aesara.config.change_flags(floatX="float32"):
        x = at.vector("x", dtype=dtype)
        out, _ = aesara.scan(
            lambda v, s: s * v, sequences=[x], outputs_info=[at.constant(np.ones((), dtype))]
        )
        f = aesara.function([x], [out, x.sum(), at.exp(x)], mode="JAX_FIXED")
        value = np.array([1.1, 1.3, 1.7], dtype)
        results = f(value)
    rtol = 1e-6 if dtype == "float32" else 1e-15
    for result, want in zip(results, [np.cumprod(value), value.sum(), np.exp(value)]):
        assert result.dtype == dtype
        np.testing.assert_allclose(result, want, rtol=rtol)
    assert jax.config.jax_enable_x64 == before


def test_results_on_the_device_but_updates_in_numpy():
    import jax

    x, total = at.dvector("x"), aesara.shared(np.zeros(2))
    mode = mode_with(keep_on_device=True).clone()
    f = aesara.function([x], [x, 2 * x], updates={total: total + x}, mode=mode)
    value = np.ones(2)
    same, doubled = f(value)
    assert isinstance(doubled, jax.Array)
    assert doubled.dtype == "float64"
    value[:] = 5.0
    np.testing.assert_array_equal(same, [1.0, 1.0])
    assert type(total.get_value(borrow=True)) is np.ndarray
    g = aesara.function([], total * 2, mode="FAST_COMPILE")
    np.testing.assert_array_equal(g(), [2.0, 2.0])


def test_what_runs_by_itself_gives_jax_arrays_too():
    import jax

    x = at.dvector("x")
    f = aesara.function([x], [x[x > 0], at.arange(x.sum())], mode=mode_with(keep_on_device=True))
    positive, numbers = f(np.array([3.0, -1.0, 1.0]))
    assert isinstance(positive, jax.Array)
    assert isinstance(numbers, jax.Array)
    np.testing.assert_array_equal(positive, [3.0, 1.0])
    np.testing.assert_array_equal(numbers, [0.0, 1.0, 2.0])


@pytest.mark.parametrize(
    "duplicate", [copy.copy, copy.deepcopy, lambda f: pickle.loads(pickle.dumps(f))]
)
def test_function_is_copied_and_pickled(duplicate):
    x = at.dvector("x")
    out, _ = aesara.scan(lambda v, s: s + v, sequences=[x], outputs_info=[at.zeros(())])
    f = aesara.function([x], out, mode="JAX_FIXED")
    value = np.arange(4.0)
    f(value)
    np.testing.assert_array_equal(duplicate(f)(value), np.cumsum(value))


def test_function_is_called_from_several_threads():
    k, x = at.lscalar("k"), at.dvector("x")
    f = aesara.function([k, x], x[:k].sum(), mode="JAX_FIXED").vm.jit_fn
    found = {}

    def work(n):
        found[n] = [float(f(np.int64(m), np.arange(10.0))[0]) for m in (n, n + 1, n)]

    threads = [threading.Thread(target=work, args=(n,)) for n in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {n: [float(np.arange(m).sum()) for m in (n, n + 1, n)] for n in range(1, 5)}


def test_input_of_a_type_that_jax_has_not(evaluate):
    # The index runs by itself, what comes before and after it is compiled.
    from aesara.tensor.subtensor import advanced_subtensor
    from aesara.tensor.type_other import slicetype

    s, x = slicetype("s"), at.dvector("x")
    got = evaluate([x, s], advanced_subtensor(x + 1.0, s) * 2.0, np.arange(3.0), slice(1, None))
    np.testing.assert_array_equal(got, [4.0, 6.0])


def test_compile_options_by_version_and_platform():
    assert options_for((0, 4, 30), "cpu") == {}
    assert options_for((0, 6, 2), "cpu") == {"xla_cpu_use_thunk_runtime": False}
    assert options_for((0, 7, 1), "cpu") == {"xla_cpu_use_fusion_emitters": False}
    assert options_for((0, 6, 2), "gpu") == {}


def test_options_without_help_from_jit():
    traces = []

    def double(args):
        traces.append(1)
        return [2 * args[0]]

    f = AheadOfTime(double, {})
    np.testing.assert_array_equal(f([np.ones(2, "float32")])[0], [2.0, 2.0])
    np.testing.assert_array_equal(f([np.ones(2, "float32")])[0], [2.0, 2.0])
    np.testing.assert_array_equal(f([np.ones(3, "float32")])[0], [2.0, 2.0, 2.0])
    assert len(traces) == 2
