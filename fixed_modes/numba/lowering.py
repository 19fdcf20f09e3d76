"""Writes a `FunctionGraph` as flat statements; the table of lowerings.

A lowering writes the statements of one node.  Ops without one go to Aesara's
`numba_funcify`; the function that this gives is called.
"""

from __future__ import annotations

import warnings
from functools import singledispatch
from typing import Any

from aesara.compile.builders import OpFromGraph
from aesara.compile.ops import ViewOp
from aesara.configdefaults import config
from aesara.graph.basic import Apply
from aesara.graph.fg import FunctionGraph
from aesara.graph.op import Op
from aesara.scan.op import Scan

from fixed_modes.errors import FixedModesWarning, UnsupportedOpError, describe_node
from fixed_modes.numba.scan import ScanLoop
from fixed_modes.numba.writer import Writer, is_machine_scalar


def lower_graph(fgraph: FunctionGraph, writer: Writer) -> None:
    """Write every node of `fgraph`; its inputs have names already.

    The order respects the destroy maps of the graph.
    """
    for node in fgraph.toposort():
        with writer.at_node(node):
            writer.emit(f"# {node.op}".replace("\n", " "))
            lower(node.op, node, fgraph, writer)


@singledispatch
def lower(op: Op, node: Apply, fgraph: FunctionGraph, writer: Writer) -> None:
    """Write the statements of `node`: here, a call of Aesara's own conversion.

    Raises
    ------
    UnsupportedOpError
        If there is no conversion.
    """
    convert = _stock_conversion(op, node, writer)
    function = writer.use_global(type(op).__name__.lower(), convert)
    call = f"{function}({', '.join(writer.name(i) for i in node.inputs)})"
    scalars = [is_machine_scalar(out) for out in node.outputs]
    names = [writer.define(out, type(op).__name__.lower()) for out in node.outputs]
    if any(scalars):
        writer.globals["to_scalar"] = _to_scalar()
    if len(names) == 1:
        writer.emit(f"{names[0]} = to_scalar({call})" if scalars[0] else f"{names[0]} = {call}")
        return
    writer.emit(f"{', '.join(names)} = {call}")
    for name, scalar in zip(names, scalars):
        if scalar:
            writer.emit(f"{name} = to_scalar({name})")


def _to_scalar() -> Any:
    from aesara.link.numba.dispatch.basic import to_scalar

    return to_scalar


def _stock_conversion(op: Op, node: Apply, writer: Writer) -> Any:
    from aesara.link.numba.dispatch.basic import numba_funcify

    try:
        with warnings.catch_warnings(record=True) as caught, config.change_flags(
            # Fast-math folds isnan to False; the cache is of no use to a
            # function that is inlined into a larger one.
            numba__fastmath=False,
            numba__cache=False,
        ):
            warnings.simplefilter("always")
            convert = numba_funcify(op, node=node)
    except Exception as exc:
        raise UnsupportedOpError(
            f"NUMBA_FIXED has no conversion for this op ({exc}).\n"
            f"{describe_node(node, writer.scans)}"
        ) from exc
    if any("object mode" in str(warning.message) for warning in caught):
        warnings.warn(
            f"NUMBA_FIXED runs {op} in Python at every call, which is slow.\n"
            f"{describe_node(node, writer.scans)}",
            FixedModesWarning,
            stacklevel=2,
        )
    return convert


@lower.register(ViewOp)
def _lower_view(op: ViewOp, node: Apply, fgraph: FunctionGraph, writer: Writer) -> None:
    writer.bind(node.outputs[0], writer.name(node.inputs[0]))


@lower.register(OpFromGraph)
def _lower_op_from_graph(
    op: OpFromGraph, node: Apply, fgraph: FunctionGraph, writer: Writer
) -> None:
    arguments = [writer.name(outer) for outer in node.inputs]
    with writer.inside_scan(str(op)), writer.inner_scope():
        for inner, name in zip(op.fgraph.inputs, arguments):
            writer.bind(inner, name)
        lower_graph(op.fgraph, writer)
        results = [writer.name(inner) for inner in op.fgraph.outputs]
    for outer, name in zip(node.outputs, results):
        writer.bind(outer, name)


@lower.register(Scan)
def _lower_scan(op: Scan, node: Apply, fgraph: FunctionGraph, writer: Writer) -> None:
    ScanLoop(op, node, fgraph, writer).write(lower_graph)
