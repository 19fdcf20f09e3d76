"""Which nodes always run, and which only in one branch of an `IfElse`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from aesara.graph.basic import Apply, Variable, io_toposort
from aesara.ifelse import IfElse

from fixed_modes.jax.ties import Ties, ordered, ties_of

#: An `IfElse` node and the index of a branch: 0 for "then", 1 for "else".
Branch = tuple[Apply, int]


@dataclass
class Schedule:
    """The nodes of a graph in an order of evaluation, split by when they are needed.

    Attributes
    ----------
    always
        Nodes that are needed whatever the conditions say.
    branches
        For each branch of each `IfElse`, the nodes that only this branch needs.
    ties
        What has to be read of arrays before nodes change them.
    """

    always: list[Apply] = field(default_factory=list)
    branches: dict[Branch, list[Apply]] = field(default_factory=dict)
    ties: Ties = field(default_factory=dict)


def schedule(
    inputs: Sequence[Variable], targets: Sequence[Variable], is_step: bool = False
) -> Schedule:
    """Order the nodes between `inputs` and `targets`, which may be a step of a loop."""
    order = io_toposort(inputs, targets)
    ties = ties_of(order, targets) if is_step else {}
    if ties:
        order = ordered(order, targets, ties)
    if not any(isinstance(node.op, IfElse) for node in order):
        return Schedule(order, ties=ties)
    homes = _homes(order, targets)
    result = Schedule(ties=ties)
    for node in order:
        home = homes[node]
        if home is None:
            result.always.append(node)
        else:
            result.branches.setdefault(home, []).append(node)
    return result


def branch_of(node: Apply, index: int) -> int | None:
    """Say which branch an input of an `IfElse` node belongs to; None: the condition."""
    if index == 0:
        return None
    return 0 if index <= node.op.n_outs else 1


def _homes(order: Sequence[Apply], targets: Sequence[Variable]) -> dict[Apply, Branch | None]:
    """Find for each node the innermost branch that holds all uses of it."""
    homes: dict[Apply, Branch | None] = {}
    uses: dict[Apply, list[Branch | None]] = {node: [] for node in order}
    for variable in targets:
        if variable.owner in uses:
            uses[variable.owner].append(None)
    for node in reversed(order):
        homes[node] = home = _innermost_common(uses[node], homes)
        for index, variable in enumerate(node.inputs):
            if variable.owner in uses:
                side = branch_of(node, index) if isinstance(node.op, IfElse) else None
                uses[variable.owner].append(home if side is None else (node, side))
    return homes


def _innermost_common(
    uses: Sequence[Branch | None], homes: dict[Apply, Branch | None]
) -> Branch | None:
    paths = [_path(use, homes) for use in uses]
    common: Branch | None = None
    for steps in zip(*paths):
        if any(step != steps[0] for step in steps):
            break
        common = steps[0]
    return common


def _path(branch: Branch | None, homes: dict[Apply, Branch | None]) -> list[Branch]:
    """List the branches from the outermost down to `branch`."""
    path: list[Branch] = []
    while branch is not None:
        path.append(branch)
        branch = homes[branch[0]]
    return path[::-1]
