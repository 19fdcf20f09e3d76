"""The contenders: how each makes a function from a workload."""

from __future__ import annotations

import importlib
import importlib.metadata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Callable

from benchmarks.workload import Workload

Prepared = Callable[[], Any]


@dataclass(frozen=True)
class Contender:
    """A way to run a workload.

    Attributes
    ----------
    imports
        Modules that are imported before the clock starts.
    make
        Makes the function and binds the inputs; its time is the build time.
    distributions
        Whose versions are recorded.
    """

    imports: tuple[str, ...]
    make: Callable[[Workload, tuple[Any, ...]], Prepared]
    distributions: tuple[str, ...]

    def import_all(self) -> None:
        """Import what the contender needs, so that no import is timed."""
        for name in self.imports:
            importlib.import_module(name)

    def versions(self) -> dict[str, str]:
        """Give the versions of the libraries that do the work."""
        return {name: importlib.metadata.version(name) for name in self.distributions}


def _make_numba_kernel(workload: Workload, inputs: tuple[Any, ...]) -> Prepared:
    first = () if workload.seed is None else (workload.generator(),)
    return lambda: workload.kernel(*first, *inputs)


def _make_jax_kernel(workload: Workload, inputs: tuple[Any, ...]) -> Prepared:
    if workload.make_jax_kernel is None:
        raise NotImplementedError(f"{workload.name} has no function written by hand in JAX")
    import jax
    import numpy as np

    kernel = workload.make_jax_kernel()
    # A key is a value: without a new one every call would draw the same numbers.  That
    # makes no difference to the time.
    first = () if workload.seed is None else (jax.random.PRNGKey(workload.seed),)
    return lambda: jax.tree_util.tree_map(np.asarray, kernel(*first, *inputs))


def _function_maker(library: str, mode: str) -> Callable[[Workload, tuple[Any, ...]], Prepared]:
    def make(workload: Workload, inputs: tuple[Any, ...]) -> Prepared:
        from benchmarks.namespaces import load_namespace

        ns = load_namespace(library)
        graph = workload.build(ns)
        function = ns.aesara.function(
            list(graph.inputs), list(graph.outputs), updates=dict(graph.updates), mode=mode
        )
        if graph.generator is not None:
            graph.generator.set_value(workload.generator())
        return lambda: function(*inputs)

    return make


def _mode(mode: str, library: str, imports: tuple[str, ...], *distributions: str) -> Contender:
    return Contender(
        imports=(f"{library}.tensor", *imports),
        make=_function_maker(library, mode),
        distributions=(library, "numpy", *distributions),
    )


_NUMBA = ("numba", "llvmlite")
_JAX = ("jax", "jaxlib")

CONTENDERS: Mapping[str, Contender] = {
    "NUMBA_FIXED": _mode(
        # The last one completes what Aesara's own conversions need to be imported.
        "NUMBA_FIXED",
        "aesara",
        ("fixed_modes.modes", "numba", "benchmarks.preload.numba_fixed"),
        *_NUMBA,
    ),
    "JAX_FIXED": _mode(
        "JAX_FIXED", "aesara", ("fixed_modes.modes", "benchmarks.preload.jax_fixed"), *_JAX
    ),
    "hand-numba": Contender(("numba",), _make_numba_kernel, ("numpy", *_NUMBA)),
    "hand-jax": Contender(("benchmarks.jax_jit",), _make_jax_kernel, ("numpy", *_JAX)),
    "FAST_RUN": _mode("FAST_RUN", "aesara", ()),
    "NUMBA": _mode("NUMBA", "aesara", ("numba", "aesara.link.numba.dispatch"), *_NUMBA),
    "JAX": _mode("JAX", "aesara", ("aesara.link.jax.dispatch",), *_JAX),
    "pytensor-numba": _mode("NUMBA", "pytensor", ("pytensor.link.numba.dispatch",), *_NUMBA),
    "pytensor-jax": _mode("JAX", "pytensor", ("pytensor.link.jax.dispatch",), *_JAX),
}

# What the hand-written code of a contender is.
YARDSTICKS: Mapping[str, str] = {
    "JAX_FIXED": "hand-jax",
    "JAX": "hand-jax",
    "pytensor-jax": "hand-jax",
}


def yardstick_of(contender: str) -> str:
    """Name the hand-written code that a contender is set beside."""
    return YARDSTICKS.get(contender, "hand-numba")
