"""Walks a graph and compiles every inner graph in it, on clones.

Stub: being written.
"""

from __future__ import annotations

from typing import Any

from aesara.graph.fg import FunctionGraph


def compile_inner_graphs(
    fgraph: FunctionGraph, rewrites: Any, excluded_tags: tuple[str, ...] = ()
) -> None:
    """Give every op with an inner graph in `fgraph` a compiled clone."""
