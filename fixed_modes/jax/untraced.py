"""Finds compiled code without tracing: by the graph, and all else that tracing depends on.

To trace a graph and to lower it takes longer than to load what XLA made of it.  What is
known of a graph that was rewritten (see `fixed_modes.cache.graphs`) is all that tracing
reads of it, so that the outcome can be kept: which inputs must be known, or the key of
the program and the structure of what it gives.

The errors of run-time checks are not kept: when a check fails, the graph is traced.  What
was warned of while tracing is not kept at all, so that it is warned of in every process.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Callable

import jax
import numpy as np
from aesara.configdefaults import config
from aesara.graph.basic import Variable

from fixed_modes.cache.graphs import flags
from fixed_modes.cache.key import Key, Undescribable
from fixed_modes.cache.outcome import Outcome
from fixed_modes.cache.warned import WarningWatch
from fixed_modes.jax import cache
from fixed_modes.jax.cache import Compiled, StoredJit
from fixed_modes.jax.flags import Errors, PackedFlags
from fixed_modes.jax.foreign import check_conversions
from fixed_modes.jax.frame import NeedsConcrete
from fixed_modes.jax.graph_names import GraphNames
from fixed_modes.jax.padded import PaddedTrace
from fixed_modes.jax.rng import RandomKey
from fixed_modes.jax.settings import Settings

_log = logging.getLogger("fixed_modes.cache")

#: What the names of these entries begin with.
_PREFIX = "trace-"


@dataclass(frozen=True)
class Origin:
    """What a function is traced from.

    Attributes
    ----------
    names
        The names for parts of its graph.
    inputs, outputs
        Variables of that graph: the part that is traced.
    known
        Values of inputs.
    settings
        The flags that the function was built with.
    """

    names: GraphNames
    inputs: Sequence[Variable]
    outputs: Sequence[Variable]
    known: Mapping[Variable, Any]
    settings: Settings

    def add_to(self, key: Key) -> None:
        """Describe it."""
        key.write("part", self.names.part(self.inputs, self.outputs))
        for position, variable in enumerate(self.inputs):
            if variable in self.known:
                key.write("known", str(position))
                key.add(np.asarray(self.known[variable]))
        for field in fields(self.settings):
            value = getattr(self.settings, field.name)
            key.write("setting", field.name)
            key.add(dict(sorted(value.items())) if isinstance(value, Mapping) else value)


class UntracedJit(StoredJit):
    """A `StoredJit` that is not traced where what comes of it is known.

    Parameters
    ----------
    function
        Takes the list of the values of the origin's inputs, and gives that of the
        values of its outputs, with `PackedFlags` or None.
    options
        The compile options.
    origin
        What the function traces.
    """

    def __init__(
        self, function: Callable[..., Any], options: Mapping[str, Any], origin: Origin
    ) -> None:
        super().__init__(function, options)
        self._origin = origin

    def trace(self, args: Sequence[Any]) -> None:
        """Trace the function for these arguments, so that the errors of its checks are known."""
        self._compiled[cache.signature_of(args)] = super()._load_or_compile(args)
        self._last = None

    def _load_or_compile(self, args: Sequence[Any]) -> Compiled:
        try:
            key = _PREFIX + trace_key(self._origin, self._options or {}, args)
        except Undescribable as exc:
            _log.debug("A graph is traced in every process: there is %s", exc)
            return super()._load_or_compile(args)
        return self._load_untraced(key, args) or self._trace_and_store(key, args)

    def _load_untraced(self, key: str, args: Sequence[Any]) -> Compiled | None:
        content = self._store.get(key)
        if content is None:
            return None
        inputs = self._origin.inputs
        try:
            entry = json.loads(content)
            needs = [inputs[position] for position in entry.get("needs", ())]
            if not needs:
                program = str(entry["program"])
                out_tree = _structure_of(entry["outputs"], entry["words"])
        except Exception as exc:
            # Whole, but of no use, which the versions in the key should rule out.
            _log.debug("A stored trace can't be loaded", exc_info=exc)
            self._store.remove(key)
            return None
        if needs:
            raise NeedsConcrete(needs, "shapes depend on it")
        call = cache.load(self._store, program, _structure_of_arguments(args), out_tree)
        return None if call is None else Compiled(call, Outcome("loaded", program))

    def _trace_and_store(self, key: str, args: Sequence[Any]) -> Compiled:
        with WarningWatch() as watch:
            try:
                lowered, needs = self._function.lower(args), None
            except NeedsConcrete as need:
                lowered, needs = None, need
        if needs is not None:
            positions = [self._origin.inputs.index(variable) for variable in needs.variables]
            if not watch.has_warned:
                self._save(key, {"needs": positions})
            raise needs
        compiled = self._compile(lowered)
        outcome = compiled.outcome
        if not watch.has_warned and not outcome.reason:
            described = _described_result(lowered.out_tree)
            if described is not None and lowered.in_tree == _structure_of_arguments(args):
                self._save(key, {"program": outcome.key, **described})
        return compiled

    def _save(self, key: str, entry: Mapping[str, Any]) -> None:
        self._store.put(key, json.dumps(entry).encode(), config.fixed_modes__cache_size)


def trace_key(origin: Origin, options: Mapping[str, Any], args: Sequence[Any]) -> str:
    """Give the key of what tracing gives.

    Parameters
    ----------
    origin
        What is traced.
    options
        The compile options.
    args
        The values of its inputs, of which only the types count.

    Raises
    ------
    Undescribable
        If tracing depends on something that can't be described.
    """
    check_conversions()
    key = Key()
    key.write("trace")
    origin.add_to(key)
    key.add(dict(sorted(options.items())))
    key.add([_described_argument(arg) for arg in args])
    key.add(cache.facts())
    settings, special = cache.described_settings()
    key.add(settings)
    if special:
        raise Undescribable(f"JAX's setting {special[0]}")
    key.add_named("flag", flags().items())
    key.write("C compiler", str(bool(config.cxx)))
    return key.hexdigest()


def _described_argument(value: Any) -> Any:
    """Describe the type of an argument as JAX sees it."""
    if value is None:
        return None
    if isinstance(value, RandomKey):
        home = value.bit_generator.__module__
        if home.partition(".")[0] != "numpy":
            raise Undescribable(f"the bit generator {home}.{value.bit_generator.__qualname__}")
        name = value.bit_generator.__qualname__
        return ("key", home, name, value.legacy, _described_argument(value.data))
    if type(value) is np.ndarray or isinstance(value, (np.generic, jax.Array)):
        is_weak = bool(getattr(value, "weak_type", False))
        return ("array", tuple(value.shape), value.dtype.str, value.dtype.name, is_weak)
    raise Undescribable(f"an argument of type {type(value).__qualname__}")


def _structure_of_arguments(args: Sequence[Any]) -> Any:
    return jax.tree_util.tree_structure(((args,), {}))


def _described_result(structure: Any) -> dict[str, Any] | None:
    """Describe the structure of a result; None where that can't be done."""
    outputs, flags = jax.tree_util.tree_unflatten(structure, range(structure.num_leaves))
    described = [_described_output(value) for value in outputs]
    if None in described:
        return None
    words = 0 if flags is None else len(flags.words)
    if _structure_of(described, words, flags and flags.errors) != structure:
        return None
    return {"outputs": described, "words": words}


def _described_output(value: Any) -> list[Any] | None:
    if type(value) is int:
        return ["array"]
    if value is None:
        return ["none"]
    if isinstance(value, PaddedTrace):
        return ["padded"]
    if isinstance(value, RandomKey) and value.bit_generator in _BIT_GENERATORS.values():
        return ["key", value.bit_generator.__name__, value.legacy]
    return None


#: Those that a generator of NumPy's may have.
_BIT_GENERATORS = {
    kind.__name__: kind
    for kind in (
        *(np.random.MT19937, np.random.PCG64, np.random.PCG64DXSM),
        *(np.random.Philox, np.random.SFC64),
    )
}


def _structure_of(outputs: Sequence[Any], words: int, errors: Errors | None = None) -> Any:
    """Give the structure that was described, with the number of words that hold flags."""
    flags = PackedFlags((0,) * words, errors) if words else None
    return jax.tree_util.tree_structure(([_example(*output) for output in outputs], flags))


def _example(kind: str, *facts: Any) -> Any:
    if kind == "key":
        name, is_legacy = facts
        return RandomKey(0, _BIT_GENERATORS[name], is_legacy)
    return {"array": 0, "none": None, "padded": PaddedTrace(0, 0)}[kind]
