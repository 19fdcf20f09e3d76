"""The contenders: how each makes a function from a workload."""

from __future__ import annotations

import importlib
import importlib.metadata
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any, Callable

from benchmarks.workload import Workload

Call = Callable[..., Any]


@dataclass(frozen=True)
class Prepared:
    """A function that is ready for its first call.

    Attributes
    ----------
    call
        Takes the inputs of the workload and gives its outputs.
    graph
        The seconds that it took to write the graph down, loops included.
    function
        Those of ``aesara.function``; none for code written by hand.
    """

    call: Call
    graph: float = 0.0
    function: float = 0.0


@dataclass(frozen=True)
class Contender:
    """A way to run a workload.

    Attributes
    ----------
    imports
        Modules that are imported before the clock starts.
    make
        Makes the function of a workload of one size.
    distributions
        Whose versions are recorded.
    environment
        A key of `benchmarks.environments.ENVIRONMENTS`, or nothing for this one.
    cache
        Makes the environment variables that give it a compile cache of its own in a
        directory; None if it has no cache.
    """

    imports: tuple[str, ...]
    make: Callable[[Workload, str], Prepared]
    distributions: tuple[str, ...]
    environment: str = ""
    cache: Callable[[Path], Mapping[str, str]] | None = None

    def import_all(self) -> None:
        """Import what the contender needs, so that no import is timed."""
        for name in self.imports:
            importlib.import_module(name)

    def versions(self) -> dict[str, str]:
        """Give the versions of Python and of the libraries that do the work."""
        found = {name: importlib.metadata.version(name) for name in self.distributions}
        return {"python": platform.python_version(), **found}


def _make_numba_kernel(workload: Workload, size: str) -> Prepared:
    import numba

    if numba.config.CACHE_DIR:
        # As the decorator's `cache=True` does; without the directory it would write into
        # the sources' own.
        workload.kernel.enable_caching()
    first = () if workload.seed is None else (workload.generator(),)
    state = workload.state(size)
    return Prepared(_repeated(lambda *inputs: workload.kernel(*first, *inputs, *state), workload))


def _make_jax_kernel(workload: Workload, size: str) -> Prepared:
    if workload.make_jax_kernel is None:
        raise NotImplementedError(f"{workload.name} has no function written by hand in JAX")
    import jax
    import numpy as np

    kernel = workload.make_jax_kernel()
    # A key is a value: without a new one every call would draw the same numbers.  That
    # makes no difference to the time.
    first = () if workload.seed is None else (jax.random.PRNGKey(workload.seed),)
    state = workload.state(size)

    def call(*inputs: Any) -> Any:
        nonlocal state
        outputs = kernel(*first, *inputs, *state)
        if state:
            outputs, state = outputs
        return jax.tree_util.tree_map(np.asarray, outputs)

    return Prepared(_repeated(call, workload))


def _function_maker(library: str, mode: str) -> Callable[[Workload, str], Prepared]:
    def make(workload: Workload, size: str) -> Prepared:
        from benchmarks.namespaces import load_namespace

        ns = load_namespace(library)
        start = perf_counter()
        graph = workload.build(ns)
        written = perf_counter()
        function = ns.aesara.function(
            list(graph.inputs), list(graph.outputs), updates=dict(graph.updates), mode=mode
        )
        built = perf_counter()
        if graph.generator is not None:
            graph.generator.set_value(workload.generator())
        for variable, value in zip(graph.state, workload.state(size)):
            variable.set_value(value)
        return Prepared(_repeated(function, workload), written - start, built - written)

    return make


def _repeated(call: Call, workload: Workload) -> Call:
    if workload.repeat == 1:
        return call

    def run(*inputs: Any) -> Any:
        for _ in range(workload.repeat - 1):
            call(*inputs)
        return call(*inputs)

    return run


def _mode(
    mode: str, library: str, imports: Sequence[str], *distributions: str, **facts: Any
) -> Contender:
    return Contender(
        imports=(f"{library}.tensor", *imports),
        make=_function_maker(library, mode),
        distributions=(library, "numpy", *distributions),
        **facts,
    )


def _our_cache(place: Path) -> dict[str, str]:
    return {"AESARA_FLAGS": f"fixed_modes__cache=True,fixed_modes__cache_dir={place}"}


def _numba_cache(place: Path) -> dict[str, str]:
    return {"NUMBA_CACHE_DIR": str(place)}


def _pytensor_cache(place: Path) -> dict[str, str]:
    return {"PYTENSOR_FLAGS": f"base_compiledir={place}"}


def _jax_cache(place: Path) -> dict[str, str]:
    return {
        "JAX_COMPILATION_CACHE_DIR": str(place),
        # Otherwise only what takes a second to compile is stored.
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }


_NUMBA = ("numba", "llvmlite")
_JAX = ("jax", "jaxlib")

CONTENDERS: Mapping[str, Contender] = {
    "NUMBA_FIXED": _mode(
        # The last one completes what Aesara's own conversions need to be imported.
        "NUMBA_FIXED",
        "aesara",
        ("fixed_modes.modes", "numba", "benchmarks.preload.numba_fixed"),
        *_NUMBA,
        cache=_our_cache,
    ),
    "JAX_FIXED": _mode(
        "JAX_FIXED",
        "aesara",
        ("fixed_modes.modes", "benchmarks.preload.jax_fixed"),
        *_JAX,
        cache=_our_cache,
    ),
    "hand-numba": Contender(("numba",), _make_numba_kernel, ("numpy", *_NUMBA), "", _numba_cache),
    "hand-jax": Contender(
        ("benchmarks.jax_jit",), _make_jax_kernel, ("numpy", *_JAX), "", _jax_cache
    ),
    # Its cache is of C code, an object file for each operation: what one workload compiled
    # serves the next, so that there is no cold start to measure.
    "FAST_RUN": _mode("FAST_RUN", "aesara", (), environment="stock"),
    "NUMBA": _mode(
        "NUMBA", "aesara", ("numba", "aesara.link.numba.dispatch"), *_NUMBA, environment="stock"
    ),
    "JAX": _mode("JAX", "aesara", ("aesara.link.jax.dispatch",), *_JAX, environment="stock"),
    "pytensor-numba": _mode(
        "NUMBA",
        "pytensor",
        ("pytensor.link.numba.dispatch",),
        *_NUMBA,
        environment="pytensor",
        cache=_pytensor_cache,
    ),
    "pytensor-jax": _mode(
        "JAX", "pytensor", ("pytensor.link.jax.dispatch",), *_JAX, environment="pytensor"
    ),
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
