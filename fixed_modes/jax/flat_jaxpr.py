"""The operations of a traced function as one flat list that can be taken apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Callable, NamedTuple, Union

import jax


class Slot:
    """Stands for a value that the function computes or is given."""

    def __init__(self, aval: Any) -> None:
        self.aval = aval

    @property
    def nbytes(self) -> int:
        """The size of the value; a key counts as the array behind it."""
        size = int(getattr(self.aval, "size", 1))
        return size * int(getattr(self.aval.dtype, "itemsize", 8))


class Known:
    """A value that is the same in every call: a literal, or an array from outside."""

    def __init__(self, value: Any) -> None:
        self.value = value


Atom = Union[Slot, Known]


class Operation(NamedTuple):
    """One primitive, applied."""

    primitive: Any
    params: dict[str, Any]
    inputs: list[Atom]
    outputs: list[Slot]


class FlatFunction(NamedTuple):
    """A function of flat arguments as operations in order.

    Attributes
    ----------
    inputs, outputs
        Of the function.
    operations
        In an order in which they can be carried out.
    structure
        The tree that the outputs are the leaves of.
    """

    inputs: list[Slot]
    operations: list[Operation]
    outputs: list[Atom]
    structure: Any


def flatten(function: Callable[..., Any], *args: Any) -> FlatFunction | None:
    """Trace a function; calls of jitted functions are taken apart.

    Returns
    -------
    None if the function does more than to compute, such as to call Python.
    """
    closed, shapes = jax.make_jaxpr(function, return_shape=True)(*args)
    if closed.effects:
        return None
    inputs = [Slot(v.aval) for v in closed.jaxpr.invars]
    operations: list[Operation] = []
    outputs = _inline(closed, inputs, operations)
    return FlatFunction(inputs, operations, outputs, jax.tree_util.tree_structure(shapes))


def _inline(closed: Any, inputs: Sequence[Atom], operations: list[Operation]) -> list[Atom]:
    jaxpr = closed.jaxpr
    atoms: dict[Any, Atom] = dict(zip(jaxpr.invars, inputs))
    atoms.update(zip(jaxpr.constvars, map(Known, closed.consts)))

    def atom(variable: Any) -> Atom:
        # Literals are the atoms of a jaxpr that have a value.
        return Known(variable.val) if hasattr(variable, "val") else atoms[variable]

    for eqn in jaxpr.eqns:
        taken = [atom(variable) for variable in eqn.invars]
        if eqn.primitive.name in ("pjit", "jit"):
            atoms.update(zip(eqn.outvars, _inline(eqn.params["jaxpr"], taken, operations)))
        else:
            given = [Slot(variable.aval) for variable in eqn.outvars]
            operations.append(Operation(eqn.primitive, eqn.params, taken, given))
            atoms.update(zip(eqn.outvars, given))
    return [atom(variable) for variable in jaxpr.outvars]


def carry_out(operations: Sequence[Operation], values: dict[Slot, Any]) -> None:
    """Run operations; `values` has what they take, and gets what they give."""
    for primitive, params, taken, given in operations:
        functions, arguments = primitive.get_bind_params(params)
        found = primitive.bind(*functions, *(value_of(a, values) for a in taken), **arguments)
        values.update(zip(given, found if primitive.multiple_results else [found]))


def value_of(atom: Atom, values: dict[Slot, Any]) -> Any:
    """Give the value of an atom."""
    return atom.value if isinstance(atom, Known) else values[atom]
