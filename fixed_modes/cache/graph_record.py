"""Graphs as bytes, and back.

A rewritten graph is written down for a place in another: its inputs are those of the
graph that it was made from, and so are the lines in which the user made a variable and
the contents of large constants.  What is not in that graph is in the bytes.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Sequence
from copy import copy
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from aesara.compile.builders import OpFromGraph
from aesara.compile.function.types import Supervisor
from aesara.configdefaults import config
from aesara.graph.basic import Apply, Constant, NominalVariable, Variable
from aesara.graph.destroyhandler import DestroyHandler
from aesara.graph.features import PreserveVariableAttributes
from aesara.graph.fg import FunctionGraph
from aesara.graph.op import Op
from aesara.scalar.basic import Composite
from aesara.scan.op import Scan
from aesara.tensor.elemwise import DimShuffle

from fixed_modes.cache.graph_key import (
    DERIVED_NODE_TAGS,
    DERIVED_TAGS,
    GraphKey,
    derived_attributes,
    nodes_in_order,
    protected_inputs,
)
from fixed_modes.cache.key import Undescribable

# Constants of so many bytes are taken from the original graph, if they are there.
_LARGE = 256


class VariableRecord(NamedTuple):
    """A variable; where its `trace` came from the original graph, that is referred to."""

    type: Any
    name: str | None
    trace: list[Any] | None
    tags: dict[str, Any]


class GraphRecord(NamedTuple):
    """A graph, its variables numbered: inputs, then constants, then what nodes compute.

    Attributes
    ----------
    inputs
        What they are; None where they come from outside.
    constants
        The class, the data and a record of each.
    nodes
        The op, the numbers of the inputs, records of the outputs and tags of each.
    outputs
        Numbers.
    updates, protected
        As for `GraphKey.add_function_graph`.
    handles_destroyers
        Whether the graph has a `DestroyHandler`.
    """

    inputs: list[Any] | None
    constants: list[tuple[type, Any, VariableRecord]]
    nodes: list[tuple[Op, tuple[int, ...], list[VariableRecord], dict[str, Any]]]
    outputs: list[int]
    updates: dict[int, int]
    protected: list[int] | None
    handles_destroyers: bool


def dumps(fgraph: FunctionGraph, original: Sequence[Variable]) -> bytes:
    """Write down a rewritten graph.

    Parameters
    ----------
    fgraph
        The graph.
    original
        The variables of the graph that it was made from, as `GraphKey` lists them.

    Raises
    ------
    Undescribable
        If it can't be written down exactly.
    """
    places: dict[int, Any] = {}
    for number, variable in enumerate(original):
        for position, trace in enumerate(_trace_of(variable) or ()):
            places.setdefault(id(trace), ("trace", number, position))
        data = getattr(variable, "data", None)
        if getattr(data, "nbytes", 0) >= _LARGE:
            places.setdefault(id(data), ("data", number))
    file = io.BytesIO()
    recorder = _Recorder(file, places)
    recorder.dump(recorder.record(fgraph, is_inner=False))
    return file.getvalue()


def loads(
    content: bytes, inputs: Sequence[Variable], original: Sequence[Variable]
) -> tuple[list[Variable], bool]:
    """Make the variables of a graph that was written down.

    Parameters
    ----------
    content
        What `dumps` gave.
    inputs
        The inputs.
    original
        As for `dumps`, of an equal graph.

    Returns
    -------
    The outputs, and whether the graph had a `DestroyHandler`.
    """
    with config.change_flags(traceback__limit=0, compute_test_value="off"):
        record = _Loader(io.BytesIO(content), original).load()
        return _rebuild(record, list(inputs)), record.handles_destroyers


class _Recorder(pickle.Pickler):
    """Makes records and writes them; what is equal is written once."""

    def __init__(self, file: io.BytesIO, places: dict[int, Any]) -> None:
        super().__init__(file, protocol=4)
        self._places = places
        self._key = GraphKey()
        self._first: dict[str, Any] = {}

    def persistent_id(self, value: Any) -> Any:
        return self._places.get(id(value))

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, (Scan, OpFromGraph)):
            return _rebuild_op, (type(value), _state_of(value), self.record(value.fgraph))
        if isinstance(value, Composite):
            # Its graph is no `FunctionGraph` before it is asked for.
            record = self._record(value.inputs, value.outputs, {}, None, False)
            record = record._replace(inputs=[self._variable(i) for i in value.inputs])
            return _rebuild_composite, (_state_of(value), record)
        if type(value) is DimShuffle:
            return _rebuild_dim_shuffle, (_state_of(value),)
        if type(value) is np.ndarray:
            flags = value.flags
            is_spread = not (flags.c_contiguous or flags.f_contiguous)
            if is_spread or not flags.writeable:
                return _rebuild_array, (value.copy(order="K"), is_spread, flags.writeable)
        return NotImplemented

    def record(self, fgraph: FunctionGraph, is_inner: bool = True) -> GraphRecord:
        """Make the record of a graph."""
        record = self._record(
            fgraph.inputs,
            fgraph.outputs,
            dict(fgraph.update_mapping or {}),
            protected_inputs(fgraph),
            any(isinstance(feature, DestroyHandler) for feature in fgraph._features),
        )
        if is_inner:
            record = record._replace(inputs=[self._input(variable) for variable in fgraph.inputs])
        return record

    def _record(
        self, inputs: Sequence[Variable], outputs: Sequence[Variable], *more: Any
    ) -> GraphRecord:
        nodes = list(nodes_in_order(outputs, inputs))
        numbers = {variable: number for number, variable in enumerate(inputs)}
        constants = []
        for variable in (*(i for node in nodes for i in node.inputs), *outputs):
            if variable not in numbers and isinstance(variable, Constant):
                numbers[variable] = len(numbers)
                constants.append((type(variable), variable.data, self._variable(variable)))
        records = []
        for node in nodes:
            for variable in node.outputs:
                numbers[variable] = len(numbers)
                if type(variable) is not variable.type.variable_type:
                    raise Undescribable(f"{variable}, of type {type(variable).__qualname__}")
            wiring = tuple(numbers[variable] for variable in node.inputs)
            results = [self._variable(variable) for variable in node.outputs]
            tags = {k: v for k, v in vars(node.tag).items() if k not in DERIVED_NODE_TAGS}
            op = node.op if isinstance(node.op, (Scan, OpFromGraph)) else self._same(node.op)
            records.append((op, wiring, results, tags))
        return GraphRecord(None, constants, records, [numbers[v] for v in outputs], *more)

    def _input(self, variable: Variable) -> Any:
        if isinstance(variable, NominalVariable):
            return variable.id, self._same(variable.type)
        if type(variable) is not variable.type.variable_type:
            raise Undescribable(f"{variable}, of type {type(variable).__qualname__}")
        return self._variable(variable)

    def _variable(self, variable: Variable) -> VariableRecord:
        tags = {k: v for k, v in vars(variable.tag).items() if k not in DERIVED_TAGS}
        trace = _trace_of(variable)
        if trace is not None:
            trace = [part for part in trace if id(part) in self._places]
        return VariableRecord(self._same(variable.type), variable.name, trace, tags)

    def _same(self, value: Any) -> Any:
        return self._first.setdefault(self._key.digest_of(value), value)


class _Loader(pickle.Unpickler):
    """Reads what `_Recorder` wrote."""

    def __init__(self, file: io.BytesIO, original: Sequence[Variable]) -> None:
        super().__init__(file)
        self._original = original

    def persistent_load(self, pid: tuple[Any, ...]) -> Any:
        kind, number, *rest = pid
        variable = self._original[number]
        if kind == "data":
            return variable.data
        # A constant that several graphs share has a trace for each time it was asked for.
        trace = _trace_of(variable) or []
        return trace[rest[0]] if rest[0] < len(trace) else []


def _trace_of(variable: Variable) -> list[Any] | None:
    trace = getattr(variable.tag, "trace", None)
    return trace if isinstance(trace, list) else None


def _state_of(op: Any) -> dict[str, Any]:
    derived = derived_attributes(type(op)) - {"_hash_inner_graph"}
    return {name: value for name, value in vars(op).items() if name not in derived}


def _rebuild_op(kind: Any, state: dict[str, Any], record: GraphRecord) -> Any:
    op: Any = kind.__new__(kind)
    op.__dict__.update(state)
    inputs = [_rebuild_input(entry) for entry in record.inputs or ()]
    op.fgraph = _rebuild_graph(record, inputs)
    if isinstance(op, OpFromGraph):
        op.kwargs = {}
        op.set_lop_overrides("default")
        op.set_rop_overrides("default")
    return op


def _rebuild_composite(state: dict[str, Any], record: GraphRecord) -> Composite:
    op = Composite.__new__(Composite)
    op.__dict__.update(state)
    op.inputs = [_rebuild_input(entry) for entry in record.inputs or ()]
    op.outputs = _rebuild(record, op.inputs)
    op.inputs_type = tuple(variable.type for variable in op.inputs)
    op.outputs_type = tuple(variable.type for variable in op.outputs)
    op.prepare_node_called = set()
    return op


def _rebuild_dim_shuffle(state: dict[str, Any]) -> DimShuffle:
    op = copy(_dim_shuffle())
    op.__dict__.update(state)
    return op


@lru_cache(maxsize=1)
def _dim_shuffle() -> DimShuffle:
    """Make one: the C code that each carries along is read from a file."""
    return DimShuffle((), ())


def _rebuild_array(values: np.ndarray, is_spread: bool, is_writeable: bool) -> np.ndarray:
    """Make an array that code is compiled for as for the original.

    Pickled arrays come back in one piece and writeable, whatever they were.
    """
    if is_spread:
        spread = np.empty((*values.shape, 2), values.dtype)[..., 0]
        spread[...] = values
        values = spread
    values.flags.writeable = is_writeable
    return values


def _rebuild_input(entry: Any) -> Variable:
    if isinstance(entry, VariableRecord):
        return _rebuild_variable(entry)
    number, kind = entry
    return NominalVariable(number, kind)


def _rebuild_variable(record: VariableRecord) -> Variable:
    return _with_tags(record.type.make_variable(record.name), record)


def _with_tags(variable: Variable, record: VariableRecord) -> Variable:
    if record.trace is not None:
        variable.tag.trace = list(record.trace)
    for name, value in record.tags.items():
        setattr(variable.tag, name, value)
    return variable


def _rebuild(record: GraphRecord, inputs: Sequence[Variable]) -> list[Variable]:
    """Make the variables of a graph; gives its outputs."""
    variables = list(inputs)
    for kind, data, about in record.constants:
        variables.append(_with_tags(kind(about.type, data, about.name), about))
    for op, wiring, results, tags in record.nodes:
        outputs = [_rebuild_variable(result) for result in results]
        node = Apply(op, [variables[number] for number in wiring], outputs)
        for name, value in tags.items():
            setattr(node.tag, name, value)
        variables += outputs
    return [variables[number] for number in record.outputs]


def _rebuild_graph(record: GraphRecord, inputs: list[Variable]) -> FunctionGraph:
    fgraph = FunctionGraph(
        inputs,
        _rebuild(record, inputs),
        clone=False,
        features=[PreserveVariableAttributes()],
        update_mapping=record.updates,
    )
    if record.protected is not None:
        fgraph.attach_feature(Supervisor(inputs[number] for number in record.protected))
    if record.handles_destroyers:
        fgraph.attach_feature(DestroyHandler())
    return fgraph
