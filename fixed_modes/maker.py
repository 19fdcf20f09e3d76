"""Makes the functions of our modes, one at a time in a process."""

from __future__ import annotations

import threading
from typing import Any

from aesara.compile.function.types import FunctionMaker
from aesara.graph.fg import FunctionGraph

from fixed_modes.cache.graphs import RewrittenGraph
from fixed_modes.cache.pause import garbage_left_alone, garbage_rarely_collected
from fixed_modes.function import FixedFunction

#: Held while a graph is rewritten and converted.  Both change flags of Aesara's for a
#: while, and flags belong to the process: with two threads at it, each would put back
#: what the other has set.
compiling = threading.RLock()


class FixedFunctionMaker(FunctionMaker):
    """A `FunctionMaker` that threads can use at once, and that rewrites a graph once.

    Attributes
    ----------
    rewritten
        What the compile cache did for the graph; None where it was handed over rewritten.
    """

    rewritten: RewrittenGraph | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        with compiling, garbage_rarely_collected():
            super().__init__(*args, **{"function_builder": FixedFunction, **kwargs})
            if self.rewritten is None:
                return
            if self.rewritten.is_converted:
                self.linker.converted = self.fgraph
            if self.rewritten.outcome.state == "waiting":
                if self.linker.finish(self.fgraph):
                    self.rewritten.record()
                else:
                    self.rewritten.outcome.refuse("refused", "the graph runs in Python")
            self.linker.identity = (self.fgraph, self.rewritten.identity)

    def prepare_fgraph(
        self,
        inputs: Any,
        outputs: Any,
        additional_outputs: Any,
        fgraph: FunctionGraph,
        mode: Any,
        profile: Any,
    ) -> None:
        """Rewrite the graph, as `FunctionMaker` does, or take what was stored."""
        if not profile:
            specs = [
                [(spec.mutable, spec.borrow, spec.update is not None) for spec in inputs],
                [spec.borrow for spec in outputs],
            ]
            with garbage_left_alone():
                self.rewritten = RewrittenGraph(fgraph, mode, specs)
                if self.rewritten.load():
                    return
        super().prepare_fgraph(inputs, outputs, additional_outputs, fgraph, mode, profile)

    def create(self, *args: Any, **kwargs: Any) -> Any:
        """Make the function, as `FunctionMaker` does."""
        is_loaded = self.rewritten is not None and self.rewritten.is_converted
        with compiling, garbage_left_alone() if is_loaded else garbage_rarely_collected():
            function = super().create(*args, **kwargs)
            if self.rewritten is not None and self.rewritten.outcome.state == "waiting":
                converted = getattr(function.vm, "jit_fn", None)
                self.rewritten.save(getattr(converted, "is_without_warnings", False))
            return function
