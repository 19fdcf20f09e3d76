"""`UnravelIndex` and `RavelMultiIndex`: positions in a flattened array, and coordinates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from aesara.graph.basic import Apply, Variable
from aesara.graph.op import Op
from aesara.tensor.extra_ops import RavelMultiIndex, UnravelIndex

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
    positions, lengths = _integers(indices, "positions", writer), _integers(dims, "lengths", writer)
    _write_range_check(positions, lengths, "an index is out of bounds for the array", writer)
    function = writer.use_global("coordinates", coordinates)
    for axis, out in enumerate(node.outputs):
        call = f"{function}({positions}, {lengths}, {axis}, {op.order == 'F'})"
        writer.emit(f"{writer.define(out, 'coordinate')} = {call}")


def write_ravel(op: RavelMultiIndex, node: Apply, writer: Writer) -> None:
    """Write the positions of coordinates, which are checked, cut or wrapped around first."""
    *places, dims = node.inputs
    lengths = _integers(dims, "lengths", writer)
    total = "0"
    axes = list(range(len(places)))
    for axis in axes if op.order == "C" else reversed(axes):
        place, length = _integers(places[axis], "place", writer), f"{lengths}[{axis}]"
        if op.mode == "raise":
            own = f"{lengths}[{axis}:{axis + 1}]"
            _write_range_check(place, own, "invalid entry in coordinates array", writer)
        elif op.mode == "clip":
            writer.emit(f"{place} = np.minimum(np.maximum({place}, 0), {length} - 1)")
        else:
            writer.emit(f"{place} = {place} % {length}")
        following = writer.fresh("position")
        writer.emit(f"{following} = {total} * {length} + {place}")
        total = following
    writer.bind(node.outputs[0], total)


def _integers(variable: Variable, hint: str, writer: Writer) -> str:
    """Write a copy of integers, as int64; give its name."""
    name, own = writer.fresh(hint), writer.name(variable)
    scalar = is_machine_scalar(variable)
    writer.emit(f"{name} = " + (f"np.int64({own})" if scalar else f"{own}.astype(np.int64)"))
    return name


def _write_range_check(indices: str, dims: str, message: str, writer: Writer) -> None:
    check = writer.use_global("leaves_range", leaves_range)
    with writer.block(f"if {check}({indices}, {dims}):"):
        writer.emit_failure(ValueError, lambda: message)


POSITIONS: dict[type[Op], Callable[..., None]] = {
    UnravelIndex: write_unravel,
    RavelMultiIndex: write_ravel,
}
