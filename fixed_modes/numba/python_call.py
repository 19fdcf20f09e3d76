"""Runs an op's ``perform`` from compiled code, for ops that nothing else compiles."""

from __future__ import annotations

from typing import Any, Callable

import numba
import numpy as np
from aesara.graph.basic import Apply, NoParams
from aesara.graph.op import Op
from aesara.tensor.type import TensorType


def call_of_perform(op: Op, node: Apply) -> Callable[..., Any]:
    """Make a function for compiled code that leaves it to run ``op.perform``.

    It takes machine scalars for 0-d tensors, and gives 0-d arrays for them.
    """
    from aesara.link.numba.dispatch.basic import get_numba_type

    kinds = [get_numba_type(out.type, out) for out in node.outputs]
    result_type = kinds[0] if len(kinds) == 1 else numba.types.Tuple(kinds)
    params = node.run_params()
    arguments = () if params is NoParams else (params,)

    def run(inputs: tuple[Any, ...]) -> Any:
        values = [_as_value(variable.type, v) for variable, v in zip(node.inputs, inputs)]
        storage: list[list[Any]] = [[None] for _ in node.outputs]
        op.perform(node, values, storage, *arguments)
        results = tuple(out.type.filter(cell[0]) for out, cell in zip(node.outputs, storage))
        return results[0] if len(results) == 1 else results

    @numba.njit
    def perform(*inputs):  # type: ignore[no-untyped-def]
        # The name is how Numba learns the type.
        with numba.objmode(result=result_type):
            result = run(inputs)
        return result  # noqa: RET504

    return perform


def _as_value(kind: Any, value: Any) -> Any:
    if isinstance(kind, TensorType) and not isinstance(value, np.ndarray):
        return np.asarray(value, dtype=kind.dtype)
    return value
