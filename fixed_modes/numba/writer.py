"""Collects the statements, names and constants of a generated module."""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Callable

import numpy as np
from aesara.graph.basic import Apply, Constant, Variable
from aesara.scalar.basic import ScalarType
from aesara.tensor.type import TensorType

# Names that the generated code uses itself.
ERROR = "error"
_RESERVED = {
    *dir(builtins),
    "copy_of_generator",
    "np",
    "math",
    ERROR,
    "graph",
    "to_scalar",
    "rows_from",
}


@dataclass(frozen=True)
class ErrorSite:
    """What a check in the generated code raises.

    Attributes
    ----------
    exception
        The type of the exception.
    message
        Builds the message from the integers that the check records.
    count
        How many integers that are.
    node
        The node that the check belongs to.
    scans
        The names of the scans around it, outermost first.
    """

    exception: type[Exception]
    message: Callable[..., str]
    count: int
    node: Apply
    scans: tuple[str, ...]


class Literal(str):
    """The text of a constant, with its value as a NumPy scalar."""

    value: Any

    def __new__(cls, text: str, value: Any) -> Literal:
        literal = super().__new__(cls, text)
        literal.value = value
        return literal


def is_machine_scalar(variable: Variable) -> bool:
    """Say whether the generated code holds `variable` in a scalar, not in an array."""
    kind = variable.type
    return isinstance(kind, ScalarType) or (isinstance(kind, TensorType) and kind.ndim == 0)


class Writer:
    """Writes the body of one function, statement by statement.

    The values of the graph are local variables: machine scalars for 0-d
    tensors, arrays for others.  Names come from the graph where it has names.
    """

    def __init__(self, in_python: Iterable[Apply] = ()) -> None:
        #: Nodes to be run in Python, since the conversion that Aesara has fails.
        self.in_python = set(in_python)
        #: Nodes that are written as calls of Aesara's own conversions.
        self.converted: set[Apply] = set()
        self.lines: list[str] = []
        self.globals: dict[str, Any] = {"np": np}
        self.sites: list[ErrorSite] = []
        self.scans: tuple[str, ...] = ()
        #: For each line, the node it was written for and the scans around it.
        self.origins: dict[int, tuple[Apply, tuple[str, ...]]] = {}
        #: Constant arrays, passed as arguments after the inputs of the graph.
        self.constant_arguments: list[tuple[str, np.ndarray]] = []
        self._indent = 1
        self._node: Apply | None = None
        self._names: dict[Variable, str] = {}
        self._constants: dict[Constant, str] = {}
        self._taken = set(_RESERVED)

    # -- statements -------------------------------------------------------

    def emit(self, *statements: str) -> None:
        """Append statements at the present indentation."""
        for statement in statements:
            for line in statement.splitlines():
                self.lines.append("    " * self._indent + line if line else "")
                if self._node is not None:
                    self.origins[len(self.lines)] = (self._node, self.scans)

    @contextmanager
    def block(self, header: str) -> Iterator[None]:
        """Open an indented block under `header`."""
        self.emit(header)
        self._indent += 1
        before = len(self.lines)
        yield
        if len(self.lines) == before:
            self.emit("pass")
        self._indent -= 1

    @contextmanager
    def at_node(self, node: Apply) -> Iterator[None]:
        """Note that what is emitted inside belongs to `node`."""
        outer, self._node = self._node, node
        try:
            yield
        finally:
            self._node = outer

    @contextmanager
    def inside_scan(self, name: str) -> Iterator[None]:
        """Note that what is emitted inside stands in the scan `name`."""
        outer, self.scans = self.scans, (*self.scans, name)
        try:
            yield
        finally:
            self.scans = outer

    @contextmanager
    def all_or_nothing(self, exception: type[Exception]) -> Iterator[None]:
        """Take back what was written when `exception` comes out of the block."""
        lines, sites, names = len(self.lines), len(self.sites), dict(self._names)
        indent = self._indent
        try:
            yield
        except exception:
            del self.lines[lines:], self.sites[sites:]
            self._names, self._indent = names, indent
            raise

    def emit_failure(
        self,
        exception: type[Exception],
        message: Callable[..., str],
        *numbers: str,
        name: str = "",
    ) -> None:
        """Raise `exception`; its message is built from expressions for integers.

        The message is put together by the caller of the compiled function: a
        string that compiled code builds costs much compile time.  `name` is what
        the exception is called in the generated module, if not a built-in.
        """
        assert self._node is not None
        self.sites.append(ErrorSite(exception, message, len(numbers), self._node, self.scans))
        for position, number in enumerate((str(len(self.sites)), *numbers)):
            self.emit(f"{ERROR}[{position}] = {number}")
        self.emit(f"raise {name or exception.__name__}")

    # -- names ------------------------------------------------------------

    def fresh(self, hint: str) -> str:
        """Give a name that is not in use yet, made from `hint`."""
        base = re.sub(r"\W+", "_", hint).strip("_") or "v"
        if base[0].isdigit() or keyword.iskeyword(base):
            base = f"v_{base}"
        name, number = base, 1
        while name in self._taken:
            name, number = f"{base}_{number}", number + 1
        self._taken.add(name)
        return name

    def define(self, variable: Variable, hint: str = "") -> str:
        """Give `variable` a name of its own."""
        name = self.fresh(variable.name or hint or "v")
        self._names[variable] = name
        return name

    def bind(self, variable: Variable, name: str) -> None:
        """Let `variable` be called `name`, which is in use already."""
        self._names[variable] = name

    @contextmanager
    def inner_scope(self) -> Iterator[None]:
        """Write an inner graph: its inputs are nominal variables, which many graphs share."""
        outer, self._names = self._names, {}
        try:
            yield
        finally:
            self._names = outer

    def name(self, variable: Variable) -> str:
        """Give the name, or for a constant the expression, of `variable`."""
        if isinstance(variable, Constant):
            if variable not in self._constants:
                self._constants[variable] = self._constant(variable)
            return self._constants[variable]
        return self._names[variable]

    def use_global(self, hint: str, value: Any) -> str:
        """Give a global name of the generated module that stands for `value`."""
        name = self.fresh(hint)
        self.globals[name] = value
        return name

    def _constant(self, constant: Constant) -> str:
        data = constant.data
        if data is None:
            return "None"
        if isinstance(data, slice):
            return repr(data)
        if is_machine_scalar(constant):
            return self.literal(np.asarray(data)[()])
        if isinstance(data, np.ndarray):
            name = self.fresh(constant.name or "constant")
            self.constant_arguments.append((name, data))
            return name
        return self.use_global(constant.name or "constant", data)

    def literal(self, value: Any) -> Literal:
        """Give an expression for a NumPy scalar that keeps its dtype and value."""
        return Literal(self._literal_text(value), value)

    def _literal_text(self, value: Any) -> str:
        dtype = np.dtype(type(value))
        if dtype == np.bool_:
            return str(bool(value))
        if dtype == np.int64 and abs(int(value)) < 2**63 - 1:
            return str(int(value)) if value >= 0 else f"({int(value)})"
        if dtype == np.float64 and np.isfinite(value):
            return repr(float(value)) if value >= 0 else f"({float(value)!r})"
        return self.use_global(f"constant_{dtype.name}", value)

    # -- the result -------------------------------------------------------

    def source(self, name: str, arguments: list[str], results: list[str]) -> str:
        """Give the source text of the function."""
        returned = f"({', '.join(results)},)" if results else "None"
        header = f"def {name}({', '.join(arguments)}):"
        return "\n".join([header, *self.lines, f"    return {returned}"]) + "\n"
