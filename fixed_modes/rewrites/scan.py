"""Aesara's scan rewrites that are wrong for some scans, kept from those.

* ``scan_pushout_nonseqs_ops`` and ``scan_pushout_seqs_ops`` replace a scan whose
  whole step can be moved out by what was moved out.  For a state the row of the
  start is missing then, for an ``until`` scan the length is wrong, and so it is
  for a trace that is longer than the steps.
* ``scan_merge`` joins ``until`` scans that have the same condition on different
  outer inputs.
* ``scan_pushout_add`` sums over rows of the traces that no step made.
* ``scan_save_mem`` takes one step where there is none to take, on sequences that may
  be empty then.
"""

from __future__ import annotations

from typing import Any

import aesara.tensor as at
from aesara.graph.basic import Apply, Constant, Variable, equal_computations
from aesara.graph.fg import FunctionGraph
from aesara.graph.rewriting.basic import in2out, node_rewriter
from aesara.graph.rewriting.db import RewriteDatabaseQuery
from aesara.scan.op import Scan
from aesara.scan.rewriting import (
    ScanMerge,
    push_out_non_seq_scan,
    save_mem_new_scan,
)
from aesara.tensor.subtensor import Subtensor

from fixed_modes.rewrites.increments import increment_states
from fixed_modes.rewrites.last_row import (
    last_row_of,
    last_rows_read,
    read_last_row,
    row_after_steps,
    shorten,
)
from fixed_modes.rewrites.push_out import push_out_rows, remove_stay
from fixed_modes.rewrites.while_scan import keep_last_rows

# Ahead of Aesara's rewrites, in graphs that have been inside of others.
_FIRST = -1.5

#: The names under which Aesara registers the faulty rewrites.
FAULTY = (
    "scan_pushout_nonseqs_ops",
    "scan_pushout_seqs_ops",
    "scan_pushout_add",
    "scan_merge",
    "scan_save_mem",
)


class SafeScanMerge(ScanMerge):
    """Merges scans, but none with an ``until`` condition."""

    def belongs_to_set(self, node: Apply, set_nodes: list[Apply]) -> bool:
        return not node.op.info.as_while and super().belongs_to_set(node, set_nodes)


@node_rewriter([Scan])
def push_out_non_seq(fgraph: FunctionGraph, node: Apply) -> Any:
    """Compute once, before the loop, what depends on non-sequences only."""
    fixed = node.op.inner_non_seqs(node.op.inner_inputs)
    if _vanishes_wrongly(node, fixed):
        return False
    return push_out_non_seq_scan.transform(fgraph, node)


@node_rewriter([Scan])
def push_out_seq(fgraph: FunctionGraph, node: Apply) -> Any:
    """Compute on whole sequences, before the loop, what depends on no state."""
    op = node.op
    fixed = [*op.inner_seqs(op.inner_inputs), *op.inner_non_seqs(op.inner_inputs)]
    if _vanishes_wrongly(node, fixed):
        return False
    return push_out_rows(fgraph, node)


@node_rewriter([Scan])
def save_mem(fgraph: FunctionGraph, node: Apply) -> Any:
    """Keep only the rows that are read, and take no step more than the scan does."""
    # Of a forward loop over sequences without a step no single row can be read: Aesara's
    # error stays.
    info = node.op.info
    may_be_empty = bool(info.n_mit_mot or not info.n_seqs) or not _reads_single_rows(fgraph, node)
    at_the_end = last_rows_read(fgraph, node)
    replacements = save_mem_new_scan.transform(fgraph, node)
    if not replacements:
        return replacements
    scans = [_scan_behind(new) for new in replacements.values() if isinstance(new, Variable)]
    scan = next((scan for scan in scans if scan is not None and scan is not node), None)
    if scan is None:
        return replacements
    # The node is new, and no part of the graph yet.
    if may_be_empty and scan.inputs[0] is not node.inputs[0]:
        scan.inputs[0] = at.minimum(scan.inputs[0], node.inputs[0])
    for state in at_the_end:
        trace = _trace_behind(replacements.get(state.readers[0].outputs[0]))
        # Outputs that are not needed have been left out, and others have moved.
        if trace is None or trace.owner is not scan:
            continue
        moved = 1 + scan.op.info.n_seqs + scan.outputs.index(trace)
        if state.may_be_shortened and shorten(scan, moved, state.n_initial):
            replacements.update(last_row_of(trace, state))
        else:
            replacements.update(row_after_steps(trace, state, scan.inputs[0]))
    return replacements


def _reads_single_rows(fgraph: FunctionGraph, node: Apply) -> bool:
    """Say whether the graph around a scan takes single rows of what it gives."""
    clients = (client for out in node.outputs for client, _ in fgraph.clients[out])
    return any(
        isinstance(client, Apply)
        and isinstance(client.op, Subtensor)
        and not all(isinstance(part, slice) for part in client.op.idx_list[:1])
        for client in clients
    )


def _scan_behind(variable: Variable) -> Apply | None:
    """Give the scan of which a variable is an output or a part of one."""
    while variable.owner is not None and not isinstance(variable.owner.op, Scan):
        variable = variable.owner.inputs[0]
    return variable.owner


def _trace_behind(variable: Any) -> Variable | None:
    """Give the output of a scan of which a variable is a part."""
    while isinstance(variable, Variable) and variable.owner is not None:
        if isinstance(variable.owner.op, Scan):
            return variable
        variable = variable.owner.inputs[0]
    return None


def _vanishes_wrongly(node: Apply, fixed: list[Variable]) -> bool:
    """Say whether the whole step could move out of a scan that is more than a plain map."""
    op = node.op
    movable = {*fixed}
    for inner in op.fgraph.toposort():
        if not all(isinstance(i, Constant) or i in movable for i in inner.inputs):
            return False
        movable.update(inner.outputs)
    info = op.info
    has_states = info.n_mit_mot or info.n_mit_sot or info.n_sit_sot or info.n_shared_outs
    steps = node.inputs[0]
    lengths = op.outer_nitsot(node.inputs)
    same_length = all(
        length is steps or equal_computations([length], [steps]) for length in lengths
    )
    return bool(has_states or info.as_while or not same_length)


def with_safe_scan_rewrites(query: RewriteDatabaseQuery) -> RewriteDatabaseQuery:
    """Exchange the faulty rewrites in `query` for those of this module.

    What `query` leaves out by name or tag stays out.
    """

    def asks_for(name: str, *tags: str) -> bool:
        known = {name, "fast_run", "scan", *tags}
        wanted = known & set(query.include) and set(query.require) <= known
        return bool(wanted) and not known & set(query.exclude)

    extra: list[tuple[Any, float]] = []
    # Aesara's positions: the push-outs stand in the group at 0.05, the merge in
    # the one at 1.6, before the memory of the scans is cut down at 1.61.
    if asks_for("scan_pushout_nonseqs_ops", "scan_pushout"):
        extra.append(
            (in2out(push_out_non_seq, ignore_newtrees=True, name="push_out_non_seq"), 0.06)
        )
    if asks_for("scan_pushout_seqs_ops", "scan_pushout"):
        extra.append((in2out(push_out_seq, ignore_newtrees=True, name="push_out_seq"), 0.07))
        extra.append((in2out(remove_stay, name="remove_stay"), _FIRST))
    if asks_for("scan_save_mem"):
        # Whether a state can do without a row to spare, depends on how it is computed.
        increments = in2out(increment_states, ignore_newtrees=True, name="increment_states")
        extra.append((increments, 1.607))
        extra.append((in2out(save_mem, ignore_newtrees=True, name="save_mem"), 1.61))
        # Before the indices of parts of traces are merged into formulas of the length.
        extra.append((in2out(keep_last_rows, ignore_newtrees=True, name="keep_last_rows"), 0.08))
        extra.append((in2out(read_last_row, ignore_newtrees=True, name="read_last_row"), 0.081))
    if asks_for("scan_merge"):
        extra.append((SafeScanMerge(), 1.605))
    return query.excluding(*FAULTY).register(*extra)
