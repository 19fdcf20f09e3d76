"""Names for parts of a graph, which equal graphs have in common in any process."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from aesara.graph.basic import Apply, Constant, Variable

from fixed_modes.cache.graph_key import nodes_in_order
from fixed_modes.cache.key import Key, Undescribable


class GraphNames:
    """Names for the parts of one graph.

    Parameters
    ----------
    identity
        Tells the graph from all that are not equal to it.
    inputs, outputs
        Those of the graph.
    """

    def __init__(
        self, identity: str, inputs: Sequence[Variable], outputs: Sequence[Variable]
    ) -> None:
        self.identity, self.inputs, self.outputs = identity, list(inputs), list(outputs)

    def part(self, inputs: Sequence[Variable], outputs: Sequence[Variable]) -> str:
        """Name what computes `outputs` from `inputs`, variables of the graph.

        Raises
        ------
        Undescribable
            If one is not of this graph.
        """
        if list(inputs) == self.inputs and list(outputs) == self.outputs:
            return f"{self.identity} whole"
        key = Key()
        numbers, wiring = self._numbered
        key.write("part of a graph", self.identity, wiring)
        try:
            key.add([numbers[variable] for variable in inputs])
            key.add([numbers[variable] for variable in outputs])
        except KeyError as exc:
            raise Undescribable(f"{exc.args[0]}, which is of another graph") from exc
        return key.hexdigest()

    def inner(self, node: Apply) -> GraphNames:
        """Give the names for the inner graph of a node."""
        fgraph = node.op.fgraph
        identity = f"{self.part((), node.outputs)} inner"
        return GraphNames(identity, fgraph.inputs, fgraph.outputs)

    @cached_property
    def _numbered(self) -> tuple[dict[Variable, int], str]:
        """Number the variables; with a hash of what the numbers stand for."""
        numbers: dict[Variable, int] = {}
        for variable in self.inputs:
            numbers.setdefault(variable, len(numbers))
        # Equal graphs have the same: this is for what was noted after they were compared.
        wiring: list[Any] = []
        for node in nodes_in_order(self.outputs, self.inputs):
            places = [numbers.setdefault(variable, len(numbers)) for variable in node.inputs]
            for variable in node.outputs:
                numbers.setdefault(variable, len(numbers))
            wiring.append((type(node.op).__qualname__, places, len(node.outputs)))
        for variable in self.outputs:
            if isinstance(variable, Constant):
                numbers.setdefault(variable, len(numbers))
        wiring.append([numbers[variable] for variable in self.outputs])
        return numbers, hashlib.sha256(repr(wiring).encode()).hexdigest()
