"""Loops with a condition: what is kept, where it ends, and what need not be known."""

from __future__ import annotations

from typing import Any

import aesara
import aesara.tensor as at
import jax
import numpy as np
import pytest
from aesara.scan.utils import until
from jax.experimental import enable_x64

MODE = "JAX_FIXED"


def halving(ends: Any, n_steps: Any, **arguments: Any) -> Any:
    x0 = at.dscalar("x0")
    trace, _ = aesara.scan(
        lambda x: (0.5 * x, until(ends(0.5 * x))),
        outputs_info=[x0],
        n_steps=n_steps,
        **arguments,
    )
    return x0, trace


def compiled_text(function: Any, *args: Any) -> str:
    """Give XLA's program for a function that needs no values to be known."""
    variant = function.vm.jit_fn.variants
    with enable_x64():
        lowered = jax.jit(variant._trace_outputs).lower([np.asarray(a) for a in args])
        return str(lowered.compile().as_text())


def test_last_value_needs_no_room_for_the_trace():
    x0, trace = halving(lambda x: x < 1.0, 4321)
    last = aesara.function([x0], trace[-1], mode=MODE)
    assert last(100.0) == 100.0 / 2**7
    assert "4321]" not in compiled_text(last, 100.0)
    assert "4322]" not in compiled_text(last, 100.0)
    full = aesara.function([x0], trace, mode=MODE)
    np.testing.assert_array_equal(full(100.0), 100.0 / 2.0 ** np.arange(1, 8))
    assert "4321]" in compiled_text(full, 100.0)


@pytest.mark.parametrize("bound", [1, 3, 50])
def test_rows_counted_from_both_ends(bound):
    x0, trace = halving(lambda x: x < 10.0, bound)
    f = aesara.function([x0], [trace[-1], trace[0], trace[-1] + trace.shape[0]], mode=MODE)
    done = min(bound, 4)
    expected = 100.0 / 2**done
    np.testing.assert_array_equal(f(100.0), [expected, 50.0, expected + done])


def test_row_before_the_first_raises():
    x0, trace = halving(lambda x: x < 10.0, 50)
    f = aesara.function([x0], [trace[-2], trace[3]], mode=MODE)
    np.testing.assert_array_equal(f(100.0), [12.5, 6.25])
    with pytest.raises(IndexError, match="until loop"):
        f(10.0)  # one step


def test_condition_on_what_a_step_does_not_keep():
    """The condition reads a sequence, or the row before the new one."""
    xs = at.dvector("xs")

    def step(x: Any, before: Any) -> Any:
        total = before + x
        return total, until(at.or_(x < 0, before > 100))

    trace, _ = aesara.scan(step, sequences=[xs], outputs_info=[at.constant(0.0, dtype="float64")])
    f = aesara.function([xs], [trace, trace[-1]], mode=MODE)
    for values in ([1.0, 2.0, -1.0, 5.0], [1.0, 200.0, 1.0, 1.0], [3.0, 4.0]):
        total, expected = 0.0, []
        for x in values:
            before, total = total, total + x
            expected.append(total)
            if x < 0 or before > 100:
                break
        rows, last = f(values)
        np.testing.assert_array_equal(rows, expected)
        assert last == expected[-1]


def test_condition_on_a_vector_and_a_non_sequence():
    x0, limit = at.dvector("x0"), at.dscalar("limit")

    def step(x: Any, limit: Any) -> Any:
        return 0.5 * x, until((0.5 * x).sum() < limit)

    trace, _ = aesara.scan(step, outputs_info=[x0], non_sequences=[limit], n_steps=30)
    f = aesara.function([x0, limit], [trace, trace[-1]], mode=MODE)
    rows, last = f([4.0, 8.0], 2.0)
    np.testing.assert_array_equal(rows, [[2.0, 4.0], [1.0, 2.0], [0.5, 1.0]])
    np.testing.assert_array_equal(last, [0.5, 1.0])


def test_condition_that_holds_at_the_start_ends_the_loop_after_one_step():
    x0, trace = halving(lambda x: x < 10.0, 50)
    f = aesara.function([x0], trace, mode=MODE)
    np.testing.assert_array_equal(f(1.0), [0.5])


def test_map_with_a_condition_has_a_last_row():
    xs = at.dvector("xs")
    rows, _ = aesara.scan(lambda x: (x**2, until(x > 2)), sequences=[xs])
    f = aesara.function([xs], [rows[-1], rows[1:]], mode=MODE)
    last, others = f([1.0, 2.0, 3.0, 4.0])
    assert last == 9.0
    np.testing.assert_array_equal(others, [4.0, 9.0])
