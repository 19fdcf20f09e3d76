"""What a step reads of an array before it changes the array.

XLA changes an array in its place if nothing reads the old one afterwards.  Where ``x[i]``
is also a result of the step, or is written to another place of ``x``, XLA may read it
late, and copies the whole of ``x`` in each step for that: swapping two of 20 000 elements
takes 2500 ns, and 3 ns if what is read and what is written come out of one small array
(JAX 0.6.2).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, Callable

import jax
import jax.numpy as jnp
import numpy as np
from aesara.graph.basic import Apply, Variable, ancestors, io_toposort
from aesara.tensor.subtensor import Subtensor

from fixed_modes.jax.frame import is_concrete
from fixed_modes.jax.ragged import Ragged
from fixed_modes.rewrites.increments import CHANGES

#: More numbers are not copied to be tied.
MOST_NUMBERS = 4096

#: What each node that changes an array has to wait for.
Ties = dict[Apply, list[Variable]]


@cache
def barrier() -> Callable[[Any], Any] | None:
    """Give JAX's barrier, if it has one that can be differentiated and vectorised."""
    found: Callable[[Any], Any] | None = getattr(jax.lax, "optimization_barrier", None)
    if found is not None:
        try:
            jax.eval_shape(jax.vmap(jax.grad(found)), np.ones(1, "float32"))
        except NotImplementedError:
            return None
    return found


def ties_of(order: Sequence[Apply], targets: Sequence[Variable]) -> Ties:
    """Find what has to be read of arrays before nodes of a step change them.

    Parameters
    ----------
    order
        The nodes of a step.
    targets
        Its results.

    Returns
    -------
    For nodes that change an array, what is read of it, and what is computed of that,
    which the node and others need.  Older versions of JAX, which can't tie, have none.
    """
    changes = [node for node in order if isinstance(node.op, CHANGES)]
    if not changes or barrier() is None:
        return {}
    found = {change: _tied_to(change, order, targets) for change in changes}
    return {change: tied for change, tied in found.items() if tied}


def _tied_to(change: Apply, order: Sequence[Apply], targets: Sequence[Variable]) -> list[Variable]:
    changed = _with_descendants([change], order)
    read = [n for n in order if _reads_a_part(n, change.inputs[0]) and n not in changed]
    if not read:
        return []
    before = _before(change)
    elsewhere = [node for node in order if node not in before and node is not change]
    needed = {*targets, *(variable for node in elsewhere for variable in node.inputs)}
    if not change.op.set_instead_of_inc:
        # What is incremented is read too, and two places at once are too many.
        needed.update(node.outputs[0] for node in read)
    dependent = _with_descendants(read, order)
    return [
        variable
        for node in order
        if node in dependent and (node in before or node in read)
        for variable in node.outputs
        if variable in needed
    ]


def _with_descendants(nodes: Sequence[Apply], order: Sequence[Apply]) -> set[Apply]:
    found, made = set(nodes), {out for node in nodes for out in node.outputs}
    for node in order:
        if not made.isdisjoint(node.inputs):
            found.add(node)
            made.update(node.outputs)
    return found


def _reads_a_part(node: Apply, array: Variable) -> bool:
    is_small = isinstance(node.op, Subtensor) and not all(
        isinstance(part, slice) for part in node.op.idx_list
    )
    return is_small and node.inputs[0] is array


def _before(change: Apply) -> set[Apply]:
    """List the nodes that a node depends on."""
    return {v.owner for v in ancestors(change.inputs) if v.owner is not None}


def ordered(order: Sequence[Apply], targets: Sequence[Variable], ties: Ties) -> list[Apply]:
    """Order the nodes of a step anew, if that can be done.

    What is tied is computed before the change that it is tied to, and used for anything
    else after that.
    """
    orderings: dict[Apply, list[Apply]] = {}
    for change, tied in ties.items():
        makers = [v.owner for v in tied if v.owner is not None]
        orderings.setdefault(change, []).extend(makers)
        settled = {*_before(change), *makers, change}
        for node in order:
            if node not in settled and not set(tied).isdisjoint(node.inputs):
                orderings.setdefault(node, []).append(change)
    made = {out for node in order for out in node.outputs}
    inputs = [v for node in order for v in node.inputs if v not in made]
    try:
        return io_toposort(inputs, targets, orderings)
    except ValueError:
        # Two changes would have to wait for one another.
        return list(order)


def tie(tied: Sequence[Variable], written: Any, dtype: str, values: dict[Variable, Any]) -> Any:
    """Have what was read, and what is to be written, come out of one array.

    Parameters
    ----------
    tied
        What was read and computed; `values` has new values for it afterwards.
    written
        What is written, of any shape.
    dtype
        That of the array.
    values
        The values of variables.

    Returns
    -------
    What is to be written, of that dtype.
    """
    read = [v for v in tied if not isinstance(values.get(v), Ragged)]
    variables = [v for v in read if not is_concrete(values.get(v, 0))]
    arrays = [jnp.asarray(values[v]) for v in variables]
    pairs = [(v, a) for v, a in zip(variables, arrays) if a.dtype in (dtype, bool)]
    written = jnp.asarray(written).astype(dtype)
    if not pairs or sum(a.size for _, a in pairs) + written.size > MOST_NUMBERS:
        return written
    stop = barrier()
    assert stop is not None
    parts = [array.astype(dtype).ravel() for _, array in pairs]
    together = stop(jnp.concatenate([*parts, written.ravel()]))
    start = 0
    for variable, array in pairs:
        part = together[start : start + array.size].reshape(array.shape)
        values[variable] = part if array.dtype == dtype else part != 0
        start += array.size
    return together[start:].reshape(written.shape)
