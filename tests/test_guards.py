"""Graphs for which Aesara's rewrites give wrong numbers, in FAST_RUN too."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Callable

import aesara
import aesara.scalar as aes
import aesara.tensor as at
import numpy as np
import pytest
from aesara.compile.builders import OpFromGraph
from aesara.tensor.basic import scalar_from_tensor

import fixed_modes  # noqa: F401

MODES = ["NUMBA_FIXED", "JAX_FIXED"]
X = np.arange(18.0).reshape(3, 6) ** 1.5


@pytest.fixture(params=MODES)
def mode(request: pytest.FixtureRequest) -> Iterator[str]:
    # What an earlier run has stored would hide a rewrite that is wrong now.
    with aesara.config.change_flags(fixed_modes__cache=False):
        yield request.param


@pytest.mark.parametrize("constant", range(6))
def test_an_index_that_is_an_input_is_no_constant(constant: int, mode: str) -> None:
    """Inner inputs have numbers; the constant may be equal to any of them."""
    x, k = at.dmatrix("x"), at.lscalar("k")
    rows, _ = aesara.scan(
        lambda r, s, k: r[k] + 10 * r[constant] + 0 * s,
        sequences=[x],
        outputs_info=[at.constant(0.0, dtype="float64")],
        non_sequences=[k],
    )
    f = aesara.function([x, k], rows, mode=mode)
    for place in (0, 3, 5):
        np.testing.assert_allclose(f(X, place), X[:, place] + 10 * X[:, constant], rtol=1e-12)


@pytest.mark.parametrize("constant", range(1, 5))
def test_a_bound_that_is_an_input_is_no_constant_step(constant: int, mode: str) -> None:
    x, k = at.dmatrix("x"), at.lscalar("k")
    rows, _ = aesara.scan(
        lambda r, s, k: r[k:][:1].sum() + at.cumsum(r[::constant]).sum() + 0 * s,
        sequences=[x],
        outputs_info=[at.constant(0.0, dtype="float64")],
        non_sequences=[k % 3],
    )
    f = aesara.function([x, k], rows, mode=mode)
    for place in (1, 3):
        expected = [r[place % 3] + np.cumsum(r[::constant]).sum() for r in X]
        np.testing.assert_allclose(f(X, place), expected, rtol=1e-12)


@pytest.mark.parametrize("inline", [False, True])
@pytest.mark.parametrize("constant", range(3))
def test_neither_is_an_input_of_a_graph_that_is_an_op(
    constant: int, inline: bool, mode: str
) -> None:
    x, k = at.dvector("x"), aes.int64("k")
    both = OpFromGraph([x, k], [x[k] + 10 * x[constant]], inline=inline)
    place = at.lscalar("place")
    f = aesara.function([x, place], both(x, scalar_from_tensor(place)), mode=mode)
    np.testing.assert_allclose(f(X[1], 4), X[1, 4] + 10 * X[1, constant], rtol=1e-12)


OPS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "add": (at.add, np.add),
    "sub": (at.sub, np.subtract),
    "mul": (at.mul, np.multiply),
    "div": (at.true_divide, np.divide),
    "int_div": (at.floor_divide, np.floor_divide),
    "maximum": (at.maximum, np.maximum),
    "and": (
        lambda a, b: at.and_(at.gt(a, 0), at.gt(b, 0)),
        lambda a, b: np.logical_and(np.greater(a, 0), np.greater(b, 0)),
    ),
    "or": (
        lambda a, b: at.or_(at.gt(a, 0), at.gt(b, 0)),
        lambda a, b: np.logical_or(np.greater(a, 0), np.greater(b, 0)),
    ),
    "switch": (
        lambda a, b: -at.switch(at.gt(a, 0), a, b) * a,
        lambda a, b: -np.where(np.greater(a, 0), a, b) * a,
    ),
    "power": (at.power, np.power),
    "second": (at.second, lambda a, b: b + 0 * a),
}


@pytest.mark.parametrize("shape", [(), (1,)], ids=["scalar", "one entry"])
@pytest.mark.parametrize("name", OPS)
def test_constants_of_one_value_keep_their_shape(
    name: str, shape: tuple[int, ...], mode: str
) -> None:
    """The length of a constant that is computed is not in the type of what depends on it."""
    symbolic, exact = OPS[name]
    x = at.TensorType("float64", shape)("x")
    value = np.full(shape, 3.0)
    outputs, expected = [], []
    for number in (1.0, -1.0, 2.0, -0.5):
        constant = at.concatenate([at.constant(np.full(1, number)), at.alloc(number, 3)])
        same = np.full(4, number)
        outputs += [symbolic(x, constant), symbolic(constant, x), symbolic(x, constant).sum()]
        expected += [exact(value, same), exact(same, value), np.sum(exact(value, same))]
    f = aesara.function([x], outputs, mode=mode)
    for found, wanted in zip(f(value), expected):
        assert found.shape == wanted.shape
        np.testing.assert_allclose(found, wanted, rtol=1e-12)


def test_the_same_in_a_loop(mode: str) -> None:
    c = at.dscalar("c")

    def step(t: Any, c: Any) -> Any:
        same = at.concatenate([at.constant(np.array([-0.5])), at.alloc(-0.5, 8)])
        return same + c * t

    rows, _ = aesara.scan(step, sequences=[at.arange(3)], non_sequences=[c])
    f = aesara.function([c], rows, mode=mode)
    np.testing.assert_allclose(f(2.0), np.full((3, 9), -0.5) + 2.0 * np.arange(3)[:, None])


def test_a_compiled_function_can_be_pickled_with_its_guards(mode: str) -> None:
    import pickle

    x = at.dvector("x")
    f = aesara.function([x], x + np.full(3, -1.0), mode=mode)
    g = pickle.loads(pickle.dumps(f))
    np.testing.assert_array_equal(g([1.0, 2.0, 3.0]), [0.0, 1.0, 2.0])
