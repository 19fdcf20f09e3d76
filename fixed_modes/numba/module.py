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
from aesara.tensor.type import TensorType
from numba.core.errors import NumbaError

from fixed_modes.errors import UnsupportedOpError, describe_node, with_origin
from fixed_modes.numba.lowering import lower_graph
from fixed_modes.numba.plan import Plan
from fixed_modes.numba.writer import ERROR, PLAN, Findings, Writer, is_machine_scalar

_FUNCTION = "graph"
# A message takes the site and at most a shape.
_ERROR_SIZE = 64
# After so many variants there is one that knows nothing of lengths.
_MOST_VARIANTS = 12
_numbers = itertools.count()


class CompiledGraph:
    """A graph as generated Python functions, compiled by Numba when they are first needed.

    A function is written for what the lengths of the inputs of a call decide (see
    `fixed_modes.numba.plan`); calls that lead to other decisions get another variant.

    Parameters
    ----------
    fgraph
        The graph, with its in-place passes done.
    """

    def __init__(self, fgraph: FunctionGraph) -> None:
        self._fgraph = fgraph
        self._findings = Findings()
        self._variants: list[Variant] = []
        # What can't be converted shows now, and not at the first call.
        self._general = Variant(fgraph, Plan(), self._findings)

    @property
    def source(self) -> str:
        """The text of the module of the last variant that was called, or of the general one."""
        return (self._variants or [self._general])[0].source

    def __call__(self, *inputs: Any) -> Any:
        for position, variant in enumerate(self._variants):
            parameters = variant.parameters(inputs)
            if parameters is not None:
                if position:
                    self._variants.insert(0, self._variants.pop(position))
                break
        else:
            variant, parameters = self._new_variant(inputs)
        error = np.zeros(_ERROR_SIZE, np.int64)
        try:
            outputs = variant.function(error, parameters, *inputs, *variant.constants)
        except NumbaError as exc:
            node, _ = variant.origin_of(exc)
            if node not in variant.converted or node in self._findings.in_python:
                raise variant.explain_failed_compilation(exc) from exc
            # Aesara's conversion does not suit this Numba, or these types.
            self._findings.in_python.add(node)
            self._variants.clear()
            self._general = Variant(self._fgraph, Plan(), self._findings)
            return self(*inputs)
        except Exception as exc:
            if error[0]:
                raise variant.error_at_site(error) from exc
            raise
        return () if outputs is None else outputs

    def _new_variant(self, inputs: tuple[Any, ...]) -> tuple[Variant, np.ndarray]:
        variant = self._general
        # With so many, the lengths decide too much to be written for.
        if len(self._variants) < _MOST_VARIANTS:
            variant = Variant(self._fgraph, Plan(inputs), self._findings)
        self._variants.insert(0, variant)
        parameters = variant.parameters(inputs)
        assert parameters is not None
        return variant, parameters


class Variant:
    """One generated function, and what it assumes of its inputs.

    Attributes
    ----------
    source
        The text of the generated module.
    filename
        The name under which tracebacks and Numba's messages show it.
    """

    def __init__(self, fgraph: FunctionGraph, plan: Plan, findings: Findings) -> None:
        writer = Writer(plan, findings)
        arguments = [ERROR, PLAN, *_write_inputs(fgraph, writer)]
        lower_graph(fgraph, writer)
        results = [writer.name(out) for out in fgraph.outputs]
        arguments += [name for name, _ in writer.constant_arguments]
        source = writer.source(_FUNCTION, arguments, results)
        self.source = source.text
        self.filename = f"<fixed_modes graph {next(_numbers)}>"
        self.constants = [value for _, value in writer.constant_arguments]
        self.converted = writer.converted
        self._sites = writer.sites
        self._origins = source.origins
        self.function = self._compile(writer.globals)
        self.parameters = plan.replay(len(fgraph.inputs)).parameters

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

    def error_at_site(self, error: np.ndarray) -> Exception:
        site = self._sites[int(error[0]) - 1]
        message = site.message(*(int(n) for n in error[1 : 1 + site.count]))
        where = f"\nInside: {' > '.join(site.scans)}" if site.scans else ""
        return with_origin(site.exception(message + where), site.node)

    def explain_failed_compilation(self, exc: NumbaError) -> Exception:
        node, scans = self.origin_of(exc)
        where = f"\n{describe_node(node, scans)}" if node is not None else ""
        first = next((line for line in str(exc).splitlines() if line.strip()), "")
        error = UnsupportedOpError(f"Numba can't compile this graph: {first}{where}")
        return with_origin(error, node) if node is not None else error

    def origin_of(self, exc: NumbaError) -> tuple[Apply | None, tuple[str, ...]]:
        """Find the node whose statements Numba complains about, innermost location first."""
        for name, line in reversed(re.findall(r'File "([^"]*)", line (\d+)', str(exc))):
            if name == self.filename and int(line) in self._origins:
                return self._origins[int(line)]
        return None, ()


def _write_inputs(fgraph: FunctionGraph, writer: Writer) -> list[str]:
    """Name the inputs; 0-d arrays become machine scalars at once."""
    names = []
    for position, variable in enumerate(fgraph.inputs):
        name = writer.define(variable, "x")
        names.append(name)
        facts = writer.facts(variable)
        if is_machine_scalar(variable):
            if np.dtype(variable.type.dtype).kind in "ib":
                facts.known = writer.plan.scalar(position)
            facts.name = None
            if facts.known is None:
                facts.name = writer.fresh(name)
                writer.emit(f"{facts.name} = {name}.item()")
        elif isinstance(variable.type, TensorType):
            facts.shape = tuple(
                writer.plan.length(position, axis) for axis in range(variable.type.ndim)
            )
    return names
