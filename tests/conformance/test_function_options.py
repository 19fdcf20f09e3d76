"""Each option of `aesara.function` does in both modes what it does in FAST_RUN."""

from __future__ import annotations

from contextlib import nullcontext

import aesara
import aesara.tensor as at
import numpy as np
import pytest
import scipy.sparse
from aesara import In, Out
from aesara.compile.function.types import UnusedInputError
from aesara.configdefaults import config
from aesara.graph.basic import Variable
from aesara.ifelse import ifelse
from aesara.link.c.type import generic
from aesara.tensor.random.utils import RandomStream

from fixed_modes.errors import FixedModesWarning


def cumulated(x: Variable, start: Variable | None = None) -> Variable:
    """Sum up a vector in a loop."""
    start = at.zeros((), x.dtype) if start is None else start
    out, _ = aesara.scan(lambda v, s: s + v, sequences=[x], outputs_info=[start])
    return out


def test_givens_replace_what_a_loop_reads(mode):
    x, y = at.dvector("x"), at.dvector("y")
    f = aesara.function([y], cumulated(x), givens={x: y * 2.0}, mode=mode)
    np.testing.assert_array_equal(f([1.0, 2.0, 3.0]), [2.0, 6.0, 12.0])


def test_givens_replace_a_shared_variable(mode):
    kept, x = aesara.shared(np.array([1.0, 1.0]), name="kept"), at.dvector("x")
    f = aesara.function([x], cumulated(kept), givens={kept: x}, mode=mode)
    np.testing.assert_array_equal(f([3.0, 4.0]), [3.0, 7.0])
    np.testing.assert_array_equal(kept.get_value(), [1.0, 1.0])


def test_an_update_sees_the_value_from_before_the_call(mode):
    a, b = aesara.shared(1.0, name="a"), aesara.shared(10.0, name="b")
    f = aesara.function([], [a, b], updates=[(a, a + b), (b, a * 2.0)], mode=mode)
    np.testing.assert_array_equal(f(), [1.0, 10.0])
    assert (a.get_value(), b.get_value()) == (11.0, 2.0)


def test_updates_may_swap_shared_variables(mode):
    a, b = aesara.shared(np.zeros(2), name="a"), aesara.shared(np.ones(2), name="b")
    f = aesara.function([], [], updates={a: b, b: a}, mode=mode)
    f()
    values = [v.get_value(borrow=True) for v in (a, b)]
    np.testing.assert_array_equal(values, [[1.0, 1.0], [0.0, 0.0]])
    assert not np.may_share_memory(*values)


def test_an_input_with_a_value_and_an_update(mode):
    state, x = at.dscalar("state"), at.dscalar("x")
    f = aesara.function([x, In(state, value=1.0, update=state + x)], state * 2.0, mode=mode)
    assert f(3.0) == 2.0
    assert f(3.0) == 8.0
    assert f["state"] == 7.0
    f["state"] = 0.5
    assert f(0.0) == 1.0


def test_an_input_with_a_name_and_a_default(mode):
    x, scale = at.dvector("x"), at.dscalar("scale")
    f = aesara.function([x, In(scale, value=2.0, name="factor")], cumulated(x * scale), mode=mode)
    np.testing.assert_array_equal(f([1.0, 1.0]), [2.0, 4.0])
    np.testing.assert_array_equal(f([1.0, 1.0], factor=3.0), [3.0, 6.0])


def test_a_mutable_input_is_the_callers_gift(mode):
    x = at.dvector("x")
    given = np.array([1.0, 2.0, 3.0])
    keep = aesara.function([In(x, borrow=True)], x * 2.0, mode=mode)
    np.testing.assert_array_equal(keep(given), [2.0, 4.0, 6.0])
    np.testing.assert_array_equal(given, [1.0, 2.0, 3.0])
    f = aesara.function([In(x, mutable=True)], at.inc_subtensor(x[0], 5.0), mode=mode)
    np.testing.assert_array_equal(f(given), [6.0, 2.0, 3.0])


def test_a_borrowed_output_has_the_value(mode):
    x = at.dvector("x")
    f = aesara.function([x], Out(cumulated(x), borrow=True), mode=mode)
    np.testing.assert_array_equal(f([1.0, 2.0]), [1.0, 3.0])


def test_the_name_of_a_function(mode):
    x = at.dvector("x")
    f = aesara.function([x], x + 1.0, name="plus_one", mode=mode)
    assert f.name == "plus_one"
    with pytest.raises(TypeError, match="plus_one"):
        f(np.ones((2, 2)))


def test_a_profile_counts_the_calls(mode):
    x = at.dvector("x")
    with config.change_flags(profiling__n_apply=1):
        f = aesara.function([x], cumulated(x), profile=True, mode=mode)
    f([1.0])
    f([1.0, 2.0])
    assert f.profile.fct_callcount == 2
    assert f.profile.fct_call_time > 0.0
    # Or it is printed when the process ends.
    aesara.compile.profiling._atexit_print_list.remove(f.profile)


def test_unused_inputs_are_an_error_a_warning_or_nothing(mode):
    x, y = at.dscalar("x"), at.dscalar("y")
    with pytest.raises(UnusedInputError):
        aesara.function([x, y], x + 1.0, mode=mode)
    with pytest.warns(UserWarning, match="y"):
        aesara.function([x, y], x + 1.0, mode=mode, on_unused_input="warn")
    f = aesara.function([x, y], x + 1.0, mode=mode, on_unused_input="ignore")
    assert f(1.0, 2.0) == 2.0


def test_downcasts_of_inputs(mode):
    x = at.fvector("x")
    values = np.array([0.1, 0.2])
    with pytest.raises(TypeError):
        aesara.function([x], x * 2, mode=mode)(values)
    f = aesara.function([x], x * 2, mode=mode, allow_input_downcast=True)
    got = f(values)
    assert got.dtype == "float32"
    np.testing.assert_array_equal(got, values.astype("float32") * 2)


def test_givens_of_another_type(mode):
    x, y = at.dvector("x"), at.fvector("y")
    with pytest.raises(TypeError):
        aesara.function([y], x * 2.0, givens={x: y}, mode=mode)
    f = aesara.function([y], x * 2.0, givens={x: y}, mode=mode, rebuild_strict=False)
    np.testing.assert_array_equal(f(np.array([1.0, 2.0], "float32")), [2.0, 4.0])


def test_trusted_input(mode):
    x = at.dvector("x")
    f = aesara.function([x], cumulated(x), mode=mode)
    f.trust_input = True
    np.testing.assert_array_equal(f(np.array([1.0, 2.0])), [1.0, 3.0])


def test_default_updates_can_be_left_out(mode):
    stream = RandomStream(1)
    draw = stream.normal(size=(2,))
    with_updates = aesara.function([], draw, mode=mode)
    without = aesara.function([], draw, no_default_updates=True, mode=mode)
    np.testing.assert_array_equal(without(), without())
    assert (with_updates() != with_updates()).all()


def test_default_updates_of_a_counter(mode):
    counter = aesara.shared(0.0, name="counter")
    counter.default_update = counter + 1.0
    f = aesara.function([], counter * 2.0, mode=mode)
    g = aesara.function([], counter * 2.0, no_default_updates=[counter], mode=mode)
    assert [f(), f(), g(), g()] == [0.0, 2.0, 4.0, 4.0]


def test_a_function_without_inputs(mode):
    f = aesara.function([], cumulated(at.constant([1.0, 2.0, 3.0])), mode=mode)
    np.testing.assert_array_equal(f(), [1.0, 3.0, 6.0])


def test_a_function_without_outputs(mode):
    total, x = aesara.shared(np.zeros(2), name="total"), at.dvector("x")
    f = aesara.function([x], updates={total: total + x}, mode=mode)
    assert f([1.0, 2.0]) in ([], None)
    np.testing.assert_array_equal(total.get_value(), [1.0, 2.0])


def test_an_input_as_output_is_a_copy(mode):
    x = at.dvector("x")
    f = aesara.function([x], [x, x[::-1], x + 1.0], mode=mode)
    given = np.array([1.0, 2.0])
    same, turned, more = f(given)
    np.testing.assert_array_equal([same, turned, more], [[1.0, 2.0], [2.0, 1.0], [2.0, 3.0]])
    results = [given, same, turned, more]
    for n, a in enumerate(results):
        assert not any(np.may_share_memory(a, b) for b in results[n + 1 :])


def test_outputs_in_a_dictionary(mode):
    x = at.dvector("x")
    f = aesara.function([x], {"sums": cumulated(x), "last": x[-1]}, mode=mode)
    got = f([1.0, 2.0])
    assert sorted(got) == ["last", "sums"]
    np.testing.assert_array_equal(got["sums"], [1.0, 3.0])
    assert got["last"] == 2.0
    assert sorted(f([1.0, 2.0], output_subset=["last"])) == ["last"]


def test_a_subset_of_the_outputs(mode):
    x = at.dvector("x")
    f = aesara.function([x], [cumulated(x), x.sum()], mode=mode)
    (total,) = f([1.0, 2.0], output_subset=[1])
    assert total == 3.0


def test_one_output_twice(mode):
    x = at.dvector("x")
    y = x * 2.0
    a, b = aesara.function([x], [y, y], mode=mode)(np.array([1.0, 2.0]))
    np.testing.assert_array_equal([a, b], [[2.0, 4.0], [2.0, 4.0]])
    assert not np.may_share_memory(a, b)


def test_constants_as_outputs(mode):
    f = aesara.function([], [at.constant([1.0, 2.0]), at.constant(3)], mode=mode)
    a, b = f()
    a[:] = 0.0
    np.testing.assert_array_equal(f()[0], [1.0, 2.0])
    assert b == 3


def test_none_as_output_is_refused_as_in_fast_run(mode):
    x = at.dscalar("x")
    with pytest.raises(TypeError, match="Outputs"):
        aesara.function([x], [x, None], mode=mode)
    f = aesara.function([x], None, mode=mode, on_unused_input="ignore")
    assert f(1.0) in ([], None)


# Shared variables


@pytest.mark.filterwarnings("ignore::fixed_modes.errors.FixedModesWarning")
def test_shared_scalars_and_sparse_matrices(mode):
    number = aesara.shared(np.int8(3), name="number")
    matrix = aesara.shared(scipy.sparse.csr_matrix(np.array([[0.0, 2.0], [1.0, 0.0]])), name="m")
    x = at.dmatrix("x")
    product = aesara.sparse.structured_dot(matrix, x)
    f = aesara.function([x], [product, number + 1], mode=mode)
    got, more = f(np.array([[1.0], [2.0]]))
    np.testing.assert_array_equal(got, [[4.0], [1.0]])
    assert (more, more.dtype) == (4, np.int8)


def test_a_shared_generator_is_advanced_by_its_update_only(mode):
    generator = aesara.shared(np.random.default_rng(3), name="generator")
    following, draw = at.random.normal(rng=generator, size=(3,)).owner.outputs
    still = aesara.function([], draw, mode=mode)
    moving = aesara.function([], draw, updates={generator: following}, mode=mode)
    first = still()
    np.testing.assert_array_equal(still(), first)
    np.testing.assert_array_equal(moving(), first)
    assert (moving() != first).all()
    generator.set_value(np.random.default_rng(3))
    np.testing.assert_array_equal(moving(), first)


# Flags


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_the_flag_floatx(mode, precision):
    with config.change_flags(floatX=precision):
        x = at.vector("x")
        f = aesara.function([x], cumulated(x), mode=mode)
        got = f(np.array([1.0, 2.0], precision))
    assert got.dtype == precision
    np.testing.assert_array_equal(got, [1.0, 3.0])


def test_the_flag_compute_test_value(mode):
    with config.change_flags(compute_test_value="raise"):
        x = at.dvector("x")
        x.tag.test_value = np.array([1.0, 2.0])
        out = cumulated(x)
        np.testing.assert_array_equal(out.tag.test_value, [1.0, 3.0])
        f = aesara.function([x], out, mode=mode)
        np.testing.assert_array_equal(f([3.0, 4.0, 5.0]), [3.0, 7.0, 12.0])


def test_the_flags_that_make_rewrites_strict_and_leave_the_compiler_out(mode):
    x = at.dvector("x")
    with config.change_flags(on_opt_error="raise", cxx=""):
        out = cumulated(at.tanh(x) ** 2)
        f = aesara.function([x], [out, aesara.grad(out[-1], x)], mode=mode)
        values = np.array([0.5, -0.25])
        got, gradient = f(values)
    np.testing.assert_allclose(got, np.cumsum(np.tanh(values) ** 2))
    np.testing.assert_allclose(gradient, 2 * np.tanh(values) * (1 - np.tanh(values) ** 2))


# Values that are no arrays


def test_values_of_any_kind_go_through_a_function(mode):
    a, b, c, x = generic("a"), generic("b"), at.iscalar("c"), at.dvector("x")
    # Numba has no such values, so that the graph runs in Python.
    in_python = pytest.warns(FixedModesWarning, match="Generic")
    with in_python if mode == "NUMBA_FIXED" else nullcontext():
        f = aesara.function([c, a, b, x], [ifelse(c, a, b), x * 2.0], mode=mode)
    for condition, expected in ((1, ["then"]), (0, ["else"])):
        chosen, doubled = f(condition, ["then"], ["else"], [1.0, 2.0])
        assert chosen == expected
        np.testing.assert_array_equal(doubled, [2.0, 4.0])


def test_an_unused_input_of_any_kind(mode):
    a, x = generic("a"), at.dvector("x")
    f = aesara.function([a, x], x * 2.0, mode=mode, on_unused_input="ignore")
    np.testing.assert_array_equal(f("text", [1.0, 2.0]), [2.0, 4.0])


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int64", "float32", "complex64"])
def test_results_of_scalar_types_are_numbers_of_numpy(mode, dtype):
    number, array = aesara.scalar.ScalarType(dtype)("number"), at.scalar("array", dtype=dtype)
    outputs = [number, aesara.scalar.identity(number), at.scalar_from_tensor(array)]
    results = aesara.function([number, array], outputs, mode=mode)(1, np.ones((), dtype))
    for result in results:
        assert (type(result), result) == (np.dtype(dtype).type, 1)
