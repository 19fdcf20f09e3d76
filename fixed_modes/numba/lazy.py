"""Finds what only one branch of an `IfElse` needs, so that only the taken branch runs.

Every node belongs to a region: the whole graph, or one branch of an `IfElse`,
which itself belongs to a region.  A node belongs to the innermost region that
holds all that uses it.
"""

from __future__ import annotations

from dataclasses import dataclass

from aesara.graph.basic import Apply, Variable
from aesara.graph.fg import FunctionGraph
from aesara.ifelse import IfElse

from fixed_modes.aliasing import memory_root


@dataclass(frozen=True)
class Region:
    """A branch of an `IfElse`, or, without one, the whole graph.

    Attributes
    ----------
    node
        The `IfElse` node.
    branch
        0 for the branch that a true condition takes, 1 for the other.
    around
        The regions around this one, outermost first.
    """

    node: Apply | None = None
    branch: int = 0
    around: tuple[Region, ...] = ()

    @property
    def path(self) -> tuple[Region, ...]:
        return (*self.around, self)


WHOLE_GRAPH = Region()


def find_regions(fgraph: FunctionGraph, order: list[Apply]) -> dict[Apply, Region]:
    """Give the region of every node.

    Parameters
    ----------
    order
        The nodes in an order that respects the destroy maps.  A node is not
        moved behind one that destroys what it reads.
    """
    if not any(isinstance(node.op, IfElse) for node in order):
        return dict.fromkeys(order, WHOLE_GRAPH)
    destroyers = _destroyers(order)
    position = {node: n for n, node in enumerate(order)}
    regions: dict[Apply, Region] = {}
    for node in reversed(order):
        users = [
            _region_of_use(client, index, regions)
            for out in node.outputs
            for client, index in fgraph.clients[out]
        ]
        later = [
            regions[destroyer]
            for i in node.inputs
            for destroyer in destroyers.get(memory_root(i)[0], ())
            if position[destroyer] > position[node]
        ]
        regions[node] = _common([*users, *later]) if users else WHOLE_GRAPH
    return regions


def _region_of_use(client: Apply | str, index: int, regions: dict[Apply, Region]) -> Region:
    if isinstance(client, str):
        return WHOLE_GRAPH
    own = regions[client]
    if not isinstance(client.op, IfElse) or index == 0:
        return own
    return Region(client, int(index > client.op.n_outs), own.path)


def _common(regions: list[Region]) -> Region:
    common = WHOLE_GRAPH
    for level in zip(*(region.path for region in regions)):
        if len(set(level)) > 1:
            break
        common = level[0]
    return common


def _destroyers(order: list[Apply]) -> dict[Variable, list[Apply]]:
    found: dict[Variable, list[Apply]] = {}
    for node in order:
        for indices in node.op.destroy_map.values():
            for index in indices:
                found.setdefault(memory_root(node.inputs[index])[0], []).append(node)
    return found
