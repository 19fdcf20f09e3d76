"""`IfElse`: only the branch that is taken runs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, Callable

import jax
import jax.numpy as jnp
import numpy as np
from aesara.graph.basic import Apply, Variable

from fixed_modes.errors import UnsupportedOpError
from fixed_modes.jax.frame import Checks, Frame, NeedsConcrete, NeedsEager, is_concrete
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
    NeedsEager
        If it is traced and a branch can't be, or neither can without an error.
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


@dataclass
class _Branch:
    """What a first trace of a branch, thrown away, has found.

    A branch that can't be traced without an error raises it if it is taken.
    """

    outputs: Any
    errors: list[Callable[[], Exception]]
    raises: bool = False

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        return [leaf.shape for leaf in jax.tree_util.tree_leaves(self.outputs)]


def _explore(trace: Callable[[], tuple[list[Any], Checks]]) -> _Branch:
    seen: list[Checks] = []

    def outputs_of() -> list[Any]:
        outputs, found = trace()
        seen.append(found)
        return outputs

    try:
        outputs = jax.eval_shape(outputs_of)
    except (NeedsConcrete, NeedsEager, UnsupportedOpError):
        raise
    except Exception as exc:
        error = exc
        return _Branch(None, [lambda: error], raises=True)
    return _Branch(outputs, seen[-1].errors)


def _cond(
    frame: Frame,
    node: Apply,
    condition: Any,
    trace: Callable[[int], tuple[list[Any], Checks]],
) -> list[Any]:
    branches = [_explore(partial(trace, side)) for side in (0, 1)]
    if all(branch.raises for branch in branches):
        raise NeedsEager("both branches of an IfElse raise errors")
    for branch, other in (branches, branches[::-1]):
        if branch.raises:
            branch.outputs = other.outputs
    if branches[0].shapes != branches[1].shapes:
        reason = "which branch of an IfElse is taken, since the branches have different shapes,"
        raise NeedsConcrete(node.inputs[:1], reason)

    def run(side: int) -> tuple[list[Any], list[Any]]:
        if branches[side].raises:
            outputs = [_zeros(value) for value in branches[side].outputs]
            failed = [jnp.ones((), bool)]
        else:
            outputs, found = trace(side)
            failed = list(found.unpack())
        quiet = [jnp.zeros((), bool)] * len(branches[1 - side].errors)
        return outputs, [*failed, *quiet] if side == 0 else [*quiet, *failed]

    outputs, flags = jax.lax.cond(condition, lambda: run(0), lambda: run(1))
    for flag, error in zip(flags, [*branches[0].errors, *branches[1].errors]):
        frame.checks.add(flag, error)
    return outputs


def _zeros(value: Any) -> Any:
    return jax.tree_util.tree_map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), value)


def _as_traced(variable: Variable, value: Any) -> Any:
    if is_concrete(value):
        return jnp.asarray(value, dtype=getattr(variable.type, "dtype", None))
    return value
