"""`IfElse`: what only one branch needs is written in that branch, and so is its result."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Callable

from aesara.graph.basic import Apply, Variable
from aesara.tensor.random.type import RandomType
from aesara.tensor.type import TensorType

from fixed_modes.numba.allocation import allocate
from fixed_modes.numba.copying import write_assignment
from fixed_modes.numba.elements import elements_of, fixed_shape, is_small, set_elements
from fixed_modes.numba.lazy import Region
from fixed_modes.numba.scan_traces import copy_generator
from fixed_modes.numba.shapes import note_shapes
from fixed_modes.numba.writer import Writer, is_machine_scalar, numpy_dtype
from fixed_modes.rewrites.branches import ChangingIfElse


def write_ifelse(
    node: Apply,
    regions: Mapping[Apply, Region],
    write_region: Callable[[Region], None],
    write_change: Callable[[Apply], None],
    writer: Writer,
) -> None:
    """Write an `IfElse` and its branches.

    Parameters
    ----------
    regions
        Where each node of the graph belongs, the last node first.
    write_region
        Writes the nodes of a region, but for the changes of a `ChangingIfElse`.
    write_change
        Writes one of these.
    """
    for inner in list(regions)[::-1]:
        # Ahead of the branches: what is chosen has the lengths of both.
        if any(region.node is node for region in regions[inner].path):
            note_shapes(inner.op, inner, writer)
    own = regions[node]
    branches = [Region(node, branch, own.path) for branch in (0, 1)]
    results = [_result(node, n, branches, regions, writer) for n in range(node.op.n_outs)]
    outside, writer.is_in_branch = writer.is_in_branch, True
    condition = writer.name(node.inputs[0])
    for region, header in zip(branches, (f"if {condition}:", "else:")):
        with writer.block(header):
            for result in results:
                result.open(region.branch, writer)
            write_region(region)
            # Arrays change after all that is read of them.
            for result in results:
                if not result.is_changed:
                    result.close(region.branch, writer)
            if isinstance(node.op, ChangingIfElse):
                for step in node.op.chains(node, region.branch):
                    with writer.at_node(step):
                        write_change(step)
            for result in results:
                if result.is_changed:
                    result.close(region.branch, writer)
    writer.is_in_branch = outside
    for result in results:
        result.finish(writer)


def own_value(value: Variable, writer: Writer) -> str:
    """Give an expression for a value that shares no memory with `value`."""
    name = writer.name(value)
    if is_machine_scalar(value):
        return f"{numpy_dtype(value.type.dtype)}({name})"
    if isinstance(value.type, RandomType):
        return copy_generator(writer, name)
    return f"{name}.copy()" if isinstance(value.type, TensorType) else name


class _Copied:
    """A result of which each branch makes a variable of its own."""

    is_changed = False

    def __init__(self, out: Variable, values: list[Variable], writer: Writer) -> None:
        self.out, self.values = out, values
        self.name = writer.fresh(out.name or "chosen")

    def open(self, branch: int, writer: Writer) -> None:
        """Say, before a branch is written, where its value belongs."""

    def close(self, branch: int, writer: Writer) -> None:
        """Write, in a branch, its value to where that belongs."""
        writer.emit(f"{self.name} = {own_value(self.values[branch], writer)}")

    def finish(self, writer: Writer) -> None:
        """Note, behind the branches, where the result is."""
        writer.bind(self.out, self.name)


class _Changed(_Copied):
    """An array that one branch changes."""

    is_changed = True

    def __init__(self, out: Variable, values: list[Variable], branch: int, writer: Writer) -> None:
        self.out, self.values, self.branch = out, values, branch
        array = values[1 - branch]
        self.name = writer.name(array)
        writer.facts(out).shape = writer.shape(array)

    def close(self, branch: int, writer: Writer) -> None:
        """Write what an op has made otherwise than in place."""
        made = writer.name(self.values[branch])
        if branch == self.branch and made != self.name:
            writer.emit(f"{self.name}[...] = {made}")


class _Small(_Copied):
    """An array whose elements live in local variables."""

    def __init__(
        self, out: Variable, values: list[Variable], is_changed: bool, writer: Writer
    ) -> None:
        self.out, self.values, self.is_changed = out, values, is_changed
        self.shape = next(filter(None, (fixed_shape(value, writer) for value in values)))
        self.names = [writer.fresh(out.name or "chosen") for _ in range(math.prod(self.shape))]

    def close(self, branch: int, writer: Writer) -> None:
        dtype = numpy_dtype(self.out.type.dtype)
        for name, element in zip(self.names, elements_of(self.values[branch], writer)):
            writer.emit(f"{name} = {dtype}({element})")

    def finish(self, writer: Writer) -> None:
        set_elements(self.out, self.names, self.shape, writer)


class _Placed(_Copied):
    """An array of known lengths, made ahead of the branches, that both write into."""

    def __init__(
        self, out: Variable, values: list[Variable], alone: list[bool], writer: Writer
    ) -> None:
        self.out, self.values, self.alone = out, values, alone
        writer.facts(out).shape = writer.shape(values[0])
        self.name = allocate(out, [], "chosen", writer)
        self.is_written = False

    def open(self, branch: int, writer: Writer) -> None:
        self.is_written = False
        if self.alone[branch] and self.values[branch] not in writer.destinations:
            writer.destinations[self.values[branch]] = self._place

    def _place(self, value: Variable) -> str:
        self.is_written = True
        return self.name

    def close(self, branch: int, writer: Writer) -> None:
        value = self.values[branch]
        if self.alone[branch]:
            writer.destinations.pop(value, None)
        if not self.is_written:
            write_assignment(
                writer,
                self.name,
                value.type.ndim,
                writer.name(value),
                value.type,
                target_shape=writer.shape(self.out),
                value_shape=writer.shape(value),
            )

    def finish(self, writer: Writer) -> None:
        pass


def _result(
    node: Apply,
    n: int,
    branches: list[Region],
    regions: Mapping[Apply, Region],
    writer: Writer,
) -> _Copied:
    """Decide where an output of an `IfElse` lives."""
    out = node.outputs[n]
    values = [node.inputs[1 + n], node.inputs[1 + node.op.n_outs + n]]
    changes = node.op.changes if isinstance(node.op, ChangingIfElse) else ()
    for change in changes:
        if change.output == n:
            is_array = not is_small(values[1 - change.branch], writer)
            return (
                _Changed(out, values, change.branch, writer)
                if is_array
                else _Small(out, values, True, writer)
            )
    is_array = isinstance(out.type, TensorType) and not is_machine_scalar(out)
    if not is_array or not writer.is_in_loop or not _are_alike(values, writer):
        return _Copied(out, values, writer)
    if all(is_small(value, writer) for value in values):
        return _Small(out, values, False, writer)
    alone = [
        v.owner is not None and regions.get(v.owner) == region and node.inputs.count(v) == 1
        for v, region in zip(values, branches)
    ]
    return _Placed(out, values, alone, writer)


def _are_alike(values: list[Variable], writer: Writer) -> bool:
    """Say whether the lengths of two arrays are known, and the same."""
    one, other = (writer.shape(value) for value in values)
    return all(
        a is not None and b is not None and writer.plan.equal(a, b) for a, b in zip(one, other)
    )
