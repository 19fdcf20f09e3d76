"""Makes a compiled function from a `FunctionGraph`, by way of a module of source."""

from __future__ import annotations

import linecache
import re
from functools import partial
from hashlib import sha256
from types import CodeType
from typing import Any

import numba
import numpy as np
from aesara.graph.basic import Apply
from aesara.graph.fg import FunctionGraph
from numba.core.errors import NumbaError

from fixed_modes.errors import UnsupportedOpError, describe_node, with_origin
from fixed_modes.numba.cache import MODULE, compiled_once
from fixed_modes.numba.lowering import lower_graph
from fixed_modes.numba.writer import ERROR, Writer, is_machine_scalar

_FUNCTION = "graph"
# A message takes the site and at most a shape.
_ERROR_SIZE = 64
_OPTIONS = {"error_model": "numpy"}


class CompiledGraph:
    """A graph as one generated Python function, compiled by Numba at the first call.

    Attributes
    ----------
    source
        The text of the generated module.
    filename
        The name under which tracebacks and Numba's messages show it.
    cache
        What the compile cache does for it.
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
        self._constants = [value for _, value in writer.constant_arguments]
        self._sites = writer.sites
        self._converted = writer.converted
        # The header takes the first line of the module.
        self._origins = {line + 1: origin for line, origin in writer.origins.items()}
        # A name that is the same in every process; there is no such file.
        name = f"<fixed_modes graph {sha256(self.source.encode()).hexdigest()[:16]}>"
        code = compile(self.source, name, "exec")
        self._jitted, self.cache = compiled_once(
            code, writer.globals, _OPTIONS, partial(_run, code, self.source, writer.globals)
        )
        # Another graph of the same code may have been the first.
        self.filename = self._jitted.py_func.__code__.co_filename

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


def _run(code: CodeType, source: str, namespace: dict[str, Any]) -> Any:
    """Run a generated module, and have Numba compile its function at the first call."""
    # Tracebacks read the lines from here.
    name = code.co_filename
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    namespace["__name__"] = MODULE
    exec(code, namespace)
    return numba.njit(**_OPTIONS)(namespace[_FUNCTION])


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
