"""Walks a graph and compiles every inner graph in it, on clones.

The C back end rewrites the inner graph of a `Scan` when it first touches
``Scan.fn``; the JIT linkers never do.  Here this happens eagerly, once the
outer graph is final: its in-place passes have run, so its destroy maps say
which buffers a loop may keep.  An inner graph is rewritten before the inner
graphs that stand in it: only then their outer inputs are final too, and a
nested op that the rewrites remove is never compiled.

The op that the user made is never changed: each node gets a clone.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from typing import Any

from aesara.compile.builders import OpFromGraph
from aesara.compile.mode import optdb
from aesara.configdefaults import config
from aesara.graph.basic import Apply
from aesara.graph.features import PreserveVariableAttributes
from aesara.graph.fg import FunctionGraph
from aesara.graph.op import Op
from aesara.graph.rewriting.basic import GraphRewriter
from aesara.graph.rewriting.db import RewriteDatabaseQuery
from aesara.scan.op import Scan

from fixed_modes.rewrites.flags import rewriting_flags
from fixed_modes.rewrites.query import combine, with_own_rewrites
from fixed_modes.supervisor import destroyable_inner_inputs, supervise

# Set on a clone: linking a copy of a function must not rewrite its loops again.
_COMPILED = "_fixed_modes_compiled"


def compile_inner_graphs(
    fgraph: FunctionGraph, rewrites: Any, excluded_tags: tuple[str, ...] = ()
) -> None:
    """Give every node of `fgraph` with an inner graph a compiled clone of its op.

    Parameters
    ----------
    fgraph
        A graph whose own rewrites, in-place passes included, are done.
    rewrites
        The rewrites of the enclosing mode: a `RewriteDatabaseQuery`, or a
        `GraphRewriter` to be used as it is.
    excluded_tags
        Tags of rewrites that the back end can't use.  A scan's own ``mode=``
        may ask for them; they stay out.
    """
    with config.change_flags(
        compute_test_value=config.compute_test_value_opt,
        traceback__limit=config.traceback__compile_limit,
        **rewriting_flags(),
    ):
        _compile_nodes(fgraph, rewrites, excluded_tags)


def _compile_nodes(fgraph: FunctionGraph, rewrites: Any, excluded_tags: tuple[str, ...]) -> None:
    for node in fgraph.toposort():
        if not isinstance(node.op, (Scan, OpFromGraph)) or hasattr(node.op, _COMPILED):
            continue
        own_mode = node.op.mode_instance if isinstance(node.op, Scan) else None
        rewriter, query = _rewriter_for(rewrites, own_mode, excluded_tags)
        inner_graph = _supervised_copy(node)
        rewriter.rewrite(inner_graph)
        # The op of the node is exchanged, not the node: the linker's caller
        # already holds the variables of this graph.
        node.op = _clone_with_graph(node.op, inner_graph)
        _compile_nodes(inner_graph, query, excluded_tags)


def _rewriter_for(
    rewrites: Any, own_mode: Any, excluded_tags: tuple[str, ...]
) -> tuple[GraphRewriter, Any]:
    """Give the rewriter of an inner graph, and what its own inner graphs inherit."""
    if not isinstance(rewrites, RewriteDatabaseQuery):
        return rewrites, rewrites
    own = getattr(own_mode, "_optimizer", None)
    if isinstance(own, RewriteDatabaseQuery):
        rewrites = combine(rewrites, own)
    query = rewrites.excluding(*excluded_tags)
    return optdb.query(with_own_rewrites(query)), query


def _supervised_copy(node: Apply) -> FunctionGraph:
    """Copy the inner graph of `node`; only what the loop gives away may be destroyed."""
    op = node.op
    inner_graph = FunctionGraph(
        op.fgraph.inputs,
        op.fgraph.outputs,
        clone=True,
        features=[PreserveVariableAttributes()],
        update_mapping=dict(op.fgraph.update_mapping or {}),
    )
    destroyable = destroyable_inner_inputs(node, inner_graph.inputs) if isinstance(op, Scan) else ()
    supervise(inner_graph, destroyable)
    return inner_graph


def _clone_with_graph(op: Op, inner_graph: FunctionGraph) -> Op:
    clone = copy(op)
    clone.fgraph = inner_graph
    # The function that was compiled from the old inner graph.
    clone.__dict__.pop("_fn", None)
    setattr(clone, _COMPILED, True)
    return clone


def walk_nodes(
    fgraph: FunctionGraph, scans: tuple[str, ...] = ()
) -> Iterator[tuple[Apply, FunctionGraph, tuple[str, ...]]]:
    """Yield every node, its graph and the names of the ops around it, inner graphs included."""
    for node in fgraph.toposort():
        yield node, fgraph, scans
        if isinstance(node.op, (Scan, OpFromGraph)):
            yield from walk_nodes(node.op.fgraph, (*scans, str(node.op)))
