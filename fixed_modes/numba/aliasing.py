"""Which variables share memory, as the ops' view maps and destroy maps tell it."""

from __future__ import annotations

from aesara.graph.basic import Variable


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
