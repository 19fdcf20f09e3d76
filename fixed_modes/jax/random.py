"""Random variables: shapes, dtypes and the state that is handed on."""

from __future__ import annotations

from typing import Any

import numpy as np
from aesara.graph.basic import Apply
from aesara.tensor.random.op import RandomVariable

from fixed_modes.jax.dispatch import jax_lower
from fixed_modes.jax.frame import Frame
from fixed_modes.jax.refusals import refuse_parameters
from fixed_modes.jax.samplers import Draw, sample


@jax_lower.register(RandomVariable)
def _random_variable(op: RandomVariable, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    state, _, _, *parameters = values
    parameters = refuse_parameters(op, parameters, frame)
    following, key = state.split()
    size = [int(s) for s in np.atleast_1d(frame.concrete(node.inputs[1], "the size of a draw"))]
    batch = tuple(size) if size else _batch_shape(op, parameters)
    draw = Draw(op, node, key, batch, np.dtype(node.outputs[1].type.dtype), frame)
    return [following, sample(op, draw, parameters)]


def _batch_shape(op: RandomVariable, parameters: list[Any]) -> tuple[int, ...]:
    """Broadcast what is left of the parameters' shapes without their own axes."""
    shapes = [
        np.shape(value)[: np.ndim(value) - ndim] if value is not None else ()
        for value, ndim in zip(parameters, op.ndims_params)
    ]
    return np.broadcast_shapes(*shapes)
