"""Fourier transforms (``aesara.tensor.fft``)."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from aesara.graph.basic import Apply
from aesara.tensor.fft import IRFFTOp, RFFTOp

from fixed_modes.jax.dispatch import jax_lower
from fixed_modes.jax.frame import Frame

#: XLA transforms along no more axes at once.
MOST_AXES = 3


def _lengths(node: Apply, frame: Frame) -> list[int]:
    lengths = [int(s) for s in frame.concrete(node.inputs[1], "the lengths of a transform")]
    if len(lengths) > MOST_AXES:
        raise NotImplementedError(f"a Fourier transform along {len(lengths)} axes")
    return lengths


@jax_lower.register(RFFTOp)
def _rfft(op: RFFTOp, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    # Like NumPy in double precision.
    found = jnp.fft.rfftn(jnp.asarray(values[0]).astype("float64"), s=_lengths(node, frame))
    return [jnp.stack([found.real, found.imag], axis=-1)]


@jax_lower.register(IRFFTOp)
def _irfft(op: IRFFTOp, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    x = jnp.asarray(values[0]).astype("float64")
    lengths = _lengths(node, frame)
    found = jnp.fft.irfftn(jnp.asarray(x[..., 0] + 1j * x[..., 1]), s=lengths)
    return [found * int(np.prod(lengths))]
