"""The memory of states of which only the last row is read.

Aesara's rewrite gives the buffer of such a state one row more than it has initial rows,
for a mechanism of its own loop.  Without that row the new state takes the place of the
oldest one, and the in-place rewrites of the step may compute it there: a step that
changes one element of a large state then copies nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import aesara.tensor as at
import numpy as np
from aesara.graph.basic import Apply, Constant, Variable, ancestors
from aesara.graph.fg import FunctionGraph
from aesara.graph.rewriting.basic import node_rewriter
from aesara.ifelse import IfElse
from aesara.scan.op import Scan
from aesara.tensor.basic import Alloc, AllocEmpty, get_scalar_constant_value
from aesara.tensor.elemwise import Elemwise
from aesara.tensor.exceptions import NotScalarConstantError
from aesara.tensor.subtensor import (
    AdvancedIncSubtensor,
    AdvancedIncSubtensor1,
    IncSubtensor,
    Subtensor,
    get_idx_list,
)

from fixed_modes.rewrites.branches import changes_between


@node_rewriter([Scan])
def read_last_row(fgraph: FunctionGraph, node: Apply) -> Any:
    """Replace ``trace[n:][-1]``, after the initial rows of a state, by ``trace[-1]``.

    It has to be done before the two indices are merged into a formula of the length.
    Where more is read of the trace it is not done: after no step the last row of the
    buffer, which has one to spare, is none that was ever written.

    Returns
    -------
    The replacements, or False where there are none.
    """
    if node.op.info.as_while or not _may_take_a_step(node.inputs[0]):
        return False
    replacements: dict[Variable, Variable] = {}
    for output, n_initial, _, _ in _states(node):
        readers = _readers_after_initial_rows(fgraph, output, 0, n_initial)
        new = {reader.outputs[0]: _indexed_alike(reader, output) for reader in readers}
        replacements.update(new)
    return replacements or False


def _readers_after_initial_rows(
    fgraph: FunctionGraph, output: Variable, least: int, most: int
) -> list[Apply]:
    """List the nodes that take ``trace[n:][-1]``; none if anything else is read of a trace."""
    clients = [client for client, _ in fgraph.clients[output]]
    if not all(_skips_rows(client, least, most) for client in clients):
        return []
    readers = [reader for c in clients for reader, _ in fgraph.clients[c.outputs[0]]]
    return readers if all(map(_reads_last_row, readers)) else []


@dataclass(frozen=True)
class LastRow:
    """A state of a scan whose last row is read.

    Attributes
    ----------
    readers
        The nodes that read it.
    n_initial
        The number of initial rows.
    may_be_shortened
        Whether nothing else is read, and a step makes the new state of the old one, in
        place.  Where it does not, a row to spare is better: the result goes there at once.
    """

    readers: list[Apply]
    n_initial: int
    may_be_shortened: bool


def last_rows_read(fgraph: FunctionGraph, node: Apply) -> list[LastRow]:
    """List the states of a scan whose last row is read; none for an `until` scan."""
    if node.op.info.as_while:
        return []
    found = []
    fixed = set(node.op.inner_non_seqs(node.op.inner_inputs))
    for output, n_initial, oldest, result in _states(node):
        clients = [client for client, _ in fgraph.clients[output]]
        readers = [client for client in clients if _reads_last_row(client)]
        if readers:
            is_alone = len(readers) == len(clients)
            may_be_shortened = is_alone and _may_be_in_place(result, oldest, fixed)
            found.append(LastRow(readers, n_initial, may_be_shortened))
    return found


def last_rows_in_place(fgraph: FunctionGraph, node: Apply) -> dict[int, LastRow]:
    """Find states of which only ``trace[n:][-1]`` is read, and which a step may change in place.

    Returns
    -------
    They, by the positions of the outputs of the scan.
    """
    found = {}
    fixed = set(node.op.inner_non_seqs(node.op.inner_inputs))
    for output, n_initial, oldest, result in _states(node):
        readers = _readers_after_initial_rows(fgraph, output, n_initial, n_initial)
        if readers and _may_be_in_place(result, oldest, fixed):
            found[node.outputs.index(output)] = LastRow(readers, n_initial, True)
    return found


def _may_be_in_place(result: Variable, state: Variable, fixed: set[Variable]) -> bool:
    """Say whether a step computes `result` from a state element by element, or changes parts.

    Parameters
    ----------
    fixed
        The inputs of the step that are the same in every step.
    """
    if result is state:
        return True
    node = result.owner
    if node is None or result.type.ndim != state.type.ndim:
        return False
    if isinstance(node.op, Elemwise):
        return any(_may_be_in_place(i, state, fixed) for i in node.inputs)
    if isinstance(node.op, IncSubtensor):
        # Most of an array is often written by slices, as in u[1:-1] = ...; that is better
        # computed elsewhere if it reads what is overwritten.  A part that moves is small.
        array, value, *places = node.inputs
        may_be_most = all(isinstance(part, slice) for part in node.op.idx_list) and all(
            isinstance(v, Constant) or v.owner is not None or v in fixed for v in ancestors(places)
        )
        if may_be_most and state in ancestors([value]):
            return False
        return _may_be_in_place(array, state, fixed)
    if isinstance(node.op, (AdvancedIncSubtensor, AdvancedIncSubtensor1)):
        return _may_be_in_place(node.inputs[0], state, fixed)
    if isinstance(node.op, IfElse):
        n, n_outs = node.outputs.index(result), node.op.n_outs
        branches = node.inputs[1 + n], node.inputs[1 + n_outs + n]
        return state in branches and any(changes_between(state, branch) for branch in branches)
    return False


def shorten(scan: Apply, position: int, n_rows: int) -> bool:
    """Give a buffer of a new scan, which is no part of a graph yet, so many rows.

    Returns
    -------
    Whether the buffer is one that an allocation and the initial rows make.
    """
    shorter = initial_rows(scan.inputs[position], n_rows)
    if shorter is not None:
        scan.inputs[position] = shorter
    return shorter is not None


def initial_rows(buffer: Variable, n_rows: int) -> Variable | None:
    """Give a buffer of so many rows, which are all initial ones.

    Returns
    -------
    It, or None if the buffer is not one that an allocation and the initial rows make.
    """
    rows = at.constant(n_rows, dtype="int64")
    buffer = _whole(buffer)
    owner = buffer.owner
    if owner is not None and isinstance(owner.op, Alloc):
        value, _, *lengths = owner.inputs
        varies = value.type.ndim > len(lengths) and not value.type.broadcastable[0]
        return None if varies else owner.op(value, rows, *lengths)
    if owner is None or not isinstance(owner.op, IncSubtensor) or not owner.op.set_instead_of_inc:
        return None
    empty, initial, *places = owner.inputs
    if not _is_start(owner) or empty.owner is None or not isinstance(empty.owner.op, AllocEmpty):
        return None
    _, *lengths = empty.owner.inputs
    return owner.op(empty.owner.op(rows, *lengths), initial, *places)


def _whole(buffer: Variable) -> Variable:
    """Give the allocation of which a buffer is the first rows."""
    owner = buffer.owner
    if owner is None or not isinstance(owner.op, Subtensor) or not _is_start(owner):
        return buffer
    source = owner.inputs[0]
    return source if source.owner is not None and isinstance(source.owner.op, Alloc) else buffer


def _is_start(node: Apply) -> bool:
    """Say whether an index takes the first rows, and nothing but rows."""
    (rows, *others) = get_idx_list(node.inputs, node.op.idx_list)
    return not others and isinstance(rows, slice) and rows.start is None and rows.step is None


def last_row_of(trace: Variable, state: LastRow) -> dict[Variable, Variable]:
    """Give what the readers of the last row of another trace read of this one."""
    return {reader.outputs[0]: _indexed_alike(reader, trace) for reader in state.readers}


def row_after_steps(trace: Variable, state: LastRow, n_steps: Variable) -> dict[Variable, Variable]:
    """Give the same for a trace with rows to spare, of which no step may have written any."""
    rows = at.minimum(n_steps + state.n_initial, trace.shape[0])
    index = at.scalar_from_tensor(at.cast(rows - 1, "int64"))
    return {
        reader.outputs[0]: reader.op(trace, index, *reader.inputs[2:]) for reader in state.readers
    }


def last_row_of_initial(
    trace: Variable, state: LastRow, n_steps: Variable
) -> dict[Variable, Variable]:
    """Give the same for a trace of the initial rows alone; without a step it is an IndexError."""
    row = at.switch(at.gt(n_steps, 0), np.int64(-1), np.int64(state.n_initial))
    index = at.scalar_from_tensor(at.cast(row, "int64"))
    return {
        reader.outputs[0]: reader.op(trace, index, *reader.inputs[2:]) for reader in state.readers
    }


def _states(node: Apply) -> Iterator[tuple[Variable, int, Variable, Variable]]:
    """Give the outer output, the number of initial rows, the oldest tap and the new state."""
    op, info = node.op, node.op.info
    taps = [*info.mit_sot_in_slices, *info.sit_sot_in_slices]
    inputs = iter([*op.inner_mitsot(op.inner_inputs), *op.inner_sitsot(op.inner_inputs)])
    outputs = [*op.inner_mitsot_outs(op.inner_outputs), *op.inner_sitsot_outs(op.inner_outputs)]
    for output, of_state, result in zip(node.outputs[info.n_mit_mot :], taps, outputs):
        of_taps = dict(zip(of_state, inputs))
        oldest = min(of_state)
        yield output, -oldest, of_taps[oldest], result


def _may_take_a_step(n_steps: Variable) -> bool:
    """Say whether a number of steps is not known to be 0, where there is no last row."""
    try:
        return int(get_scalar_constant_value(n_steps)) > 0
    except NotScalarConstantError:
        return True


def _skips_rows(client: Apply | str, least: int, most: int) -> bool:
    if isinstance(client, str) or not isinstance(client.op, Subtensor):
        return False
    (rows, *others) = get_idx_list(client.inputs, client.op.idx_list)
    if others or not isinstance(rows, slice) or rows.stop is not None:
        return False
    start, step = _integer(rows.start), _integer(rows.step)
    return start is not None and least <= start <= most and step in (None, 1)


def _reads_last_row(client: Apply | str) -> bool:
    if isinstance(client, str) or not isinstance(client.op, Subtensor):
        return False
    return _integer(get_idx_list(client.inputs, client.op.idx_list)[0]) == -1


def _integer(value: Any) -> int | None:
    if isinstance(value, Constant):
        value = value.data
    return None if value is None or isinstance(value, (Variable, slice)) else int(value)


def _indexed_alike(reader: Apply, trace: Variable) -> Variable:
    """Apply the index of a node to another variable."""
    return reader.op(trace, *reader.inputs[1:])
