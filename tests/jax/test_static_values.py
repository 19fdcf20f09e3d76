"""Numbers that must be known to compile: found out, and one variant for each."""

from __future__ import annotations

import warnings

import aesara
import aesara.tensor as at
import numpy as np
import pytest

from fixed_modes.errors import FixedModesWarning


def compiled(inputs, outputs, **kwargs):
    return aesara.function(inputs, outputs, mode="JAX_FIXED", **kwargs)


def test_number_of_steps_of_a_full_trace():
    n, x = at.iscalar("n"), at.dscalar("x")
    out, _ = aesara.scan(
        lambda s, x: s * x, outputs_info=[at.ones(())], non_sequences=[x], n_steps=n
    )
    f = compiled([n, x], out)
    for steps in (3, 5, 3, 1):
        np.testing.assert_allclose(f(steps, 2.0), 2.0 ** np.arange(1, steps + 1))
    assert len(f.vm.jit_fn.variants.children) == 3


def test_arange_slices_allocations_and_shapes():
    k, x = at.lscalar("k"), at.dvector("x")
    f = compiled(
        [k, x],
        [
            at.arange(k),
            x[:k],
            x[k:][::-1],
            at.alloc(x[0], k, 2),
            x[: 2 * k].reshape((k, 2)),
            at.eye(k),
        ],
    )
    v = np.arange(6.0)
    for n in (2, 3):
        wants = [
            np.arange(n),
            v[:n],
            v[n:][::-1],
            np.full((n, 2), v[0]),
            v[: 2 * n].reshape(n, 2),
            np.eye(n),
        ]
        for got, want in zip(f(n, v), wants):
            np.testing.assert_array_equal(got, want)


def test_shared_integer_is_read_at_every_call():
    k, x = aesara.shared(np.int64(2), name="k"), at.dvector("x")
    f = compiled([x], x[:k].sum(), updates={k: k + 1})
    assert [float(f(np.arange(1.0, 6.0))) for _ in range(3)] == [3.0, 6.0, 10.0]


def test_length_that_is_computed_from_data():
    x = at.dvector("x")
    f = compiled([x], [at.arange(at.cast(x.sum(), "int64")), x[x > 1.0], at.nonzero(x)[0]])
    for v in (np.array([1.0, 2.0]), np.array([0.0, 4.0]), np.array([3.0, 2.0])):
        count, large, where = f(v)
        np.testing.assert_array_equal(count, np.arange(int(v.sum())))
        np.testing.assert_array_equal(large, v[v > 1.0])
        np.testing.assert_array_equal(where, np.nonzero(v)[0])


def test_loop_over_a_length_that_is_a_number_of_true_entries():
    x = at.dvector("x")
    out, _ = aesara.scan(lambda v, s: s + v, sequences=[x[x > 0.0]], outputs_info=[at.zeros(())])
    f = compiled([x], out)
    for v in (np.array([1.0, -1.0, 2.0]), np.array([1.0, 1.0, 2.0])):
        np.testing.assert_allclose(f(v), np.cumsum(v[v > 0]))


def test_number_known_outside_reaches_a_slice_inside_a_loop():
    k, x = at.lscalar("k"), at.dvector("x")
    out, _ = aesara.scan(
        lambda s, x, k: s + x[:k].sum(),
        outputs_info=[at.zeros(())],
        non_sequences=[x, k],
        n_steps=2,
    )
    f = compiled([k, x], out)
    np.testing.assert_allclose(f(2, np.arange(4.0)), [1.0, 2.0])
    np.testing.assert_allclose(f(3, np.arange(4.0)), [3.0, 6.0])


def test_length_that_a_loop_computes_is_worth_a_warning_with_the_reason():
    x = at.dvector("x")
    # There is no assignment to places of which the number changes.
    places = at.as_tensor(np.array([2, 0, 1]))
    out, _ = aesara.scan(
        lambda i, x: at.set_subtensor(x[places[:i]], -1.0).sum(),
        sequences=[at.arange(3)],
        non_sequences=[x],
    )
    f = compiled([x], out)
    with pytest.warns(FixedModesWarning, match=r"bounds of a slice.*what the loop computes"):
        got = f(np.array([1.0, 2.0, 4.0]))
    np.testing.assert_array_equal(got, [7.0, 2.0, 0.0])


def test_old_variants_are_dropped_and_many_are_worth_a_warning():
    from fixed_modes.jax.linker import FixedJAXLinker

    mode = fixed_mode_with(FixedJAXLinker(max_variants=2))
    k = at.lscalar("number")
    f = aesara.function([k], at.arange(k).sum(), mode=mode)
    for n in range(1, 5):
        assert f(n) == n * (n - 1) // 2
    assert len(f.vm.jit_fn.variants.children) == 2
    g = compiled([k], at.arange(k).sum())
    for n in range(1, 16):
        g(n)
    with pytest.warns(UserWarning, match="16 different values of number"):
        g(16)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        g(17)


def fixed_mode_with(linker):
    from fixed_modes.modes import JAX_FIXED

    return type(JAX_FIXED)(linker, JAX_FIXED._optimizer)
