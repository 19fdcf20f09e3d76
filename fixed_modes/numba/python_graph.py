"""Graphs with values that compiled code can't hold: they run in Python.

That is float16 on the CPU, the generators of the kind `numpy.random.RandomState`, lists
and other objects, and arrays that are not what Aesara's type for them says.
Such a graph runs node by node, as in Aesara's VM without C code; its loops too.
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

from aesara.compile.builders import OpFromGraph
from aesara.compile.mode import Mode
from aesara.configdefaults import config
from aesara.graph.basic import Apply
from aesara.graph.fg import FunctionGraph
from aesara.graph.rewriting.db import RewriteDatabaseQuery
from aesara.graph.type import Type
from aesara.link.vm import VMLinker
from aesara.scalar.basic import ScalarType
from aesara.scan.op import Scan
from aesara.sparse.type import SparseTensorType
from aesara.tensor.nlinalg import Lstsq, TensorInv, TensorSolve
from aesara.tensor.random.op import RandomVariable
from aesara.tensor.random.type import RandomGeneratorType, RandomStateType
from aesara.tensor.type import TensorType
from aesara.tensor.type_other import NoneTypeT, SliceType

from fixed_modes.errors import FixedModesWarning, UnsupportedOpError, describe_node
from fixed_modes.inner_graphs import walk_nodes


class Unsupported(NamedTuple):
    """A node with a value that compiled code can't hold.

    Attributes
    ----------
    scans
        The names of the loops around it.
    reason
        What the value is, and what to use instead.
    """

    node: Apply
    scans: tuple[str, ...]
    reason: str


_HALF_PRECISION = (
    "has float16 values, which Numba does not support on the CPU. float32 would be fast."
)
_RANDOM_STATE = (
    "draws from a numpy.random.RandomState, which Numba does not support. A "
    "numpy.random.Generator would be fast: RandomStream(seed) makes one by default (leave out "
    "rng_ctor=numpy.random.RandomState), and aesara.shared(numpy.random.default_rng(seed)) "
    "holds one."
)
_WRONG_TYPE = "has an op to whose result Aesara gives a type with other dimensions."


def unsupported_node(fgraph: FunctionGraph) -> Unsupported | None:
    """Find a node for which the whole graph has to run in Python."""
    found = None
    for node, _, scans in walk_nodes(fgraph):
        types = [variable.type for variable in (*node.inputs, *node.outputs)]
        if any(getattr(kind, "dtype", "") == "float16" for kind in types):
            return Unsupported(node, scans, _HALF_PRECISION)
        if _has_wrong_type(node):
            return Unsupported(node, scans, _WRONG_TYPE)
        if any(isinstance(kind, RandomStateType) for kind in types):
            # The draw says more than the loop around it.
            if isinstance(node.op, RandomVariable):
                return Unsupported(node, scans, _RANDOM_STATE)
            found = found or Unsupported(node, scans, _RANDOM_STATE)
        for kind in types:
            if not _is_held(kind):
                return Unsupported(node, scans, f"has values of type {kind}, unknown to Numba.")
    return found


def _is_held(kind: Type) -> bool:
    """Say whether compiled code has a type for values of an Aesara type."""
    if isinstance(kind, SparseTensorType):
        return kind.format in ("csc", "csr")
    return isinstance(
        kind, (TensorType, ScalarType, RandomGeneratorType, RandomStateType, SliceType, NoneTypeT)
    )


def _has_wrong_type(node: Apply) -> bool:
    """Say whether NumPy's result has not the dimensions of the type of the first output."""
    op, types = node.op, [variable.type for variable in node.inputs]
    if isinstance(op, Lstsq):
        return bool(types[1].ndim != 2)
    if isinstance(op, TensorSolve):
        return bool(types[0].ndim - types[1].ndim != 2)
    if isinstance(op, TensorInv):
        shape = types[0].shape
        return bool(node.outputs[0].type.shape != (*shape[op.ind :], *shape[: op.ind]))
    return False


def python_linker(allow_gc: Any = None) -> VMLinker:
    """Give a linker that runs every op in Python."""
    return VMLinker(allow_gc=allow_gc, use_cloop=False, c_thunks=False)


def prepare_for_python(
    fgraph: FunctionGraph, found: Unsupported, rewrites: Any, excluded: Any
) -> None:
    """Let the loops of a graph run in Python too, and say that the graph does.

    Parameters
    ----------
    fgraph
        The graph; the ops in it are exchanged for clones, never changed.
    found
        What `unsupported_node` gave.
    rewrites, excluded
        The rewrites of the mode, and the tags of those that suit only other back ends.

    Raises
    ------
    UnsupportedOpError
        With the flag ``fixed_modes__strict``.
    """
    message = (
        f"NUMBA_FIXED runs a whole graph in Python, which is slow, since it {found.reason}\n"
        f"{describe_node(found.node, found.scans)}"
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
