"""The memory of `until` scans of which only the last rows are read.

Aesara cuts down the buffers of a scan by its number of steps, which an `until` scan
does not know before it has run: all its buffers are as long as the bound.  Indices
that count from the end need no length: ``trace[-1]`` is the last row of a buffer of
one row as well as of a full one.

A buffer here always has room for one step at least, and one step always fills it, or
it has the initial rows alone and a step changes them, so that "as long as the steps that
were done" and "as long as the buffer" never differ.
"""

from __future__ import annotations

from typing import Any

import aesara.tensor as at
from aesara.graph.basic import Apply, Constant, Variable
from aesara.graph.fg import FunctionGraph
from aesara.graph.rewriting.basic import node_rewriter
from aesara.scan.op import Scan
from aesara.scan.utils import compress_outs, scan_can_remove_outs
from aesara.tensor.basic import AllocEmpty
from aesara.tensor.subtensor import IncSubtensor, Subtensor, get_idx_list

from fixed_modes.rewrites.last_row import initial_rows, last_row_of_initial, last_rows_in_place
from fixed_modes.rewrites.scan_like import scan_like


@node_rewriter([Scan])
def keep_last_rows(fgraph: FunctionGraph, node: Apply) -> Any:
    """Give the buffers of an `until` scan as many rows as are read, counted from the end.

    Returns
    -------
    The replacements, or False where every buffer is needed whole.
    """
    op, info = node.op, node.op.info
    if not info.as_while:
        return False
    starts = [
        *([-min(taps) for taps in info.mit_sot_in_slices]),
        *([-min(taps) for taps in info.sit_sot_in_slices]),
        *([0] * info.n_nit_sot),
    ]
    in_place = last_rows_in_place(fgraph, node)
    needed: dict[int, int] = {}
    for index, first_row in enumerate(starts, start=info.n_mit_mot):
        rows = rows_from_the_end(fgraph, node.outputs[index])
        if rows is not None and rows <= first_row + 1:
            needed[index] = first_row + 1
    if not needed:
        return False
    inputs = list(node.inputs)
    for index, rows in needed.items():
        position = _outer_input(op, index)
        shorter = initial_rows(inputs[position], rows - 1) if index in in_place else None
        if shorter is not None:
            inputs[position] = shorter
            continue
        in_place.pop(index, None)
        is_mapped = index >= info.n_mit_mot + info.n_mit_sot + info.n_sit_sot
        shorten = _minimum if is_mapped else _first_rows
        inputs[position] = shorten(inputs[position], rows)
    # Aesara's helpers count the outputs of a mit-mot as one.
    unused = [i for i in needed if not fgraph.clients[node.outputs[i]] and not info.n_mit_mot]
    _, removable = scan_can_remove_outs(op, unused)
    inner_inputs, inner_outputs, new_info, inputs, places = compress_outs(op, removable, inputs)
    new_op = scan_like(op, inner_inputs, inner_outputs, new_info)
    outputs = new_op(*inputs, return_list=True)
    replacements: dict[Any, Any] = {
        output: outputs[places[index]]
        for index, output in enumerate(node.outputs)
        if index not in removable
    }
    for index, state in in_place.items():
        replacements.update(last_row_of_initial(outputs[places[index]], state, inputs[0]))
    replacements["remove"] = [node]
    return replacements


def rows_from_the_end(fgraph: FunctionGraph, trace: Variable) -> int | None:
    """Count the rows at the end of a trace that the graph around a scan reads.

    Returns
    -------
    The number, 0 for a trace that nothing reads; None where the number is not known or
    where rows are counted from the start.
    """
    most = 0
    for client, _ in fgraph.clients[trace]:
        index = _only_index(client)
        if index is None:
            return None
        skipped = _skipped(index)
        if skipped is not None:
            # The part of a trace after its initial rows.
            rows = rows_from_the_end(fgraph, client.outputs[0])
            rows = None if rows is None else rows + skipped
        else:
            rows = _counted_from_the_end(index)
        if rows is None:
            return None
        most = max(most, rows)
    return most


def _only_index(client: Apply | str) -> Any:
    """Give the index of the first axis that a node takes, or None for other nodes."""
    if isinstance(client, str) or not isinstance(client.op, Subtensor):
        return None
    first, *others = get_idx_list(client.inputs, client.op.idx_list)
    # A part of the trace has to be one along the first axis alone.
    return None if others and isinstance(first, slice) else first


def _skipped(index: Any) -> int | None:
    if not isinstance(index, slice) or index.stop is not None:
        return None
    start, step = _integer(index.start, 0), _integer(index.step, 1)
    return start if start is not None and start >= 0 and step == 1 else None


def _counted_from_the_end(index: Any) -> int | None:
    if isinstance(index, slice):
        step = _integer(index.step, 1)
        if index.stop is not None or step is None or step < 1:
            return None
        index = index.start
    place = _integer(index, 0)
    return -place if place is not None and place < 0 else None


def _integer(value: Any, default: int) -> int | None:
    if value is None:
        return default
    if isinstance(value, Constant):
        value = value.data
    return None if isinstance(value, Variable) else int(value)


def _outer_input(op: Scan, output: int) -> int:
    """Give the position of the outer input that is the buffer, or its length, of an output."""
    info = op.info
    n_buffers = info.n_mit_mot + info.n_mit_sot + info.n_sit_sot
    position = 1 + info.n_seqs + output
    return position if output < n_buffers else position + info.n_shared_outs


def _first_rows(buffer: Variable, rows: int) -> Variable:
    """Give the first rows of a buffer, without making the buffer where that can be avoided."""
    owner = buffer.owner
    if owner is not None and isinstance(owner.op, IncSubtensor) and owner.op.set_instead_of_inc:
        empty, initial, *places = owner.inputs
        stop = owner.op.idx_list[0]
        is_start = len(owner.op.idx_list) == 1 and isinstance(stop, slice)
        if is_start and stop.start is None and stop.step is None and _is_empty(empty):
            length, *others = empty.owner.inputs
            shorter = empty.owner.op(_minimum(length, rows), *others)
            return owner.op(shorter, initial, *places)
    return buffer[:rows]


def _is_empty(variable: Variable) -> bool:
    return variable.owner is not None and isinstance(variable.owner.op, AllocEmpty)


def _minimum(length: Variable, rows: int) -> Variable:
    if isinstance(length, Constant):
        return at.constant(min(int(length.data), rows), dtype="int64")
    return at.minimum(length, at.constant(rows, dtype="int64"))
