"""What NumPy refuses as the bounds of an `ARange`; Aesara's conversion makes the array."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from aesara.graph.basic import Apply, Constant
from aesara.graph.op import Op
from aesara.tensor.basic import ARange

from fixed_modes.numba.writer import Writer


def check_arange(op: ARange, node: Apply, writer: Writer) -> bool:
    """Write the checks of the bounds; False, since nothing more is written here."""
    start, stop, step = (writer.name(bound) for bound in node.inputs)
    if not (isinstance(node.inputs[2], Constant) and node.inputs[2].data != 0):
        with writer.block(f"if {step} == 0:"):
            writer.emit_failure(ZeroDivisionError, lambda: "division by zero")
    if any(np.dtype(bound.type.dtype).kind == "f" for bound in node.inputs):
        count = writer.fresh("count")
        writer.emit(f"{count} = ({stop} - {start}) / {step}")
        with writer.block(f"if np.isnan({count}):"):
            writer.emit_failure(ValueError, lambda: "arange: cannot compute length")
        with writer.block(f"if np.isinf({count}):"):
            writer.emit_failure(ValueError, lambda: "Maximum allowed size exceeded")
    return False


ARANGE: dict[type[Op], Callable[..., bool]] = {ARange: check_arange}
