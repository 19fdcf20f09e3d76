"""The conversion of an op for arrays of which the lengths change (`fixed_modes.jax.ragged`)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch
from typing import Any

import jax.numpy as jnp
import numpy as np
from aesara.compile.ops import DeepCopyOp, ViewOp
from aesara.graph.basic import Apply
from aesara.graph.op import Op
from aesara.tensor.elemwise import CAReduce, Elemwise
from aesara.tensor.shape import Shape, Shape_i

from fixed_modes.jax.frame import Frame
from fixed_modes.jax.ragged import Ragged

# Ops for which it makes no difference which rows count.
_TAKES_MASKED = (CAReduce, DeepCopyOp, Elemwise, Shape, Shape_i, ViewOp)


def lower_ragged(node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    """Trace a node that has a `Ragged` among its inputs.

    Raises
    ------
    NotImplementedError
        If there is no conversion for that.
    """
    if not isinstance(node.op, _TAKES_MASKED):
        values = [v.packed() if isinstance(v, Ragged) else v for v in values]
    return ragged_lower(node.op, node, values, frame)


@singledispatch
def ragged_lower(op: Op, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    """Do what `lower_ragged` does, for an op that may need the rows side by side."""
    raise NotImplementedError(f"{op} of an array of which the length changes")


def as_ragged(value: Any, reason: str) -> Ragged:
    """Give an array in the form of one of which lengths change; `reason` is for the message."""
    if isinstance(value, Ragged):
        return value
    array = jnp.asarray(value)
    return Ragged(array, (None,) * array.ndim, reason)


def plain_or_ragged(data: Any, lengths: Sequence[Any], reason: str, mask: Any = None) -> Any:
    """Give an array, or a `Ragged` if one of its lengths changes."""
    if all(length is None for length in lengths):
        return data
    return Ragged(jnp.asarray(data), tuple(lengths), reason, mask)


def length_of(x: Ragged, axis: int) -> Any:
    """Give the length of an axis, an int64 scalar."""
    length = x.lengths[axis]
    return np.array(x.data.shape[axis], "int64") if length is None else length


def reason_of(values: Sequence[Any]) -> str:
    """Say what would have to be known for arrays of fixed shapes."""
    return next(value.reason for value in values if isinstance(value, Ragged))
