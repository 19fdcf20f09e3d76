"""`IfElse`: only the branch that is taken runs."""

from __future__ import annotations

from typing import Any, Callable

import jax
import jax.numpy as jnp
import numpy as np
from aesara.graph.basic import Apply, Variable

from fixed_modes.jax.frame import Checks, Frame, NeedsConcrete, is_concrete
from fixed_modes.jax.lazy import Schedule


def lower_ifelse(
    frame: Frame, node: Apply, plan: Schedule, run_nodes: Callable[..., None]
) -> list[Any]:
    """Evaluate an `IfElse` node.

    With a known condition the branch is evaluated in the frame itself.  With a
    traced one both branches are traced and `lax.cond` runs one of them.

    `run_nodes` is `fixed_modes.jax.evaluate.run_nodes`, which this module can't
    import.

    Raises
    ------
    NeedsConcrete
        If the condition is traced and the branches have different shapes.
    """
    count = node.op.n_outs
    sides = (node.inputs[1 : 1 + count], node.inputs[1 + count :])
    condition = frame.value(node.inputs[0])
    if is_concrete(condition):
        side = 0 if np.all(condition) else 1
        run_nodes(frame, plan.branches.get((node, side), []), plan)
        return [frame.value(variable) for variable in sides[side]]

    def trace(side: int) -> tuple[list[Any], Checks]:
        local = frame.branch()
        run_nodes(local, plan.branches.get((node, side), []), plan)
        return [_as_traced(v, local.value(v)) for v in sides[side]], local.checks

    return _cond(frame, node, condition != 0, trace)


def _cond(
    frame: Frame,
    node: Apply,
    condition: Any,
    trace: Callable[[int], tuple[list[Any], Checks]],
) -> list[Any]:
    # A first trace of each branch, thrown away, tells the shapes and the checks.
    shapes, checks = [], []
    for side in (0, 1):
        seen: list[Checks] = []

        def outputs_of(side: int = side, seen: list[Checks] = seen) -> list[Any]:
            outputs, found = trace(side)
            seen.append(found)
            return outputs

        shapes.append(jax.eval_shape(outputs_of))
        checks.append(seen[-1])
    if [leaf.shape for leaf in jax.tree_util.tree_leaves(shapes[0])] != [
        leaf.shape for leaf in jax.tree_util.tree_leaves(shapes[1])
    ]:
        reason = "which branch of an IfElse is taken, since the branches have different shapes,"
        raise NeedsConcrete(node.inputs[:1], reason)
    errors = [*checks[0].errors, *checks[1].errors]

    def run(side: int) -> tuple[list[Any], list[Any]]:
        outputs, found = trace(side)
        quiet = [jnp.zeros((), bool)] * len(checks[1 - side].errors)
        flags = [*found.failed, *quiet] if side == 0 else [*quiet, *found.failed]
        return outputs, flags

    outputs, flags = jax.lax.cond(condition, lambda: run(0), lambda: run(1))
    for flag, error in zip(flags, errors):
        frame.checks.add(flag, error)
    return outputs


def _as_traced(variable: Variable, value: Any) -> Any:
    if is_concrete(value):
        return jnp.asarray(value, dtype=getattr(variable.type, "dtype", None))
    return value
