"""Makes a compiled function from a `FunctionGraph`, by way of a module of source."""

from __future__ import annotations

import itertools
import linecache
import re
from typing import Any

import numba
import numpy as np
from aesara.graph.basic import Apply
from aesara.graph.fg import FunctionGraph
from numba.core.errors import NumbaError

from fixed_modes.errors import UnsupportedOpError, describe_node, with_origin
from fixed_modes.numba.lowering import lower_graph
from fixed_modes.numba.writer import ERROR, Writer, is_machine_scalar

_FUNCTION = "graph"
# A message takes the site and at most a shape.
_ERROR_SIZE = 64
_numbers = itertools.count()


class CompiledGraph:
    """A graph as one generated Python function, compiled by Numba at the first call.

    Attributes
    ----------
    source
        The text of the generated module.
    filename
        The name under which tracebacks and Numba's messages show it.
    """

    def __init__(self, fgraph: FunctionGraph) -> None:
        self._fgraph = fgraph
        self._in_python: set[Apply] = set()
        self._build()

    def _build(self) -> None:
        writer = Writer(self._in_python)
        arguments = [ERROR, *_write_inputs(self._fgraph, writer)]
        lower_graph(self._fgraph, writer)
        results = [writer.name(out) for out in self._fgraph.outputs]
        arguments += [name for name, _ in writer.constant_arguments]
        self.source = writer.source(_FUNCTION, arguments, results)
        self.filename = f"<fixed_modes graph {next(_numbers)}>"
        self._constants = [value for _, value in writer.constant_arguments]
        self._sites = writer.sites
        self._converted = writer.converted
        # The header takes the first line of the module.
        self._origins = {line + 1: origin for line, origin in writer.origins.items()}
        self._jitted = self._compile(writer.globals)

    def _compile(self, namespace: dict[str, Any]) -> Any:
        # Tracebacks read the lines from here; there is no such file.
        linecache.cache[self.filename] = (
            len(self.source),
            None,
            self.source.splitlines(True),
            self.filename,
        )
        exec(compile(self.source, self.filename, "exec"), namespace)
        return numba.njit(error_model="numpy")(namespace[_FUNCTION])

    def __call__(self, *inputs: Any) -> Any:
        error = np.zeros(_ERROR_SIZE, np.int64)
        try:
            outputs = self._jitted(error, *inputs, *self._constants)
        except NumbaError as exc:
            node, _ = self._origin_of(exc)
            if node not in self._converted or node in self._in_python:
                raise self._explain_failed_compilation(exc) from exc
            # Aesara's conversion does not suit this Numba, or these types.
            self._in_python.add(node)
            self._build()
            return self(*inputs)
        except Exception as exc:
            if error[0]:
                raise self._error_at_site(error) from exc
            raise
        return () if outputs is None else outputs

    def _error_at_site(self, error: np.ndarray) -> Exception:
        site = self._sites[int(error[0]) - 1]
        message = site.message(*(int(n) for n in error[1 : 1 + site.count]))
        where = f"\nInside: {' > '.join(site.scans)}" if site.scans else ""
        return with_origin(site.exception(message + where), site.node)

    def _explain_failed_compilation(self, exc: NumbaError) -> Exception:
        node, scans = self._origin_of(exc)
        where = f"\n{describe_node(node, scans)}" if node is not None else ""
        first = next((line for line in str(exc).splitlines() if line.strip()), "")
        error = UnsupportedOpError(f"Numba can't compile this graph: {first}{where}")
        return with_origin(error, node) if node is not None else error

    def _origin_of(self, exc: NumbaError) -> tuple[Apply | None, tuple[str, ...]]:
        """Find the node whose statements Numba complains about, innermost location first."""
        for name, line in reversed(re.findall(r'File "([^"]*)", line (\d+)', str(exc))):
            if name == self.filename and int(line) in self._origins:
                return self._origins[int(line)]
        return None, ()


def _write_inputs(fgraph: FunctionGraph, writer: Writer) -> list[str]:
    """Name the inputs; 0-d arrays become machine scalars at once."""
    names = []
    for variable in fgraph.inputs:
        name = writer.define(variable, "x")
        names.append(name)
        if is_machine_scalar(variable):
            value = writer.fresh(name)
            writer.emit(f"{value} = {name}.item()")
            writer.bind(variable, value)
    return names
