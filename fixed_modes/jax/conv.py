"""Convolutions (``aesara.tensor.nnet.abstract_conv``); their gradients are JAX's."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from aesara.graph.basic import Apply
from aesara.tensor.nnet.abstract_conv import (
    AbstractConv,
    AbstractConv_gradInputs,
    AbstractConv_gradWeights,
    BaseAbstractConv,
    border_mode_to_pad,
)

from fixed_modes.jax.dispatch import jax_lower
from fixed_modes.jax.frame import Frame


def _convolve(op: BaseAbstractConv, image: Any, kernel: Any) -> Any:
    """Convolve images (batch, channels, ...) with kernels (filters, channels, ...)."""
    if op.unshared:
        raise NotImplementedError("a convolution with weights for each place")
    axes = range(2, 2 + op.convdim)
    spans = [(kernel.shape[a] - 1) * d + 1 for a, d in zip(axes, op.filter_dilation)]
    if op.filter_flip:  # XLA does not flip
        kernel = jnp.flip(kernel, tuple(axes))
    if image.shape[1] != kernel.shape[1] * op.num_groups:
        raise ValueError(
            f"images with {image.shape[1]} channels, kernels with {kernel.shape[1]} "
            f"in {op.num_groups} groups"
        )
    return jax.lax.conv_general_dilated(
        image,
        kernel,
        window_strides=op.subsample,
        padding=border_mode_to_pad(op.border_mode, op.convdim, spans),
        rhs_dilation=op.filter_dilation,
        feature_group_count=op.num_groups,
        precision="highest",
    )


def _operands(node: Apply, values: list[Any]) -> tuple[Any, Any]:
    dtype = node.outputs[0].type.dtype
    first, second = (jnp.asarray(value).astype(dtype) for value in values[:2])
    return first, second


def _lengths(op: BaseAbstractConv, node: Apply, frame: Frame) -> list[int]:
    sizes = frame.concrete(node.inputs[2], "the shape of a convolution's gradient")
    return [int(size) for size in sizes]


def _pulled_back(function: Any, shape: tuple[int, ...], grad: Any) -> Any:
    """Give the gradient of a linear function; it does not depend on the place."""
    out, pull_back = jax.vjp(function, jnp.zeros(shape, grad.dtype))
    if out.shape != grad.shape:
        raise ValueError(f"a gradient of shape {grad.shape} for an output of shape {out.shape}")
    return pull_back(grad)[0]


@jax_lower.register(AbstractConv)
def _conv(op: AbstractConv, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    return [_convolve(op, *_operands(node, values))]


@jax_lower.register(AbstractConv_gradWeights)
def _by_weights(
    op: AbstractConv_gradWeights, node: Apply, values: list[Any], frame: Frame
) -> list[Any]:
    image, grad = _operands(node, values)
    channels = image.shape[1] // op.num_groups
    shape = (grad.shape[1], channels, *_lengths(op, node, frame))
    return [_pulled_back(lambda kernel: _convolve(op, image, kernel), shape, grad)]


@jax_lower.register(AbstractConv_gradInputs)
def _by_inputs(
    op: AbstractConv_gradInputs, node: Apply, values: list[Any], frame: Frame
) -> list[Any]:
    kernel, grad = _operands(node, values)
    channels = kernel.shape[1] * op.num_groups
    shape = (grad.shape[0], channels, *_lengths(op, node, frame))
    return [_pulled_back(lambda image: _convolve(op, image, kernel), shape, grad)]
