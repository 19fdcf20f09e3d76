"""Graphs with float16 values, which Numba can't hold on the CPU: they run in Python.

Such a graph runs node by node, as in Aesara's VM without C code; its loops too.
"""

from __future__ import annotations

import warnings
from typing import Any

from aesara.compile.builders import OpFromGraph
from aesara.compile.mode import Mode
from aesara.configdefaults import config
from aesara.graph.basic import Apply
from aesara.graph.fg import FunctionGraph
from aesara.graph.rewriting.db import RewriteDatabaseQuery
from aesara.link.vm import VMLinker
from aesara.scan.op import Scan

from fixed_modes.errors import FixedModesWarning, UnsupportedOpError, describe_node
from fixed_modes.inner_graphs import walk_nodes


def half_precision_node(fgraph: FunctionGraph) -> tuple[Apply, tuple[str, ...]] | None:
    """Give the first node with a float16 value, and the names of the loops around it."""
    for node, _, scans in walk_nodes(fgraph):
        if any(getattr(v.type, "dtype", "") == "float16" for v in (*node.inputs, *node.outputs)):
            return node, scans
    return None


def python_linker(allow_gc: Any = None) -> VMLinker:
    """Give a linker that runs every op in Python."""
    return VMLinker(allow_gc=allow_gc, use_cloop=False, c_thunks=False)


def prepare_for_python(
    fgraph: FunctionGraph, found: tuple[Apply, tuple[str, ...]], rewrites: Any, excluded: Any
) -> None:
    """Let the loops of a graph run in Python too, and say that the graph does.

    Parameters
    ----------
    fgraph
        The graph; the ops in it are exchanged for clones, never changed.
    found
        What `half_precision_node` gave.
    rewrites, excluded
        The rewrites of the mode, and the tags of those that suit only other back ends.

    Raises
    ------
    UnsupportedOpError
        With the flag ``fixed_modes__strict``.
    """
    message = (
        "NUMBA_FIXED runs a whole graph in Python, which is slow, since it has float16 values, "
        f"which Numba does not support on the CPU. float32 would be fast.\n{describe_node(*found)}"
    )
    if getattr(config, "fixed_modes__strict", False):
        raise UnsupportedOpError(message)
    warnings.warn(message, FixedModesWarning, stacklevel=2)
    if isinstance(rewrites, RewriteDatabaseQuery):
        rewrites = rewrites.excluding(*excluded)
    _set_mode(fgraph, Mode(linker=python_linker(), optimizer=rewrites))


def _set_mode(fgraph: FunctionGraph, mode: Mode) -> None:
    for node in fgraph.toposort():
        if not isinstance(node.op, (Scan, OpFromGraph)):
            continue
        clone = node.op.clone()
        # The function that was compiled for another mode.
        clone.__dict__.pop("_fn", None)
        if isinstance(clone, Scan):
            clone.mode = clone.mode_instance = mode
        else:
            clone.kwargs = {**clone.kwargs, "mode": mode}
        _set_mode(clone.fgraph, mode)
        node.op = clone
