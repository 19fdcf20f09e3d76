"""The linker of the mode ``NUMBA_FIXED``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from aesara.graph.basic import Variable
from aesara.graph.fg import FunctionGraph
from aesara.link.numba.linker import NumbaLinker
from aesara.tensor.type import TensorType

from fixed_modes.linker import InnerGraphLinker
from fixed_modes.numba.python_graph import (
    prepare_for_python,
    python_linker,
    unsupported_node,
)

if TYPE_CHECKING:
    from fixed_modes.numba.module import CompiledGraph

_NUMBERS = (float, int, complex)


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

    def finish(self, fgraph: FunctionGraph) -> bool:
        # What runs in Python keeps its inner graphs, which Aesara compiles then.
        return unsupported_node(fgraph) is None and super().finish(fgraph)

    def make_all(
        self, input_storage: Any = None, output_storage: Any = None, storage_map: Any = None
    ) -> tuple[Any, ...]:
        """Make the thunk of the whole graph; one that Numba has no types for runs in Python."""
        found = unsupported_node(self.fgraph)
        if found is None:
            return super().make_all(input_storage, output_storage, storage_map)
        self.check_back_end()
        prepare_for_python(self.fgraph, found, self.rewrites, self.excluded_tags)
        linker = python_linker(self.allow_gc).accept(self.fgraph, self.no_recycling)
        # A VM updates the inputs itself, if it is told which.
        updates = (self.fgraph.update_mapping or {}).items()
        linker.accept_var_updates(
            {self.fgraph.inputs[i]: self.fgraph.outputs[o] for o, i in updates}
        )
        return linker.make_all(
            input_storage=input_storage, output_storage=output_storage, storage_map=storage_map
        )

    def fgraph_convert(self, fgraph: FunctionGraph, **kwargs: Any) -> CompiledGraph:
        from fixed_modes.numba.compat import ensure_stock_dispatch_imports

        ensure_stock_dispatch_imports()
        from fixed_modes.numba.module import CompiledGraph

        return CompiledGraph(fgraph, is_converted=fgraph is self.converted)

    def jit_compile(self, fn: CompiledGraph) -> CompiledGraph:
        return fn

    def output_filter(self, var: Variable, out: Any) -> Any:
        if isinstance(out, np.ndarray):
            return out
        if isinstance(out, _NUMBERS) and isinstance(var.type, TensorType):
            # The value has that dtype already, though it has become a number of Python.
            return np.array(out, var.type.dtype)
        return super().output_filter(var, out)
