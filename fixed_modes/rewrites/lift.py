"""A rewrite of Aesara that loses a slice, held back where it does.

``local_subtensor_lift`` makes ``a[i] * b[i]`` of ``(a * b)[i]``.  Inputs whose axes all
have length 1 stay as they are, since the others are sliced; where there are no others
nothing is, and ``(a * b)[1:]`` has a row that should not be there.  A scan of one step
gives such arrays.
"""

from __future__ import annotations

from typing import Any

from aesara.compile.mode import optdb
from aesara.graph.basic import Apply
from aesara.graph.fg import FunctionGraph
from aesara.graph.rewriting.basic import node_rewriter
from aesara.graph.rewriting.db import RewriteDatabaseQuery
from aesara.tensor.elemwise import Elemwise
from aesara.tensor.rewriting.subtensor import local_subtensor_lift
from aesara.tensor.subtensor import Subtensor

_NAME = "lift_of_subtensor"
_AESARAS = "local_subtensor_lift"


def with_safe_lift(query: RewriteDatabaseQuery) -> RewriteDatabaseQuery:
    """Put the rewrite of this module in the place of Aesara's, where that is asked for."""
    asked_for = {"fast_run", "fast_compile", "canonicalize", _AESARAS} & set(query.include)
    if not asked_for or query.require or _AESARAS in query.exclude:
        return query
    return query.excluding(_AESARAS).including(_NAME)


@node_rewriter([Subtensor])
def lift_of_subtensor(fgraph: FunctionGraph, node: Apply) -> Any:
    """Do what Aesara's rewrite does, unless no input of the elementwise op would be sliced."""
    source = node.inputs[0].owner
    is_elemwise = source is not None and isinstance(source.op, Elemwise)
    if is_elemwise and len(source.inputs) > 1:
        is_unsliced = all(all(i.type.broadcastable) for i in source.inputs)
        return not is_unsliced and local_subtensor_lift.transform(fgraph, node)
    return local_subtensor_lift.transform(fgraph, node)


# Under its own name alone, so that no other mode gets it.
if _NAME not in optdb["canonicalize"].__db__:
    optdb["canonicalize"].register(_NAME, lift_of_subtensor, use_db_name_as_tag=False)
