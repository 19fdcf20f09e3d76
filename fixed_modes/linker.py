"""What the two linkers share: inner graphs are compiled before conversion."""

from __future__ import annotations

from typing import Any

from aesara.graph.fg import FunctionGraph
from aesara.link.basic import JITLinker

from fixed_modes.inner_graphs import compile_inner_graphs


class InnerGraphLinker(JITLinker):
    """A `JITLinker` that compiles the inner graphs of the graph it is handed.

    Attributes
    ----------
    rewrites
        The rewrites of the enclosing mode: a `RewriteDatabaseQuery` or a
        `GraphRewriter`; the mode sets it.
    """

    rewrites: Any = None
    #: Tags of rewrites that this back end can't use; they are kept out of inner graphs.
    excluded_tags: tuple[str, ...] = ()

    def accept(
        self, fgraph: FunctionGraph, no_recycling: Any = None, profile: Any = None
    ) -> InnerGraphLinker:
        if self.fgraph is not None and self.fgraph is not fgraph:
            # The inherited method would make a linker with default options here.
            fresh = self.clone()
            fresh.fgraph = None
            return fresh.accept(fgraph, no_recycling, profile)
        return super().accept(fgraph, no_recycling, profile)

    def make_all(
        self, input_storage: Any = None, output_storage: Any = None, storage_map: Any = None
    ) -> Any:
        self.check_back_end()
        compile_inner_graphs(self.fgraph, self.rewrites, self.excluded_tags)
        return super().make_all(input_storage, output_storage, storage_map)

    def check_back_end(self) -> None:
        """Raise `ImportError`, saying what to install, where the back end is missing."""
        raise NotImplementedError
