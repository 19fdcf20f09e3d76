"""Large results are handed over without a copy, but never what belongs to someone else."""

from __future__ import annotations

import gc

import aesara
import aesara.tensor as at
import jax.numpy as jnp
import numpy as np
from aesara.scan.utils import until
from jax.experimental import enable_x64

from fixed_modes.jax.owned import SMALLEST_HANDED_OVER, owned_arrays
from fixed_modes.jax.padded import PaddedTrace

N = SMALLEST_HANDED_OVER // 8
MODE = "JAX_FIXED"


def spoil(arrays):
    for array in arrays:
        assert array.flags.writeable
        array[...] = -1


def test_nothing_is_shared_among_results_arguments_and_calls():
    x = at.dvector("x")
    state = aesara.shared(np.zeros(N), name="state")
    new = state + x
    outputs = [x, x + 1, x + 1, new, 2 * new, at.zeros(N), at.ones((N,)) * 3]
    f = aesara.function([x], outputs, updates={state: new}, mode=MODE)
    value = np.arange(float(N))
    for call in range(1, 4):
        results = f(value)
        expected = [value, value + 1, value + 1, call * value, 2 * call * value, 0 * value, 3]
        for found, wanted in zip(results, expected):
            np.testing.assert_array_equal(found, np.broadcast_to(wanted, N))
        everything = [*results, value, state.get_value(borrow=True)]
        for index, first in enumerate(everything):
            assert not any(np.shares_memory(first, other) for other in everything[:index])
        spoil(results)
        np.testing.assert_array_equal(value, np.arange(float(N)))


def test_memory_lives_as_long_as_a_view_of_it():
    x = at.dvector("x")
    f = aesara.function([x], x * 2, mode=MODE)
    parts = [f(np.full(N, float(i)))[5:8] for i in range(20)]
    gc.collect()
    np.testing.assert_array_equal(parts, 2.0 * np.arange(20)[:, None] * np.ones(3))


def test_result_is_not_copied_and_a_small_part_is():
    with enable_x64():
        large = jnp.arange(float(2 * N))
        (array,) = owned_arrays([large], [])
        assert array.ctypes.data == large.unsafe_buffer_pointer()
        assert array.flags.writeable
        for length, is_copied in ((2 * N, False), (N, False), (N // 4, True), (0, True)):
            trace = PaddedTrace(jnp.arange(float(2 * N)), jnp.asarray(length))
            address = trace.buffer.unsafe_buffer_pointer()
            (array,) = owned_arrays([trace], [])
            np.testing.assert_array_equal(array, np.arange(float(length)))
            assert (array.ctypes.data != address) == is_copied
        (array,) = owned_arrays([large], [np.asarray(large)])
        assert array.ctypes.data != large.unsafe_buffer_pointer()


def test_trace_of_an_until_loop_belongs_to_the_caller():
    x = at.dscalar("x")
    trace, _ = aesara.scan(
        lambda x: (x + 1, until(x + 1 >= 1.5 * N)), outputs_info=[x], n_steps=2 * N
    )
    f = aesara.function([x], trace, mode=MODE)
    for _ in range(2):
        rows = f(0.0)
        np.testing.assert_array_equal(rows, 1 + np.arange(np.ceil(1.5 * N)))
        spoil([rows])
