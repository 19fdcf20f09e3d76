"""Decides which inner inputs of a scan the inner graph may destroy.

The stock `Supervisor` of an inner graph protects every inner input: inside the
graph nothing says what stands behind them.  Seen from the loop, some of them
hold values that nobody reads again:

* a random state that the loop carries: the next step uses the advanced one;
* a mit-mot tap that the step also writes: its row is overwritten;
* the oldest tap of a buffer with just one row for each tap: the new state is
  written over that row.

Everything else stays protected: sequences, non-sequences, and states that the
outer graph can still read.  The loop that runs the inner graph owns what is
destroyed here.  It keeps the other half of the contract: a buffer or generator
that the outer graph did not hand over is copied once before the loop, and an
inner output that shares memory with a row that is about to be overwritten is
copied before any row is written.
"""

from __future__ import annotations

from collections.abc import Iterable

from aesara.compile.function.types import Supervisor
from aesara.compile.ops import DeepCopyOp, ViewOp
from aesara.compile.sharedvalue import SharedVariable
from aesara.graph.basic import Apply, Constant, Variable
from aesara.graph.fg import FunctionGraph
from aesara.scan.op import Scan
from aesara.tensor.basic import Alloc, AllocEmpty
from aesara.tensor.random.op import RandomVariable
from aesara.tensor.random.type import RandomType
from aesara.tensor.subtensor import IncSubtensor


def supervise(inner_graph: FunctionGraph, destroyable: Iterable[Variable] = ()) -> None:
    """Protect all inputs of `inner_graph` but the `destroyable` ones.

    An input that is itself an output of the graph is protected in any case.
    """
    free = set(destroyable) - set(inner_graph.outputs)
    inner_graph.attach_feature(Supervisor(i for i in inner_graph.inputs if i not in free))


def destroyable_inner_inputs(node: Apply, inner_inputs: list[Variable]) -> list[Variable]:
    """List the inner inputs that one step of a scan may overwrite.

    Parameters
    ----------
    node
        A node whose op is a `Scan`.
    inner_inputs
        The inputs of the inner graph, in the order of ``node.op.inner_inputs``.
    """
    op = node.op
    return [
        *(rng for rng in op.inner_shared(inner_inputs) if isinstance(rng.type, RandomType)),
        *_rewritten_mit_mot_taps(op, inner_inputs),
        *_overwritten_states(node, inner_inputs),
    ]


def _rewritten_mit_mot_taps(op: Scan, inner_inputs: list[Variable]) -> list[Variable]:
    taps = zip(
        _flat_taps(op.info.mit_mot_in_slices),
        op.inner_mitmot(inner_inputs),
    )
    return [tap for (buffer, at), tap in taps if at in op.info.mit_mot_out_slices[buffer]]


def _overwritten_states(node: Apply, inner_inputs: list[Variable]) -> list[Variable]:
    op = node.op
    buffers = [*op.outer_mitsot(node.inputs), *op.outer_sitsot(node.inputs)]
    slices = [*op.info.mit_sot_in_slices, *op.info.sit_sot_in_slices]
    states = [*op.inner_mitsot(inner_inputs), *op.inner_sitsot(inner_inputs)]
    return [
        state
        for (buffer, at), state in zip(_flat_taps(slices), states)
        if at == min(slices[buffer]) and known_length(buffers[buffer]) == -at
    ]


def _flat_taps(slices: Iterable[tuple[int, ...]]) -> list[tuple[int, int]]:
    """Pair the index of each buffer with each of its taps."""
    return [(buffer, at) for buffer, taps in enumerate(slices) for at in taps]


def known_length(buffer: Variable) -> int | None:
    """Give the length of the first axis of `buffer`, where the graph tells it.

    The memory-saving rewrite makes a shortened buffer by writing the initial
    state into an allocation; its static shape is often lost on the way.
    """
    while True:
        length = buffer.type.shape[0]
        if length is not None:
            return int(length)
        if buffer.owner is None:
            return None
        op, inputs = buffer.owner.op, buffer.owner.inputs
        if isinstance(op, IncSubtensor):
            buffer = inputs[0]
        elif isinstance(op, (Alloc, AllocEmpty)):
            first = inputs[1] if isinstance(op, Alloc) else inputs[0]
            return int(first.data) if isinstance(first, Constant) else None
        else:
            return None


def may_destroy_outer_input(fgraph: FunctionGraph, variable: Variable) -> bool:
    """Say whether the only user of an outer input may keep and change its value.

    It may where nothing else reads the value: no other node, no other input of
    the same node, no output of the graph, and, where the value comes from
    outside, the graph's own `Supervisor` leaves it free (it has an update or is
    declared mutable).  A value that a node made is free where the node is known
    to hand over something of its own; a view belongs to what it is a view of.
    """
    while len(fgraph.clients[variable]) == 1:
        node = variable.owner
        if node is None:
            return not isinstance(variable, Constant) and _is_free_input(fgraph, variable)
        # These give a fresh value, or one that they were allowed to destroy.
        if isinstance(node.op, (RandomVariable, Scan, DeepCopyOp)):
            return True
        if not isinstance(node.op, ViewOp):
            return False
        variable = node.inputs[0]
    return False


def _is_free_input(fgraph: FunctionGraph, variable: Variable) -> bool:
    protected = getattr(fgraph, "_supervisor_protected", None)
    if protected is None or variable in protected:
        return False
    # A copy of a function without its updates leaves the inputs unprotected.
    return not isinstance(variable, SharedVariable) or any(
        fgraph.inputs[i] is variable and out < len(fgraph.outputs)
        for out, i in (fgraph.update_mapping or {}).items()
    )
