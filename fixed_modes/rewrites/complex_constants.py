"""Rewrites of Aesara that take complex constants for real ones, held back where they do.

``local_add_neg_to_sub`` makes ``x - abs(c)`` of ``x + c`` for what it takes for a negative
`c`, and of ``x - 1j``; those of powers take ``x ** c`` for a power of ``abs(c)``.
"""

from __future__ import annotations

from typing import Any

from aesara.compile.mode import optdb
from aesara.graph.basic import Apply, Variable
from aesara.graph.fg import FunctionGraph
from aesara.graph.rewriting.basic import node_rewriter
from aesara.graph.rewriting.db import RewriteDatabaseQuery
from aesara.tensor.math import add
from aesara.tensor.math import pow as power
from aesara.tensor.rewriting import math

_DATABASES = {
    "local_add_neg_to_sub": ("specialize", add),
    "local_pow_specialize": ("specialize", power),
    "local_pow_specialize_device": ("specialize_device", power),
}


def with_safe_complex(query: RewriteDatabaseQuery) -> RewriteDatabaseQuery:
    """Put the rewrites of this module in the place of Aesara's, where these are asked for."""
    if query.require:
        return query
    for name, (database, _) in _DATABASES.items():
        is_asked_for = not {"fast_run", database, name}.isdisjoint(query.include)
        if is_asked_for and name not in query.exclude and database not in query.exclude:
            query = query.excluding(name).including(_own_name(name))
    return query


def _own_name(name: str) -> str:
    return name.replace("local_", "real_")


def _is_complex(variable: Variable) -> bool:
    """Say whether a variable is a complex constant."""
    constant = math.get_constant(variable)
    return constant is not None and constant.dtype.kind == "c"


def _held_back(name: str, op: Any) -> Any:
    aesaras = getattr(math, name)

    @node_rewriter([op])
    def rewrite(fgraph: FunctionGraph, node: Apply) -> Any:
        return not any(map(_is_complex, node.inputs)) and aesaras.transform(fgraph, node)

    return rewrite


# Under their own names alone, so that no other mode gets them.
for _name, (_database, _op) in _DATABASES.items():
    if _own_name(_name) not in optdb[_database].__db__:
        _rewrite = _held_back(_name, _op)
        optdb[_database].register(_own_name(_name), _rewrite, use_db_name_as_tag=False)
