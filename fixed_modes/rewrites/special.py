"""Work that functions of exponentials do for nothing.

* ``logsumexp`` guards against an infinite maximum ``m`` with
  ``switch(isinf(m), exp(m), ...)``.  In compiled code both branches are computed, so
  that the exponential that is hardly ever wanted costs as much as the others.
* ``softmax(x - max(x))``: the softmax subtracts the maximum itself.
"""

from __future__ import annotations

from typing import Any

import aesara.tensor as at
import numpy as np
from aesara.graph.basic import Apply, Variable
from aesara.graph.fg import FunctionGraph
from aesara.graph.rewriting.basic import in2out, node_rewriter
from aesara.graph.rewriting.db import RewriteDatabaseQuery
from aesara.scalar import basic as aes
from aesara.tensor.elemwise import CAReduce, DimShuffle, Elemwise
from aesara.tensor.special import LogSoftmax, Softmax

# After Aesara has made softmaxes of exponentials, before elementwise ops are fused.
_POSITION = 48.4


def with_special_rewrites(query: RewriteDatabaseQuery) -> RewriteDatabaseQuery:
    """Add the rewrites of this module, where the rewrites of ``fast_run`` are asked for."""
    if "fast_run" not in query.include or query.require or "specialize" in query.exclude:
        return query
    return query.register(
        (in2out(exponential_of_infinity, name="exponential_of_infinity"), _POSITION),
        (in2out(softmax_of_shifted, name="softmax_of_shifted"), _POSITION),
    )


@node_rewriter([Elemwise])
def exponential_of_infinity(fgraph: FunctionGraph, node: Apply) -> Any:
    """Replace ``switch(isinf(m), exp(m), y)`` by one that chooses 0 or infinity."""
    if not isinstance(node.op.scalar_op, aes.Switch):
        return False
    condition, exponential, other = node.inputs
    guarded = _argument(condition, aes.IsInf)
    if guarded is None or _argument(exponential, aes.Exp) is not guarded:
        return False
    zero, infinity = (np.asarray(v, exponential.type.dtype) for v in (0, np.inf))
    return [node.op(condition, at.switch(at.gt(guarded, 0), infinity, zero), other)]


@node_rewriter([Softmax, LogSoftmax])
def softmax_of_shifted(fgraph: FunctionGraph, node: Apply) -> Any:
    """Replace ``softmax(x - max(x))`` by ``softmax(x)``, with the same axis."""
    (shifted,) = node.inputs
    owner = shifted.owner
    if owner is None or not isinstance(owner.op, Elemwise):
        return False
    if not isinstance(owner.op.scalar_op, aes.Sub):
        return False
    x, shift = owner.inputs
    if shift.owner is None or not isinstance(shift.owner.op, DimShuffle):
        return False
    (largest,) = shift.owner.inputs
    axes = _axes_of_maximum(largest, x)
    wanted = range(x.type.ndim) if node.op.axis is None else [node.op.axis % x.type.ndim]
    if axes is None or axes != tuple(wanted):
        return False
    kept = iter(range(largest.type.ndim))
    order = tuple("x" if axis in axes else next(kept) for axis in range(x.type.ndim))
    if shift.owner.op.new_order != order or shifted.type.dtype != x.type.dtype:
        return False
    return [node.op(x)]


def _argument(variable: Variable, scalar_op: type) -> Variable | None:
    """Give the argument of an elementwise function that a variable is, if it is that."""
    owner = variable.owner
    if owner is None or not isinstance(owner.op, Elemwise):
        return None
    return owner.inputs[0] if isinstance(owner.op.scalar_op, scalar_op) else None


def _axes_of_maximum(variable: Variable, x: Variable) -> tuple[int, ...] | None:
    owner = variable.owner
    if owner is None or owner.inputs[0] is not x or not isinstance(owner.op, CAReduce):
        return None
    if not isinstance(owner.op.scalar_op, aes.ScalarMaximum):
        return None
    axes = range(x.type.ndim) if owner.op.axis is None else owner.op.axis
    return tuple(sorted(axis % x.type.ndim for axis in axes))
