"""Runs an op's ``perform`` from compiled code, for ops that nothing else compiles."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any
from weakref import WeakValueDictionary

import numba
import numpy as np
from aesara.graph.basic import Apply, NoParams, Variable
from aesara.graph.op import Op
from aesara.link.c.op import COp
from aesara.tensor.type import TensorType

from fixed_modes.errors import UnsupportedOpError, describe_node

_numbers = itertools.count()
_calls: WeakValueDictionary[int, PerformCall] = WeakValueDictionary()


class PerformCall:
    """Runs ``perform`` of a node on values as compiled code holds them.

    Numba copies what a function refers to by pickling it.  This pickles as a
    reference to itself: a node is a whole graph, and some of its parameters
    can't be copied.
    """

    def __init__(self, op: Op, node: Apply) -> None:
        self.op, self.node = op, node
        # Some ops note on the node what their `perform` needs.
        storage = {variable: [None] for variable in (*node.inputs, *node.outputs)}
        op.prepare_node(node, storage, {variable: [False] for variable in storage}, "py")
        params = node.run_params()
        self.arguments = () if params is NoParams else (params,)
        self._thunk: Callable[[], Any] | None = None
        self._cells: dict[Variable, list[Any]] = {}
        self.number = next(_numbers)
        _calls[self.number] = self

    def __call__(self, inputs: tuple[Any, ...]) -> Any:
        node = self.node
        values = [_as_value(variable.type, v) for variable, v in zip(node.inputs, inputs)]
        storage = self._run(values)
        results = tuple(
            self._own(position, out.type.filter(cell[0], allow_downcast=True))
            for position, (out, cell) in enumerate(zip(node.outputs, storage))
        )
        return results[0] if len(results) == 1 else results

    def _run(self, values: list[Any]) -> list[list[Any]]:
        storage: list[list[Any]] = [[None] for _ in self.node.outputs]
        if self._thunk is None:
            try:
                self.op.perform(self.node, values, storage, *self.arguments)
                return storage
            except NotImplementedError as exc:
                self._thunk = self._make_thunk(exc)
        for variable, value in zip(self.node.inputs, values):
            self._cells[variable][0] = value
        for out in self.node.outputs:
            self._cells[out][0] = None
        self._thunk()
        return [self._cells[out] for out in self.node.outputs]

    def _make_thunk(self, cause: NotImplementedError) -> Callable[[], Any]:
        """Let an op that has no ``perform`` make what runs it.

        Raises
        ------
        UnsupportedOpError
            If it has only C code.
        """
        node = self.node
        if type(self.op).make_thunk in (Op.make_thunk, COp.make_thunk):
            raise UnsupportedOpError(
                f"NUMBA_FIXED can't run this op, which has no code in Python ({cause}).\n"
                f"{describe_node(node)}"
            ) from cause
        variables = [*node.inputs, *node.outputs]
        self._cells = {variable: [None] for variable in variables}
        computed = {variable: [variable in node.inputs] for variable in variables}
        thunk: Callable[[], Any] = self.op.make_thunk(node, self._cells, computed, [], impl="py")
        return thunk

    def _own(self, position: int, value: Any) -> Any:
        """Give `value` as the code after this call may change it."""
        shares = {**self.op.view_map, **self.op.destroy_map}
        if isinstance(value, np.ndarray) and position not in shares:
            return np.array(value)
        return value

    def __reduce__(self) -> tuple[Callable[[int], PerformCall], tuple[int]]:
        return _call_of_number, (self.number,)


def _call_of_number(number: int) -> PerformCall:
    return _calls[number]


def call_of_perform(op: Op, node: Apply) -> Callable[..., Any]:
    """Make a function for compiled code that leaves it to run ``op.perform``.

    It takes machine scalars for 0-d tensors, and gives 0-d arrays for them.
    """
    from aesara.link.numba.dispatch.basic import get_numba_type

    kinds = [get_numba_type(out.type, out) for out in node.outputs]
    result_type = kinds[0] if len(kinds) == 1 else numba.types.Tuple(kinds)
    run = PerformCall(op, node)

    @numba.njit
    def perform(*inputs):  # type: ignore[no-untyped-def]
        # The name is how Numba learns the type.
        with numba.objmode(result=result_type):
            result = run(inputs)
        return result  # noqa: RET504

    return perform


def _as_value(kind: Any, value: Any) -> Any:
    # Numba has machine scalars; the type of a sparse matrix is a `TensorType` too.
    if type(kind) is TensorType and not isinstance(value, np.ndarray):
        return np.asarray(value, dtype=kind.dtype)
    return value
