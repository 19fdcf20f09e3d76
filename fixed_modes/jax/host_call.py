"""Calls from compiled code to Python functions of NumPy arrays.

Not `jax.pure_callback`: that one puts the arrays on a device before Python sees
them.  In a thread of XLA's own, where ``jax_enable_x64`` is as it is for
everybody, float64 becomes float32 on the way, and with a single CPU the copy
waits for the very thread that waits for it (both seen with JAX 0.6.2).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax.interpreters import batching, mlir

try:
    from jax.extend.core import Primitive
except ImportError:  # before JAX 0.4.36
    from jax.core import Primitive

#: Takes NumPy arrays that are valid during the call only, and can't be written to.
HostFunction = Callable[..., Sequence[Any]]

_host_call = Primitive("fixed_modes_callback")
_host_call.multiple_results = True


def host_call(
    function: HostFunction,
    results: Sequence[jax.ShapeDtypeStruct],
    operands: Sequence[Any],
    has_effect: bool = False,
) -> list[Any]:
    """Call a Python function at every run of the code that is being traced.

    Parameters
    ----------
    function
        Gives one array for each of `results`, of that shape and dtype.  It must not
        raise, and must not call JAX.
    results
        Shapes and dtypes.
    operands
        Arrays.
    has_effect
        The call must happen as often as the code says, whether or not it is the
        same as another one.
    """
    carriers = tuple(_carrier(result) for result in results)

    def call(*arrays: Any) -> tuple[Any, ...]:
        values = function(*(np.asarray(array) for array in arrays))
        return tuple(
            np.ascontiguousarray(value).view(carrier.dtype).reshape(carrier.shape)
            for value, carrier in zip(values, carriers)
        )

    carried = _host_call.bind(
        *(jnp.asarray(operand) for operand in operands),
        function=call,
        results=tuple((carrier.shape, np.dtype(carrier.dtype)) for carrier in carriers),
        has_effect=has_effect,
    )
    return [_decode(value, result.dtype) for value, result in zip(carried, results)]


def _carrier(result: jax.ShapeDtypeStruct) -> jax.ShapeDtypeStruct:
    """Choose what carries a result: JAX shortens 64-bit results of callbacks to 32 bits."""
    dtype = np.dtype(result.dtype)
    if dtype.kind == "c" and dtype.itemsize == 16:
        return jax.ShapeDtypeStruct((*result.shape, 2, 2), np.uint32)
    if dtype.itemsize == 8 and dtype.kind != "c":
        return jax.ShapeDtypeStruct((*result.shape, 2), np.uint32)
    return result


def _decode(carried: Any, dtype: Any) -> Any:
    dtype = np.dtype(dtype)
    if dtype.kind == "c" and dtype.itemsize == 16:
        parts = jax.lax.bitcast_convert_type(carried, np.float64)
        return jax.lax.complex(parts[..., 0], parts[..., 1])
    if dtype.itemsize == 8 and dtype.kind != "c":
        return jax.lax.bitcast_convert_type(carried, dtype)
    return carried


@_host_call.def_impl
def _run_now(*operands: Any, function: Any, results: Any, has_effect: bool) -> list[Any]:
    return [jnp.asarray(value) for value in function(*operands)]


@_host_call.def_abstract_eval
def _abstract(*operands: Any, function: Any, results: Any, has_effect: bool) -> list[Any]:
    return [jax.core.ShapedArray(shape, dtype) for shape, dtype in results]


def _lower(ctx: Any, *operands: Any, function: Any, results: Any, has_effect: bool) -> Any:
    values, _, _ = mlir.emit_python_callback(
        ctx,
        function,
        None,
        list(operands),
        ctx.avals_in,
        ctx.avals_out,
        has_side_effect=has_effect,
    )
    return values


def _batch(
    operands: Any, axes: Any, *, function: Any, results: Any, has_effect: bool
) -> tuple[list[Any], list[int]]:
    """Call the function for each entry of a batch, one after another."""
    size = next(x.shape[axis] for x, axis in zip(operands, axes) if axis is not batching.not_mapped)
    rows = [
        jnp.broadcast_to(x, (size, *x.shape))
        if axis is batching.not_mapped
        else jnp.moveaxis(x, axis, 0)
        for x, axis in zip(operands, axes)
    ]

    def call_each(*arrays: Any) -> tuple[Any, ...]:
        found = [function(*entry) for entry in zip(*arrays)]
        if not found:
            return tuple(np.zeros((0, *shape), dtype) for shape, dtype in results)
        return tuple(np.stack(values) for values in zip(*found))

    stacked = tuple(((size, *shape), dtype) for shape, dtype in results)
    outputs = _host_call.bind(*rows, function=call_each, results=stacked, has_effect=has_effect)
    return outputs, [0] * len(outputs)


batching.primitive_batchers[_host_call] = _batch
mlir.register_lowering(_host_call, _lower)
