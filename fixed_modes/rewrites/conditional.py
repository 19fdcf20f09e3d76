"""Elements of an array that change on a condition.

``switch(accept, set_subtensor(x[i], y), x)`` chooses between two arrays, element by
element; ``set_subtensor(x[i], switch(accept, y, x[i]))`` is the same, and changes one.
"""

from __future__ import annotations

from typing import Any

import aesara.tensor as at
import numpy as np
from aesara.graph.basic import Apply, Constant, Variable
from aesara.graph.fg import FunctionGraph
from aesara.graph.rewriting.basic import in2out, node_rewriter
from aesara.graph.rewriting.db import RewriteDatabaseQuery
from aesara.scalar import basic as aes
from aesara.tensor.elemwise import DimShuffle, Elemwise
from aesara.tensor.subtensor import (
    AdvancedIncSubtensor1,
    AdvancedSubtensor,
    AdvancedSubtensor1,
    IncSubtensor,
    Subtensor,
)

from fixed_modes.rewrites.increments import CHANGES

# With the other rewrites of ours that look for elementwise ops, before these are fused.
_POSITION = 48.4


def with_conditional_rewrites(query: RewriteDatabaseQuery) -> RewriteDatabaseQuery:
    """Add the rewrite of this module, where the rewrites of ``fast_run`` are asked for."""
    if "fast_run" not in query.include or query.require or "specialize" in query.exclude:
        return query
    return query.register((in2out(conditional_changes, name="conditional_changes"), _POSITION))


@node_rewriter([Elemwise])
def conditional_changes(fgraph: FunctionGraph, node: Apply) -> Any:
    """Choose the elements that change in place of whole arrays, where one condition decides."""
    if not isinstance(node.op.scalar_op, aes.Switch):
        return False
    condition, first, second = node.inputs
    flag = _single(condition)
    if flag is None or first.type.dtype != second.type.dtype:
        return False
    # What both are changes of, if they are.
    original = next((v for v in _sources(first) if v in _sources(second)), None)
    if original is None:
        return False
    new = original
    for changed, is_first in ((first, True), (second, False)):
        before = new
        for change in _changes_of(changed, original):
            new = _on_condition(flag, change, new, before, is_first)
    return [new] if new.type == node.outputs[0].type else False


def _sources(changed: Variable) -> list[Variable]:
    """List an array and all that it is a change of, the nearest one first."""
    found = [changed]
    while (node := changed.owner) is not None and _changes_few(node):
        changed = node.inputs[0]
        found.append(changed)
    return found


def _changes_few(node: Apply) -> bool:
    """Say whether a node changes elements of an array, which are hardly most of them."""
    if isinstance(node.op, IncSubtensor):
        return not all(isinstance(i, slice) for i in node.op.idx_list)
    return isinstance(node.op, CHANGES)


def _changes_of(changed: Variable, original: Variable) -> list[Apply]:
    """List the nodes, the first one first, that make an array of another."""
    changes = []
    while changed is not original:
        assert changed.owner is not None
        changes.append(changed.owner)
        changed = changed.owner.inputs[0]
    return changes[::-1]


def _single(variable: Variable) -> Variable | None:
    """Give as one number, without axes, what is the same for all elements."""
    if not all(variable.type.broadcastable):
        return None
    owner = variable.owner
    if not variable.type.ndim:
        return variable
    if isinstance(variable, Constant):
        return at.constant(variable.data.reshape(()))
    if owner is not None and isinstance(owner.op, Elemwise) and len(owner.outputs) == 1:
        parts = [_single(part) for part in owner.inputs]
        return None if any(part is None for part in parts) else owner.op(*parts)
    if owner is not None and isinstance(owner.op, DimShuffle) and not owner.inputs[0].type.ndim:
        return owner.inputs[0]
    return variable.dimshuffle([])


def _on_condition(
    flag: Variable, change: Apply, array: Variable, before: Variable, if_true: bool
) -> Variable:
    """Make a node's change of another array, if a condition is true, or else if it is false.

    Where it does not, the array is still what it was before the changes of its branch.
    """
    op, (_, value, *index) = change.op, change.inputs
    dtype = array.type.dtype
    if op.set_instead_of_inc:
        kept = _part(op, before, index)
    else:
        # What leaves every number as it is, and the sign of zero.
        negative = {"f": -0.0, "c": complex(-0.0, -0.0)}.get(np.dtype(dtype).kind, 0)
        kept = at.constant(np.asarray(negative, dtype))
    choices = (at.cast(value, dtype), kept)
    return op(array, at.switch(flag, *(choices if if_true else choices[::-1])), *index)


def _part(op: Any, array: Variable, index: list[Variable]) -> Variable:
    """Give the elements that an op changes."""
    if isinstance(op, IncSubtensor):
        return Subtensor(op.idx_list)(array, *index)
    if isinstance(op, AdvancedIncSubtensor1):
        return AdvancedSubtensor1()(array, *index)
    return AdvancedSubtensor()(array, *index)
