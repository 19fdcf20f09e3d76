"""Starts one workload in a new process, and says what took how long.

Run by `benchmarks.cache`, as ``python -m benchmarks.cache_child CONTENDER WORKLOAD SIZE``;
prints one line of JSON.  Times are those of the processor, so that what else runs on the
machine makes little difference.
"""

from __future__ import annotations

import gc
import json
import sys
import warnings
from collections.abc import Callable
from time import process_time
from typing import Any


class Stopwatch:
    """Adds up the time that functions take."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def timing(self, function: Callable[..., Any], only_first: bool = False) -> Callable[..., Any]:
        """Make a function that does the same and is timed, each time or the first time."""
        calls = 0

        def timed(*args: Any, **kwargs: Any) -> Any:
            nonlocal calls
            calls += 1
            if only_first and calls > 1:
                return function(*args, **kwargs)
            start = process_time()
            try:
                return function(*args, **kwargs)
            finally:
                self.seconds += process_time() - start

        return timed


def start_mode(mode: str, workload: Any, size: str) -> dict[str, Any]:
    """Build and call a function in one of the modes."""
    from benchmarks.contenders import CONTENDERS
    from benchmarks.namespaces import load_namespace

    # Importing Aesara starts a C compiler, to look for a BLAS; and where a loop is put
    # together, Aesara may compile C to find out lengths, for whatever mode.
    CONTENDERS[mode].import_all()
    ns = load_namespace("aesara")
    graph = workload.build(ns)
    compiled, processes = _count_compilations(), _count_processes()
    keys, once, lookups = Stopwatch(), Stopwatch(), Stopwatch()
    _time_the_cache(keys, once, lookups)
    if mode == "NUMBA_FIXED":
        _time_the_numba_cache(keys, once)
    else:
        _time_the_jax_cache(keys, once)
    inputs = workload.inputs(size)
    # Else the search through all that was imported falls into what is timed, or not, by chance.
    gc.collect()
    start = process_time()
    function = ns.aesara.function(
        list(graph.inputs), list(graph.outputs), updates=dict(graph.updates), mode=mode
    )
    built = process_time()
    if graph.generator is not None:
        graph.generator.set_value(workload.generator())
    for variable, value in zip(graph.state, workload.state(size)):
        variable.set_value(value)
    function(*inputs)
    called = process_time()
    return {
        "function": built - start,
        "first_call": called - built,
        "compiled": len(compiled),
        "processes": len(processes),
        "key": keys.seconds - once.seconds,
        "once": once.seconds,
        "lookup": lookups.seconds,
        "rewritten": int(function.maker.rewritten.outcome.state != "loaded"),
    }


def _time_the_cache(keys: Stopwatch, once: Stopwatch, lookups: Stopwatch) -> None:
    from fixed_modes.cache import graphs
    from fixed_modes.cache.store import Store

    graphs.facts = once.timing(graphs.facts, only_first=True)  # type: ignore[assignment]
    graphs.registry_digest = once.timing(graphs.registry_digest, only_first=True)
    graphs.graph_key = keys.timing(graphs.graph_key)
    Store.get = lookups.timing(Store.get)  # type: ignore[method-assign]


def _time_the_numba_cache(keys: Stopwatch, once: Stopwatch) -> None:
    from fixed_modes.numba import cache

    cache.facts = once.timing(cache.facts, only_first=True)  # type: ignore[assignment]
    cache.add_extensions = once.timing(cache.add_extensions, only_first=True)
    cache.module_key = keys.timing(cache.module_key)


def _time_the_jax_cache(keys: Stopwatch, once: Stopwatch) -> None:
    from fixed_modes.jax import cache, untraced

    cache.facts = once.timing(cache.facts, only_first=True)  # type: ignore[assignment]
    cache.program_key = keys.timing(cache.program_key)
    untraced.trace_key = keys.timing(untraced.trace_key)


def start_kernel(workload: Any, size: str) -> dict[str, Any]:
    """Call the kernel written by hand, with Numba's own cache."""
    workload.kernel.enable_caching()
    inputs = workload.inputs(size)
    first = () if workload.seed is None else (workload.generator(),)
    state = workload.state(size)
    start = process_time()
    workload.kernel(*first, *inputs, *state)
    return {"function": 0.0, "first_call": process_time() - start}


def main() -> None:
    """Do what the arguments say."""
    mode, name, size = sys.argv[1:]
    warnings.simplefilter("ignore")
    from benchmarks.workloads import load

    workload = load(name)
    kernel = mode == "hand-numba"
    result = start_kernel(workload, size) if kernel else start_mode(mode, workload, size)
    print(json.dumps(result))


def _count_compilations() -> list[str]:
    """Note every function that Numba compiles from now on."""
    from numba.core import event

    found: list[str] = []

    class Listener(event.Listener):
        def on_start(self, event: Any) -> None:
            found.append(str(event.data["dispatcher"]))

        def on_end(self, event: Any) -> None:
            pass

    event.register("numba:compile", Listener())
    return found


def _count_processes() -> list[Any]:
    """Note every process that is started from now on, such as a C compiler."""
    found: list[Any] = []

    def note(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "subprocess.Popen":
            found.append(arguments[0])

    sys.addaudithook(note)
    return found


if __name__ == "__main__":
    main()
