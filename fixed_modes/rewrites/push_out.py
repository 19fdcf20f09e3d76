"""What stays in a loop, though it depends on sequences alone.

Aesara computes ahead of a loop, for all steps at once, what depends on the rows of
sequences and on what is the same in every step.  Where that is larger than the rows,
``exp(-(y[t] - x)**2).sum()`` with a vector `x` for one, it makes an array of all steps
that is written to memory and read again only to be summed.
"""

from __future__ import annotations

from typing import Any

from aesara.compile.ops import ViewOp
from aesara.graph.basic import Apply, Constant, Variable, clone_replace, io_toposort
from aesara.graph.fg import FunctionGraph
from aesara.graph.rewriting.basic import node_rewriter
from aesara.scan.op import Scan
from aesara.scan.rewriting import push_out_seq_scan
from aesara.tensor.elemwise import DimShuffle, Elemwise

from fixed_modes.rewrites.scan_like import scan_like


class Stay(ViewOp):
    """Gives its input, which no rewrite moves out of a loop."""


_stay = Stay()


@node_rewriter([Stay])
def remove_stay(fgraph: FunctionGraph, node: Apply) -> Any:
    """Give what was kept in a loop, now that all that moves has been moved."""
    return [node.inputs[0]]


def push_out_rows(fgraph: FunctionGraph, node: Apply) -> Any:
    """Compute on whole sequences, ahead of a loop, what is no larger than their rows.

    Returns
    -------
    The replacements, or False where there are none.
    """
    held = {
        output: new
        for inner in _expansions(node.op)
        for output, new in zip(inner.outputs, _held_back(node.op, inner).outputs)
    }
    if not held:
        return push_out_seq_scan.transform(fgraph, node)
    op = node.op
    outputs = clone_replace(op.inner_outputs, replace=held)
    other = scan_like(op, op.inner_inputs, outputs, op.info).make_node(*node.inputs)
    replacements = push_out_seq_scan.transform(fgraph, other)
    if not replacements:
        return False
    found = {old: replacements[new] for old, new in zip(node.outputs, other.outputs)}
    return {**found, "remove": [node]}


def _held_back(op: Scan, inner: Apply) -> Apply:
    """Make a node that doesn't depend on sequences as far as Aesara can see."""
    return inner.op.make_node(*(i if isinstance(i, Constant) else _stay(i) for i in inner.inputs))


def _expansions(op: Scan) -> list[Apply]:
    """Find elementwise ops that give more axes than the rows they take, for use in the loop."""
    rows = set(op.inner_seqs(op.inner_inputs))
    fixed = set(op.inner_non_seqs(op.inner_inputs))
    movable: dict[Variable, int] = {row: _rank(row) for row in rows}
    order = io_toposort(op.inner_inputs, op.inner_outputs)
    found: list[Apply] = []
    kept: set[Variable] = set()
    for node in reversed(order):
        # What is used in the loop, through elementwise ops or not.
        is_movable = isinstance(node.op, (DimShuffle, Elemwise))
        if not is_movable or any(output in kept for output in node.outputs):
            kept.update(node.inputs)
    for node in order:
        if not isinstance(node.op, (DimShuffle, Elemwise)):
            continue
        known = all(isinstance(i, Constant) or i in movable or i in fixed for i in node.inputs)
        ranks = [movable[i] for i in node.inputs if i in movable]
        if not known or not ranks:
            continue
        rank = _rank(node.outputs[0])
        if isinstance(node.op, Elemwise) and rank > max(ranks) and node.outputs[0] in kept:
            found.append(node)
        else:
            movable.update((output, max(ranks)) for output in node.outputs)
    return found


def _rank(variable: Variable) -> int:
    """Count the axes that may have more than one entry."""
    return sum(size != 1 for size in getattr(variable.type, "shape", ()))
