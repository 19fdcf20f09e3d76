"""Loop nests over elements, and functions that are computed before such a nest.

LLVM makes vector instructions of the innermost loop only, and those pay from 8 elements
on.  Where rows are shorter, but many, the functions of `fixed_modes.numba.elementary`
are computed in one loop over all elements: first a nest writes their arguments, then
that loop replaces them by the values, and the nest that needs them reads on as it goes.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Callable

import aesara.scalar.basic as aes
from aesara.graph.basic import Apply, Variable, io_toposort

from fixed_modes.numba import elementary
from fixed_modes.numba.elements import LONGEST_AXIS
from fixed_modes.numba.scalar import Operand, write_scalar_nodes
from fixed_modes.numba.scalar_functions import vector_function
from fixed_modes.numba.writer import SHORT, Writer

# So many elements pay for the loops.
_LEAST_ELEMENTS = 16
# A loop with more steps becomes vector instructions.
_MOST_WRITTEN_OUT = 12
# Nodes with more functions compute them where they need them.
_MOST_FUNCTIONS = 4


def open_loops(nest: ExitStack, lengths: list[str], writer: Writer, around: int = 0) -> list[str]:
    """Open a loop over each axis, inside `around` loops, and give the indices."""
    indices = []
    for axis, length in enumerate(lengths, start=1):
        if length == "1":
            indices.append("0")
            continue
        indices.append(writer.fresh("i"))
        # A loop of few steps, alone, is written out by LLVM.
        few = _MOST_WRITTEN_OUT if lengths.count("1") == len(lengths) - 1 else LONGEST_AXIS
        if axis == len(lengths) and length.isdigit() and int(length) > few:
            length = writer.hidden(int(length))
        elif axis == len(lengths) and axis + around > 1 and writer.is_short(length):
            # LLVM writes out a loop of which it knows that it is short.
            length = f"min({length}, {SHORT})"
        nest.enter_context(writer.block(f"for {indices[-1]} in range({length}):"))
    return indices


class Functions:
    """The functions in an `Elemwise` that can be computed before the nest that needs them.

    Parameters
    ----------
    node
        The `Elemwise`.
    lengths
        Expressions for the lengths of the loops.
    read
        Writes what reads an input, by its position, at some indices.
    """

    def __init__(
        self,
        node: Apply,
        lengths: list[str],
        read: Callable[[int, list[str]], Operand],
        writer: Writer,
    ) -> None:
        self._node, self._lengths, self._read, self._writer = node, lengths, read, writer
        self._inputs, self._outputs = _inside(node)
        self._given: dict[Variable, str] = {}
        self._place = ""

    def compute_ahead(self) -> None:
        """Write what computes them, if they are many in short rows, in a loop.

        A nest in the order of the elements has to follow, with `step` at its end.
        """
        out, writer = self._node.outputs[0], self._writer
        nodes = io_toposort(self._inputs, self._outputs)
        functions = [node for node in nodes if _is_vector_function(node)]
        if not functions or not writer.is_in_loop or not is_narrow(out, writer):
            return
        if len(functions) > _MOST_FUNCTIONS:
            return
        size = writer.size(out)
        assert size is not None
        for function in functions:
            array = writer.fresh("ahead")
            text = f"{array} = np.empty({writer.parameter(size)}, np.float64)"
            writer.hoist(text, outermost=True)
            self._write_along(function, array)
            self._given[function.outputs[0]] = array
        self._start()

    def write_whole(self, array: str) -> bool:
        """Write the result to an array in C order if it is a function; False if not."""
        out, writer = self._node.outputs[0], self._writer
        function = self._outputs[0].owner
        if len(self._outputs) > 1 or function is None or not _is_vector_function(function):
            return False
        if not is_narrow(out, writer):
            return False
        size = writer.size(out)
        assert size is not None
        flat = writer.fresh("flat")
        text = f"{flat} = {array}.reshape({writer.parameter(size)})"
        if writer.is_in_loop:
            writer.hoist(text, outermost=True)
        else:
            writer.emit(text)
        self._write_along(function, flat)
        return True

    def values(self, indices: list[str]) -> list[Operand]:
        """Write the outputs for the element at `indices`."""
        return self._values(indices, self._outputs)

    def step(self) -> None:
        """Write what has to stand at the end of the innermost loop."""
        if self._given:
            self._writer.emit(f"{self._place} += 1")

    def _start(self) -> None:
        self._place = self._writer.fresh("place")
        self._writer.emit(f"{self._place} = 0")

    def _write_along(self, function: Apply, array: str) -> None:
        """Write the arguments of a function to a flat array, and the loop that replaces them."""
        writer = self._writer
        self._start()
        place = self._place
        with ExitStack() as nest:
            indices = open_loops(nest, self._lengths, writer)
            (argument,) = self._values(indices, function.inputs)
            writer.emit(f"{array}[{place}] = {argument.to('float64')}", f"{place} += 1")
        name = vector_function(function.op)
        writer.globals[f"vector_{name}"] = getattr(elementary, name)
        index = writer.fresh("i")
        with writer.block(f"for {index} in range({array}.shape[0]):"):
            writer.emit(f"{array}[{index}] = vector_{name}({array}[{index}])")

    def _values(self, indices: list[str], wanted: Sequence[Variable]) -> list[Operand]:
        given = {v: Operand(f"{a}[{self._place}]", "float64") for v, a in self._given.items()}
        nodes = io_toposort([*self._inputs, *given], wanted)
        needed = {*wanted, *(i for node in nodes for i in node.inputs)}
        values = {
            variable: self._read(position, indices)
            for position, variable in enumerate(self._inputs)
            if variable in needed
        }
        values.update(given)
        return write_scalar_nodes(nodes, values, wanted, self._writer)


def _inside(node: Apply) -> tuple[list[Variable], list[Variable]]:
    """Give the inputs and outputs of the graph of scalars that an `Elemwise` computes."""
    op = node.op.scalar_op
    if isinstance(op, aes.Composite):
        return op.fgraph.inputs, op.fgraph.outputs
    inputs = [aes.get_scalar_type(i.type.dtype)() for i in node.inputs]
    outputs = op.make_node(*inputs).outputs
    for inside, out in zip(outputs, node.outputs):
        inside.name = out.name
    return inputs, outputs


def _is_vector_function(node: Apply) -> bool:
    is_real = all(v.type.dtype == "float64" for v in (*node.inputs, *node.outputs))
    return is_real and bool(vector_function(node.op))


def is_narrow(out: Variable, writer: Writer) -> bool:
    """Decide whether the rows of an array are too short for vectors, but many."""
    size, shape = writer.size(out), writer.shape(out)
    if size is None or len(shape) < 2:
        return False
    with writer.elements_of(out):
        if writer.is_vectorised:
            return False
    return writer.plan.decide(f"{{}} >= {_LEAST_ELEMENTS}", size)
