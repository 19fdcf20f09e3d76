"""`UnravelIndex`: positions in a flattened array as coordinates."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from aesara.graph.basic import Apply
from aesara.tensor.extra_ops import UnravelIndex

from fixed_modes.numba.writer import Writer, is_machine_scalar


@numba.njit
def leaves_range(indices: Any, dims: Any) -> Any:
    """Say whether an index is none into the flattened array of the lengths `dims`."""
    size = 1
    for length in dims:
        size *= length
    for index in np.asarray(indices).flat:  # noqa: SIM110
        if index < 0 or index >= size:
            return True
    return False


@numba.njit(error_model="numpy")
def coordinates(indices: Any, dims: Any, axis: Any, by_columns: Any) -> Any:
    """Give the coordinates along one axis."""
    stride = 1
    for other in range(len(dims)):
        if other < axis if by_columns else other > axis:
            stride *= dims[other]
    return indices // stride % dims[axis]


def write_unravel(op: UnravelIndex, node: Apply, writer: Writer) -> None:
    """Write the coordinates along each axis, after a check of the indices."""
    indices, dims = node.inputs
    name = writer.name(indices)
    value = f"np.int64({name})" if is_machine_scalar(indices) else f"{name}.astype(np.int64)"
    positions, lengths = writer.fresh("positions"), writer.fresh("lengths")
    writer.emit(f"{positions} = {value}", f"{lengths} = {writer.name(dims)}.astype(np.int64)")
    check = writer.use_global("leaves_range", leaves_range)
    with writer.block(f"if {check}({positions}, {lengths}):"):
        writer.emit_failure(ValueError, lambda: "an index is out of bounds for the array")
    function = writer.use_global("coordinates", coordinates)
    for axis, out in enumerate(node.outputs):
        call = f"{function}({positions}, {lengths}, {axis}, {op.order == 'F'})"
        writer.emit(f"{writer.define(out, 'coordinate')} = {call}")
