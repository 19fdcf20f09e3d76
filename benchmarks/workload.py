"""What a workload is: one computation, as a graph and as code written by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Callable

import numpy as np

from benchmarks.namespaces import Namespace

SIZES = ("tiny", "default", "large")


@dataclass(frozen=True)
class Graph:
    """A computation as a symbolic graph.

    Attributes
    ----------
    inputs, outputs
        The variables of the function.
    updates
        Of shared variables, as for ``aesara.function``.
    generator
        The shared random generator, where the graph draws.
    state
        The shared variables that take the values of `Workload.make_state`.
    """

    inputs: Sequence[Any]
    outputs: Sequence[Any]
    updates: Mapping[Any, Any] = field(default_factory=dict)
    generator: Any = None
    state: Sequence[Any] = ()


@dataclass(frozen=True)
class Workload:
    """One computation, written once for each contender.

    Attributes
    ----------
    name, title
        A short name for the command line; one line that says what is computed.
    build
        Makes the graph in a namespace.
    kernel
        The same, by hand in Numba; takes the inputs in the graph's order, and
        before them a NumPy generator where the workload has a seed, and after them
        the arrays of the state, which it changes.
    make_inputs
        Makes the inputs from the entries of one size.
    sizes
        Keyword arguments of `make_inputs`, for each of `SIZES`.
    make_jax_kernel
        Makes the same by hand in JAX; imports JAX, which is why it isn't the
        function itself.  With a seed, a key takes the generator's place; with a
        state, the function gives its result and the state afterwards.
    seed
        Of the generator, where the workload draws.
    make_state
        Makes the values of the shared variables that the function updates, from the
        same entries as `make_inputs`.
    repeat
        How many calls of the function are one run of the workload.
    scaling
        Values of ``steps`` at which the same function is measured too.
    tolerance
        How far the outputs of two contenders may lie apart, relative to the
        largest number in them.
    tolerance_of_moments
        How far means and standard deviations may lie apart where one contender draws
        other numbers than the other.
    """

    name: str
    title: str
    build: Callable[[Namespace], Graph]
    kernel: Callable[..., Any]
    make_inputs: Callable[..., tuple[Any, ...]]
    sizes: Mapping[str, Mapping[str, int]]
    make_jax_kernel: Callable[[], Callable[..., Any]] | None = None
    seed: int | None = None
    make_state: Callable[..., tuple[np.ndarray, ...]] | None = None
    repeat: int = 1
    scaling: Sequence[int] = ()
    tolerance: float = 1e-9
    tolerance_of_moments: float = 0.2

    def inputs(self, size: str) -> tuple[Any, ...]:
        """Make the inputs of one size; the same in every process."""
        return self.make_inputs(**self.sizes[size])

    def state(self, size: str) -> tuple[np.ndarray, ...]:
        """Make the state of one size; nothing where the workload has none."""
        return () if self.make_state is None else self.make_state(**self.sizes[size])

    def generator(self) -> np.random.Generator:
        """Make the generator that a draw starts from."""
        return np.random.default_rng(self.seed)
