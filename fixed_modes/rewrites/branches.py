"""Arrays of which one branch of an `IfElse` changes elements.

In ``ifelse(accept, set_subtensor(x[i], y), x)`` both branches need ``x``, so that Aesara
copies it to change it.  Compiled code runs one branch only, and changes ``x`` there.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from aesara.graph.basic import Apply, Variable
from aesara.graph.fg import FunctionGraph
from aesara.graph.rewriting.basic import in2out, node_rewriter
from aesara.graph.rewriting.db import RewriteDatabaseQuery
from aesara.ifelse import IfElse

from fixed_modes.aliasing import memory_root
from fixed_modes.rewrites.increments import CHANGES

# After the numbers that a change reads of its array have become no views of it, and before
# Aesara's rewrites that change arrays in place.
_POSITION = 59.95


class Change(NamedTuple):
    """An output of an `IfElse` that is an array in one branch, and a change of it in the other.

    Attributes
    ----------
    output
        Its position.
    branch
        The branch that changes the array: 0 for "then", 1 for "else".
    """

    output: int
    branch: int


class ChangingIfElse(IfElse):
    """An `IfElse` of which one branch may change an array in place."""

    __props__ = ("n_outs", "changes")

    def __init__(self, n_outs: int, changes: tuple[Change, ...], name: str | None = None) -> None:
        super().__init__(n_outs, as_view=True, name=name)
        self.changes = changes
        positions = {output: 1 + (1 - branch) * n_outs + output for output, branch in changes}
        self.destroy_map = {output: [position] for output, position in positions.items()}
        self.view_map = {n: [n + 1] for n in range(n_outs) if n not in positions}

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and (self.n_outs, self.changes) == (
            other.n_outs,
            other.changes,
        )

    def __hash__(self) -> int:
        return hash((type(self), self.n_outs, self.changes))

    def chains(self, node: Apply, branch: int | None = None) -> list[Apply]:
        """List the nodes that change what a branch changes in place; those of both for None."""
        return [
            step
            for change in self.changes
            if branch in (None, change.branch)
            for step in _chain(node, change)
        ]


def with_branch_rewrites(query: RewriteDatabaseQuery) -> RewriteDatabaseQuery:
    """Add the rewrite of this module, where arrays are changed in place."""
    if not {"fast_run", "inplace"} & set(query.include) or query.require:
        return query
    # XLA does it by itself.
    names = {"inplace", "local_inplace_setsubtensor", "inplace_elemwise_optimizer"}
    if names & set(query.exclude):
        return query
    rewrite = in2out(change_in_branches, ignore_newtrees=True, name="change_in_branches")
    return query.register((rewrite, _POSITION))


@node_rewriter([IfElse])
def change_in_branches(fgraph: FunctionGraph, node: Apply) -> Any:
    """Have an `IfElse` change an array itself that one of its branches changes."""
    op = node.op
    if isinstance(op, ChangingIfElse) or op.as_view:
        return False
    changes: list[Change] = []
    roots: set[Variable] = set()
    for output in range(op.n_outs):
        branches = node.inputs[1 + output], node.inputs[1 + op.n_outs + output]
        for branch in (0, 1):
            array = branches[1 - branch]
            chain = changes_between(array, branches[branch])
            root = memory_root(array)[0]
            if (
                chain
                and root not in roots
                and all(len(fgraph.clients[step.outputs[0]]) == 1 for step in chain)
            ):
                changes.append(Change(output, branch))
                roots.add(root)
    written = [
        memory_root(i)[0]
        for change in changes
        for step in _chain(node, change)
        for i in step.inputs[1:]
    ]
    if not changes or not roots.isdisjoint(written):
        return False
    return ChangingIfElse(op.n_outs, tuple(changes), op.name)(*node.inputs, return_list=True)


def _chain(node: Apply, change: Change) -> list[Apply]:
    branches = [node.inputs[1 + n * node.op.n_outs + change.output] for n in (0, 1)]
    return changes_between(branches[1 - change.branch], branches[change.branch])


def changes_between(array: Variable, changed: Variable) -> list[Apply]:
    """List the nodes that make an array of another by changes, the first one first; none if not."""
    chain = []
    while changed is not array:
        node = changed.owner
        if node is None or not isinstance(node.op, CHANGES) or node.inputs[0].type != changed.type:
            return []
        chain.append(node)
        changed = node.inputs[0]
    return chain[::-1]
