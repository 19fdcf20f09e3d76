"""Collects the statements, names and constants of a generated module."""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Callable

import numpy as np
from aesara.graph.basic import Apply, Constant, Variable
from aesara.scalar.basic import ScalarType
from aesara.tensor.type import TensorType

from fixed_modes.numba.facts import Facts, Shape
from fixed_modes.numba.plan import Known, NotKnown, Plan
from fixed_modes.numba.source import Hoisted, Line, Source

# So many elements fill a vector of the processor.
_VECTOR = 8
# So many steps of a loop in a loop are written out, if they are not more.
SHORT = 4
# Names that the generated code uses itself.
ERROR = "error"
PLAN = "plan"
_RESERVED = {
    *dir(builtins),
    "borrowed",
    "contiguous",
    "copy_of_generator",
    "np",
    "math",
    ERROR,
    PLAN,
    "graph",
    "of_rank",
    "permuted",
    "plus",
    "plus_product",
    "rank",
    "row_of",
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


def numpy_dtype(dtype: str) -> str:
    """Give the expression for a dtype in generated code."""
    return "np.bool_" if dtype == "bool" else f"np.{dtype}"


@dataclass
class Findings:
    """What was found out about a graph, for all functions that are written for it.

    Attributes
    ----------
    in_python
        Nodes to be run in Python, since the conversion that Aesara has fails.
    warned
        Nodes of which the user knows that they run in Python.
    conversions
        What Aesara's own conversion gave for a node.
    """

    in_python: set[Apply] = field(default_factory=set)
    warned: set[Apply] = field(default_factory=set)
    conversions: dict[Apply, Any] = field(default_factory=dict)


class Writer:
    """Writes the body of one function, statement by statement.

    The values of the graph are local variables: machine scalars for 0-d
    tensors, arrays for others.  Names come from the graph where it has names.
    """

    def __init__(self, plan: Plan | None = None, findings: Findings | None = None) -> None:
        self.plan = plan or Plan()
        self.findings = findings or Findings()
        #: Nodes that are written as calls of Aesara's own conversions.
        self.converted: set[Apply] = set()
        self._lines: list[Line | Hoisted] = []
        self._hoisted: list[Hoisted] = []
        self.globals: dict[str, Any] = {"np": np}
        self.sites: list[ErrorSite] = []
        self.scans: tuple[str, ...] = ()
        #: Constant arrays, passed as arguments after the inputs of the graph.
        self.constant_arguments: list[tuple[str, np.ndarray | np.random.Generator]] = []
        self._indent = 1
        #: Whether what is written now may not run at all.
        self.is_in_branch = False
        self._elements_of: Variable | None = None
        self._node: Apply | None = None
        self._facts: dict[Variable, Facts] = {}
        self._constants: dict[Constant, str] = {}
        self._parameters: dict[int, str] = {}
        self._taken = set(_RESERVED)
        #: Gives the row of a buffer for a result that belongs there, or None.
        self.destinations: dict[Variable, Callable[[Variable], str | None]] = {}
        #: Changes of arrays that are made in place, though the graph does not say so.
        self.in_place: set[Apply] = set()
        self._undo: list[Callable[[], None]] = []

    # -- statements -------------------------------------------------------

    def emit(self, *statements: str) -> None:
        """Append statements at the present indentation."""
        origin = None if self._node is None else (self._node, self.scans)
        for statement in statements:
            for line in statement.splitlines():
                self._lines.append(Line("    " * self._indent + line if line else "", origin))

    def is_in_place(self, node: Apply) -> bool:
        """Say whether a change of an array is made in its memory."""
        return bool(node.op.inplace) or node in self.in_place

    def shorten(self, allocation: Variable, rows: int) -> None:
        """Take back all but the first rows of an array that has been allocated."""
        start = f"{self.name(allocation)} = np.empty(("
        for line in self._lines:
            if isinstance(line, Line) and line.text.strip().startswith(start):
                line.text = re.sub(r"(np\.empty\(\()[^,]+,", rf"\g<1>{rows},", line.text)

    @contextmanager
    def block(self, header: str) -> Iterator[None]:
        """Open an indented block under `header`."""
        self.emit(header)
        self._indent += 1
        before = len(self._lines)
        yield
        if len(self._lines) == before:
            self.emit("pass")
        self._indent -= 1

    @contextmanager
    def elements_of(self, variable: Variable) -> Iterator[None]:
        """Say that the loop inside is over the elements of an array, along its last axis."""
        before, self._elements_of = self._elements_of, variable
        yield
        self._elements_of = before

    @property
    def is_vectorised(self) -> bool:
        """Whether what is written now is for so many elements that vectors of them pay.

        The code that follows from it is for such lengths alone.
        """
        if self._elements_of is None:
            return False
        length = self.shape(self._elements_of)[-1]
        return length is None or self.plan.decide(f"{{}} >= {_VECTOR}", length)

    def is_short(self, length: str) -> bool:
        """Decide whether a loop of this length has so few steps that they are written out.

        The code that follows from it is for such lengths alone.
        """
        if not self.is_in_loop:
            return False
        for place, name in self._parameters.items():
            if name == length:
                return self.plan.decide(f"{{}} <= {SHORT}", self.plan.known(place))
        return False

    @contextmanager
    def loop(self, header: str) -> Iterator[None]:
        """Open a loop; what is hoisted inside stands before it, or before one around it."""
        self.mark()
        with self.block(header):
            yield
        self.unmark()

    def mark(self) -> Hoisted:
        """Open a place that lines can be put in later."""
        hoisted = Hoisted(self._indent)
        self._lines.append(hoisted)
        self._hoisted.append(hoisted)
        return hoisted

    def unmark(self) -> None:
        """Close the place that was opened last."""
        self._hoisted.pop()

    @property
    def is_in_loop(self) -> bool:
        """Whether what is written now stands in the loop of a scan."""
        return bool(self._hoisted)

    def hoist(self, statement: str, outermost: bool = False) -> None:
        """Write a statement before the innermost, or the outermost, loop around it."""
        if self._hoisted:
            self._hoisted[0 if outermost else -1].append(statement)
        else:
            self.emit(statement)

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
        lines, sites = len(self._lines), len(self.sites)
        facts = {variable: replace(known) for variable, known in self._facts.items()}
        indent, hoisted = self._indent, len(self._hoisted)
        destinations, undo = dict(self.destinations), len(self._undo)
        try:
            yield
        except exception:
            del self._lines[lines:], self.sites[sites:], self._hoisted[hoisted:]
            self._facts, self._indent = facts, indent
            self.destinations = destinations
            while len(self._undo) > undo:
                self._undo.pop()()
            raise

    def when_taken_back(self, undo: Callable[[], None]) -> None:
        """Have `undo` called if `all_or_nothing` takes back what is written now."""
        self._undo.append(undo)

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
        self.bind(variable, name)
        return name

    def bind(self, variable: Variable, name: str) -> None:
        """Let `variable` be called `name`, which is in use already."""
        self.facts(variable).name = name

    @contextmanager
    def inner_scope(self) -> Iterator[None]:
        """Write an inner graph: its inputs are nominal variables, which many graphs share."""
        facts, destinations = self._facts, self.destinations
        self._facts, self.destinations = {}, {}
        try:
            yield
        finally:
            self._facts, self.destinations = facts, destinations

    def name(self, variable: Variable) -> str:
        """Give the name, or for a constant the expression, of `variable`."""
        if isinstance(variable, Constant):
            if variable not in self._constants:
                self._constants[variable] = self._constant(variable)
            return self._constants[variable]
        facts = self._facts[variable]
        if facts.name is None:
            if facts.known is not None:
                return self._known_text(facts.known, variable.type.dtype)
            assert facts.elements is not None
            assert facts.shape is not None
            return self._array_of(facts.elements, facts.shape, variable)
        return facts.name

    # -- what is known of a variable -----------------------------------------

    def facts(self, variable: Variable) -> Facts:
        """Give what is known of `variable`, to be read or added to."""
        facts = self._facts.get(variable)
        if facts is None:
            facts = self._facts[variable] = Facts()
        return facts

    def facts_of_value(self, variable: Variable) -> Facts:
        """Give what is known of `variable`, a constant included, for another name of it."""
        if not isinstance(variable, Constant):
            return self.facts(variable)
        is_array = getattr(variable.type, "ndim", 0) > 0
        entries = None
        if getattr(variable.type, "ndim", 0) == 1 and np.asarray(variable.data).dtype.kind in "iu":
            entries = tuple(self.plan.constant(int(n)) for n in variable.data)
        return Facts(
            entries=entries,
            name=self.name(variable),
            known=self.known(variable),
            shape=self.shape(variable) if is_array else None,
            is_fixed=True,
        )

    def share(self, variable: Variable, facts: Facts) -> None:
        """Let `variable` be the same value as one of which `facts` are known."""
        self._facts[variable] = replace(facts)

    def known(self, variable: Variable) -> Known | None:
        """Give the value of a 0-d integer or bool, where it is known."""
        if isinstance(variable, Constant):
            data = np.asarray(variable.data)
            if data.ndim == 0 and data.dtype.kind in "iub" and abs(int(data)) < 2**62:
                return self.plan.constant(int(data))
            return None
        facts = self._facts.get(variable)
        return facts.known if facts is not None else None

    def shape(self, variable: Variable) -> Shape:
        """Give the lengths of an array, as far as they are known."""
        if isinstance(variable, Constant):
            return tuple(self.plan.constant(n) for n in np.shape(variable.data))
        facts = self._facts.get(variable)
        shape = facts.shape if facts is not None and facts.shape is not None else None
        # Some types have lengths that are 0-d arrays, those of convolutions for example.
        static = [None if n is None else self.plan.constant(int(n)) for n in variable.type.shape]
        if shape is None:
            return tuple(static)
        return tuple(s if k is None else k for k, s in zip(shape, static))

    def is_known_shape(self, variable: Variable) -> bool:
        """Say whether all lengths of an array are known."""
        return all(length is not None for length in self.shape(variable))

    def size(self, variable: Variable) -> Known | None:
        """Give how many elements an array has, where that is known."""
        total = self.plan.constant(1)
        for length in self.shape(variable):
            if length is None:
                return None
            try:
                total = self.plan.apply("{} * {}", total, length)
            except NotKnown:
                return None
        return total

    def length(self, variable: Variable, axis: int) -> str:
        """Give an expression for the length of an axis."""
        known = self.shape(variable)[axis]
        if known is not None:
            return self.parameter(known)
        return f"{self.name(variable)}.shape[{axis}]"

    def parameter(self, known: Known, hint: str = "n") -> str:
        """Give an expression of type int64 for a value that is known before the code runs."""
        if known.is_constant:
            value = int(known.value)
            return str(value) if value >= 0 else f"({value})"
        return self._parameter(known, hint)

    def hidden(self, value: int) -> str:
        """Give an expression for a number that the compiler is not to know.

        LLVM makes no vector instructions for so few elements as it knows of, if it has to
        check first whether arrays overlap.
        """
        return self._parameter(self.plan.constant(value), "n")

    def _parameter(self, known: Known, hint: str) -> str:
        place = self.plan.parameter(known)
        if place not in self._parameters:
            self._parameters[place] = self.fresh(hint)
        return self._parameters[place]

    def _known_text(self, known: Known, dtype: str) -> str:
        if known.is_constant:
            return self.literal(np.dtype(dtype).type(known.value))
        text = self.parameter(known)
        if dtype == "int64":
            return text
        return f"({text} != 0)" if dtype == "bool" else f"np.{dtype}({text})"

    def _array_of(self, elements: tuple[str, ...], shape: Shape, variable: Variable) -> str:
        """Write an array with `elements`; it is not kept, since this may be inside a branch."""
        name = self.fresh(variable.name or "array")
        lengths = [int(n.value) for n in shape if n is not None]
        statement = f"{name} = np.empty(({', '.join(map(str, lengths))},), "
        self.hoist(f"{statement}{numpy_dtype(variable.type.dtype)})", outermost=True)
        for place, element in zip(np.ndindex(*lengths), elements):
            self.emit(f"{name}[{', '.join(map(str, place))}] = {element}")
        return name

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
        if isinstance(data, (np.ndarray, np.random.Generator)):
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

    def source(self, name: str, arguments: list[str], results: list[str]) -> Source:
        """Give the source text of the function."""
        returned = f"({', '.join(results)},)" if results else "None"
        source = Source()
        source.add(f"def {name}({', '.join(arguments)}):")
        for place, parameter in self._parameters.items():
            source.add(f"    {parameter} = {PLAN}[{place}]")
        for line in self._lines:
            if isinstance(line, Hoisted):
                for statement in line:
                    source.add("    " * line.indent + statement)
            else:
                source.add(line.text, line.origin)
        source.add(f"    return {returned}")
        return source
