"""Largest entries and their positions.

XLA's CPU compiler makes a loop over single entries of a reduction that carries two
numbers, the value and its position.  Here the entries along the axis are compared one
after the other, for all that lie beside the axis at once, which is vector code.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

#: So many entries of a short axis are compared without a loop.
UNROLLED = 16

#: With more entries than this beside a short axis, XLA's own loop is vector code.
MOST_BESIDE = 256

#: So many entries beside the axis fill the vector registers.
LEAST_BESIDE = 8

#: An axis with fewer entries beside it is cut into this many parts, which are searched
#: side by side, if it is four times as long.
LANES = 16


def argmax(x: Any, axes: Sequence[int]) -> Any:
    """Give the positions of the largest entries, as in `max_and_argmax`."""
    return max_and_argmax(x, axes)[1]


def max_and_argmax(x: Any, axes: Sequence[int]) -> tuple[Any, Any]:
    """Give the largest entries and their positions.

    The first NaN counts as the largest entry, and the first of equal ones is found, as
    by NumPy's `argmax`.  The derivative of the largest entries is that of `jnp.max`.

    Parameters
    ----------
    x
        Of a real or boolean dtype and at least one dimension.
    axes
        Axes that are searched, each at least 0.  Several are flattened in this order.

    Returns
    -------
    The largest entries, of the dtype of `x`, and positions of dtype int64, both without
    the axes searched.

    Raises
    ------
    ValueError
        If there is nothing to search.
    """
    kept = [axis for axis in range(x.ndim) if axis not in axes]
    x = jnp.asarray(x)
    if len(axes) != 1:
        sizes = [x.shape[axis] for axis in kept]
        x = jnp.transpose(x, (*kept, *axes))
        x = x.reshape((*sizes, int(np.prod(x.shape[len(kept) :]))))
        axes = (len(kept),)
    (axis,) = axes
    search = _search_for(x, axis)
    if search is None:
        return jnp.max(x, axis=axis), jnp.argmax(x, axis=axis)
    largest, position = _differentiable(x, axis, search)
    return largest, position


def _search_for(x: Any, axis: int) -> Any:
    """Choose how to search, or None where XLA's own way is as fast."""
    if x.size == 0 or jax.default_backend() != "cpu":
        return None
    length = x.shape[axis]
    beside = x.size // length
    if length <= UNROLLED:
        return _compared if LEAST_BESIDE <= beside <= MOST_BESIDE else None
    if beside >= LEAST_BESIDE:
        return _searched
    return _searched_in_parts if length >= 4 * LANES else None


@partial(jax.custom_jvp, nondiff_argnums=(1, 2))
def _differentiable(x: Any, axis: int, search: Any) -> tuple[Any, Any]:
    found: tuple[Any, Any] = search(x, axis)
    return found


@_differentiable.defjvp
def _derivative(axis: int, search: Any, primals: Any, tangents: Any) -> Any:
    found = _differentiable(*primals, axis, search)
    _, tangent = jax.jvp(lambda x: jnp.max(x, axis=axis), primals, tangents)
    return found, (tangent, np.zeros(found[1].shape, jax.dtypes.float0))


def _is_better(value: Any, best: Any) -> Any:
    """Say where a later entry takes the place of the best one before it."""
    better = value > best
    if jnp.issubdtype(value.dtype, jnp.floating):
        better |= (value != value) & (best == best)
    return better


def _compared(x: Any, axis: int) -> tuple[Any, Any]:
    best = jax.lax.index_in_dim(x, 0, axis, keepdims=False)
    position = jnp.zeros(best.shape, "int64")
    for index in range(1, x.shape[axis]):
        value = jax.lax.index_in_dim(x, index, axis, keepdims=False)
        better = _is_better(value, best)
        best = jnp.where(better, value, best)
        position = jnp.where(better, index, position)
    return best, position


def _searched(x: Any, axis: int) -> tuple[Any, Any]:
    def step(index: Any, found: tuple[Any, Any]) -> tuple[Any, Any]:
        best, position = found
        value = jax.lax.dynamic_index_in_dim(x, index, axis, keepdims=False)
        better = _is_better(value, best)
        return jnp.where(better, value, best), jnp.where(better, index, position)

    first = jax.lax.index_in_dim(x, 0, axis, keepdims=False)
    found: tuple[Any, Any] = jax.lax.fori_loop(
        1, x.shape[axis], step, (first, jnp.zeros(first.shape, "int64"))
    )
    return found


def _searched_in_parts(x: Any, axis: int) -> tuple[Any, Any]:
    """Search the entries 0, 16, 32, ... together, and 1, 17, 33, ..., and so on."""
    x = jnp.moveaxis(x, axis, -1)
    length = x.shape[-1]
    rows, rest = divmod(length, LANES)
    whole = x[..., : rows * LANES].reshape((*x.shape[:-1], rows, LANES))
    best, row = _searched(whole, x.ndim - 1)
    position = row * LANES + np.arange(LANES)
    if rest:
        behind = np.broadcast_to(np.arange(length - rest, length), (*x.shape[:-1], rest))
        best = jnp.concatenate([best, x[..., length - rest :]], axis=-1)
        position = jnp.concatenate([position, behind], axis=-1)
    largest = jnp.max(best, axis=-1, keepdims=True)
    is_largest = best == largest
    if jnp.issubdtype(x.dtype, jnp.floating):
        is_largest |= (best != best) & (largest != largest)
    return largest[..., 0], jnp.min(jnp.where(is_largest, position, length), axis=-1)
