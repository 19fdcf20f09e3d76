"""Sums over the steps of a loop of products that are larger than what they are made of.

The gradient of a loop by a matrix adds an outer product to a matrix at every step.
Here the loop stacks the factors, and one product after it gives the whole sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Union

import jax
from jax import lax

from fixed_modes.jax.flat_jaxpr import Atom, FlatFunction, Operation, Slot

#: A product with so many times as many elements as its factors is taken out.
LARGE = 4

_leaves = jax.tree_util.tree_leaves


@dataclass
class Product:
    """A product that is summed after the loop.

    Attributes
    ----------
    left, right
        Its factors: numbers of rows that the step reads, or of what it stacks.
    operation
        The `dot_general` of the step.
    """

    left: Row | Stacked
    right: Row | Stacked
    operation: Operation


@dataclass(frozen=True)
class Row:
    """Among what the step reads, the value with this number."""

    number: int


@dataclass(frozen=True)
class Stacked:
    """Among what the step stacks for sums, the value with this number."""

    number: int


Source = Union[Row, Stacked]


@dataclass
class Sum:
    """A carried value that products are added to.

    Attributes
    ----------
    position
        In the carry.
    earlier
        The positions in the carry of values that are what this one was a step before.
    products
        What is added after the loop.
    """

    position: int
    earlier: list[int]
    products: list[Product]


class PushedOut(NamedTuple):
    """A step without the products of sums.

    Attributes
    ----------
    flat
        The step.  Its outputs are a tree: the carry, a pair of what was stacked
        before and of the list of factors to be stacked, and the flags.
    sums
        What is to be added after the loop.
    """

    flat: FlatFunction
    sums: list[Sum]


def push_out_sums(flat: FlatFunction, n_carry: int, n_keys: int) -> PushedOut:
    """Take the products out of a step that are only added to a carried value.

    Parameters
    ----------
    flat
        A step: its inputs are the carry, what it reads, and keys; its outputs a tree
        of the carry, what is stacked, and flags.
    n_carry, n_keys
        The numbers of these inputs.
    """
    return _PushOut(flat, n_carry, n_keys).result()


class _PushOut:
    def __init__(self, flat: FlatFunction, n_carry: int, n_keys: int) -> None:
        self.flat, self.n_carry = flat, n_carry
        self.rows = flat.inputs[n_carry : len(flat.inputs) - n_keys]
        self.tree = jax.tree_util.tree_unflatten(flat.structure, flat.outputs)
        self.carry = _leaves(self.tree[0])
        self.makers = {slot: op for op in flat.operations for slot in op.outputs}
        self.uses: dict[Any, int] = {}
        for atom in (*(a for op in flat.operations for a in op.inputs), *flat.outputs):
            self.uses[atom] = self.uses.get(atom, 0) + 1
        # What depends on the step; anything else is summed in the loop, if at all.
        self.varying = set(flat.inputs)
        for op in flat.operations:
            if not self.varying.isdisjoint(op.inputs):
                self.varying.update(op.outputs)
        self.removed: set[int] = set()
        self.added: dict[int, list[Operation]] = {}
        self.factors: list[Slot] = []

    def result(self) -> PushedOut:
        sums = [s for s in map(self.find, range(self.n_carry)) if s is not None]
        operations: list[Operation] = []
        for op in self.flat.operations:
            operations += self.added.get(id(op), [])
            if id(op) not in self.removed:
                operations.append(op)
        carry = jax.tree_util.tree_unflatten(jax.tree_util.tree_structure(self.tree[0]), self.carry)
        tree = (carry, (self.tree[1], self.factors), self.tree[2])
        outputs, structure = jax.tree_util.tree_flatten(tree)
        return PushedOut(FlatFunction(self.flat.inputs, operations, outputs, structure), sums)

    def find(self, position: int) -> Sum | None:
        """Look for a sum at a position of the carry, and take its products out."""
        total, old = self.carry[position], self.flat.inputs[position]
        if not isinstance(total, Slot) or self.uses[total] != 1:
            return None
        adds: list[Operation] = []
        terms: list[Atom] = []
        self.collect(total, adds, terms)
        earlier = [
            i
            for i, atom in enumerate(self.carry)
            if atom is old and i != position and self.flat.inputs[i] not in self.uses
        ]
        if not adds or terms.count(old) != 1 or self.uses[old] != 1 + len(earlier):
            return None
        products = [term for term in terms if self.is_large_product(term)]
        if not products:
            return None
        rest = [term for term in terms if not any(term is product for product in products)]
        # The last addition gives way to the additions of what is left.
        last = adds[0]
        self.removed.update(id(op) for op in adds)
        chain = self.added.setdefault(id(last), [])
        value = rest[0]
        for term in rest[1:]:
            following = Slot(last.outputs[0].aval)
            chain.append(Operation(last.primitive, last.params, [value, term], [following]))
            value = following
        self.carry[position] = value
        return Sum(position, earlier, [self.take_out(product) for product in products])

    def collect(self, atom: Any, adds: list[Operation], terms: list[Atom]) -> None:
        """Take a sum apart, down to what is used elsewhere too."""
        op = self.makers.get(atom)
        if op is not None and op.primitive.name in ("add", "add_any") and self.uses[atom] == 1:
            adds.append(op)
            for term in op.inputs:
                self.collect(term, adds, terms)
        else:
            terms.append(atom)

    def is_large_product(self, atom: Any) -> bool:
        op = self.makers.get(atom)
        if op is None or op.primitive.name != "dot_general" or self.uses[atom] != 1:
            return False
        left: Any
        right: Any
        left, right = op.inputs
        _, (batch, _) = op.params["dimension_numbers"]
        if batch or not self.varying.issuperset((left, right)):
            return False
        if left.aval.dtype != right.aval.dtype or left.aval.dtype != op.outputs[0].aval.dtype:
            return False
        return bool(op.outputs[0].aval.size >= LARGE * (left.aval.size + right.aval.size))

    def take_out(self, atom: Any) -> Product:
        op = self.makers[atom]
        self.removed.add(id(op))
        return Product(self.source(op.inputs[0]), self.source(op.inputs[1]), op)

    def source(self, factor: Any) -> Source:
        for number, row in enumerate(self.rows):
            if row is factor:
                return Row(number)
        for number, other in enumerate(self.factors):
            if other is factor:
                return Stacked(number)
        self.factors.append(factor)
        return Stacked(len(self.factors) - 1)


def add_products(
    sums: Sequence[Sum], carry: Sequence[Any], rows: Sequence[Any], factors: Sequence[Any]
) -> list[Any]:
    """Give the carry after a loop, with what was taken out of its steps.

    Parameters
    ----------
    sums
        What was taken out.
    carry
        The carry after the loop of the rest.
    rows, factors
        What the loop has read, and what it has stacked for sums.
    """
    result = list(carry)
    for one in sums:
        for product in one.products:
            left, right = (
                rows[source.number] if isinstance(source, Row) else factors[source.number]
                for source in (product.left, product.right)
            )
            result[one.position] = result[one.position] + _sum(product.operation, left, right)
            for position in one.earlier:
                # XLA throws it away where nobody asks, as is nearly always so.
                missing = _sum(product.operation, left[:-1], right[:-1])
                result[position] = result[position] + missing
    return result


def _sum(operation: Operation, left: Any, right: Any) -> Any:
    """Sum the products of all steps: the steps are one more axis that is contracted."""
    (of_left, of_right), _ = operation.params["dimension_numbers"]
    contracted = [(0, *(axis + 1 for axis in axes)) for axes in (of_left, of_right)]
    return lax.dot_general(
        left,
        right,
        (tuple(contracted), ((), ())),
        precision=operation.params.get("precision"),
        preferred_element_type=operation.params.get("preferred_element_type"),
    )
