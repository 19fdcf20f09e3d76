"""Compiled variants of a graph for values that must be known to trace it.

``n_steps``, the bounds of a slice, the length of an ``arange``: JAX can't trace
a graph in which they are data.  Tracing finds out which there are (it stops
with `NeedsConcrete`), and each combination of their values gets a *variant*
with these values known.  They are small integers that the function is called
with; for anything else the graph is cut, see `fixed_modes.jax.segments`.
"""

from __future__ import annotations

import threading
import warnings
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from aesara.graph.basic import Variable
from aesara.graph.fg import FunctionGraph

from fixed_modes.cache.pause import garbage_rarely_collected
from fixed_modes.jax import lowerings  # noqa: F401  (fills the dispatch table)
from fixed_modes.jax.compile_options import jit
from fixed_modes.jax.evaluate import evaluate
from fixed_modes.jax.flags import NotTraced, PackedFlags
from fixed_modes.jax.frame import Frame, NeedsConcrete, NeedsEager
from fixed_modes.jax.graph_names import GraphNames
from fixed_modes.jax.padded import PaddedTrace
from fixed_modes.jax.settings import Settings
from fixed_modes.jax.untraced import Origin, UntracedJit

#: An input with more entries is no part of a variant's key.
LARGEST_STATIC_INPUT = 16

#: So many variants for one set of variables are worth a warning.
MANY_VARIANTS = 16


class CallsPython(Exception):
    """The code that is being traced calls Python: it must be compiled in another way."""


class Variant:
    """A graph with the values of some of its variables known.

    Attributes
    ----------
    needs
        Inputs that must be known besides; None if nothing is missing.
    children
        The variants with `needs` known too, by their values, the last used last.
    settings
        The flags that the function was built with.
    names
        The names of the variables, where the graph is known exactly.
    """

    def __init__(
        self,
        fgraph: FunctionGraph,
        known: Mapping[Variable, Any],
        settings: Settings,
        names: GraphNames | None = None,
    ) -> None:
        self.fgraph = fgraph
        self.known = dict(known)
        self.settings = settings
        self.needs: tuple[Variable, ...] | None = None
        self.children: OrderedDict[Any, Variant] = OrderedDict()
        self.lock = threading.Lock()
        self.calls_python = self.has_run = False
        self.names = names
        origin = None
        if names is not None:
            origin = Origin(names, fgraph.inputs, fgraph.outputs, self.known, settings)
        self.run = jit(self._trace_outputs, settings.compile_options, origin=origin)
        # Where the arguments stand that `needs` are.
        self.positions: list[int] = []

    def call(self, args: Sequence[Any]) -> Any:
        """Run the graph.

        Raises
        ------
        NeedsConcrete
            If variables must be known first; they are in `needs` from then on.
        """
        if not self.has_run:
            # The first run compiles.
            with garbage_rarely_collected():
                return self._call(args)
        return self._call(args)

    def _call(self, args: Sequence[Any]) -> Any:
        try:
            result = self.run(args)
            self.has_run = True
            return result
        except NeedsConcrete as need:
            self._set_needs(need.variables)
            raise
        except CallsPython:
            self.calls_python = True
            self.run = jit(self._trace_outputs, self.settings.compile_options, calls_python=True)
            return self.call(args)

    def trace(self, args: Sequence[Any]) -> None:
        """Trace what was loaded without that: the errors of its checks are known then."""
        assert isinstance(self.run, UntracedJit)
        self.run.trace(args)

    def values_of_needs(self, args: Sequence[Any]) -> list[np.ndarray[Any, Any]]:
        """Give the values of `needs`."""
        return [np.asarray(args[position]) for position in self.positions]

    def child(self, values: Sequence[np.ndarray[Any, Any]], max_variants: int) -> Variant:
        """Give the variant with `needs` known to have these values."""
        key = tuple((v.dtype.str, v.shape, v.tobytes()) for v in values)
        with self.lock:
            found = self.children.pop(key, None)
            if found is None:
                found = self._new_child(values)
                if len(self.children) + 1 == MANY_VARIANTS:
                    self._warn()
            self.children[key] = found
            while len(self.children) > max_variants:
                self.children.popitem(last=False)
        return found

    def _new_child(self, values: Sequence[np.ndarray[Any, Any]]) -> Variant:
        known = dict(self.known)
        for variable, value in zip(self.needs or (), values):
            known[variable] = value
        return Variant(self.fgraph, known, self.settings, self.names)

    def _set_needs(self, variables: tuple[Variable, ...]) -> None:
        self.positions = [self.fgraph.inputs.index(variable) for variable in variables]
        self.needs = variables

    def _warn(self) -> None:
        names = ", ".join(str(variable) for variable in self.needs or ())
        warnings.warn(
            f"JAX_FIXED has compiled a graph for {MANY_VARIANTS} different values of {names}, "
            "since the shapes of arrays depend on it; each new value is compiled anew.",
            stacklevel=2,
        )

    def _trace_outputs(self, args: Sequence[Any]) -> tuple[list[Any], PackedFlags | None]:
        frame, outputs = self._evaluate(args, self.fgraph.outputs)
        if frame.failures and not self.calls_python:
            raise CallsPython
        outputs = [jax.tree_util.tree_map(jnp.asarray, value) for value in outputs]
        if not frame.checks.errors:
            return outputs, None
        return outputs, PackedFlags(tuple(frame.checks.pack()), tuple(frame.checks.errors))

    def _evaluate(
        self, args: Sequence[Any], targets: Sequence[Variable]
    ) -> tuple[Frame, list[Any]]:
        inputs = self.fgraph.inputs
        values = dict(zip(inputs, args))
        frame = Frame(inputs, values, self.known, settings=self.settings)
        try:
            return frame, evaluate(frame, targets)
        except NeedsConcrete as need:
            variables = self._what_to_know(frame, need)
            raise NeedsConcrete(variables, need.reason, need.where) from None

    def _what_to_know(self, frame: Frame, need: NeedsConcrete) -> list[Variable]:
        """Find the inputs of which the values must be known.

        Raises
        ------
        NeedsEager
            If they are too large for that.
        """
        is_padded = any(isinstance(frame.values.get(v), PaddedTrace) for v in need.variables)
        sources = frame.traced_sources(need.variables)
        if sources and not is_padded and all(_is_small_integer(frame, v) for v in sources):
            return sources
        eager = NeedsEager(need.reason, need.where, need.variables, is_padded)
        eager.node = need.node
        raise eager


def run_variant(root: Variant, args: Sequence[Any], max_variants: int) -> list[Any]:
    """Run a graph with the variant that fits the arguments; compile it if need be.

    Raises
    ------
    Exception
        What the graph's run-time checks say.
    """
    variant = root
    while True:
        if variant.needs is None:
            try:
                outputs, flags = variant.call(args)
            except NeedsConcrete:
                continue
            try:
                if flags is not None:
                    flags.raise_first()
            except NotTraced:
                variant.trace(args)
                continue
            return outputs
        variant = variant.child(variant.values_of_needs(args), max_variants)


def _is_small_integer(frame: Frame, variable: Variable) -> bool:
    value = frame.values.get(variable)
    if value is None or not hasattr(value, "dtype"):
        return False
    return value.dtype.kind in "iub" and value.size <= LARGEST_STATIC_INPUT
