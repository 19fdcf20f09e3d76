"""The memory of states of which only the last row is read.

Aesara's rewrite gives the buffer of such a state one row more than it has initial rows,
for a mechanism of its own loop.  Without that row the new state takes the place of the
oldest one, and the in-place rewrites of the step may compute it there: a step that
changes one element of a large state then copies nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import aesara.tensor as at
from aesara.graph.basic import Apply, Constant, Variable
from aesara.graph.fg import FunctionGraph
from aesara.graph.rewriting.basic import node_rewriter
from aesara.scan.op import Scan
from aesara.tensor.basic import AllocEmpty, get_scalar_constant_value
from aesara.tensor.elemwise import Elemwise
from aesara.tensor.exceptions import NotScalarConstantError
from aesara.tensor.subtensor import (
    AdvancedIncSubtensor,
    AdvancedIncSubtensor1,
    IncSubtensor,
    Subtensor,
    get_idx_list,
)


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
        clients = [client for client, _ in fgraph.clients[output]]
        if not all(_skips_initial_rows(client, n_initial) for client in clients):
            continue
        readers = [reader for c in clients for reader, _ in fgraph.clients[c.outputs[0]]]
        if all(map(_reads_last_row, readers)):
            new = {reader.outputs[0]: _indexed_alike(reader, output) for reader in readers}
            replacements.update(new)
    return replacements or False


def states_to_shorten(fgraph: FunctionGraph, node: Apply) -> list[tuple[Variable, int]]:
    """List the states that are read at the end only, and may be computed in their place.

    Where the new state is not what a step makes of the old one in place, a row to spare
    is better: the result goes there at once.

    Returns
    -------
    For each the outer output, and the number of initial rows.
    """
    if node.op.info.as_while:
        return []
    return [
        (output, n_initial)
        for output, n_initial, oldest, result in _states(node)
        if fgraph.clients[output]
        and all(_reads_last_row(client) for client, _ in fgraph.clients[output])
        and _may_be_in_place(result, oldest)
    ]


def _may_be_in_place(result: Variable, state: Variable) -> bool:
    """Say whether a step computes `result` from a state element by element, or changes parts."""
    if result is state:
        return True
    node = result.owner
    if node is None or result.type.ndim != state.type.ndim:
        return False
    if isinstance(node.op, Elemwise):
        return any(_may_be_in_place(i, state) for i in node.inputs)
    if isinstance(node.op, IncSubtensor):
        # Most of an array is often written by slices, as in u[1:-1] = ...; that is better
        # computed elsewhere, since it reads what is overwritten.
        changes_little = not all(isinstance(part, slice) for part in node.op.idx_list)
        return changes_little and _may_be_in_place(node.inputs[0], state)
    if isinstance(node.op, (AdvancedIncSubtensor, AdvancedIncSubtensor1)):
        return _may_be_in_place(node.inputs[0], state)
    return False


def shorten(scan: Apply, position: int, n_rows: int) -> bool:
    """Give a buffer of a new scan, which is no part of a graph yet, so many rows.

    Returns
    -------
    Whether the buffer is one that an allocation and the initial rows make.
    """
    buffer = scan.inputs[position]
    owner = buffer.owner
    if owner is None or not isinstance(owner.op, IncSubtensor) or not owner.op.set_instead_of_inc:
        return False
    empty, initial, *places = owner.inputs
    (rows, *others) = get_idx_list(owner.inputs, owner.op.idx_list)
    is_start = isinstance(rows, slice) and rows.start is None and rows.step is None
    if others or not is_start or empty.owner is None:
        return False
    if not isinstance(empty.owner.op, AllocEmpty):
        return False
    _, *lengths = empty.owner.inputs
    shorter = empty.owner.op(at.constant(n_rows, dtype="int64"), *lengths)
    scan.inputs[position] = owner.op(shorter, initial, *places)
    return True


def last_row_of(trace: Variable, readers: list[Apply]) -> dict[Variable, Variable]:
    """Give what the readers of the last row of another trace read of this one."""
    return {reader.outputs[0]: _indexed_alike(reader, trace) for reader in readers}


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


def _skips_initial_rows(client: Apply | str, n_initial: int) -> bool:
    if isinstance(client, str) or not isinstance(client.op, Subtensor):
        return False
    (rows, *others) = get_idx_list(client.inputs, client.op.idx_list)
    if others or not isinstance(rows, slice) or rows.stop is not None:
        return False
    start, step = _integer(rows.start), _integer(rows.step)
    return start is not None and 0 <= start <= n_initial and step in (None, 1)


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
