"""Gradients of loops by arrays of which a step reads a few elements."""

from __future__ import annotations

from typing import Any, Callable, NamedTuple

import aesara
import aesara.tensor as at
import numpy as np
import pytest
from aesara.compile.mode import Mode
from aesara.graph.basic import Apply, Variable
from aesara.scan.op import Scan
from aesara.tensor.elemwise import Elemwise

MODES = ["NUMBA_FIXED", "JAX_FIXED"]
STEPS = 7


class Read(NamedTuple):
    """What a step reads of ``x``, and what that adds to the gradient, for ``y`` times it."""

    ndim: int
    value: Callable[[Any, Any], Any]
    add: Callable[[np.ndarray, np.ndarray, int, float], None]


def _add(index: Callable[[int], Any], factor: Callable[[Any], Any] = np.ones_like) -> Any:
    def add(gradient: np.ndarray, x: np.ndarray, i: int, y: float) -> None:
        np.add.at(gradient, index(i), y * factor(x[index(i)]))

    return add


def _add_product(gradient: np.ndarray, x: np.ndarray, i: int, y: float) -> None:
    gradient[i] += y * x[i // 2]
    gradient[i // 2] += y * x[i]


READS = {
    "element": Read(1, lambda x, i: x[i], _add(lambda i: i)),
    "counted from the end": Read(1, lambda x, i: x[-i - 1], _add(lambda i: -i - 1)),
    "product of two": Read(1, lambda x, i: x[i] * x[i // 2], _add_product),
    "part": Read(
        1, lambda x, i: (x[i : i + 3] ** 2).sum(), _add(lambda i: slice(i, i + 3), lambda v: 2 * v)
    ),
    "chosen elements": Read(
        1,
        lambda x, i: at.sin(x[at.stack([i, 0, i])]).sum(),
        _add(lambda i: np.array([i, 0, i]), np.cos),
    ),
    "row": Read(2, lambda x, i: x[i].sum(), _add(lambda i: i)),
    "column": Read(
        2, lambda x, i: (x[:, i] ** 2).sum(), _add(lambda i: np.s_[:, i], lambda v: 2 * v)
    ),
    "element of a matrix": Read(2, lambda x, i: x[i, 1], _add(lambda i: (i, 1))),
    "chosen rows": Read(
        2,
        lambda x, i: at.exp(x[at.stack([i, 2, i])]).sum(),
        _add(lambda i: np.array([i, 2, i]), np.exp),
    ),
    "chosen elements of a matrix": Read(
        2,
        lambda x, i: x[at.stack([i, 2, i]), at.stack([0, i, 0])].sum(),
        _add(lambda i: (np.array([i, 2, i]), np.array([0, i, 0]))),
    ),
}


def _function(read: Read, mode: str | Mode, dtype: str = "float64") -> Any:
    indices = at.lvector("indices")
    x = at.tensor(dtype, shape=(None,) * read.ndim, name="x")
    trace, _ = aesara.scan(
        lambda i, total, x: total / np.asarray(2, dtype) + read.value(x, i),
        sequences=[indices],
        outputs_info=[np.zeros((), dtype)],
        non_sequences=[x],
    )
    return aesara.function([indices, x], at.grad(trace.sum(), x), mode=mode)


def _expected(read: Read, indices: np.ndarray, x: np.ndarray) -> np.ndarray:
    gradient, weight = np.zeros_like(x), 0.0
    for i in indices[::-1]:
        weight = weight / 2 + 1
        read.add(gradient, x, int(i), weight)
    return gradient


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", READS)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_values(name: str, mode: str, dtype: str) -> None:
    read = READS[name]
    f = _function(read, mode, dtype)
    rng = np.random.default_rng(1)
    x = rng.normal(size=(9,) * read.ndim).astype(dtype)
    tolerance = 1e-12 if dtype == "float64" else 1e-5
    for indices in (rng.integers(0, 6, STEPS), np.array([2, 2, 2]), np.array([4])):
        kept = x.copy()
        for _ in range(2):
            found = f(indices, x)
            assert found.dtype == dtype
            np.testing.assert_allclose(found, _expected(read, indices, x), rtol=tolerance)
        np.testing.assert_array_equal(x, kept)
    np.testing.assert_array_equal(f(np.array([], "int64"), x), np.zeros_like(x))


@pytest.mark.parametrize("name", READS)
def test_a_step_does_not_go_over_the_array(name: str) -> None:
    read = READS[name]
    f = _function(read, "NUMBA_FIXED")
    scan = [node for node in f.maker.fgraph.toposort() if isinstance(node.op, Scan)][-1]
    (state,) = (v for v in scan.op.inner_sitsot(scan.op.inner_inputs) if v.type.ndim == read.ndim)
    assert not [node for node in _on_the_way(scan.op.fgraph.outputs, state) if _is_whole(node)]
    # One row: a step changes the state where it is.
    buffers = [v for v in scan.op.outer_sitsot(scan.inputs) if v.type.ndim == read.ndim + 1]
    assert [buffer.owner.inputs[1].data for buffer in buffers] == [1]


def _on_the_way(outputs: list[Variable], state: Variable) -> list[Apply]:
    """List the nodes from a state to what a step makes of it."""
    made = [v for v in outputs if v.owner is not None and v.type.ndim == state.type.ndim]
    nodes = []
    for variable in made:
        while variable is not state:
            assert variable.owner is not None
            nodes.append(variable.owner)
            variable = variable.owner.inputs[0]
    assert nodes
    return nodes


def _is_whole(node: Apply) -> bool:
    return isinstance(node.op, Elemwise) or not node.op.inplace


@pytest.mark.parametrize("mode", MODES)
def test_two_arrays_and_a_gradient_of_both(mode: str) -> None:
    indices, x, y = at.lvector("indices"), at.dvector("x"), at.dmatrix("y")
    trace, _ = aesara.scan(
        lambda i, total, x, y: total / 2 + x[i] * y[i, 0],
        sequences=[indices],
        outputs_info=[np.float64(0)],
        non_sequences=[x, y],
    )
    f = aesara.function([indices, x, y], at.grad(trace[-1], [x, y]), mode=mode)
    rng = np.random.default_rng(2)
    xs, ys, chosen = rng.normal(size=5), rng.normal(size=(5, 2)), np.array([3, 0, 3, 4])
    of_x, of_y, weight = np.zeros(5), np.zeros((5, 2)), 1.0
    for i in chosen[::-1]:
        of_x[i] += weight * ys[i, 0]
        of_y[i, 0] += weight * xs[i]
        weight /= 2
    for found, expected in zip(f(chosen, xs, ys), (of_x, of_y)):
        np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("mode", MODES)
def test_an_addition_of_zeros_of_another_length_still_fails(mode: str) -> None:
    indices, start, n = at.lvector("indices"), at.dvector("start"), at.lscalar("n")
    zeros = at.zeros(n)
    trace, _ = aesara.scan(
        lambda i, s, z: s + at.inc_subtensor(z[i], 2.0),
        sequences=[indices],
        outputs_info=[start],
        non_sequences=[zeros],
    )
    f = aesara.function([indices, start, n], trace[-1], mode=mode)
    np.testing.assert_array_equal(f(np.array([1, 1, 0]), np.ones(3), 3), [3.0, 5.0, 1.0])
    with pytest.raises(ValueError, match="dimension"):
        f(np.array([1, 1, 0]), np.ones(3), 4)


@pytest.mark.parametrize("mode", MODES)
def test_zeros_that_are_set_and_incremented(mode: str) -> None:
    """Only the first change of zeros is the same whether it sets or increments."""
    indices, start = at.lvector("indices"), at.dvector("start")

    def step(i: Any, s: Any, z: Any) -> Any:
        set_once = at.set_subtensor(z[i], 2.0)
        twice = at.set_subtensor(at.inc_subtensor(z[i], 5.0)[i], 3.0)
        repeated = at.set_subtensor(z[at.stack([i, i])], at.stack([7.0, 11.0]))
        return s + set_once + twice + repeated + at.inc_subtensor(set_once[i], 13.0)

    trace, _ = aesara.scan(
        step,
        sequences=[indices],
        outputs_info=[at.zeros_like(start)],
        non_sequences=[at.zeros_like(start)],
    )
    f = aesara.function([indices, start], trace[-1], mode=mode)
    expected = np.zeros(4)
    for i in (3, 0, 3):
        expected[i] += 2 + 3 + 11 + 2 + 13
    np.testing.assert_array_equal(f(np.array([3, 0, 3]), np.ones(4)), expected)
