"""Keeps rewritten graphs, for the next process that rewrites the same one.

Rewriting takes Aesara most of the time of ``aesara.function``.  What comes of it follows
from the graph, the rewrites that are asked for and registered, and flags.  A graph that
has all of them in common with one that was rewritten before gets that one's result.

Before a result is stored it is read back and compared: what does not come back equal, in
all that `GraphKey` describes, is not kept.
"""

from __future__ import annotations

import hashlib
import logging
import re
import sys
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import aesara
import numpy as np
import scipy
from aesara.compile.function.types import Supervisor
from aesara.compile.mode import Mode, optdb
from aesara.configdefaults import config
from aesara.graph.basic import Variable
from aesara.graph.destroyhandler import DestroyHandler
from aesara.graph.features import PreserveVariableAttributes, ReplaceValidate
from aesara.graph.fg import FunctionGraph

from fixed_modes._version import __version__
from fixed_modes.cache import graph_record
from fixed_modes.cache.graph_key import GraphKey
from fixed_modes.cache.key import Undescribable, own_sources
from fixed_modes.cache.outcome import Outcome
from fixed_modes.cache.registry import registry_digest
from fixed_modes.cache.store import store_in

_log = logging.getLogger("fixed_modes.cache")

# Flags that say nothing about what a graph is rewritten to.
_HARMLESS = re.compile(
    "fixed_modes__cache.*|.*compiledir.*|cmodule__.*|compile__.*|gcc__.*|ctc__.*|profiling__.*"
    "|DebugMode__.*|NanGuardMode__.*|unittests__.*|print_global_stats|cxx"
)
#: Flags with which rewriting does more than rewrite, and the values with which it does not.
_QUIET = {
    "profile": False,
    "profile_optimizer": False,
    "optimizer_verbose": False,
    "compute_test_value": "off",
    "compute_test_value_opt": "off",
    "traceback__compile_limit": 0,
    "check_stack_trace": "off",
}
#: What the names of these entries begin with.
_PREFIX = "graph-"
#: What they begin with says whether the graph has been converted without a warning.
_CONVERTED = {b"c": True, b"w": False}
_FEATURES = (ReplaceValidate, Supervisor, PreserveVariableAttributes)


class RewrittenGraph:
    """What becomes of one graph.

    Parameters
    ----------
    fgraph
        The graph, before it is rewritten.
    mode
        The mode.
    specs
        What is known of inputs and outputs beside the graph.

    Attributes
    ----------
    outcome
        What came of it.
    is_converted
        Of a graph that was loaded: whether it has been converted before without a warning.
    identity
        Tells the rewritten graph from all that are not equal to it; empty where it is
        not known exactly.
    """

    def __init__(self, fgraph: FunctionGraph, mode: Mode, specs: Any) -> None:
        self.outcome = Outcome()
        self.is_converted = False
        self.identity = ""
        self._fgraph = fgraph
        self._original: Sequence[Variable] = ()
        self._content = b""
        if not config.fixed_modes__cache:
            self.outcome.state = "off"
            return
        try:
            self.outcome.key, self._original = graph_key(fgraph, mode, specs)
        except Undescribable as exc:
            self.outcome.refuse("refused", f"there is {exc}")
        self._store = store_in(config.fixed_modes__cache_dir)
        # What rewriting adds or takes away is not kept with the graph.
        self._shape = (len(fgraph.inputs), len(fgraph.outputs))

    def load(self) -> bool:
        """Put the result into the graph, if there is one; says whether there was."""
        key = self.outcome.key
        content = self._store.get(_PREFIX + key) if key else None
        if content is None:
            return False
        fgraph = self._fgraph
        try:
            is_converted = _CONVERTED[content[:1]]
            outputs, handles_destroyers = graph_record.loads(
                content[1:], fgraph.inputs, self._original
            )
        except Exception as exc:
            # Whole, but of no use, which the versions in the key rule out.
            _log.debug("A stored graph can't be loaded", exc_info=exc)
            self._store.remove(_PREFIX + key)
            return False
        for position, variable in enumerate(outputs):
            fgraph.change_node_input("output", position, variable, check=False)
        if handles_destroyers:
            fgraph.attach_feature(DestroyHandler())
        self.outcome.state = "loaded"
        self.is_converted = is_converted
        self._identify(content[1:])
        return True

    def record(self) -> None:
        """Write down the graph as it is now, with its inner graphs."""
        fgraph = self._fgraph
        try:
            if (len(fgraph.inputs), len(fgraph.outputs)) != self._shape:
                raise Undescribable("updates that rewriting has taken away")
            self._content = graph_record.dumps(fgraph, self._original)
            self._check(self._content)
            self._identify(self._content)
        except Exception as exc:
            # Whatever is in a graph that can't be pickled: the graph itself is fine.
            self.outcome.refuse("refused", f"what it is rewritten to can't be stored: {exc}")

    def save(self, is_converted: bool) -> None:
        """Store what has been written down.

        Parameters
        ----------
        is_converted
            Whether the graph has been converted without a warning.
        """
        self.outcome.state = "rewritten"
        key = _PREFIX + self.outcome.key
        content = (b"c" if is_converted else b"w") + self._content
        if not self._store.put(key, content, config.fixed_modes__cache_size):
            self.outcome.refuse("rewritten", "the entry could not be written")

    def _identify(self, content: bytes) -> None:
        # What is not in the bytes is in the graph that they were made from.
        self.identity = f"{self.outcome.key} {hashlib.sha256(content).hexdigest()}"

    def _check(self, content: bytes) -> None:
        fgraph = self._fgraph
        outputs, _ = graph_record.loads(content, fgraph.inputs, self._original)
        before, after = GraphKey(), GraphKey()
        before.add_graph(fgraph.inputs, fgraph.outputs)
        after.add_graph(fgraph.inputs, outputs)
        if before.hexdigest() != after.hexdigest():
            raise Undescribable("something that does not come back equal")


def graph_key(fgraph: FunctionGraph, mode: Mode, specs: Any) -> tuple[str, list[Variable]]:
    """Give the key of what a graph is rewritten to, and the variables of the graph.

    Raises
    ------
    Undescribable
        If the result can't be known from what can be described.
    """
    found = flags()
    for name, value in _QUIET.items():
        if found.pop(name) != value:
            raise Undescribable(f"the flag {name}")
    features = [type(feature) for feature in fgraph._features]
    if set(features) != set(_FEATURES) or mode.optdb is not optdb:
        raise Undescribable("features or rewrites of the caller's own")
    key = GraphKey()
    key.write("rewritten graph")
    key.add(facts())
    key.add(registry_digest())
    key.add_named("flag", ((n, v if isinstance(v, Mode) else str(v)) for n, v in found.items()))
    key.add(mode)
    key.add(tuple(mode.linker.excluded_tags))
    key.add(specs)
    key.variables.clear()
    key.add_function_graph(fgraph)
    return key.hexdigest(), key.variables


def flags() -> dict[str, Any]:
    """Say what Aesara's flags are, but for those that have to do with compiling C code."""
    return {name: getattr(config, name) for name in _telling(tuple(config._config_var_dict))}


@lru_cache(maxsize=1)
def _telling(names: tuple[str, ...]) -> list[str]:
    """Give the names of the flags that count, sorted; more may be defined at any time."""
    return [name for name in sorted(names) if not _HARMLESS.fullmatch(name)]


@lru_cache(maxsize=1)
def facts() -> dict[str, str]:
    """Say what rewrites: versions, which don't change while a process runs."""
    return {
        "fixed_modes": f"{__version__} {own_sources()}",
        "aesara": aesara.__version__,
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "python": f"{sys.implementation.name} {sys.version}",
    }
