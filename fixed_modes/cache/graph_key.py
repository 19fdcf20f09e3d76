"""Keys of graphs: equal for graphs that Aesara rewrites alike, in any process.

A graph is described by its wiring, and each op, type and constant in it by all of its
attributes but those that follow from the others.  Names count too, since errors and
printed graphs show them; where a user made a variable does not (`GraphKey.variables`
says which variable is which, so that this can be put back).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any

from aesara.compile.builders import OpFromGraph
from aesara.compile.mode import Mode
from aesara.graph.basic import Apply, Constant, NominalVariable, Variable
from aesara.graph.fg import FunctionGraph
from aesara.graph.rewriting.db import RewriteDatabaseQuery
from aesara.link.c.op import ExternalCOp
from aesara.misc.frozendict import frozendict
from aesara.scalar.basic import Composite, ScalarOp
from aesara.scan.op import Scan
from aesara.tensor.elemwise import CAReduce, Elemwise

from fixed_modes.cache.key import Key, Undescribable

#: Attributes that follow from the others, or from the class.
DERIVED: dict[type, tuple[str, ...]] = {
    ExternalCOp: ("func_files", "func_codes", "func_name", "code_sections"),
    Elemwise: ("ufunc", "nfunc", "__doc__", "__epydoc_asRoutine", "__module__", "__oplist_tags"),
    CAReduce: ("ufunc", "__doc__", "__epydoc_asRoutine", "__module__", "__oplist_tags"),
    ScalarOp: ("prepare_node_called",),
    Composite: (
        *("inputs", "outputs", "inputs_type", "outputs_type", "_fgraph", "_c_code", "_name"),
        *("nodenames", "inner_float16", "_py_perform_fn"),
    ),
    Scan: ("fgraph", "_fn", "_cmodule_key", "_hash_inner_graph"),
    OpFromGraph: (
        *("fgraph", "_fn", "kwargs"),
        *(f"_{kind}_op{suffix}" for kind in "lr" for suffix in ("", "_is_cached", "_stypes_l")),
    ),
}
#: What Aesara notes on nodes on the way.
DERIVED_NODE_TAGS = frozenset(
    ["imported_by", "removed_by", "connection_pattern", "ufunc", "sig", "fake_node"]
)
#: What a variable's tag always holds, or what says nothing while there are no test values.
DERIVED_TAGS = frozenset(["attr", "attr_filter", "trace", "test_value"])

_PACKAGES = ("aesara", "fixed_modes")
# Of what a class is, the first that holds counts.
_ROLES: tuple[type, ...] = (
    *(NominalVariable, Constant, Variable, Apply, FunctionGraph),
    *(Mode, RewriteDatabaseQuery, Scan, OpFromGraph, Composite),
)
_OUTSIDE = frozenset([NominalVariable, Constant, Variable, Apply, FunctionGraph])


class GraphKey(Key):
    """A key that can describe graphs of Aesara's own ops.

    Attributes
    ----------
    variables
        Every variable of the graphs that were added, inner graphs included, in an
        order that equal graphs have in common.
    """

    def __init__(self) -> None:
        super().__init__(self._describe)
        self.variables: list[Variable] = []
        # By identity; the value is held, so that its identity stays its own.
        self._digests: dict[int, tuple[Any, str, list[Variable]]] = {}
        self._classes: dict[type, tuple[str, str]] = {}

    def add_graph(self, inputs: Sequence[Variable], outputs: Sequence[Variable]) -> None:
        """Add what is computed from `inputs`.

        Raises
        ------
        Undescribable
            If there is anything in it that is not Aesara's own.
        """
        numbers: dict[Variable, int] = {}

        def number(kind: str, *variables: Variable) -> None:
            self.write(kind, len(variables))
            for variable in variables:
                numbers[variable] = len(numbers)
                self.variables.append(variable)
                self._add_variable(variable)

        number("inputs", *inputs)
        for node in nodes_in_order(outputs, numbers):
            for variable in node.inputs:
                if variable not in numbers:
                    self._check_constant(variable)
                    number("constant", variable)
            self.write("node", self.digest_of(node.op), *[numbers[i] for i in node.inputs])
            self._add_tags(vars(node.tag), DERIVED_NODE_TAGS)
            number("outputs", *node.outputs)
        for variable in outputs:
            if variable not in numbers:
                self._check_constant(variable)
                number("constant", variable)
        self.add([numbers[variable] for variable in outputs])

    def add_function_graph(self, fgraph: FunctionGraph) -> None:
        """Add a graph with what is noted on it: updates, and inputs that must be kept."""
        self.add_graph(fgraph.inputs, fgraph.outputs)
        self.add(sorted((fgraph.update_mapping or {}).items()))
        self.add(protected_inputs(fgraph))

    def digest_of(self, value: Any) -> str:
        """Describe a value once, however often it occurs; gives the hash."""
        known = self._digests.get(id(value))
        if known is None:
            inner = GraphKey()
            inner._digests, inner._classes = self._digests, self._classes
            inner._inside = [*self._inside, value]
            inner._add_object(value)
            known = self._digests[id(value)] = value, inner.hexdigest(), inner.variables
        # They count as often as the value occurs.
        self.variables += known[2]
        return known[1]

    @staticmethod
    def _check_constant(variable: Variable) -> None:
        if _role(type(variable)) is not Constant:
            raise Undescribable(f"{variable}, which is neither an input nor computed")

    def _describe(self, key: Key, value: Any) -> bool:
        if _role(type(value)) in _OUTSIDE:
            raise Undescribable(f"{value}, outside of a graph")
        if isinstance(value, frozendict):
            key.write("frozendict")
            key.add(sorted(value.items()))
            return True
        is_own = type(value).__module__.partition(".")[0] in _PACKAGES
        if is_own and not isinstance(value, type):
            key.write("object", self.digest_of(value))
            return True
        return False

    def _add_object(self, value: Any) -> None:
        kind = type(value)
        self._add_class(kind)
        role = _role(kind)
        if role is Mode:
            # Of the linker of an inner graph's mode nothing is used.
            self._add_class(type(value.linker))
            self.add(value._optimizer)
        elif role is RewriteDatabaseQuery:
            self._add_query(value)
        else:
            if role in (Scan, OpFromGraph):
                self.add_function_graph(value.fgraph)
            elif role is Composite:
                self.add_graph(value.inputs, value.outputs)
            if role is OpFromGraph:
                self.add(sorted(set(value.kwargs) - {"mode"}))
            attributes = vars(value)
            told = sorted(attributes.keys() - derived_attributes(kind))
            self.add_named("attribute", [(name, attributes[name]) for name in told])

    def _add_query(self, query: RewriteDatabaseQuery) -> None:
        if query.extra_rewrites:
            raise Undescribable("rewrites that are registered with a mode")
        for names in (query.include, query.exclude, query.require):
            self.add(sorted(map(str, names or ())))
        self.add(sorted((query.subquery or {}).items()))
        self.add(float(query.position_cutoff))

    def _add_class(self, kind: type) -> None:
        name = self._classes.get(kind)
        if name is not None:
            self.write("name", *name)
            return
        name = kind.__module__, kind.__qualname__
        if name[0].partition(".")[0] not in _PACKAGES:
            raise Undescribable(f"{'.'.join(name)}, which is not Aesara's own")
        self.add_by_name(kind)
        self._classes[kind] = name

    def _add_variable(self, variable: Variable) -> None:
        role = _role(type(variable))
        if role is NominalVariable:
            # There is one object for all that are equal; its name says nothing.
            self.write("nominal", self.digest_of(variable.type))
            self.add(variable.id)
            return
        self._add_class(type(variable))
        self.write("variable", self.digest_of(variable.type), variable.name or "")
        if role is Constant:
            self.add(variable.data)
        self._add_tags(vars(variable.tag), DERIVED_TAGS)

    def _add_tags(self, tags: dict[str, Any], derived: frozenset[str]) -> None:
        if derived.issuperset(tags):
            return
        for name, value in sorted(tags.items()):
            if name not in derived:
                self.write("tag", name)
                self.add(value)


def nodes_in_order(outputs: Iterable[Variable], known: Iterable[Variable]) -> Iterator[Apply]:
    """Yield the nodes that `outputs` need, each after those it needs itself.

    The order follows from the wiring alone.  What is `known` needs nothing.
    """
    done: set[Any] = {variable.owner for variable in known}
    done.add(None)
    for output in outputs:
        stack = [output.owner]
        while stack:
            node = stack[-1]
            missing = [] if node in done else [i.owner for i in node.inputs if i.owner not in done]
            if missing:
                stack.extend(reversed(missing))
                continue
            stack.pop()
            if node not in done:
                done.add(node)
                yield node


def protected_inputs(fgraph: FunctionGraph) -> list[int] | None:
    """Say which inputs a graph's `Supervisor` protects, by position; None without one."""
    protected = getattr(fgraph, "_supervisor_protected", None)
    if protected is None:
        return None
    return [number for number, variable in enumerate(fgraph.inputs) if variable in protected]


def _role(kind: Any) -> type | None:
    """Say which of the classes that are described in a way of their own a class is of.

    `isinstance` asks all subclasses of the metaclass `ABCMeta`, which takes longer, the
    first time, than describing a small graph.
    """
    return _known_role(kind)


@lru_cache(maxsize=1024)
def _known_role(kind: Any) -> type | None:
    return next((role for role in _ROLES if role in kind.__mro__), None)


def derived_attributes(kind: Any) -> frozenset[str]:
    """Name the attributes of instances of a class that follow from the others."""
    return _derived(kind)


@lru_cache(maxsize=1024)
def _derived(kind: Any) -> frozenset[str]:
    found = (DERIVED.get(base, ()) for base in kind.__mro__)
    return frozenset(name for names in found for name in names)
