"""Which `Elemwise`s are put off until a loop that reads their elements one by one.

A sum over an expression, or a loop over a sequence that is computed from another, then
takes no array in between and no loop of its own.
"""

from __future__ import annotations

import aesara.scalar.basic as aes
from aesara.graph.basic import Apply, Variable
from aesara.graph.fg import FunctionGraph
from aesara.ifelse import IfElse
from aesara.scan.op import Scan
from aesara.tensor.elemwise import CAReduce, Elemwise
from aesara.tensor.math import Argmax, MaxAndArgmax
from aesara.tensor.subtensor import IncSubtensor

from fixed_modes.aliasing import is_overwritten
from fixed_modes.numba.elemwise import is_loop_nest
from fixed_modes.numba.scalar_functions import has_vector_function
from fixed_modes.numba.writer import Writer

_REDUCTIONS = (aes.Add, aes.Mul, aes.ScalarMaximum, aes.ScalarMinimum)


def may_be_put_off(node: Apply, fgraph: FunctionGraph, later: list[Apply], writer: Writer) -> bool:
    """Say whether the one reader of `node` can compute its elements.

    Parameters
    ----------
    later
        The nodes that are written after `node`.
    """
    if not isinstance(node.op, Elemwise) or len(node.outputs) != 1:
        return False
    (out,) = node.outputs
    clients = fgraph.clients[out]
    if len(clients) != 1 or out in writer.destinations or not is_loop_nest(node):
        return False
    reader, position = clients[0]
    if reader == "output" or not _reads_elements(reader, position, out):
        return False
    # What a branch reads is read where the `IfElse` stands, or before.
    has_branches = any(isinstance(other.op, IfElse) for other in later)
    is_next = reader in later and not has_branches
    until_read = later[: later.index(reader) + 1] if is_next else later
    return not any(is_overwritten(i, until_read) for i in node.inputs)


def _reads_elements(reader: Apply, position: int, out: Variable) -> bool:
    if isinstance(reader.op, (Argmax, MaxAndArgmax)):
        # A nest of their own computes such functions a vector at a time.
        is_plain = not has_vector_function(out.owner.op.scalar_op)
        return is_plain and position == 0 and out.type.dtype != "float16"
    if isinstance(reader.op, CAReduce):
        return isinstance(reader.op.scalar_op, _REDUCTIONS) and out.type.dtype != "float16"
    if isinstance(reader.op, IncSubtensor):
        # A value that an index takes the place of an axis of, or that is spread, is needed whole.
        free_axes = [part for part in reader.op.idx_list if isinstance(part, slice)]
        rank = reader.inputs[0].type.ndim - len(reader.op.idx_list) + len(free_axes)
        return position == 1 and rank == out.type.ndim and not all(out.type.broadcastable)
    if isinstance(reader.op, Scan) and out.type.ndim == 1:
        # Before the loop such functions are computed a vector at a time.
        is_plain = not has_vector_function(out.owner.op.scalar_op)
        return is_plain and 1 <= position <= reader.op.info.n_seqs
    return False
