"""Aesara's fusion and in-place rewrites of elementwise ops, for arrays alone.

Most nodes of a graph with loops are arithmetic on lengths.  Fusing such numbers, and
writing one in the place of another, takes a third of the time of all rewrites and
changes nothing: compiled code holds them in registers, or not at all.
"""

from __future__ import annotations

from typing import Any

from aesara.graph.basic import Apply, Constant, Variable
from aesara.graph.destroyhandler import DestroyHandler
from aesara.graph.features import ReplaceValidate
from aesara.graph.fg import FunctionGraph
from aesara.graph.rewriting.basic import GraphRewriter
from aesara.graph.rewriting.db import RewriteDatabaseQuery
from aesara.graph.utils import InconsistencyError
from aesara.tensor.elemwise import Elemwise
from aesara.tensor.rewriting.elemwise import FusionOptimizer, local_elemwise_fusion

# Where Aesara has the two.
_FUSION_POSITION, _INPLACE_POSITION = 49, 75


def _fuse(fgraph: FunctionGraph, node: Apply) -> Any:
    return _is_of_arrays(node) and local_elemwise_fusion(fgraph, node)


def _is_of_arrays(node: Apply) -> bool:
    return isinstance(node.op, Elemwise) and node.outputs[0].type.ndim > 0


class FuseArrays(FusionOptimizer):
    """Makes one elementwise op of two, where they are of arrays."""

    name = "fuse_arrays"


class InplaceArrays(GraphRewriter):
    """Lets elementwise ops write their results into one of their inputs.

    What the graph is given is preferred to what it computes: in the step of a loop that
    is the old state, whose place the new one takes.
    """

    name = "inplace_arrays"

    def add_requirements(self, fgraph: FunctionGraph) -> None:
        fgraph.attach_feature(ReplaceValidate())
        fgraph.attach_feature(DestroyHandler())

    def apply(self, fgraph: FunctionGraph) -> None:
        for node in fgraph.toposort():
            if not _is_of_arrays(node) or node.op.inplace_pattern:
                continue
            pattern: dict[int, int] = {}
            for output in range(len(node.outputs)):
                for position in _candidates(fgraph, node, output):
                    if position in pattern.values():
                        continue
                    extended = {**pattern, output: position}
                    changed = _replace(fgraph, node, extended)
                    if changed is not None:
                        node, pattern = changed, extended
                        break


def _candidates(fgraph: FunctionGraph, node: Apply, output: int) -> list[int]:
    """List the inputs that an output may take the place of, the best first."""
    protected: set[Variable] = getattr(fgraph, "_supervisor_protected", set())
    out = node.outputs[output]
    updated = _updated_inputs(fgraph, out)
    places = [
        position
        for position, variable in enumerate(node.inputs)
        if variable.type == out.type
        and not isinstance(variable, Constant)
        and variable not in protected
        and variable not in fgraph.outputs
        and not fgraph.has_destroyers([variable])
    ]
    return sorted(
        places,
        key=lambda place: (node.inputs[place] not in updated, node.inputs[place].owner is not None),
    )


def _updated_inputs(fgraph: FunctionGraph, out: Variable) -> list[Variable]:
    """Give the inputs that an output is the update of."""
    updates = fgraph.update_mapping or {}
    return [fgraph.inputs[i] for o, i in updates.items() if fgraph.outputs[o] is out]


def _replace(fgraph: FunctionGraph, node: Apply, pattern: dict[int, int]) -> Apply | None:
    """Replace a node by one that works in place; None where the graph does not allow it."""
    op = node.op
    new = Elemwise(op.scalar_op, pattern, op.name, op.nfunc_spec, op.openmp)
    outputs = new.make_node(*node.inputs).outputs
    for old, out in zip(node.outputs, outputs):
        out.name = old.name
    try:
        fgraph.replace_all_validate(list(zip(node.outputs, outputs)), reason="inplace_arrays")
    except InconsistencyError:
        return None
    return outputs[0].owner


def with_array_rewrites(query: RewriteDatabaseQuery) -> RewriteDatabaseQuery:
    """Exchange the two rewrites in `query`, where it asks for them, for those of this module."""

    def asks_for(*tags: str) -> bool:
        known = {"fast_run", *tags}
        wanted = known & set(query.include) and set(query.require) <= known
        return bool(wanted) and not known & set(query.exclude)

    if asks_for(
        "fusion", "elemwise_fusion", "local_elemwise_fusion", "FusionOptimizer",
        "composite_elemwise_fusion",
    ):  # fmt: skip
        query = query.excluding("composite_elemwise_fusion")
        query = query.register((FuseArrays(_fuse), _FUSION_POSITION))
    if asks_for("inplace", "inplace_opt", "inplace_elemwise_opt", "inplace_elemwise_optimizer"):
        query = query.excluding("inplace_elemwise_opt")
        query = query.register((InplaceArrays(), _INPLACE_POSITION))
    return query
