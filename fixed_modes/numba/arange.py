"""`ARange`: what NumPy refuses as its bounds, and its numbers; integers are left to Aesara."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from aesara.graph.basic import Apply, Constant
from aesara.graph.op import Op
from aesara.tensor.basic import ARange

from fixed_modes.numba.writer import Writer, numpy_dtype


def write_arange(op: ARange, node: Apply, writer: Writer) -> bool:
    """Write the checks of the bounds, and what is no matter of integers; False for the rest."""
    start, stop, step = (writer.name(bound) for bound in node.inputs)
    if not (isinstance(node.inputs[2], Constant) and node.inputs[2].data != 0):
        with writer.block(f"if {step} == 0:"):
            writer.emit_failure(ZeroDivisionError, lambda: "division by zero")
    if all(np.dtype(bound.type.dtype).kind != "f" for bound in node.inputs):
        return False
    start, stop, step = (f"np.float64({bound})" for bound in (start, stop, step))
    count = writer.fresh("count")
    writer.emit(f"{count} = ({stop} - {start}) / {step}")
    with writer.block(f"if np.isnan({count}):"):
        writer.emit_failure(ValueError, lambda: "arange: cannot compute length")
    with writer.block(f"if abs({count}) >= {2.0**63}:"):
        writer.emit_failure(ValueError, lambda: "Maximum allowed size exceeded")
    (out,) = node.outputs
    if np.dtype(out.type.dtype).kind != "f":
        return False
    with writer.block(f"if {count} == 0 and {stop} != {start}:"):
        writer.emit(f"{count} = 0.0 if np.signbit({count}) else 1.0")
    name, dtype, i = writer.define(out, "arange"), numpy_dtype(out.type.dtype), writer.fresh("i")
    writer.emit(f"{name} = np.empty(max(int(np.ceil({count})), 0), {dtype})")
    # As in NumPy, the first two numbers are rounded, and their difference is the step.
    first, delta = writer.fresh("first"), writer.fresh("delta")
    writer.emit(f"{first} = {dtype}({start})", f"{delta} = {dtype}({start} + {step}) - {first}")
    with writer.block(f"for {i} in range({name}.shape[0]):"):
        writer.emit(f"{name}[{i}] = {first} + {dtype}({i}) * {delta}")
    with writer.block(f"if {name}.shape[0]:"):
        writer.emit(f"{name}[0] = {first}")
    with writer.block(f"if {name}.shape[0] > 1:"):
        writer.emit(f"{name}[1] = {dtype}({start} + {step})")
    return True


ARANGE: dict[type[Op], Callable[..., bool]] = {ARange: write_arange}
