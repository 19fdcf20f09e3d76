"""Runs graphs node by node, with NumPy: what can't be compiled as a whole.

Only random draws still go through JAX, so that they are those of compiled code.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Callable

import jax
import numpy as np
from aesara.compile.builders import OpFromGraph
from aesara.graph.basic import Apply, Constant, Variable
from aesara.ifelse import IfElse
from aesara.scan.op import Scan
from aesara.tensor.basic import AllocEmpty
from aesara.tensor.random.op import RandomVariable

from fixed_modes.errors import origin_of
from fixed_modes.jax.dispatch import jax_lower
from fixed_modes.jax.eager_scan import EagerLoop
from fixed_modes.jax.evaluate import conform
from fixed_modes.jax.frame import Frame, described
from fixed_modes.jax.lazy import schedule
from fixed_modes.jax.padded import PaddedTrace
from fixed_modes.jax.perform import perform
from fixed_modes.jax.settings import Settings

#: Gives the values of a node's outputs for those of its inputs.
Call = Callable[[Sequence[Any]], list[Any]]


class EagerGraph:
    """A graph as a function of the values of its inputs; it compiles nothing.

    Parameters
    ----------
    inputs, outputs
        Variables of the graph.
    settings
        The flags that the function was built with.
    scans
        Names of the loops around the graph, outermost first.
    """

    def __init__(
        self,
        inputs: Sequence[Variable],
        outputs: Sequence[Variable],
        settings: Settings,
        scans: tuple[str, ...],
    ) -> None:
        self.inputs, self.outputs = inputs, outputs
        self.plan = schedule(inputs, outputs)
        nodes = [*self.plan.always, *(n for branch in self.plan.branches.values() for n in branch)]
        self.calls = {
            node: node_call(node, settings, scans)
            for node in nodes
            if not isinstance(node.op, IfElse)
        }

    def __call__(self, values: Sequence[Any]) -> list[Any]:
        found = dict(zip(self.inputs, values))
        self._run(self.plan.always, found)
        return [value_of(variable, found) for variable in self.outputs]

    def _run(self, nodes: Sequence[Apply], found: dict[Variable, Any]) -> None:
        for node in nodes:
            if isinstance(node.op, IfElse):
                count = node.op.n_outs
                side = 0 if np.all(value_of(node.inputs[0], found)) else 1
                self._run(self.plan.branches.get((node, side), []), found)
                taken = node.inputs[1 + side * count : 1 + (side + 1) * count]
                results = [value_of(variable, found) for variable in taken]
            else:
                results = self.calls[node]([value_of(v, found) for v in node.inputs])
            found.update(zip(node.outputs, results))


def value_of(variable: Variable, found: dict[Variable, Any]) -> Any:
    """Give the value of a variable that was computed, or of a constant."""
    if variable not in found and isinstance(variable, Constant):
        return conform(variable, variable.data)
    return found[variable]


def node_call(node: Apply, settings: Settings, scans: tuple[str, ...]) -> Call:
    """Make the function that computes a node, other than an `IfElse`, without compiling it."""
    op = node.op
    if isinstance(op, Scan):
        name = (*scans, op.name or "scan")
        return EagerLoop(node, EagerGraph(op.fgraph.inputs, op.fgraph.outputs, settings, name))
    if isinstance(op, OpFromGraph):
        return EagerGraph(op.fgraph.inputs, op.fgraph.outputs, settings, scans)
    return partial(_run_node, node, settings, scans)


def _run_node(
    node: Apply, settings: Settings, scans: tuple[str, ...], values: Sequence[Any]
) -> list[Any]:
    try:
        if isinstance(node.op, (AllocEmpty, RandomVariable)):
            outputs = _run_lowered(node, settings, scans, values)
        else:
            outputs = perform(node, [in_numpy(value) for value in values])
        return [conform(variable, value) for variable, value in zip(node.outputs, outputs)]
    except Exception as exc:
        if origin_of(exc) is not None:
            raise
        raise described(exc, node, scans) from exc


def _run_lowered(
    node: Apply, settings: Settings, scans: tuple[str, ...], values: Sequence[Any]
) -> list[Any]:
    """Run a node's conversion outside of compiled code, and its checks at once."""
    values = [in_numpy(value) for value in values]
    frame = Frame(node.inputs, dict(zip(node.inputs, values)), scans=scans, settings=settings)
    outputs = jax_lower(node.op, node, values, frame)
    for failed, error in zip(frame.checks.unpack(), frame.checks.errors):
        if np.any(failed):
            raise error()
    return [in_numpy(value) for value in outputs]


def in_numpy(value: Any) -> Any:
    """Give a value as NumPy knows it; it may share memory, and can't be written to then."""
    if isinstance(value, PaddedTrace):
        value = value.cut(int(value.length))
    return np.asarray(value) if isinstance(value, jax.Array) else value
