"""Lengths of the kind ``minimum(n, 2)``, with an `n` that changes while a loop runs.

That is how many rows an ``until`` loop keeps of which only the last one is read: all
but the last of the two where no step is done.  A loop in a loop that does some number
of steps is compiled for the case that it does at least one.
"""

from __future__ import annotations

import jax.numpy as jnp
from aesara.graph.basic import Variable
from aesara.scalar import basic as aes
from aesara.tensor.elemwise import Elemwise

from fixed_modes.jax.frame import Frame, NeedsConcrete, RunByItself, is_concrete


def capped_length(variable: Variable, frame: Frame, what: str) -> int:
    """Give the length that a variable stands for.

    Parameters
    ----------
    variable
        An integer scalar of the frame's graph.
    frame
        Gets a check if the length is taken for the greatest possible one.
    what
        What the length is of, for the error message.

    Raises
    ------
    NeedsConcrete
        If it depends on what is traced, and has no bound or doesn't change in a loop.
    """
    value = frame.value(variable)
    if is_concrete(value):
        return int(value)
    owner = variable.owner
    is_minimum = owner is not None and isinstance(owner.op, Elemwise)
    if (
        is_minimum
        and isinstance(owner.op.scalar_op, aes.ScalarMinimum)
        and not frame.is_fixed(variable)
    ):
        caps = [int(v) for v in map(frame.value, owner.inputs) if is_concrete(v)]
        if caps:
            reason = f"{what} is less than {min(caps)} in some step"
            frame.checks.add(jnp.any(value < min(caps)), RunByItself(reason))
            return min(caps)
    raise NeedsConcrete([variable], what)
