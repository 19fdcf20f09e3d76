"""The ops of ``aesara.tensor.nnet.basic``."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from aesara.graph.basic import Apply
from aesara.tensor.nnet.basic import (
    CrossentropyCategorical1Hot,
    CrossentropyCategorical1HotGrad,
    CrossentropySoftmax1HotWithBiasDx,
    CrossentropySoftmaxArgmax1HotWithBias,
    Prepend_scalar_constant_to_each_row,
    Prepend_scalar_to_each_row,
    ScalarSoftsign,
    SoftmaxWithBias,
)

from fixed_modes.jax.bounds import check_bounds
from fixed_modes.jax.dispatch import jax_lower
from fixed_modes.jax.frame import Frame
from fixed_modes.jax.scalar import as_dtype, out_dtype, scalar_lower


@scalar_lower.register(ScalarSoftsign)
def _softsign(op: ScalarSoftsign, node: Apply, values: Sequence[Any]) -> Any:
    x = as_dtype(values[0], out_dtype(node))
    return x / (1 + jnp.abs(x))


def _with_bias(x: Any, bias: Any) -> Any:
    if np.shape(bias)[0] != np.shape(x)[1]:
        raise ValueError("b must have same number of columns as x")
    return jnp.asarray(x) + bias


@jax_lower.register(SoftmaxWithBias)
def _softmax_with_bias(
    op: SoftmaxWithBias, node: Apply, values: list[Any], frame: Frame
) -> list[Any]:
    return [jax.nn.softmax(_with_bias(*values), axis=1)]


def _check_classes(classes: Any, shape: tuple[int, ...], frame: Frame, negative: bool) -> None:
    """See to it that the index of a class that is out of bounds raises."""
    if np.shape(classes)[0] != shape[0]:
        raise ValueError("y_idx must have same number of rows as x")
    if not negative:
        failed = jnp.any(jnp.asarray(classes) < 0)
        frame.checks.add(failed, partial(ValueError, "y_i value out of bounds"))
    check_bounds(classes, 1, shape[1], frame)


@jax_lower.register(CrossentropySoftmaxArgmax1HotWithBias)
def _crossentropy(
    op: CrossentropySoftmaxArgmax1HotWithBias, node: Apply, values: list[Any], frame: Frame
) -> list[Any]:
    x, bias, classes = values
    rows = _with_bias(x, bias)
    _check_classes(classes, rows.shape, frame, negative=False)
    chosen = jnp.take_along_axis(rows, jnp.asarray(classes)[:, None], axis=1)[:, 0]
    loss = jax.nn.logsumexp(rows, axis=1) - chosen
    return [loss, jax.nn.softmax(rows, axis=1), jnp.argmax(rows, axis=1)]


@jax_lower.register(CrossentropySoftmax1HotWithBiasDx)
def _crossentropy_dx(
    op: CrossentropySoftmax1HotWithBiasDx, node: Apply, values: list[Any], frame: Frame
) -> list[Any]:
    grad, softmax, classes = map(jnp.asarray, values)
    _check_classes(classes, softmax.shape, frame, negative=False)
    grad = jnp.broadcast_to(grad, softmax.shape[:1])
    rows = jnp.arange(softmax.shape[0])
    return [(grad[:, None] * softmax).at[rows, classes].add(-grad)]


@jax_lower.register(CrossentropyCategorical1Hot)
def _categorical(
    op: CrossentropyCategorical1Hot, node: Apply, values: list[Any], frame: Frame
) -> list[Any]:
    coding, classes = map(jnp.asarray, values)
    _check_classes(classes, coding.shape, frame, negative=True)
    return [-jnp.log(coding[jnp.arange(coding.shape[0]), classes])]


@jax_lower.register(CrossentropyCategorical1HotGrad)
def _categorical_grad(
    op: CrossentropyCategorical1HotGrad, node: Apply, values: list[Any], frame: Frame
) -> list[Any]:
    grad, coding, classes = map(jnp.asarray, values)
    _check_classes(classes, coding.shape, frame, negative=True)
    rows = jnp.arange(coding.shape[0])
    slope = -grad / coding[rows, classes]
    return [jnp.zeros_like(coding).at[rows, classes].set(slope.astype(coding.dtype))]


def _prepend(value: Any, matrix: Any) -> list[Any]:
    matrix = jnp.asarray(matrix)
    column = jnp.full((matrix.shape[0], 1), value, matrix.dtype)
    return [jnp.concatenate([column, matrix], axis=1)]


@jax_lower.register(Prepend_scalar_to_each_row)
def _prepend_scalar(
    op: Prepend_scalar_to_each_row, node: Apply, values: list[Any], frame: Frame
) -> list[Any]:
    return _prepend(*values)


@jax_lower.register(Prepend_scalar_constant_to_each_row)
def _prepend_constant(
    op: Prepend_scalar_constant_to_each_row, node: Apply, values: list[Any], frame: Frame
) -> list[Any]:
    return _prepend(getattr(op.val, "data", op.val), values[0])
