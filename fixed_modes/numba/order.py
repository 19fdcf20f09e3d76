"""The order in which the nodes of a graph are written."""

from __future__ import annotations

from aesara.graph.basic import Apply, io_toposort
from aesara.graph.fg import FunctionGraph


def ordered_nodes(fgraph: FunctionGraph) -> list[Apply]:
    """List the nodes of a graph, each after those that it needs.

    What reads an array comes before what overwrites it.  The order follows from the graph
    alone: that of `FunctionGraph.toposort` follows also from the order in which rewrites
    have put in what overwrites something, which is another one when the rewritten graph has
    been loaded.  Then the code would be another one too, and not be found in the cache.
    """
    plain = io_toposort(fgraph.inputs, fgraph.outputs)
    orderings = fgraph.orderings()
    if not orderings:
        return plain
    position = {node: n for n, node in enumerate(plain)}
    # What no output needs is not written, and nothing has to wait for it.
    earlier = {
        node: sorted((n for n in nodes if n in position), key=position.__getitem__)
        for node, nodes in orderings.items()
        if node in position
    }
    return io_toposort(fgraph.inputs, fgraph.outputs, earlier)
