"""The linker of the mode ``NUMBA_FIXED``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from aesara.graph.basic import Variable
from aesara.graph.fg import FunctionGraph
from aesara.link.numba.linker import NumbaLinker
from aesara.tensor.random.op import RandomVariable
from aesara.tensor.random.type import RandomStateType

from fixed_modes.errors import describe_node
from fixed_modes.inner_graphs import walk_nodes
from fixed_modes.linker import InnerGraphLinker
from fixed_modes.numba.half_precision import (
    half_precision_node,
    prepare_for_python,
    python_linker,
)

if TYPE_CHECKING:
    from fixed_modes.numba.module import CompiledGraph


class FixedNumbaLinker(InnerGraphLinker, NumbaLinker):
    """A `NumbaLinker` that compiles inner graphs first and lowers whole graphs."""

    excluded_tags = ("cxx_only", "BlasOpt", "jax")

    def check_back_end(self) -> None:
        try:
            import numba  # noqa: F401
        except ImportError as exc:
            raise ImportError(
                "The mode NUMBA_FIXED needs Numba, which can't be imported here "
                f"({exc}). Install it with: pip install numba"
            ) from exc
        refuse_legacy_random_states(self.fgraph)

    def make_all(
        self, input_storage: Any = None, output_storage: Any = None, storage_map: Any = None
    ) -> tuple[Any, ...]:
        """Make the thunk of the whole graph; one with float16 values runs in Python."""
        found = half_precision_node(self.fgraph)
        if found is None:
            return super().make_all(input_storage, output_storage, storage_map)
        self.check_back_end()
        prepare_for_python(self.fgraph, found, self.rewrites, self.excluded_tags)
        linker = python_linker(self.allow_gc).accept(self.fgraph, self.no_recycling)
        return linker.make_all(
            input_storage=input_storage, output_storage=output_storage, storage_map=storage_map
        )

    def fgraph_convert(self, fgraph: FunctionGraph, **kwargs: Any) -> CompiledGraph:
        from fixed_modes.numba.compat import ensure_stock_dispatch_imports

        ensure_stock_dispatch_imports()
        from fixed_modes.numba.module import CompiledGraph

        return CompiledGraph(fgraph)

    def jit_compile(self, fn: CompiledGraph) -> CompiledGraph:
        return fn

    def output_filter(self, var: Variable, out: Any) -> Any:
        if isinstance(out, np.ndarray):
            return out
        return super().output_filter(var, out)


def refuse_legacy_random_states(fgraph: FunctionGraph) -> None:
    """Raise where a graph draws from a `numpy.random.RandomState`.

    Raises
    ------
    TypeError
        Names the op and says how to change the graph.
    """
    users = [
        (node, scans)
        for node, _, scans in walk_nodes(fgraph)
        if any(isinstance(v.type, RandomStateType) for v in (*node.inputs, *node.outputs))
    ]
    # The draw says more than the loop around it.
    users.sort(key=lambda user: not isinstance(user[0].op, RandomVariable))
    for node, scans in users[:1]:
        raise TypeError(
            "NUMBA_FIXED can't draw from a numpy.random.RandomState, which Numba does "
            "not support. Use a numpy.random.Generator: RandomStream(seed) makes one "
            "by default (leave out rng_ctor=numpy.random.RandomState), and "
            "aesara.shared(numpy.random.default_rng(seed)) holds one.\n"
            f"{describe_node(node, scans)}"
        )
