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
from aesara.scalar import basic as aes
from aesara.scan.op import Scan
from aesara.scan.rewriting import push_out_seq_scan
from aesara.tensor.elemwise import DimShuffle, Elemwise

from fixed_modes.rewrites.scan_like import scan_like

#: What takes about as long as reading a number; all other functions are dear.
_CHEAP = (
    *(aes.Abs, aes.Add, aes.BinaryBitOp, aes.Cast, aes.FixedLogicalComparison, aes.Identity),
    *(aes.LogicalComparison, aes.Mul, aes.Neg, aes.Reciprocal, aes.ScalarMaximum),
    *(aes.ScalarMinimum, aes.Second, aes.Sgn, aes.Sqr, aes.Sub, aes.Switch, aes.TrueDivide),
    aes.UnaryBitOp,
)


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
    held: dict[Variable, Variable] = {}
    for inner in _to_be_held(node.op):
        held.update(zip(inner.outputs, _held_back(inner, held).outputs))
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


def _held_back(inner: Apply, held: dict[Variable, Variable]) -> Apply:
    """Make a node that doesn't depend on sequences as far as Aesara can see."""
    return inner.op.make_node(
        *(
            held[i] if i in held else i if isinstance(i, Constant) else _stay(i)
            for i in inner.inputs
        )
    )


def _to_be_held(op: Scan) -> list[Apply]:
    """Find what is to stay in the loop.

    That is, firstly, elementwise ops that give more axes than the rows they take, for use
    in the loop.  Of vectors, but not of numbers, these are left out if exponentials and the
    like come after them: matrices are mostly small where they have to be computed in every
    step, and all steps at once are vector code.

    Secondly new axes of rows: behind them a loop over the elements of a row does not know
    that they stand side by side.
    """
    fixed = set(op.inner_non_seqs(op.inner_inputs))
    rows = op.inner_seqs(op.inner_inputs)
    order = io_toposort(op.inner_inputs, op.inner_outputs)
    kept, dear = _uses(order, {*rows, *fixed})
    movable = {row: _rank(row) for row in rows}
    found: list[Apply] = []
    for node in order:
        ranks = [movable[i] for i in node.inputs if i in movable]
        if not _moves(node, {*movable, *fixed}) or not ranks:
            continue
        output, rank = node.outputs[0], max(ranks)
        is_larger = isinstance(node.op, Elemwise) and _rank(output) > rank
        if is_larger and output in kept and not (rank and output in dear):
            found.append(node)
        else:
            movable.update(dict.fromkeys(node.outputs, rank))
    return [*_last_dim_shuffles(order, set(movable)), *found]


def _last_dim_shuffles(order: list[Apply], movable: set[Variable]) -> list[Apply]:
    """Find the `DimShuffle`s that could be moved, of which only what stays makes use."""
    moving = [node for node in order if not movable.isdisjoint(node.outputs)]
    staying = {i for node in order if movable.isdisjoint(node.outputs) for i in node.inputs}
    still = staying.difference(*(node.inputs for node in moving))
    return [node for node in moving if isinstance(node.op, DimShuffle) and node.outputs[0] in still]


def _uses(order: list[Apply], known: set[Variable]) -> tuple[set[Variable], set[Variable]]:
    """Say which variables are used in a loop that there is anyhow, and which by dear functions.

    Uses by what is made of them elementwise count too.

    Parameters
    ----------
    known
        What is known ahead of the loop.
    """
    known = set(known)
    moving: set[Apply] = set()
    for node in order:
        if _moves(node, known):
            moving.add(node)
            known.update(node.outputs)
    kept: set[Variable] = set()
    dear: set[Variable] = set()
    for node in reversed(order):
        if node not in moving or not kept.isdisjoint(node.outputs):
            kept.update(node.inputs)
        if _is_elementwise(node) and not dear.isdisjoint(node.outputs):
            dear.update(node.inputs)
        if isinstance(node.op, Elemwise) and not isinstance(node.op.scalar_op, _CHEAP):
            dear.update((*node.inputs, *node.outputs))
    return kept, dear


def _is_elementwise(node: Apply) -> bool:
    return isinstance(node.op, (DimShuffle, Elemwise))


def _moves(node: Apply, known: set[Variable]) -> bool:
    """Say whether Aesara computes a node ahead of a loop, of what is known there."""
    return _is_elementwise(node) and all(isinstance(i, Constant) or i in known for i in node.inputs)


def _rank(variable: Variable) -> int:
    """Count the axes that may have more than one entry."""
    return sum(size != 1 for size in getattr(variable.type, "shape", ()))
