"""Arrays that may be None: a few ops of Aesara take that for "not given".

Compiled code has no None in the place of an array. A call that gives one gets a graph of
its own, in which the ops that read it are exchanged for what they do without it.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from aesara.compile.ops import deep_copy_op
from aesara.graph.basic import Apply, Variable
from aesara.graph.destroyhandler import DestroyHandler
from aesara.graph.fg import FunctionGraph
from aesara.tensor.basic import Default, Eye, Tri
from aesara.tensor.type import TensorType


def optional_inputs(fgraph: FunctionGraph) -> list[int]:
    """List the positions of the inputs that only such ops read, in such a place."""
    return [
        position
        for position, variable in enumerate(fgraph.inputs)
        if isinstance(variable.type, TensorType)
        and fgraph.clients[variable]
        and all(_may_be_none(node, place) for node, place in fgraph.clients[variable])
    ]


def without_inputs(fgraph: FunctionGraph, absent: Collection[int]) -> FunctionGraph:
    """Give what a graph computes where some of its inputs are None.

    Parameters
    ----------
    fgraph
        The graph, which is not changed, with its in-place passes done.
    absent
        Positions out of `optional_inputs`.

    Returns
    -------
    A graph of as many inputs and outputs, which does not read the absent inputs.

    Raises
    ------
    TypeError
        If there is no result without one of them.
    """
    graph, _ = fgraph.clone_get_equiv(attach_feature=False)
    if hasattr(fgraph, "destroyers"):
        graph.attach_feature(DestroyHandler())
    missing = {graph.inputs[position] for position in absent}
    for node in graph.toposort():
        given = _without(node, missing)
        # The static shape of a default value is not always that of the argument.
        if given is not None and node.outputs[0].type.is_super(given.type):
            graph.replace(node.outputs[0], given)
    for variable in missing:
        if graph.clients[variable]:
            raise TypeError(f"expected an array for {variable}, not None")
    return graph


def _may_be_none(node: Apply | str, place: int) -> bool:
    # "output" stands in the place of a node where an input is an output.
    op = getattr(node, "op", None)
    return isinstance(op, Default) or (isinstance(op, (Eye, Tri)) and place == 1)


def _without(node: Apply, missing: Collection[Variable]) -> Variable | None:
    """Give the first output of a node without the missing inputs, if there is one."""
    are_missing = [variable in missing for variable in node.inputs]
    if isinstance(node.op, Default) and sum(are_missing) == 1:
        value, default = node.inputs
        # The op's result may share memory with the value, but not with the default.
        return deep_copy_op(default) if are_missing[0] else value
    if isinstance(node.op, (Eye, Tri)) and are_missing == [False, True, False]:
        rows, _, diagonal = node.inputs
        square: Any = node.op.make_node(rows, rows, diagonal)
        return square.outputs[0]
    return None
