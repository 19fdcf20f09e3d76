"""The order of nodes: that of the graph, however its rewrites came about."""

from __future__ import annotations

import itertools
from typing import Any

import aesara.scalar.basic as aes
import aesara.tensor as at
import numpy as np
import pytest
from aesara.compile.function.types import Supervisor
from aesara.graph.basic import Apply
from aesara.graph.destroyhandler import DestroyHandler
from aesara.graph.fg import FunctionGraph
from aesara.tensor.elemwise import Elemwise

from fixed_modes.numba.order import ordered_nodes

ORDERS = list(itertools.permutations(range(3)))


def rewritten_in(order: tuple[int, ...]) -> FunctionGraph:
    """Make a graph in which one node overwrites what three others read; these are replaced."""
    x = at.dvector("x")
    source = at.sin(x)
    readers = [source + x, source - x, source * x]
    fgraph = FunctionGraph([x], [*readers, at.exp(source)], clone=False)
    fgraph.attach_feature(Supervisor([x]))
    fgraph.attach_feature(DestroyHandler())
    exponential = Elemwise(aes.Exp(aes.transfer_type(0), name="exp"), {0: 0})(source)
    fgraph.replace_validate(fgraph.outputs[-1], exponential, reason="a test")
    for number in order:
        operation = (at.maximum, at.minimum, at.arctan2)[number]
        new = operation(source, x)
        fgraph.replace_validate(readers[number], new, reason="a test")
    return fgraph


def described(nodes: list[Apply]) -> list[str]:
    """Write down each node with what it is computed from."""

    def text(variable: Any) -> str:
        if variable.owner is None:
            return str(variable)
        return f"{variable.owner.op}({', '.join(map(text, variable.owner.inputs))})"

    return [text(node.outputs[0]) for node in nodes]


def test_it_is_the_same_in_whatever_order_a_graph_was_rewritten() -> None:
    graphs = [rewritten_in(order) for order in ORDERS]
    found = {tuple(described(ordered_nodes(fgraph))) for fgraph in graphs}
    assert len(found) == 1
    # That of Aesara is not.
    assert len({tuple(described(fgraph.toposort())) for fgraph in graphs}) > 1


@pytest.mark.parametrize("order", ORDERS)
def test_what_reads_comes_before_what_overwrites(order: tuple[int, ...]) -> None:
    fgraph = rewritten_in(order)
    nodes = ordered_nodes(fgraph)
    assert set(nodes) == fgraph.apply_nodes
    assert len(nodes) == len(fgraph.apply_nodes)
    position = {node: n for n, node in enumerate(nodes)}
    (overwriting,) = (node for node in nodes if node.op.destroy_map)
    assert overwriting is nodes[-1]
    assert all(position[i.owner] < position[n] for n in nodes for i in n.inputs if i.owner)


def test_a_graph_that_computes_nothing_has_no_nodes() -> None:
    x = at.dvector("x")
    assert ordered_nodes(FunctionGraph([x], [x, at.constant(np.ones(2))], clone=False)) == []
