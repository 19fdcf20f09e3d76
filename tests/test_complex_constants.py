"""Complex constants, which rewrites of Aesara take for real ones: ``x - 1j`` is ``x - 1`` there."""

from __future__ import annotations

from typing import Any, Callable

import aesara
import aesara.tensor as at
import numpy as np
import pytest

MODES = ["NUMBA_FIXED", "JAX_FIXED"]
X = np.array([1 + 2j, -0.5 + 0.25j, 2 - 1j])
CONSTANTS = [1j, -1j, -0.5j, -2 + 1j, 2 + 0j, -2 + 0j, 0.5 + 0j, -1 + 0j, -1e-3 - 1j]

OPERATIONS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "sum": lambda lib, x, c: x + c,
    "sum the other way round": lambda lib, x, c: c + x,
    "difference": lambda lib, x, c: x - c,
    "difference the other way round": lambda lib, x, c: c - x,
    "product": lambda lib, x, c: x * c * c - c - c,
    "quotient": lambda lib, x, c: c / x + x / c,
    "power": lambda lib, x, c: x**c,
    "exponential": lambda lib, x, c: lib.exp(x + c),
    "distance": lambda lib, x, c: abs(x - c),
    "imaginary part": lambda lib, x, c: lib.imag(x * c + c),
    "negative": lambda lib, x, c: -(x * c) - c,
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", OPERATIONS)
def test_like_numpy(name: str, mode: str) -> None:
    operation, x = OPERATIONS[name], at.zvector("x")
    outputs = [operation(at, x, at.constant(np.array(c))) for c in CONSTANTS]
    found = aesara.function([x], outputs, mode=mode)(X)
    for value, c in zip(found, CONSTANTS):
        np.testing.assert_allclose(value, operation(np, X, c), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("mode", MODES)
def test_in_a_loop(mode: str) -> None:
    x = at.zvector("x")
    states, _ = aesara.scan(lambda s: (s - 1j) ** (1 + 0.5j), outputs_info=[x], n_steps=3)
    state, expected = X, []
    for _ in range(3):
        state = (state - 1j) ** (1 + 0.5j)
        expected.append(state)
    found = aesara.function([x], states, mode=mode)(X)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_other_modes_are_left_as_they_are() -> None:
    """What is put in the place of Aesara's rewrites is asked for by these modes alone."""
    x = at.zvector("x")
    f = aesara.function([x], x + at.constant(-1j), mode=aesara.compile.mode.Mode("py", "fast_run"))
    (node,) = f.maker.fgraph.apply_nodes
    # Aesara's own rewrite, with its mistake.
    assert str(node.op).startswith("Elemwise{sub")
