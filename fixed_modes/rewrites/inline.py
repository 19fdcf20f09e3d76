"""Expands every `OpFromGraph`, whatever its ``inline`` says."""

from __future__ import annotations

from copy import copy
from typing import Any

from aesara.compile.builders import OpFromGraph, inline_ofg_expansion
from aesara.graph.basic import Apply
from aesara.graph.fg import FunctionGraph
from aesara.graph.rewriting.basic import node_rewriter


@node_rewriter([OpFromGraph])
def inline_every_ofg(fgraph: FunctionGraph, node: Apply) -> Any:
    """Replace an `OpFromGraph` by its inner graph, as if it were made with ``inline=True``."""
    inlined_op = copy(node.op)
    inlined_op.is_inline = True
    inlined = Apply(inlined_op, node.inputs, [out.type() for out in node.outputs])
    replacements = inline_ofg_expansion.transform(fgraph, inlined)
    if not replacements:
        return False
    originals = dict(zip(inlined.outputs, node.outputs))
    return {originals.get(old, old): new for old, new in replacements.items()}
