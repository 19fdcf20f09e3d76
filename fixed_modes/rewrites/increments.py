"""Sums in which a step adds to a few elements of a large state.

The gradient of a loop by an array of which each step reads ``x[i]`` is a state: the step
adds an array of zeros that is incremented at ``i``.  That is work for the whole array in
each step.  Aesara increments the state itself where it can see the zeros; in a loop it
can't, since it has moved them out, ahead of the loop.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import aesara.tensor as at
from aesara.graph.basic import Apply, Variable, equal_computations
from aesara.graph.fg import FunctionGraph
from aesara.graph.rewriting.basic import node_rewriter
from aesara.scalar import basic as aes
from aesara.scan.op import Scan
from aesara.tensor.basic import get_scalar_constant_value
from aesara.tensor.elemwise import Elemwise
from aesara.tensor.exceptions import NotScalarConstantError
from aesara.tensor.subtensor import AdvancedIncSubtensor, AdvancedIncSubtensor1, IncSubtensor

from fixed_modes.rewrites.scan_like import scan_like

#: Change some elements of their first input.
CHANGES = (IncSubtensor, AdvancedIncSubtensor, AdvancedIncSubtensor1)


@node_rewriter([Scan])
def increment_states(fgraph: FunctionGraph, node: Apply) -> Any:
    """Replace ``state + inc(zeros, y, i)`` in a step by ``inc(state, y, i)``.

    It is done where the zeros are made ahead of the loop, with the shape of the state's
    rows: an addition that fails for its shapes goes on failing.

    Returns
    -------
    The replacements, or False where there are none.
    """
    op, info = node.op, node.op.info
    zeros = dict(_zeros(node))
    shapes = getattr(fgraph, "shape_feature", None)
    if not zeros or shapes is None:
        return False
    states = op.inner_sitsot(op.inner_inputs)
    buffers = op.outer_sitsot(node.inputs)
    first = sum(map(len, info.mit_mot_out_slices)) + info.n_mit_sot
    outputs = list(op.inner_outputs)
    for position, (state, buffer) in enumerate(zip(states, buffers), start=first):
        lengths = shapes.shape_of[buffer]
        alike = {
            inner
            for inner, outer in zeros.items()
            if inner.type.dtype == state.type.dtype
            and lengths is not None
            and _are_equal(shapes.shape_of[outer], lengths[1:])
        }
        new = _incremented(outputs[position], state, alike)
        if new is not None and new.type == outputs[position].type:
            outputs[position] = new
    if all(new is old for new, old in zip(outputs, op.inner_outputs)):
        return False
    new_op = scan_like(op, op.inner_inputs, outputs, info)
    return dict(zip(node.outputs, new_op(*node.inputs, return_list=True)))


def _zeros(node: Apply) -> Iterator[tuple[Variable, Variable]]:
    """Give the non-sequences that are zeros, as the step has them and around the loop."""
    op = node.op
    for inner, outer in zip(op.inner_non_seqs(op.inner_inputs), op.outer_non_seqs(node.inputs)):
        if outer.owner is None or not getattr(outer.type, "ndim", 0):
            continue
        try:
            value = get_scalar_constant_value(outer)
        except NotScalarConstantError:
            continue
        if value == 0:
            yield inner, outer


def _are_equal(lengths: Any, others: Sequence[Variable]) -> bool:
    return (
        lengths is not None
        and len(lengths) == len(others)
        and equal_computations(list(lengths), list(others))
    )


def _increment(array: Variable, change: Apply) -> Variable:
    """Increment an array as a node increments, or sets, some elements of zeros."""
    props = {**change.op._props_dict(), "set_instead_of_inc": False, "inplace": False}
    return type(change.op)(**props)(array, *change.inputs[1:])


def _incremented(result: Variable, state: Variable, zeros: set[Variable]) -> Variable | None:
    """Give the new state as increments of the old one, if that is what it is."""
    kept: list[Variable] = []
    changes: list[Apply] = []
    found = False
    for term in _terms(result):
        chain = _changes(term, zeros)
        if chain is None:
            kept.append(term)
        else:
            changes.extend(chain)
            found = True
    if not found or kept.count(state) != 1 or any(t.type.dtype != state.type.dtype for t in kept):
        return None
    new = kept[0] if len(kept) == 1 else at.add(*kept)
    for change in changes:
        new = _increment(new, change)
    return new


def _terms(variable: Variable) -> Iterator[Variable]:
    """Give the terms of a sum; a variable that is no sum is its own only term."""
    node = variable.owner
    if (
        node is None
        or not isinstance(node.op, Elemwise)
        or not isinstance(node.op.scalar_op, aes.Add)
    ):
        yield variable
        return
    for term in node.inputs:
        yield from _terms(term)


def _changes(term: Variable, zeros: set[Variable]) -> list[Apply] | None:
    """List the nodes, the first one first, that make a term of zeros by increments."""
    changes: list[Apply] = []
    while term not in zeros:
        node = term.owner
        if node is None or not isinstance(node.op, CHANGES):
            return None
        array = node.inputs[0]
        # To set elements of zeros is to increment them, if none is set twice.
        sets_once = isinstance(node.op, IncSubtensor) and array in zeros
        if node.op.set_instead_of_inc and not sets_once:
            return None
        changes.append(node)
        term = array
    return changes[::-1]
