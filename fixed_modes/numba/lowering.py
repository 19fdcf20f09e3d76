"""Writes a `FunctionGraph` as flat statements; the table of lowerings.

A lowering writes the statements of one node.  Ops without one go to Aesara's
`numba_funcify`; the function that this gives is called.
"""

from __future__ import annotations

import warnings
from functools import singledispatch
from typing import Any, Callable

from aesara.compile.builders import OpFromGraph
from aesara.compile.ops import DeepCopyOp, ViewOp
from aesara.configdefaults import config
from aesara.graph.basic import Apply, Constant, Variable
from aesara.graph.fg import FunctionGraph
from aesara.graph.op import Op
from aesara.ifelse import IfElse
from aesara.raise_op import CheckAndRaise
from aesara.scalar.basic import Identity, ScalarOp
from aesara.scan.op import Scan
from aesara.tensor.basic import (
    Alloc,
    AllocDiag,
    AllocEmpty,
    Default,
    ExtractDiag,
    Join,
    MakeVector,
    Nonzero,
    ScalarFromTensor,
    Split,
    TensorFromScalar,
    Tri,
)
from aesara.tensor.blas import BatchedDot
from aesara.tensor.elemwise import CAReduce, DimShuffle, Elemwise
from aesara.tensor.extra_ops import CumOp, FillDiagonal, FillDiagonalOffset, Repeat
from aesara.tensor.math import Argmax, Dot, MatMul, MaxAndArgmax
from aesara.tensor.nlinalg import Eig
from aesara.tensor.random.op import RandomVariable
from aesara.tensor.shape import Reshape, Shape, Shape_i, SpecifyShape, Unbroadcast
from aesara.tensor.slinalg import CholeskySolve, Solve, SolveTriangular
from aesara.tensor.special import LogSoftmax, Softmax, SoftmaxGrad
from aesara.tensor.subtensor import (
    AdvancedIncSubtensor,
    AdvancedIncSubtensor1,
    AdvancedSubtensor,
    AdvancedSubtensor1,
    IncSubtensor,
    Subtensor,
)
from aesara.tensor.type import TensorType
from aesara.tensor.type_other import MakeSlice

from fixed_modes.aliasing import memory_root
from fixed_modes.errors import FixedModesWarning, describe_node
from fixed_modes.numba.advanced import (
    write_advanced_inc_subtensor,
    write_advanced_subtensor,
)
from fixed_modes.numba.arange import ARANGE
from fixed_modes.numba.argmax import write_argmax
from fixed_modes.numba.batched import write_batched_dot
from fixed_modes.numba.branches import own_value, write_ifelse
from fixed_modes.numba.cumulative import write_cumulative
from fixed_modes.numba.deferral import may_be_put_off
from fixed_modes.numba.diagonals import write_alloc_diag, write_extract_diag
from fixed_modes.numba.elements import arrays_of, write_small
from fixed_modes.numba.elemwise import (
    is_absorbed,
    is_absorbed_product,
    write_dimshuffle,
    write_elemwise,
)
from fixed_modes.numba.folding import fold
from fixed_modes.numba.join import write_join
from fixed_modes.numba.lazy import WHOLE_GRAPH, Region, find_regions
from fixed_modes.numba.nlinalg import LINEAR_ALGEBRA, loses_imaginary_parts, write_solve_checks
from fixed_modes.numba.order import ordered_nodes
from fixed_modes.numba.products import write_dot
from fixed_modes.numba.python_call import call_of_perform
from fixed_modes.numba.random import write_draw
from fixed_modes.numba.reductions import write_reduction
from fixed_modes.numba.scalar import NoExpression, Operand, write_scalar_op
from fixed_modes.numba.scan import ScanLoop
from fixed_modes.numba.selection import write_nonzero, write_repeat, write_tri
from fixed_modes.numba.shapes import note_shapes
from fixed_modes.numba.softmax import write_softmax, write_softmax_grad
from fixed_modes.numba.solve import write_solve
from fixed_modes.numba.sorting import SORTING
from fixed_modes.numba.split import write_split
from fixed_modes.numba.subtensor import (
    write_inc_subtensor,
    write_put,
    write_subtensor,
    write_take,
)
from fixed_modes.numba.tensor import (
    write_alloc,
    write_alloc_empty,
    write_check,
    write_deep_copy,
    write_make_vector,
    write_reshape,
    write_shape,
    write_specify_shape,
)
from fixed_modes.numba.triangular import write_cholesky_solve, write_solve_triangular
from fixed_modes.numba.unravel import POSITIONS
from fixed_modes.numba.writer import Writer, is_machine_scalar
from fixed_modes.rewrites.branches import ChangingIfElse


def lower_graph(fgraph: FunctionGraph, writer: Writer) -> None:
    """Write every node of `fgraph`; its inputs have names already.

    The order respects the destroy maps of the graph.  What only one branch of
    an `IfElse` needs is written inside that branch.
    """
    order = ordered_nodes(fgraph)
    regions = find_regions(fgraph, order)
    changes = {
        change
        for node in order
        if isinstance(node.op, ChangingIfElse)
        for change in node.op.chains(node)
    }
    writer.in_place.update(changes)

    def write_region(region: Region) -> None:
        for position, node in enumerate(order):
            if regions[node] == region and node not in changes:
                with writer.at_node(node):
                    if isinstance(node.op, IfElse):
                        writer.emit(f"# {node.op}")
                        write_ifelse(node, regions, write_region, write_change, writer)
                    else:
                        _write_node(node, fgraph, order[position + 1 :], writer)

    def write_change(node: Apply) -> None:
        _write_node(node, fgraph, [], writer)

    write_region(WHOLE_GRAPH)


def _write_node(node: Apply, fgraph: FunctionGraph, later: list[Apply], writer: Writer) -> None:
    """Write what a node needs: nothing where its value is known, or others compute it."""
    op = node.op
    if fold(op, node, writer):
        return
    note_shapes(op, node, writer)
    writer.emit(f"# {op}".replace("\n", " "))
    if write_small(op, node, fgraph, writer):
        return
    if may_be_put_off(node, fgraph, later, writer):
        writer.facts(node.outputs[0]).put_off = node
        return
    with arrays_of(node, writer):
        lower(op, node, fgraph, writer)


@singledispatch
def lower(op: Op, node: Apply, fgraph: FunctionGraph, writer: Writer) -> None:
    """Write the statements of `node`.

    Raises
    ------
    UnsupportedOpError
        If there is no conversion.
    """
    call_stock_conversion(op, node, writer)


def call_stock_conversion(op: Op, node: Apply, writer: Writer) -> None:
    """Write a call of the function that Aesara's own conversion gives for `op`.

    Raises
    ------
    UnsupportedOpError
        If there is no conversion.
    """
    if node in writer.findings.in_python:
        call_perform(op, node, writer)
        return
    writer.converted.add(node)
    function = _stock_conversion(op, node, writer)
    _write_call(function, node, writer, is_stock=not isinstance(op, _ALWAYS_IN_PYTHON))


def call_perform(op: Op, node: Apply, writer: Writer) -> None:
    """Write a call of ``op.perform``, and warn that it runs in Python."""
    _warn_of_python(op, node, writer)
    _write_call(call_of_perform(op, node), node, writer)


def _write_call(callee: Any, node: Apply, writer: Writer, is_stock: bool = False) -> None:
    hint = type(node.op).__name__.lower()
    function = writer.use_global(hint, callee)
    arguments = [writer.name(i) for i in node.inputs]
    if isinstance(node.op, _CHANGING):
        arguments[0] = f"{arguments[0]}.copy()"
    call = f"{function}({', '.join(arguments)})"
    scalars = [is_machine_scalar(out) for out in node.outputs]
    names = [writer.define(out, hint) for out in node.outputs]
    if any(scalars):
        writer.globals["to_scalar"] = _to_scalar()
    if len(names) == 1:
        text = f"to_scalar({call})" if scalars[0] else call
        writer.emit(f"{names[0]} = {text}{_copy_suffix(node, 0, is_stock)}")
        return
    writer.emit(f"{', '.join(names)} = {call}")
    for name, scalar in zip(names, scalars):
        if scalar:
            writer.emit(f"{name} = to_scalar({name})")
    for position, name in enumerate(names):
        suffix = _copy_suffix(node, position, is_stock)
        if suffix:
            writer.emit(f"{name} = {name}{suffix}")


# Conversions of Aesara that write into their first input.
_CHANGING = (FillDiagonal, FillDiagonalOffset)


def _copy_suffix(node: Apply, position: int, is_stock: bool) -> str:
    """Give what copies an output where Aesara's conversion may return a view of an input.

    The op says that it does not, so what follows may write into the output.
    """
    out = node.outputs[position]
    declared = {**node.op.view_map, **node.op.destroy_map}
    is_array = isinstance(out.type, TensorType) and out.type.ndim > 0
    if not (is_stock and is_array) or position in declared:
        return ""
    shares = any(
        i.type.dtype == out.type.dtype and i.type.ndim > 0
        for i in node.inputs
        if isinstance(i.type, TensorType)
    )
    return ".copy()" if shares else ""


def _to_scalar() -> Any:
    from aesara.link.numba.dispatch.basic import to_scalar

    return to_scalar


# Aesara's own samplers don't draw what FAST_RUN draws, and its advanced indexing
# is wrong for repeated indices. Numba refuses matrices with complex eigenvalues.
_ALWAYS_IN_PYTHON = (RandomVariable, AdvancedSubtensor, AdvancedIncSubtensor, Eig)


def _stock_conversion(op: Op, node: Apply, writer: Writer) -> Any:
    conversions = writer.findings.conversions
    if node not in conversions:
        conversions[node] = _convert(op, node, writer)
    return conversions[node]


def _convert(op: Op, node: Apply, writer: Writer) -> Any:
    from aesara.link.numba.dispatch.basic import _numba_funcify, numba_funcify

    is_native = _numba_funcify.dispatch(type(op)) is not _numba_funcify.dispatch(Op)
    if not is_native or isinstance(op, _ALWAYS_IN_PYTHON) or loses_imaginary_parts(node):
        _warn_of_python(op, node, writer)
        return call_of_perform(op, node)
    try:
        with (
            warnings.catch_warnings(record=True) as caught,
            config.change_flags(
                # Fast-math folds isnan to False; the cache is of no use to a
                # function that is inlined into a larger one.
                numba__fastmath=False,
                numba__cache=False,
            ),
        ):
            warnings.simplefilter("always")
            function = numba_funcify(op, node=node)
    except Exception:
        # Not for these properties, or these types.
        _warn_of_python(op, node, writer)
        return call_of_perform(op, node)
    if any("object mode" in str(warning.message) for warning in caught):
        _warn_of_python(op, node, writer)
    return function


def _warn_of_python(op: Op, node: Apply, writer: Writer) -> None:
    if node in writer.findings.warned:
        return
    writer.findings.warned.add(node)
    warnings.warn(
        f"NUMBA_FIXED runs {op} in Python at every call, which is slow.\n"
        f"{describe_node(node, writer.scans)}",
        FixedModesWarning,
        stacklevel=2,
    )


def _register(*ops: type) -> Callable:
    def decorate(function: Callable) -> Callable:
        for op in ops:
            lower.register(op)(function)
        return function

    return decorate


# An array that is None never gets here (see `fixed_modes.optional_inputs`).
@_register(ViewOp, Identity, ScalarFromTensor, TensorFromScalar, Unbroadcast, Default)
def _lower_view(op: Op, node: Apply, fgraph: FunctionGraph, writer: Writer) -> None:
    if isinstance(node.inputs[0], Constant):
        writer.bind(node.outputs[0], writer.name(node.inputs[0]))
    else:
        writer.share(node.outputs[0], writer.facts(node.inputs[0]))


@_register(ScalarOp)
def _lower_scalar_op(op: ScalarOp, node: Apply, fgraph: FunctionGraph, writer: Writer) -> None:
    operands = [Operand(writer.name(i), i.type.dtype) for i in node.inputs]
    try:
        with writer.all_or_nothing(NoExpression):
            values = write_scalar_op(op, node, operands, writer)
    except NoExpression:
        call_perform(op, node, writer)
        return
    for out, value in zip(node.outputs, values):
        writer.bind(out, value)


@_register(Elemwise, CAReduce)
def _lower_or_call(op: Op, node: Apply, fgraph: FunctionGraph, writer: Writer) -> None:
    write = write_elemwise if isinstance(op, Elemwise) else write_reduction
    try:
        write(op, node, writer)
    except NoExpression:
        call_perform(op, node, writer)


@_register(DimShuffle)
def _lower_dimshuffle(op: DimShuffle, node: Apply, fgraph: FunctionGraph, writer: Writer) -> None:
    if not is_absorbed(node, fgraph):
        write_dimshuffle(op, node, writer)


def _register_where_known(op_type: type, write: Callable[..., bool]) -> None:
    """Register a lowering that says False where it has nothing for a node."""

    def lower_or_call(op: Op, node: Apply, fgraph: FunctionGraph, writer: Writer) -> None:
        if not write(op, node, writer):
            call_stock_conversion(op, node, writer)

    lower.register(op_type)(lower_or_call)


_register_where_known(DeepCopyOp, write_deep_copy)
_register_where_known(Split, write_split)
_register_where_known(Join, write_join)
for _op, _attempt in {**ARANGE, **LINEAR_ALGEBRA, **SORTING}.items():
    _register_where_known(_op, _attempt)
_register_where_known(Repeat, write_repeat)
_register_where_known(ExtractDiag, write_extract_diag)
_register_where_known(AllocDiag, write_alloc_diag)
_register_where_known(SolveTriangular, write_solve_triangular)
_register_where_known(CholeskySolve, write_cholesky_solve)
_register_where_known(RandomVariable, write_draw)
_register_where_known(AdvancedSubtensor, write_advanced_subtensor)
_register_where_known(AdvancedIncSubtensor, write_advanced_inc_subtensor)


@_register(Dot)
def _lower_dot(op: Dot, node: Apply, fgraph: FunctionGraph, writer: Writer) -> None:
    if is_absorbed_product(node, fgraph):
        x, y = node.inputs
        writer.facts(node.outputs[0]).product = (x, y)
    elif not write_dot(op, node, writer):
        call_stock_conversion(op, node, writer)


@_register(MatMul)
def _lower_matmul(op: MatMul, node: Apply, fgraph: FunctionGraph, writer: Writer) -> None:
    # The type that the op gives its output is that of floatX, whatever it computes.
    is_simple = {v.type.dtype for v in (*node.inputs, *node.outputs)} == {"float64"}
    if not (is_simple and write_dot(op, node, writer)):
        call_stock_conversion(op, node, writer)


@_register(Solve)
def _lower_solve(op: Solve, node: Apply, fgraph: FunctionGraph, writer: Writer) -> None:
    if write_solve(op, node, writer):
        return
    # Aesara's conversion solves for others as if they were triangular.
    if op.assume_a == "gen":
        write_solve_checks(op, node, writer)
        call_stock_conversion(op, node, writer)
    else:
        call_perform(op, node, writer)


@_register(MakeSlice)
def _lower_make_slice(op: MakeSlice, node: Apply, fgraph: FunctionGraph, writer: Writer) -> None:
    (out,) = node.outputs
    # Indexing writes the parts of a slice itself.
    if all(
        client != "output" and isinstance(client.op, (AdvancedSubtensor, AdvancedIncSubtensor))
        for client, _ in fgraph.clients[out]
    ):
        writer.bind(out, "")
    else:
        call_stock_conversion(op, node, writer)


@_register(MaxAndArgmax, Argmax)
def _lower_argmax(op: Op, node: Apply, fgraph: FunctionGraph, writer: Writer) -> None:
    write_argmax(node, op.axis, writer)


@_register(Shape_i)
def _lower_shape_i(op: Shape_i, node: Apply, fgraph: FunctionGraph, writer: Writer) -> None:
    writer.emit(
        f"{writer.define(node.outputs[0], 'length')} = {writer.name(node.inputs[0])}.shape[{op.i}]"
    )


for _op, _write in {
    Alloc: write_alloc,
    AllocEmpty: write_alloc_empty,
    MakeVector: write_make_vector,
    Shape: write_shape,
    Reshape: write_reshape,
    SpecifyShape: write_specify_shape,
    CheckAndRaise: write_check,
    Subtensor: write_subtensor,
    IncSubtensor: write_inc_subtensor,
    AdvancedSubtensor1: write_take,
    AdvancedIncSubtensor1: write_put,
    CumOp: write_cumulative,
    BatchedDot: write_batched_dot,
    **POSITIONS,
    Nonzero: write_nonzero,
    Tri: write_tri,
    Softmax: write_softmax,
    LogSoftmax: write_softmax,
    SoftmaxGrad: write_softmax_grad,
}.items():
    lower.register(_op)(lambda op, node, fgraph, writer, _write=_write: _write(op, node, writer))


@lower.register(OpFromGraph)
def _lower_op_from_graph(
    op: OpFromGraph, node: Apply, fgraph: FunctionGraph, writer: Writer
) -> None:
    arguments = [writer.facts_of_value(outer) for outer in node.inputs]
    with writer.inside_scan(str(op)), writer.inner_scope():
        for inner, facts in zip(op.fgraph.inputs, arguments):
            writer.share(inner, facts)
        lower_graph(op.fgraph, writer)
        shapes = [writer.facts(out).shape for out in op.fgraph.outputs]
        results = _own_results(op.fgraph, writer)
    for outer, name, shape in zip(node.outputs, results, shapes):
        writer.bind(outer, name)
        writer.facts(outer).shape = shape


def _own_results(inner_graph: FunctionGraph, writer: Writer) -> list[str]:
    """Name the outputs of an inner graph; none shares memory with an input or another output.

    The op says so to the outer graph, which may write into them.
    """
    taken: set[Variable] = set(inner_graph.inputs)
    results = []
    for out in inner_graph.outputs:
        root, _ = memory_root(out)
        if (root in taken or isinstance(root, Constant)) and not is_machine_scalar(out):
            copied = writer.fresh(f"{writer.name(out)}_copy")
            writer.emit(f"{copied} = {own_value(out, writer)}")
            results.append(copied)
        else:
            results.append(writer.name(out))
        taken.add(root)
    return results


@lower.register(Scan)
def _lower_scan(op: Scan, node: Apply, fgraph: FunctionGraph, writer: Writer) -> None:
    ScanLoop(op, node, fgraph, writer).write(lower_graph)
