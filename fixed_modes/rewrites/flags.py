"""Aesara flags that hold while a graph is rewritten for one of the fixed modes."""

from __future__ import annotations

from typing import Any

from aesara.configdefaults import config
from aesara.graph.fg import FunctionGraph
from aesara.graph.rewriting.basic import GraphRewriter


def rewriting_flags() -> dict[str, Any]:
    """Give the flags, as keywords for `aesara.config.change_flags`."""
    return {
        # Constant folding would compile C for each op that it evaluates.
        "cxx": "",
    }


class FlaggedRewriter(GraphRewriter):
    """Applies another rewriter under `rewriting_flags`."""

    def __init__(self, rewriter: GraphRewriter) -> None:
        self.rewriter = rewriter

    def add_requirements(self, fgraph: FunctionGraph) -> None:
        self.rewriter.add_requirements(fgraph)

    def apply(self, fgraph: FunctionGraph, *args: Any, **kwargs: Any) -> Any:
        with config.change_flags(**rewriting_flags()):
            return self.rewriter.apply(fgraph, *args, **kwargs)

    def print_summary(self, *args: Any, **kwargs: Any) -> None:
        self.rewriter.print_summary(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name == "rewriter":  # not set yet, while unpickling
            raise AttributeError(name)
        return getattr(self.rewriter, name)
