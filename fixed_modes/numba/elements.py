"""Small arrays inside loops: each element lives in a local variable.

A vector of two or three numbers costs more as an array than what is computed with
it: an allocation, a loop, index arithmetic.  Where the lengths are known, the ops
on such arrays are written out element by element, and an array is made only for an
op that needs one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import singledispatch
from typing import Any, Callable

import aesara.scalar.basic as aes
import numpy as np
from aesara.graph.basic import Apply, Constant, Variable
from aesara.graph.fg import FunctionGraph
from aesara.graph.op import Op
from aesara.tensor.basic import Alloc, Join, MakeVector
from aesara.tensor.elemwise import CAReduce, DimShuffle, Elemwise
from aesara.tensor.math import Dot
from aesara.tensor.shape import Reshape, SpecifyShape, Unbroadcast
from aesara.tensor.subtensor import IncSubtensor, Subtensor
from aesara.tensor.type import TensorType

from fixed_modes.numba.facts import Shape
from fixed_modes.numba.plan import Known
from fixed_modes.numba.scalar import NoExpression, Operand, expression, write_scalar_op
from fixed_modes.numba.shapes import indexed_shape
from fixed_modes.numba.writer import Writer, is_machine_scalar

# So many elements an array may have, and so many along an axis.
MOST_ELEMENTS = 9
LONGEST_AXIS = 4
# So many scalar operations are written out for one node.
_MOST_OPERATIONS = 128

_Elements = tuple[str, ...]


def is_small(variable: Variable, writer: Writer) -> bool:
    """Decide whether the elements of `variable` live in local variables."""
    if not isinstance(variable.type, TensorType) or variable.type.ndim == 0:
        return False
    if not writer.is_in_loop:
        # An array that is made of a number, and may be used as one later.
        size = writer.size(variable)
        if size is None or not size.is_constant or size.value != 1:
            return False
    return variable.type.dtype != "float16" and fixed_shape(variable, writer) is not None


def fixed_shape(variable: Variable, writer: Writer) -> tuple[int, ...] | None:
    """Give the lengths of an array if it is small; code for these very lengths follows."""
    facts = None if isinstance(variable, Constant) else writer.facts(variable)
    if facts is not None and facts.elements is not None and facts.shape is not None:
        return tuple(int(n.value) for n in facts.shape if n is not None)
    if facts is not None and facts.put_off is not None:
        # Nothing has its elements: it was not small when it was put off.
        return None
    return small_shape(writer.shape(variable), writer)


def small_shape(shape: Shape, writer: Writer) -> tuple[int, ...] | None:
    """Give a shape if it is known and small; code for these very lengths follows."""
    known = [n for n in shape if n is not None]
    if not shape or len(known) < len(shape):
        return None
    if not all(writer.plan.decide(f"0 < {{}} <= {LONGEST_AXIS}", n) for n in known):
        return None
    lengths = tuple(fixed_length(n, writer) for n in known)
    return lengths if np.prod(lengths) <= MOST_ELEMENTS else None


def fixed_length(length: Known, writer: Writer) -> int:
    """Decide that a length is what it is at this call."""
    plan = writer.plan
    # Not inside an `assert`, which `python -O` leaves out: this notes the decision.
    is_equal = plan.equal(length, plan.constant(length.value))
    assert is_equal
    return int(length.value)


def elements_of(variable: Variable, writer: Writer) -> _Elements:
    """Give the elements of a small array in C order; they are read if that is needed."""
    if isinstance(variable, Constant):
        return tuple(writer.literal(v) for v in np.ravel(variable.data))
    facts = writer.facts(variable)
    if facts.elements is not None:
        return facts.elements
    shape = fixed_shape(variable, writer)
    assert shape is not None
    array = writer.name(variable)
    elements = []
    for place in np.ndindex(*shape):
        name = writer.fresh("_".join([array, *map(str, place)]))
        elements.append(name)
        statement = f"{name} = {array}[{', '.join(map(str, place))}]"
        if facts.is_fixed:
            writer.hoist(statement)
        else:
            writer.emit(statement)
    if facts.is_fixed or not writer.is_in_branch:
        facts.elements = tuple(elements)
        facts.shape = tuple(writer.plan.constant(n) for n in shape)
    return tuple(elements)


def set_elements(
    variable: Variable, elements: Sequence[str], shape: Sequence[int], writer: Writer
) -> None:
    """Note where the elements of a result are."""
    facts = writer.facts(variable)
    facts.name = None
    facts.elements = tuple(elements)
    facts.shape = tuple(writer.plan.constant(n) for n in shape)


@contextmanager
def arrays_of(node: Apply, writer: Writer) -> Iterator[None]:
    """Make arrays of those inputs of `node` that are held element by element."""
    changed = []
    is_elemwise = isinstance(node.op, Elemwise)
    for variable in node.inputs:
        if isinstance(variable, Constant) or not isinstance(variable.type, TensorType):
            continue
        facts = writer.facts(variable)
        if facts.name is None and facts.elements is not None:
            if is_elemwise and len(facts.elements) == 1:
                continue  # loops use the number itself
            facts.name = writer.name(variable)
            changed.append(facts)
    yield
    for facts in changed:
        # The next op may write into its own array.
        facts.name = None


def write_small(op: Op, node: Apply, fgraph: FunctionGraph, writer: Writer) -> bool:
    """Write `node` element by element; False if that is not what suits it."""
    suits = isinstance(op, Subtensor) or all(is_small(out, writer) for out in node.outputs)
    if isinstance(op, (CAReduce, Dot)) and is_machine_scalar(node.outputs[0]):
        suits = all(is_small(i, writer) for i in node.inputs)
    if not suits:
        return isinstance(op, IncSubtensor) and _write_first_rows(op, node, writer)
    try:
        with writer.all_or_nothing(NoExpression):
            return _write(op, node, writer)
    except NoExpression:
        return False


@singledispatch
def _write(op: Op, node: Apply, writer: Writer) -> bool:
    return False


def _register(*ops: type) -> Callable:
    def decorate(function: Callable) -> Callable:
        for op in ops:
            _write.register(op)(function)
        return function

    return decorate


def _places(variable: Variable, writer: Writer) -> np.ndarray:
    """Give an array that holds, for each element, its number in C order."""
    shape = fixed_shape(variable, writer)
    assert shape is not None
    return np.arange(int(np.prod(shape))).reshape(shape)


def _note(out: Variable, values: Any, places: np.ndarray, writer: Writer) -> bool:
    """Note a result that consists of elements of something else."""
    if places.ndim == 0:
        writer.bind(out, values[int(places)])
    else:
        set_elements(out, [values[int(p)] for p in places.ravel()], places.shape, writer)
    return True


@_register(Elemwise)
def _write_elemwise(op: Elemwise, node: Apply, writer: Writer) -> bool:
    shape = fixed_shape(node.outputs[0], writer)
    if shape is None:
        return False
    count = int(np.prod(shape))
    inner = op.scalar_op
    n_ops = len(inner.fgraph.apply_nodes) if isinstance(inner, aes.Composite) else 1
    if count * n_ops > _MOST_OPERATIONS:
        return False
    columns = [_column(i, shape, writer) for i in node.inputs]
    if any(column is None for column in columns):
        return False
    rows = zip(*(column for column in columns if column is not None))
    results = [write_scalar_op(inner, node, list(row), writer) for row in rows]
    for out, elements in zip(node.outputs, zip(*results)):
        set_elements(out, elements, shape, writer)
    return True


def _column(variable: Variable, shape: tuple[int, ...], writer: Writer) -> list[Operand] | None:
    """Give an operand for each element of the result."""
    count = int(np.prod(shape))
    if is_machine_scalar(variable):
        return [Operand(writer.name(variable), variable.type.dtype)] * count
    own = fixed_shape(variable, writer)
    if own is None:
        return None
    if any(n not in (1, length) for n, length in zip(own, shape)):
        return None  # a loop nest says what does not fit
    elements = elements_of(variable, writer)
    places = np.broadcast_to(np.arange(len(elements)).reshape(own), shape)
    return [Operand(elements[int(p)], variable.type.dtype) for p in places.ravel()]


@_register(MakeVector)
def _write_make_vector(op: MakeVector, node: Apply, writer: Writer) -> bool:
    elements = [Operand(writer.name(i), i.type.dtype).to(op.dtype) for i in node.inputs]
    set_elements(node.outputs[0], elements, (len(elements),), writer)
    return True


@_register(DimShuffle)
def _write_dimshuffle(op: DimShuffle, node: Apply, writer: Writer) -> bool:
    (x,), (out,) = node.inputs, node.outputs
    if is_machine_scalar(x):
        set_elements(out, [writer.name(x)], (1,) * out.type.ndim, writer)
        return True
    places = _places(x, writer)
    order = [axis for axis in op.new_order if axis != "x"]
    dropped = [axis for axis in range(x.type.ndim) if axis not in order]
    turned = places.transpose([*order, *dropped])
    shape = fixed_shape(out, writer)
    assert shape is not None
    return _note(out, elements_of(x, writer), turned.reshape(shape), writer)


@_register(Subtensor)
def _write_subtensor(op: Subtensor, node: Apply, writer: Writer) -> bool:
    x, *indices = node.inputs
    if isinstance(x, Constant) or writer.facts(x).elements is None:
        return False
    index = _constant_index(op.idx_list, indices, writer)
    if index is None:
        return False
    try:
        places = np.asarray(_places(x, writer)[index])
    except IndexError:
        return False
    if places.size == 0:
        return False
    return _note(node.outputs[0], elements_of(x, writer), places, writer)


def _constant_index(
    idx_list: Sequence[Any], values: Sequence[Variable], writer: Writer
) -> tuple[Any, ...] | None:
    remaining = iter(values)

    def entry(part: Any) -> int | None:
        if part is None or isinstance(part, int):
            return part
        known = writer.known(next(remaining))
        if known is None or not known.is_constant:
            raise NoExpression("an index that is not constant")
        return int(known.value)

    try:
        return tuple(
            slice(entry(p.start), entry(p.stop), entry(p.step))
            if isinstance(p, slice)
            else entry(p)
            for p in idx_list
        )
    except NoExpression:
        return None


@_register(IncSubtensor)
def _write_inc_subtensor(op: IncSubtensor, node: Apply, writer: Writer) -> bool:
    x, y, *indices = node.inputs
    index = _constant_index(op.idx_list, indices, writer)
    part = indexed_shape(op.idx_list, writer.shape(x), indices, writer)
    if index is None or any(n is None for n in part):
        return False
    lengths = tuple(fixed_length(n, writer) for n in part if n is not None)
    try:
        places = np.asarray(_places(x, writer)[index])
    except IndexError:
        return False
    try:
        column = _column(y, lengths, writer)
    except ValueError:
        return False
    if column is None:
        return False
    dtype = x.type.dtype
    elements = list(elements_of(x, writer))
    for place, value in zip(places.ravel(), column):
        text: str = value.to(dtype)
        if not op.set_instead_of_inc:
            operands = [Operand(elements[int(place)], dtype), Operand(text, dtype)]
            text = expression(aes.add, operands, dtype, writer)
        name = writer.fresh("element")
        writer.emit(f"{name} = {text}")
        elements[int(place)] = name
    set_elements(node.outputs[0], elements, _places(x, writer).shape, writer)
    return True


def _write_first_rows(op: IncSubtensor, node: Apply, writer: Writer) -> bool:
    """Write an update of the first rows of an array, in place, by elements in local variables."""
    x, y, *indices = node.inputs
    if not op.inplace or isinstance(y, Constant) or writer.facts_of_value(y).elements is None:
        return False
    starts = [isinstance(p, slice) and p.start is None and p.step is None for p in op.idx_list]
    part = indexed_shape(op.idx_list, writer.shape(x), indices, writer)
    own = fixed_shape(y, writer)
    if not all(starts) or own is None or len(own) != len(part):
        return False
    if not all(n is not None and writer.plan.decide(f"{{}} == {m}", n) for m, n in zip(own, part)):
        return False
    target, sign = writer.name(x), "=" if op.set_instead_of_inc else "+="
    for place, element in zip(np.ndindex(*own), elements_of(y, writer)):
        value = Operand(element, y.type.dtype).to(x.type.dtype)
        writer.emit(f"{target}[{', '.join(map(str, place))}] {sign} {value}")
    writer.bind(node.outputs[0], target)
    return True


@_register(Join)
def _write_join(op: Join, node: Apply, writer: Writer) -> bool:
    axis, *parts = node.inputs
    known = writer.known(axis)
    if known is None or not known.is_constant:
        return False
    dtype = node.outputs[0].type.dtype
    columns: list[str] = []
    places = []
    for part in parts:
        if fixed_shape(part, writer) is None:
            return False
        places.append(_places(part, writer) + len(columns))
        columns += [Operand(e, part.type.dtype).to(dtype) for e in elements_of(part, writer)]
    try:
        joined = np.concatenate(places, axis=int(known.value))
    except ValueError:
        return False
    return _note(node.outputs[0], columns, joined, writer)


@_register(Reshape, SpecifyShape, Unbroadcast)
def _write_reshape(op: Op, node: Apply, writer: Writer) -> bool:
    x, out = node.inputs[0], node.outputs[0]
    before, after = fixed_shape(x, writer) if x.type.ndim else (), fixed_shape(out, writer)
    if before is None or after is None or np.prod(before) != np.prod(after):
        return False
    if isinstance(op, SpecifyShape) and not all(
        isinstance(n, Constant) and (n.data is None or int(n.data) == length)
        for n, length in zip(node.inputs[1:], before)
    ):
        return False
    elements = (writer.name(x),) if is_machine_scalar(x) else elements_of(x, writer)
    set_elements(out, elements, after, writer)
    return True


@_register(Alloc)
def _write_alloc(op: Alloc, node: Apply, writer: Writer) -> bool:
    value, (out,) = node.inputs[0], node.outputs
    shape = fixed_shape(out, writer)
    assert shape is not None
    try:
        column = _column(value, shape, writer)
    except ValueError:
        return False
    if column is None:
        return False
    set_elements(out, [v.to(out.type.dtype) for v in column], shape, writer)
    return True


@_register(Dot)
def _write_dot(op: Dot, node: Apply, writer: Writer) -> bool:
    x, y = node.inputs
    (out,) = node.outputs
    if not (is_small(x, writer) and is_small(y, writer)):
        return False
    rows, columns = _places(x, writer), _places(y, writer)
    if rows.shape[-1] != columns.shape[0] or rows.ndim > 2 or columns.ndim > 2:
        return False
    left, right = elements_of(x, writer), elements_of(y, writer)
    rows, columns = np.atleast_2d(rows), columns.reshape(columns.shape[0], -1)
    values = []
    for row in rows:
        for column in columns.T:
            values.append(_write_product(node, row, column, (left, right), writer))
    shape = fixed_shape(out, writer) if out.type.ndim else ()
    assert shape is not None
    return _note(out, values, np.arange(len(values)).reshape(shape), writer)


def _write_product(
    node: Apply,
    row: np.ndarray,
    column: np.ndarray,
    operands: tuple[_Elements, _Elements],
    writer: Writer,
) -> str:
    dtype = node.outputs[0].type.dtype
    left_type, right_type = (i.type.dtype for i in node.inputs)
    total: str = ""
    for a, b in zip(row, column):
        left = Operand(operands[0][int(a)], left_type).to(dtype)
        right = Operand(operands[1][int(b)], right_type).to(dtype)
        term = expression(aes.mul, [Operand(left, dtype), Operand(right, dtype)], dtype, writer)
        if dtype == "float64":
            total = f"{total} + {term}" if total else str(term)
        else:
            sum_ = [Operand(total, dtype), Operand(term, dtype)]
            total = expression(aes.add, sum_, dtype, writer) if total else str(term)
    name = writer.fresh("dot")
    writer.emit(f"{name} = {total}")
    return name


@_register(CAReduce)
def _write_reduction(op: CAReduce, node: Apply, writer: Writer) -> bool:
    (x,), (out,) = node.inputs, node.outputs
    if not is_small(x, writer):
        return False
    dtype = out.type.dtype
    acc_dtype = getattr(op, "acc_dtype", None) or dtype
    places = _places(x, writer)
    elements = elements_of(x, writer)
    axes = tuple(range(places.ndim)) if op.axis is None else tuple(op.axis)
    kept = [axis for axis in range(places.ndim) if axis not in axes]
    table = places.transpose([*kept, *axes])
    shape = table.shape[: len(kept)]
    values = []
    for group in table.reshape(int(np.prod(shape)), -1):
        total = Operand(Operand(elements[int(group[0])], x.type.dtype).to(acc_dtype), acc_dtype)
        for place in group[1:]:
            pair = [Operand(total, acc_dtype), Operand(elements[int(place)], x.type.dtype)]
            text = expression(op.scalar_op, [pair[0], pair[1].to(acc_dtype)], acc_dtype, writer)
            total = Operand(writer.fresh("total"), acc_dtype)
            writer.emit(f"{total} = {text}")
        values.append(Operand(total, acc_dtype).to(dtype))
    return _note(out, values, np.arange(len(values)).reshape(shape), writer)
