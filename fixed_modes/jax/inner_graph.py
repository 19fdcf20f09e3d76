"""`OpFromGraph`: its inner graph is evaluated in place."""

from __future__ import annotations

from typing import Any

from aesara.compile.builders import OpFromGraph
from aesara.graph.basic import Apply

from fixed_modes.jax.dispatch import jax_lower
from fixed_modes.jax.evaluate import evaluate
from fixed_modes.jax.frame import Frame, NeedsConcrete


@jax_lower.register(OpFromGraph)
def _op_from_graph(op: OpFromGraph, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    fgraph = op.fgraph
    outer = dict(zip(fgraph.inputs, node.inputs))
    inner = frame.inner(fgraph.inputs, values, outer)
    try:
        outputs = evaluate(inner, fgraph.outputs)
    except NeedsConcrete as need:
        sources = inner.traced_sources(need.variables)
        raise NeedsConcrete(
            [outer[source] for source in sources], need.reason, need.where
        ) from None
    for failed, error in zip(inner.checks.unpack(), inner.checks.errors):
        frame.checks.add(failed, error)
    return outputs
