"""Elements that are read of arrays which a step changes in place.

To Aesara ``x[i]`` is a view of ``x`` even where it is one number: an op that writes into
``x`` can't have it as an input, nor may it be a result, and ``x`` is copied as a whole.
Compiled code has read the number by then.
"""

from __future__ import annotations

from typing import Any, ClassVar

from aesara.graph.basic import Apply
from aesara.graph.fg import FunctionGraph
from aesara.graph.rewriting.basic import in2out, node_rewriter
from aesara.graph.rewriting.db import RewriteDatabaseQuery
from aesara.graph.utils import MethodNotDefined
from aesara.tensor.basic import tensor_copy
from aesara.tensor.subtensor import Subtensor

from fixed_modes.rewrites.increments import CHANGES

# Before Aesara's rewrites that change arrays in place.
_POSITION = 59.9


def with_element_rewrites(query: RewriteDatabaseQuery) -> RewriteDatabaseQuery:
    """Add the rewrite of this module, where arrays are changed in place."""
    if not {"fast_run", "inplace"} & set(query.include) or query.require:
        return query
    if "inplace" in query.exclude or "local_inplace_setsubtensor" in query.exclude:
        return query
    rewrite = in2out(read_elements, ignore_newtrees=True, name="read_elements")
    return query.register((rewrite, _POSITION))


class Element(Subtensor):
    """A `Subtensor` of one number, which is no view."""

    view_map: ClassVar[dict[int, list[int]]] = {}

    def c_code(self, *args: Any, **kwargs: Any) -> str:
        """Say that there is none: the code of a `Subtensor` makes a view."""
        raise MethodNotDefined("c_code")


@node_rewriter([Subtensor])
def read_elements(fgraph: FunctionGraph, node: Apply) -> Any:
    """Read numbers, and parts that are written elsewhere, before their array is changed."""
    op, (source, *index) = node.op, node.inputs
    (out,) = node.outputs
    if isinstance(op, Element) or not _is_changed(fgraph, source):
        return False
    if out.type.ndim == 0:
        return [Element(op.idx_list)(source, *index)]
    if any(_writes(client, place) for client, place in fgraph.clients[out]):
        # No more than what is written is copied.
        return [tensor_copy(op(source, *index))]
    return False


def _is_changed(fgraph: FunctionGraph, array: Any) -> bool:
    """Say whether a node changes elements of an array."""
    return any(
        place == 0 and isinstance(client, Apply) and isinstance(client.op, CHANGES)
        for client, place in fgraph.clients[array]
    )


def _writes(client: Apply | str, place: int) -> bool:
    """Say whether a node writes this input into elements of another."""
    return place == 1 and isinstance(client, Apply) and isinstance(client.op, CHANGES)
