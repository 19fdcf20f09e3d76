"""The shapes that draws have: by ``size``, or by broadcasting the parameters."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from aesara.graph.basic import Apply, Variable
from aesara.tensor.type import TensorType

from fixed_modes.numba.broadcasting import write_common_length, write_step
from fixed_modes.numba.writer import Writer


def write_lengths(
    node: Apply, own_ndims: Sequence[int], own_ndim: int, writer: Writer
) -> list[str]:
    """Name the lengths of the independent axes of a draw.

    Parameters
    ----------
    own_ndims
        For each parameter, how many of its last axes belong to one draw.
    own_ndim
        How many axes one draw has.
    """
    _, size, _, *parameters = node.inputs
    ndim = node.outputs[1].type.ndim - own_ndim
    if size.type.shape != (0,):
        name = writer.name(size)
        lengths = [writer.fresh("n") for _ in range(ndim)]
        for axis, length in enumerate(lengths):
            writer.emit(f"{length} = np.int64({name}[{axis}])")
            with writer.block(f"if {length} < 0:"):
                writer.emit_failure(
                    ValueError, fixed_message("negative dimensions are not allowed")
                )
        return lengths

    def parameter_lengths(axis: int) -> list[str]:
        found = []
        for p, own in zip(parameters, own_ndims):
            n = axis - (ndim - (p.type.ndim - own)) if isinstance(p.type, TensorType) else -1
            if n >= 0 and not p.type.broadcastable[n]:
                found.append(f"{writer.name(p)}.shape[{n}]")
        return found

    return [
        write_common_length(writer, parameter_lengths(axis), ValueError, _mismatch)
        for axis in range(ndim)
    ]


def write_steps(
    parameter: Variable, own_ndim: int, name: str, lengths: list[str], writer: Writer
) -> list[str]:
    """Say for each independent axis of a parameter how far it moves for one step of the loop."""
    ndim = parameter.type.ndim - own_ndim
    lead = len(lengths) - ndim
    return [
        ""
        if parameter.type.broadcastable[axis]
        else write_step(writer, f"{name}.shape[{axis}]", lengths[axis + lead], _mismatch)
        for axis in range(ndim)
    ]


def element(name: str, indices: list[str], steps: list[str]) -> str:
    """Give the expression of a parameter at the position of the loops."""
    if not steps:
        return name
    own = indices[len(indices) - len(steps) :]
    position = (f"{index} * {step}" if step else "0" for index, step in zip(own, steps))
    return f"{name}[{', '.join(position)}]"


def _mismatch(one: int, other: int) -> str:
    return (
        "shape mismatch: the parameters of a random variable have lengths "
        f"{one} and {other} along one axis"
    )


def fixed_message(message: str) -> Callable[..., str]:
    """Give a builder of a message without numbers."""
    return lambda: message
