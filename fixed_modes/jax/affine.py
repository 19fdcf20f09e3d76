"""Recognises integers that differ by a known number, in loops too.

``x[i : i + 3]`` has three entries whatever ``i`` is.  Aesara moves ``i + 3`` out
of a loop over ``i`` where it can, so that the two bounds are then rows of two
sequences; the walk follows them out of the loop.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from aesara.graph.basic import Constant, Variable
from aesara.scalar import basic as aes
from aesara.tensor.basic import ScalarFromTensor, TensorFromScalar
from aesara.tensor.elemwise import Elemwise
from aesara.tensor.subtensor import Subtensor, indices_from_subtensor

from fixed_modes.jax.frame import Frame, is_concrete


class Affine(NamedTuple):
    """A variable's value as that of `base` plus `offset`.

    For a row of a sequence, `base` is the sequence, and the row is `row` entries
    after the one that the loop has reached.
    """

    base: Variable
    row: int
    offset: int


def known_difference(low: Variable, high: Variable, frame: Frame) -> int | None:
    """Give ``high - low`` if it is known while tracing, although the two are not."""
    apart = _rows_apart(low, high, frame)
    if apart is not None:
        return apart
    first, second = affine(low, frame), affine(high, frame)
    if first.base is not second.base or first.row != second.row:
        return None
    return second.offset - first.offset


def _rows_apart(low: Variable, high: Variable, frame: Frame) -> int | None:
    """Compare rows of two known sequences: Aesara folds ``arange(n) + k`` to a constant."""
    while low.owner is not None and isinstance(low.owner.op, ScalarFromTensor):
        low = low.owner.inputs[0]
    while high.owner is not None and isinstance(high.owner.op, ScalarFromTensor):
        high = high.owner.inputs[0]
    if frame.outer is None or low not in frame.origins or high not in frame.origins:
        return None
    origins = [frame.origins[variable] for variable in (low, high)]
    first, second = (
        origin.data if isinstance(origin, Constant) else frame.outer.values.get(origin)
        for origin in origins
    )
    if not isinstance(first, np.ndarray) or not isinstance(second, np.ndarray):
        return None
    if first.ndim != 1 or first.shape != second.shape or not first.size:
        return None
    differences = second.astype("int64") - first.astype("int64")
    return int(differences[0]) if (differences == differences[0]).all() else None


def affine(variable: Variable, frame: Frame) -> Affine:
    """Follow a variable back through sums, casts and the inputs of inner graphs."""
    row, offset = 0, 0
    while True:
        if variable in frame.origins and frame.outer is not None:
            variable, frame = frame.origins[variable], frame.outer
            continue
        if variable.owner is None or variable in frame.inputs:
            break
        op, inputs = variable.owner.op, variable.owner.inputs
        scalar_op = op.scalar_op if isinstance(op, Elemwise) else op
        if isinstance(scalar_op, (ScalarFromTensor, TensorFromScalar, aes.Cast)):
            if not inputs[0].type.dtype.startswith("int"):
                break
            variable = inputs[0]
            continue
        if isinstance(op, Subtensor):
            skipped = _rows_skipped(variable, frame)
            if skipped is None:
                break
            row += skipped
            variable = inputs[0]
            continue
        added = _known_terms(scalar_op, inputs, frame)
        if added is None:
            break
        variable, number = added
        offset += number
    return Affine(variable, row, offset)


def _known_terms(
    scalar_op: object, inputs: list[Variable], frame: Frame
) -> tuple[Variable, int] | None:
    """Split a sum or difference into its one traced term and the number it adds."""
    traced = [v for v in inputs if not is_concrete(frame.value(v))]
    known = [frame.value(v) for v in inputs if v not in traced]
    if len(traced) != 1 or any(np.size(value) != 1 for value in known):
        return None
    total = sum(int(np.reshape(value, ())) for value in known)
    if isinstance(scalar_op, aes.Add):
        return traced[0], total
    if isinstance(scalar_op, aes.Sub) and traced[0] is inputs[0]:
        return traced[0], -total
    return None


def _rows_skipped(variable: Variable, frame: Frame) -> int | None:
    """Say how many rows ``x[k:...]`` leaves out at the start; None: it is no such cut."""
    node = variable.owner
    entries = indices_from_subtensor(node.inputs[1:], node.op.idx_list)
    if len(entries) != 1 or not isinstance(entries[0], slice):
        return None
    start, step = (
        frame.value(bound) if isinstance(bound, Variable) else bound
        for bound in (entries[0].start, entries[0].step)
    )
    if not is_concrete(start) or not is_concrete(step) or int(1 if step is None else step) != 1:
        return None
    skipped = int(0 if start is None else start)
    return skipped if skipped >= 0 else None
