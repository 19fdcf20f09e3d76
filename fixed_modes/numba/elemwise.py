"""`Elemwise` and `DimShuffle` as statements and fused loop nests."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from aesara.graph.basic import Apply, Constant, Variable
from aesara.graph.fg import FunctionGraph
from aesara.ifelse import IfElse
from aesara.tensor.elemwise import DimShuffle, Elemwise
from aesara.tensor.math import Dot

from fixed_modes.aliasing import is_overwritten
from fixed_modes.numba.allocation import allocate, has_destination
from fixed_modes.numba.loops import Functions, open_loops
from fixed_modes.numba.order import ordered_nodes
from fixed_modes.numba.plan import Known
from fixed_modes.numba.scalar import NoExpression, Operand, write_scalar_op
from fixed_modes.numba.views import lasting, note_view, permuted
from fixed_modes.numba.writer import Writer, is_machine_scalar, numpy_dtype

# -- Elemwise --------------------------------------------------------------


def write_elemwise(op: Elemwise, node: Apply, writer: Writer) -> None:
    """Write an `Elemwise`: statements for scalars, one loop nest for arrays.

    Raises
    ------
    NoExpression
        If the scalar op has no expression; nothing is written then.
    """
    with writer.all_or_nothing(NoExpression):
        if node.outputs[0].type.ndim == 0:
            operands = [Operand(writer.name(i), i.type.dtype) for i in node.inputs]
            for out, value in zip(
                node.outputs, write_scalar_op(op.scalar_op, node, operands, writer)
            ):
                writer.bind(out, value)
        else:
            _write_loop_nest(op, node, writer)


class _Element:
    """How an input of an `Elemwise` is read inside the loop nest.

    An input that a `DimShuffle` view made is read from what it is a view of;
    the view itself need not exist then.
    """

    def __init__(self, variable: Variable, writer: Writer) -> None:
        self.text: str
        #: For each axis of the loops, the name of how far this input moves, if it may stay.
        self.steps: dict[int, str] = {}
        #: The axes along which this input has one element, which is used throughout.
        self.stretched: set[int] = set()
        #: The column and the row of an outer product.
        self.factors: list[_Element] = []
        self.dtype = variable.type.dtype
        self.axes: list[Any] = list(range(variable.type.ndim))
        self.broadcast = variable.type.broadcastable
        if isinstance(variable, Constant) and variable.data.size == 1:
            self.text, self.axes = writer.literal(variable.data.ravel()[0]), []
            self.is_scalar = True
            return
        facts = None if isinstance(variable, Constant) else writer.facts(variable)
        if facts is not None and facts.elements is not None and len(facts.elements) == 1:
            self.text, self.axes, self.is_scalar = facts.elements[0], [], True
            return
        if facts is not None and facts.product is not None:
            self.factors = [_Element(factor, writer) for factor in facts.product]
            self.text, self.is_scalar, self.variable = "outer", False, variable
            return
        source = absorbed_source(variable)
        if source is not None:
            order = variable.owner.op.new_order
            self.axes = [
                order.index(axis) if axis in order else None for axis in range(source.type.ndim)
            ]
            self.broadcast = tuple(
                o == "x" or b for o, b in zip(order, variable.type.broadcastable)
            )
            variable = source
        self.text = writer.name(variable)
        self.is_scalar = is_machine_scalar(variable)
        self.variable = variable

    def length(self, axis: int) -> str | None:
        """Give the length along an axis of the loop nest, if this input has that axis."""
        if self.is_scalar or self.broadcast[axis]:
            return None
        if self.factors:
            return self.factors[axis].length(axis)
        return f"{self.text}.shape[{self.axes.index(axis)}]"

    def static_length(self, axis: int) -> int | None:
        return None if self.is_scalar else self.variable.type.shape[self.axes.index(axis)]

    def known_length(self, axis: int, writer: Writer) -> Known | None:
        """Give the length along an axis that this input has, where it is known."""
        return writer.shape(self.variable)[self.axes.index(axis)]

    def read(self, indices: list[str]) -> str:
        if self.is_scalar:
            return self.text
        if self.factors:
            column, row = self.factors
            place = [self._index(axis, indices) for axis in self.axes]
            return f"{column.read([place[0], '0'])} * {row.read(['0', place[1]])}"
        return f"{self.text}[{', '.join(self._index(axis, indices) for axis in self.axes)}]"

    def _index(self, axis: int | None, indices: list[str]) -> str:
        if axis is None or self.broadcast[axis] or axis in self.stretched:
            return "0"
        step = self.steps.get(axis)
        return f"{indices[axis]} * {step}" if step else indices[axis]


def absorbed_source(variable: Variable) -> Variable | None:
    """Give what `variable` is a reordered view of, if loops may read that instead."""
    node = variable.owner
    if node is None or not isinstance(node.op, DimShuffle):
        return None
    source = node.inputs[0]
    return source if node.op.inplace or is_machine_scalar(source) else None


def is_absorbed(node: Apply, fgraph: FunctionGraph) -> bool:
    """Say whether only loop nests use this `DimShuffle`, so that it need not be written."""
    if absorbed_source(node.outputs[0]) is None:
        return False
    return all(
        client != "output"
        and (
            (is_loop_nest(client) and position not in client.op.inplace_pattern.values())
            or is_absorbed_product(client, fgraph)
        )
        for client, position in fgraph.clients[node.outputs[0]]
    )


def is_absorbed_product(node: Apply, fgraph: FunctionGraph) -> bool:
    """Say whether an outer product is used by loop nests only, which compute it as they go."""
    if not isinstance(node.op, Dot):
        return False
    x, y = node.inputs
    (out,) = node.outputs
    if (x.type.ndim, y.type.ndim) != (2, 2) or out.type.dtype not in ("float64", "complex128"):
        return False
    if not (x.type.broadcastable[1] and y.type.broadcastable[0]):
        return False
    if {x.type.dtype, y.type.dtype} != {out.type.dtype}:
        return False
    readers = [client for client, _ in fgraph.clients[out]]
    if not all(reader != "output" and is_loop_nest(reader) for reader in readers):
        return False
    return not _changes_before_it_is_read(node, readers, fgraph)


def _changes_before_it_is_read(node: Apply, readers: list[Apply], fgraph: FunctionGraph) -> bool:
    """Say whether an input of `node` may be overwritten before the readers have been."""
    # What reads an `Elemwise` may be what computes it.
    last = [*readers, *(c for r in readers for v in r.outputs for c, _ in fgraph.clients[v])]
    order = ordered_nodes(fgraph)
    places = [order.index(reader) for reader in last if reader != "output"]
    # What a branch reads is read where the `IfElse` stands, or before.
    places += [place for place, other in enumerate(order) if isinstance(other.op, IfElse)]
    between = order[order.index(node) + 1 : max(places, default=0) + 1]
    return any(is_overwritten(variable, between) for variable in node.inputs)


def is_loop_nest(node: Apply) -> bool:
    """Say whether a node is written as a loop over elements."""
    is_elemwise = isinstance(node.op, Elemwise) and node.outputs[0].type.ndim > 0
    return is_elemwise and _has_expression(node)


def _has_expression(node: Apply) -> bool:
    scratch = Writer()
    operands = [Operand(f"x{n}", i.type.dtype) for n, i in enumerate(node.inputs)]
    with scratch.at_node(node):
        try:
            write_scalar_op(node.op.scalar_op, node, operands, scratch)
        except NoExpression:
            return False
    return True


def _write_loop_nest(op: Elemwise, node: Apply, writer: Writer) -> None:
    in_place = {
        n: i
        for n, i in op.inplace_pattern.items()
        if not has_destination(node.outputs[n], writer) and _has_memory(node.inputs[i], writer)
    }
    elements = [
        # What is overwritten must be the array itself.
        _Element(i, writer) if n not in in_place.values() else _plain_element(i, writer)
        for n, i in enumerate(node.inputs)
    ]
    rigid = set(in_place.values())
    lengths = _write_lengths(elements, node.outputs[0], rigid, writer)
    is_fresh = not in_place and not has_destination(node.outputs[0], writer)
    results = []
    for n, out in enumerate(node.outputs):
        if n in in_place:
            writer.bind(out, writer.name(node.inputs[in_place[n]]))
        else:
            allocate(out, lengths, "elemwise", writer)
        results.append(writer.name(out))
    functions = _functions(node, elements, lengths, writer)
    if is_fresh and functions.write_whole(results[0]):
        return
    functions.compute_ahead()
    with ExitStack() as nest:
        indices = open_loops(nest, lengths, writer)
        nest.enter_context(writer.elements_of(node.outputs[0]))
        for result, value in zip(results, functions.values(indices)):
            writer.emit(f"{result}[{', '.join(indices)}] = {value}")
        functions.step()


def _functions(
    node: Apply, elements: list[_Element], lengths: list[str], writer: Writer
) -> Functions:
    def read(position: int, indices: list[str]) -> Operand:
        return _read(elements[position], indices, writer)

    return Functions(node, lengths, read, writer)


class Elements:
    """The elements of an array, or of an `Elemwise` that has been put off, inside loops.

    Attributes
    ----------
    lengths
        Expressions for the lengths of the loops.
    """

    def __init__(self, variable: Variable, writer: Writer) -> None:
        self._variable = variable
        facts = None if isinstance(variable, Constant) else writer.facts(variable)
        self._node = None if facts is None else facts.put_off
        if self._node is None:
            self._name = writer.name(variable)
            self.lengths = [writer.length(variable, axis) for axis in range(variable.type.ndim)]
        else:
            with writer.at_node(self._node):
                inputs = [_Element(i, writer) for i in self._node.inputs]
                self.lengths = _write_lengths(inputs, variable, set(), writer)
                self._functions = _functions(self._node, inputs, self.lengths, writer)

    def compute_ahead(self, writer: Writer) -> None:
        """Write what is computed before the nest; that has to go in order, and to `step`."""
        if self._node is not None:
            with writer.at_node(self._node):
                self._functions.compute_ahead()

    def step(self) -> None:
        """Write what has to stand at the end of the innermost loop."""
        if self._node is not None:
            self._functions.step()

    def read(self, indices: list[str], writer: Writer) -> Operand:
        """Write what gives the element at `indices`."""
        dtype = self._variable.type.dtype
        if self._node is not None:
            with writer.at_node(self._node):
                return self._functions.values(indices)[0]
        name = writer.fresh(f"{self._name}_e")
        writer.emit(f"{name} = {self._name}[{', '.join(indices)}]")
        return Operand(name, dtype)


def _has_memory(variable: Variable, writer: Writer) -> bool:
    """Say whether there is an array that a result may be written to."""
    if isinstance(variable, Constant):
        return False
    facts = writer.facts(variable)
    return facts.name is not None and facts.product is None


def _plain_element(variable: Variable, writer: Writer) -> _Element:
    element = _Element.__new__(_Element)
    element.dtype = variable.type.dtype
    element.steps, element.stretched, element.factors = {}, set(), []
    element.axes = list(range(variable.type.ndim))
    element.broadcast = variable.type.broadcastable
    element.text, element.is_scalar, element.variable = writer.name(variable), False, variable
    return element


def _read(element: _Element, indices: list[str], writer: Writer) -> Operand:
    text = element.read(indices)
    if element.is_scalar:
        return Operand(text, element.dtype)
    name = writer.fresh(f"{element.text}_e")
    writer.emit(f"{name} = {text}")
    return Operand(name, element.dtype)


def _write_lengths(
    elements: list[_Element], out: Variable, rigid: set[int], writer: Writer
) -> list[str]:
    """Name the lengths of the loops; say how far each input moves in a step.

    An input of length 1 is broadcast, also where its type does not tell the
    length, but not one that the result is written to (`rigid`).
    """
    lengths = []
    for axis in range(out.type.ndim):
        sized = [(n, e) for n, e in enumerate(elements) if e.length(axis) is not None]
        if not sized:
            lengths.append("1")
            continue
        known = _known_length(axis, sized, writer.shape(out)[axis], rigid, writer)
        if known is not None:
            lengths.append(known)
            continue
        # One whose length is certain decides.
        sized.sort(key=lambda pair: (pair[0] not in rigid, pair[1].static_length(axis) is None))
        lengths.append(_write_length(axis, sized, rigid, writer))
    return lengths


def _known_length(
    axis: int,
    sized: list[tuple[int, _Element]],
    length: Known | None,
    rigid: set[int],
    writer: Writer,
) -> str | None:
    """Give the length of a loop where all is known of it; None where code has to find out."""
    if length is None:
        return None
    stretched = []
    for n, element in sized:
        own = element.known_length(axis, writer)
        if own is None:
            return None
        if not writer.plan.equal(own, length):
            # The type of the output may know a length that the inputs don't fit.
            if n in rigid or not writer.plan.decide("{} == 1", own):
                return None
            stretched.append(element)
    for element in stretched:
        element.stretched.add(axis)
    return writer.parameter(length)


def _write_length(
    axis: int, sized: list[tuple[int, _Element]], rigid: set[int], writer: Writer
) -> str:
    (first, leading), *others = sized
    length = writer.fresh("n")
    writer.emit(f"{length} = {leading.length(axis)}")
    is_certain = first in rigid or leading.static_length(axis) is not None
    steps = {str(leading.length(axis)): "" if is_certain or not others else None}
    for n, element in others:
        text = str(element.length(axis))
        known = element.static_length(axis)
        if text in steps or (known is not None and known == leading.static_length(axis)):
            continue
        stretch = [t for t, step in steps.items() if step is None] if not is_certain else []
        steps[text] = _write_agreement(axis, (first, n), length, text, stretch, steps, writer)
    for _, element in sized:
        element.steps[axis] = steps.get(str(element.length(axis))) or ""
    return length


def _write_agreement(
    axis: int,
    inputs: tuple[int, int],
    length: str,
    text: str,
    stretch: list[str],
    steps: dict[str, str | None],
    writer: Writer,
) -> str:
    """Write the comparison of one length with the others so far; give the name of its step."""
    step = writer.fresh("i_step")
    writer.emit(f"{step} = 1")
    for other in stretch:
        steps[other] = writer.fresh("i_step")
        writer.emit(f"{steps[other]} = 1")
    so_far = [s for s in steps.values() if s]
    with writer.block(f"if {text} != {length}:"):
        if "" not in steps.values():
            with writer.block(f"if {length} == 1:"):
                writer.emit(f"{length} = {text}", *(f"{s} = 0" for s in so_far))
            opening = f"elif {text} == 1:"
        else:
            opening = f"if {text} == 1:"
        with writer.block(opening):
            writer.emit(f"{step} = 0")
        with writer.block("else:"):
            writer.emit_failure(ValueError, _mismatch_message(axis, *inputs), length, text)
    return step


def _mismatch_message(axis: int, first: int, other: int) -> Any:
    def message(length: int, other_length: int) -> str:
        return (
            f"Input dimension mismatch: input {first} has length {length} along axis {axis}, "
            f"but input {other} has length {other_length}."
        )

    return message


# -- DimShuffle ----------------------------------------------------------------


def write_dimshuffle(op: DimShuffle, node: Apply, writer: Writer) -> None:
    """Write a `DimShuffle` as a view of its input (a copy where it asks for one)."""
    (x,), (out,) = node.inputs, node.outputs
    source = writer.name(x)
    if out.type.ndim == 0:
        first = ", ".join(["0"] * x.type.ndim)
        text = f"{source}[{first}]" if first else source
    elif x.type.ndim == 0:
        shape = ", ".join(["1"] * out.type.ndim)
        text = f"np.full(({shape},), {source}, {numpy_dtype(out.type.dtype)})"
    else:
        order = [axis for axis in op.new_order if axis != "x"]
        dropped = [axis for axis in range(x.type.ndim) if axis not in order]
        text = lasting(x, writer)
        if [*order, *dropped] == [1, 0]:
            text = f"{text}.T"
            is_again = not isinstance(x, Constant) and writer.facts(x).is_transposed
            writer.facts(out).is_transposed = op.inplace and out.type.ndim == 2 and not is_again
        elif [*order, *dropped] != list(range(x.type.ndim)):
            writer.globals["permuted"] = permuted
            text = f"permuted({text}, {', '.join(map(str, [*order, *dropped]))})"
        index = ["None" if axis == "x" else ":" for axis in op.new_order] + ["0"] * len(dropped)
        if set(index) != {":"}:
            text = f"{text}[{', '.join(index)}]"
        if not op.inplace:
            text = f"{text}.copy()"
    writer.emit(f"{writer.define(out, 'dimshuffle')} = {text}")
    if out.type.ndim and x.type.ndim and op.inplace:
        note_view(out, x, writer)
