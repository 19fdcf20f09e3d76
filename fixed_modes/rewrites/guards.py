"""Keeps Aesara's rewrites from two mistakes, wherever they make them.

* The inputs of an inner graph are variables with a number.  One of a scalar type, such
  as an index that was computed ahead of a loop, is taken for the constant of that type
  with that value: ``x[k] + x[2]`` becomes ``x[k] + x[k]`` if `k` is input number 2.
* Some elementwise rewrites put an operand, or a scalar, in the place of a result that has
  the shape of another one: ``x + [-1, -1, -1]`` is ``x - 1`` for them, also where `x` has
  one entry.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import MethodType
from typing import Any

from aesara.graph.basic import NominalVariable, Variable
from aesara.graph.features import ReplaceValidate
from aesara.graph.fg import FunctionGraph
from aesara.graph.rewriting.basic import GraphRewriter, MergeFeature
from aesara.graph.rewriting.db import RewriteDatabaseQuery
from aesara.graph.utils import InconsistencyError
from aesara.tensor.elemwise import Elemwise

# Ahead of all of Aesara's.
_POSITION = -2


class SafeMergeFeature(MergeFeature):
    """Finds what can be merged; no variable of an inner graph with a constant."""

    def process_atomic(self, fgraph: FunctionGraph, c: Any) -> None:
        """Note a constant or an input of an inner graph, and whether there is an equal one."""
        if not isinstance(c, NominalVariable):
            super().process_atomic(fgraph, c)
        elif id(c) not in self.seen_atomics:
            # There is one object for all that are equal: none has to be replaced.
            signature = (NominalVariable, *c.signature())
            self.atomic_sig[c] = signature
            self.atomic_sig_inv[signature] = c
            self.seen_atomics.add(id(c))


def _replace_checked(
    fgraph: FunctionGraph,
    replacements: Sequence[tuple[Variable, Variable]],
    *args: Any,
    **kwargs: Any,
) -> Any:
    """Replace variables of a graph, but none by one of another shape."""
    replacements = list(replacements)
    for old, new, *_ in replacements:
        if _loses_shape(old, new):
            raise InconsistencyError(f"{new} does not have the shape of {old}")
    return ReplaceValidate.replace_all_validate(fgraph, replacements, *args, **kwargs)


def _loses_shape(old: Variable, new: Variable) -> bool:
    """Say whether an axis of an elementwise result has one entry only in its replacement."""
    if old.owner is None or not isinstance(old.owner.op, Elemwise):
        return False
    shape, expected = getattr(new.type, "shape", ()), old.type.shape
    if shape == expected or len(shape) != len(expected):
        return False
    return any(
        size == 1 and any(operand.type.shape[axis] != 1 for operand in old.owner.inputs)
        for axis, size in enumerate(shape)
        if expected[axis] != 1
    )


class _Guards(GraphRewriter):
    """Puts both guards into a graph, before any other rewrite sees it."""

    name = "guards"

    def add_requirements(self, fgraph: FunctionGraph) -> None:
        fgraph.attach_feature(ReplaceValidate())
        # A method, as Aesara's own is: graphs are pickled without them.
        fgraph.replace_all_validate = MethodType(_replace_checked, fgraph)
        if not hasattr(fgraph, "merge_feature"):
            fgraph.attach_feature(SafeMergeFeature())

    def apply(self, fgraph: FunctionGraph) -> None:
        """Do nothing: other rewrites are what is guarded."""


def with_guards(query: RewriteDatabaseQuery) -> RewriteDatabaseQuery:
    """Add the guards to whatever `query` asks for."""
    return query.register((_Guards(), _POSITION))
