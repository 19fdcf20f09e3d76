"""Which variables share memory, as the ops' view maps and destroy maps tell it."""

from __future__ import annotations

from collections.abc import Iterable

from aesara.graph.basic import Apply, Constant, Variable


def memory_root(variable: Variable) -> tuple[Variable, bool]:
    """Follow views and in-place results to the variable whose memory `variable` uses.

    Returns
    -------
    The root, and whether `variable` is the same memory in the same layout: true
    for in-place results, false behind a view.
    """
    same_memory = True
    while variable.owner is not None:
        op, inputs = variable.owner.op, variable.owner.inputs
        position = variable.owner.outputs.index(variable)
        destroyed = op.destroy_map.get(position, [])
        viewed = op.view_map.get(position, [])
        if not destroyed and not viewed:
            break
        same_memory = same_memory and not viewed
        variable = inputs[(destroyed or viewed)[0]]
    return variable, same_memory


def is_overwritten(variable: Variable, nodes: Iterable[Apply]) -> bool:
    """Say whether one of the nodes writes into the memory of an array."""
    if isinstance(variable, Constant) or variable.type.ndim == 0:
        return False
    root, _ = memory_root(variable)
    for node in nodes:
        for destroyed in node.op.destroy_map.values():
            if any(memory_root(node.inputs[i])[0] is root for i in destroyed):
                return True
    return False
