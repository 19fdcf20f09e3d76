"""`Join`: several arrays in one, alone and in loops."""

from __future__ import annotations

from typing import Any

import aesara
import aesara.tensor as at
import numpy as np
import pytest
from aesara.tensor.basic import Join


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -3])
@pytest.mark.parametrize("dtypes", [("float64",) * 3, ("int8", "float32", "bool")])
def test_values(axis: int, dtypes: tuple[str, ...]) -> None:
    rng = np.random.default_rng(1)
    inputs, values = [], []
    for n, dtype in enumerate(dtypes):
        shape = [3, 4, 2]
        shape[axis] = (2, 0, 5)[n]
        inputs.append(at.TensorType(dtype, (None,) * 3)(f"x{n}"))
        values.append((rng.normal(size=shape) * 5).astype(dtype))
    f = aesara.function(inputs, at.join(axis, *inputs), mode="NUMBA_FIXED")
    result, expected = f(*values), np.concatenate(values, axis=axis)
    assert result.dtype == aesara.scalar.upcast(*dtypes)
    np.testing.assert_array_equal(result, expected)
    assert not any(np.shares_memory(result, value) for value in values)


def test_other_lengths_must_agree() -> None:
    x, y, z = at.dmatrices("x", "y", "z")
    f = aesara.function([x, y, z], at.concatenate([x, y, z], axis=1), mode="NUMBA_FIXED")
    assert f(np.ones((2, 1)), np.ones((2, 3)), np.ones((2, 0))).shape == (2, 4)
    with pytest.raises(ValueError, match="part 2 has length 3"):
        f(np.ones((2, 1)), np.ones((2, 1)), np.ones((3, 1)))
    with pytest.raises(ValueError, match="part 1 has length 1"):
        f(np.ones((2, 1)), np.ones((1, 1)), np.ones((2, 1)))


@pytest.mark.parametrize("keep", ["last", "all"])
def test_a_state_that_moves_along(keep: str) -> None:
    start, rows = at.dvector("start"), at.dmatrix("rows")

    def step(row: Any, state: Any) -> Any:
        return at.concatenate([state[1:], [row.sum()], row[:0]])

    states, _ = aesara.scan(step, sequences=[rows], outputs_info=[start])
    f = aesara.function([start, rows], states[-1] if keep == "last" else states, mode="NUMBA_FIXED")
    first, values = np.arange(4.0), np.random.default_rng(2).normal(size=(6, 3))
    expected = []
    for row in values:
        expected.append(np.concatenate([(expected or [first])[-1][1:], [row.sum()]]))
    result = f(first, values)
    np.testing.assert_allclose(result, expected[-1] if keep == "last" else expected, rtol=1e-12)
    np.testing.assert_array_equal(first, np.arange(4.0))


def test_lengths_that_the_loop_changes() -> None:
    x = at.dvector("x")
    sizes, _ = aesara.scan(
        lambda n, x: at.concatenate([x[:n], x[n:], x[:n]]).sum() + n,
        sequences=[at.arange(4)],
        non_sequences=[x],
    )
    f = aesara.function([x], sizes, mode="NUMBA_FIXED")
    value = np.array([1.0, 10.0, 100.0])
    np.testing.assert_allclose(f(value), [value.sum() + value[:n].sum() + n for n in range(4)])


def test_an_op_that_may_give_a_view_gives_an_array_of_its_own() -> None:
    x = at.dvector("x")
    joined = Join(view=0)(0, x, x[:0])
    f = aesara.function([x], [joined, joined * 2.0], mode="NUMBA_FIXED")
    value = np.array([2.0, 1.0, 0.0])
    result, doubled = f(value)
    np.testing.assert_array_equal(result, value)
    np.testing.assert_array_equal(doubled, 2 * value)
    assert not np.shares_memory(result, value)
