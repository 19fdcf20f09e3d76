"""Makes a compiled function from a `FunctionGraph`, by way of a module of source."""

from __future__ import annotations

import linecache
import re
from functools import cached_property, partial
from hashlib import sha256
from types import CodeType, FunctionType
from typing import Any

import numba
import numpy as np
from aesara.graph.basic import Apply
from aesara.graph.fg import FunctionGraph
from aesara.scalar.basic import ScalarType
from aesara.tensor.type import TensorType
from numba.core.errors import NumbaError

from fixed_modes.cache.pause import garbage_rarely_collected
from fixed_modes.errors import UnsupportedOpError, describe_node, with_origin
from fixed_modes.numba.cache import MODULE, compiled_once
from fixed_modes.numba.lowering import lower_graph
from fixed_modes.numba.plan import Plan
from fixed_modes.numba.sections import cut
from fixed_modes.numba.writer import ERROR, PLAN, Findings, Writer, is_machine_scalar

_FUNCTION = "graph"
# A message takes the site and at most a shape.
_ERROR_SIZE = 64
# After so many variants there is one that knows nothing of lengths.
_MOST_VARIANTS = 12
_OPTIONS = {"error_model": "numpy"}
# Sections are not called from Python.
_OPTIONS_OF_SECTIONS = {**_OPTIONS, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}


class CompiledGraph:
    """A graph as generated Python functions, compiled by Numba when they are first needed.

    A function is written for what the lengths of the inputs of a call decide (see
    `fixed_modes.numba.plan`); calls that lead to other decisions get another variant.

    Parameters
    ----------
    fgraph
        The graph, with its in-place passes done.
    is_converted
        Whether it is known to be converted without a warning.
    """

    def __init__(self, fgraph: FunctionGraph, is_converted: bool = False) -> None:
        self._fgraph = fgraph
        self._findings = Findings()
        self._variants: list[Variant] = []
        self._general_or_none: Variant | None = None
        self._scalars = [
            (position, np.dtype(out.type.dtype).type)
            for position, out in enumerate(fgraph.outputs)
            if isinstance(out.type, ScalarType)
        ]
        if not is_converted:
            # What can't be converted shows now, and not at the first call.
            _ = self._general

    @property
    def is_without_warnings(self) -> bool:
        """Whether nothing that was converted so far runs in Python."""
        return not self._findings.warned

    @property
    def _general(self) -> Variant:
        """The variant that knows nothing of lengths."""
        if self._general_or_none is None:
            self._general_or_none = Variant(self._fgraph, Plan(), self._findings)
        return self._general_or_none

    @property
    def source(self) -> str:
        """The text of the module of the last variant that was called, or of the general one."""
        return (self._variants or [self._general])[0].source

    @property
    def function(self) -> Any:
        """The compiled function of the variant that was called last."""
        return (self._variants or [self._general])[0].function

    @property
    def cache(self) -> Any:
        """What the compile cache does for the variant that was called last."""
        return (self._variants or [self._general])[0].cache

    def __call__(self, *inputs: Any) -> Any:
        # The list is replaced and never changed: another thread may be reading it.
        variants = self._variants
        for variant in variants:
            parameters = variant.parameters(inputs)
            if parameters is not None:
                if variant is not variants[0]:
                    self._variants = [variant, *(v for v in variants if v is not variant)]
                break
        else:
            with garbage_rarely_collected():
                self._add_variant(inputs)
                return self(*inputs)
        error = np.zeros(_ERROR_SIZE, np.int64)
        try:
            outputs = variant.function(error, parameters, *inputs, *variant.constants)
        except NumbaError as exc:
            node, _ = variant.origin_of(exc)
            if node not in variant.converted or node in self._findings.in_python:
                raise variant.explain_failed_compilation(exc) from exc
            # Aesara's conversion does not suit this Numba, or these types.
            self._findings.in_python.add(node)
            self._variants = []
            self._general_or_none = None
            return self(*inputs)
        except Exception as exc:
            if error[0]:
                raise variant.error_at_site(error) from exc
            raise
        if self._scalars:
            # Numba gives numbers of Python, which have no dtype.
            outputs = list(outputs)
            for position, make in self._scalars:
                outputs[position] = make(outputs[position])
        return () if outputs is None else outputs

    def _add_variant(self, inputs: tuple[Any, ...]) -> None:
        """Write the variant that a call needs."""
        if len(self._variants) < _MOST_VARIANTS:
            variant = Variant(self._fgraph, Plan(inputs), self._findings)
        else:
            # With so many, the lengths decide too much to be written for.
            variant = self._general
        assert variant.parameters(inputs) is not None
        self._variants = [variant, *self._variants]


class Variant:
    """One generated function, and what it assumes of its inputs.

    Attributes
    ----------
    source
        The text of the generated module.
    constants
        Arrays and generators that the function gets after the inputs of the graph.
    converted
        The nodes that are calls of Aesara's own conversions.
    """

    def __init__(self, fgraph: FunctionGraph, plan: Plan, findings: Findings) -> None:
        writer = Writer(plan, findings)
        arguments = [ERROR, PLAN, *_write_inputs(fgraph, writer)]
        lower_graph(fgraph, writer)
        results = [writer.name(out) for out in fgraph.outputs]
        arguments += [name for name, _ in writer.constant_arguments]
        source = cut(writer.source(_FUNCTION, arguments, results))
        self.source = source.text
        self.constants = [value for _, value in writer.constant_arguments]
        self.converted = writer.converted
        self._sites = writer.sites
        self._origins = source.origins
        self._namespace = writer.globals
        self.parameters = plan.replay(len(fgraph.inputs)).parameters

    @cached_property
    def _compiled(self) -> tuple[Any, Any]:
        # A name that is the same in every process; there is no such file.
        name = f"<fixed_modes graph {sha256(self.source.encode()).hexdigest()[:16]}>"
        code = compile(self.source, name, "exec")
        run = partial(_run, code, self.source, self._namespace)
        return compiled_once(code, self._namespace, _OPTIONS, run)

    @cached_property
    def function(self) -> Any:
        """What Numba compiles when it is called first."""
        return self._compiled[0]

    @property
    def cache(self) -> Any:
        """What the compile cache does for it."""
        return self._compiled[1]

    @property
    def filename(self) -> str:
        """The name under which tracebacks and Numba's messages show it."""
        # Another graph of the same code may have been the first.
        return str(self.function.py_func.__code__.co_filename)

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


def _run(code: CodeType, source: str, namespace: dict[str, Any]) -> Any:
    """Run a generated module, and have Numba compile its functions when they are needed."""
    # Tracebacks read the lines from here.
    name = code.co_filename
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    namespace["__name__"] = MODULE
    exec(code, namespace)
    for global_name, value in list(namespace.items()):
        is_section = isinstance(value, FunctionType) and value.__code__ in code.co_consts
        if is_section and global_name != _FUNCTION:
            namespace[global_name] = numba.njit(**_OPTIONS_OF_SECTIONS)(value)
    # Not into the namespace, which it refers to: it is to be freed with the last function
    # that needs it, and not when cycles are looked for.
    return numba.njit(**_OPTIONS)(namespace[_FUNCTION])


def _write_inputs(fgraph: FunctionGraph, writer: Writer) -> list[str]:
    """Name the inputs; 0-d arrays become machine scalars at once."""
    names = []
    for position, variable in enumerate(fgraph.inputs):
        name = writer.define(variable, "x")
        names.append(name)
        if not fgraph.clients.get(variable):
            # Nobody has to know it, and it may be None.
            continue
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
