"""Conversions that others have registered, for what Aesara, JAX and this package know.

What is traced depends on them, and nothing in a graph names them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain
from types import FunctionType
from typing import Any

from jax.interpreters import batching

from fixed_modes.cache.contents import Contents, are_same
from fixed_modes.cache.key import Undescribable
from fixed_modes.jax import lowerings  # noqa: F401  (fills the dispatch tables)
from fixed_modes.jax.dispatch import jax_lower
from fixed_modes.jax.late import LATE
from fixed_modes.jax.scalar import scalar_lower

_OWN = ("aesara", "fixed_modes")
# With what JAX's decorators are made of.
_OF_JAX = ("jax", "jaxlib", "fixed_modes", "contextlib", "functools")
# A function that makes a rule of a function that makes a rule.
_DEPTH = 4
_LOADED_LATE = frozenset(name for names in LATE.values() for name in names)
#: What is registered when all of our own is.
_OWN_TABLES: list[tuple[Any, dict[type, Any]]] = [
    (table, dict(table.registry)) for table in (jax_lower, scalar_lower)
]


class _Checked:
    """Tables with nothing to be said against what they held."""

    def __init__(self) -> None:
        self._tables: list[Any] = []
        self._contents = Contents([])

    def includes(self, tables: Sequence[Mapping[Any, Any]]) -> bool:
        """Say whether these are the tables, and hold what they did."""
        is_known = len(self._tables) == len(tables) and are_same(self._tables, tables)
        return is_known and self._contents.are_as_they_were()

    def note(self, tables: Sequence[Mapping[Any, Any]]) -> None:
        """Take these instead."""
        self._tables = list(tables)
        self._contents = Contents(view for t in tables for view in (t.keys(), t.values()))


_checked_conversions, _checked_rules = _Checked(), _Checked()


def check_conversions() -> None:
    """Look for conversions of others; quick where nothing was registered since the last time.

    Raises
    ------
    Undescribable
        If there are any, for Aesara's ops, or any rules for JAX's primitives.
    """
    own = [table.registry for table, _ in _OWN_TABLES]
    aesaras = getattr(sys.modules.get("aesara.link.jax.dispatch"), "jax_funcify", None)
    others = [] if aesaras is None else [aesaras.registry]
    if not _checked_conversions.includes([*own, *others]):
        _check_tables(others)
        _checked_conversions.note([*own, *others])
    _check_rules()


def _check_tables(others: Sequence[Mapping[type, Any]]) -> None:
    """Look for conversions of others in the tables of this package and of Aesara's."""
    for table, own in _OWN_TABLES:
        for kind, function in table.registry.items():
            # Some of our own come when they are needed.
            if own.get(kind) is not function and _home(function) not in _LOADED_LATE:
                raise _foreign(kind, function)
    for kind, function in chain.from_iterable(table.items() for table in others):
        is_of_aesara = kind is object or kind.__module__.partition(".")[0] in _OWN
        # Graphs with ops of others are never described.
        if is_of_aesara and _home(function).partition(".")[0] not in _OWN:
            raise _foreign(kind, function)


def _home(function: Any) -> str:
    """Name the module that a function was made in."""
    # Not `__module__`: decorators write into that what they please.
    return function.__globals__.get("__name__", "") if isinstance(function, FunctionType) else ""


def _foreign(kind: type, function: Any) -> Undescribable:
    return Undescribable(f"{function}, which converts {kind.__qualname__}")


def _check_rules() -> None:
    """Look for rules of others for JAX's own primitives."""
    try:
        from jax._src.interpreters import mlir

        tables = [mlir._lowerings, mlir._platform_specific_lowerings["cpu"]]
    except (ImportError, AttributeError, KeyError) as exc:
        raise Undescribable("a JAX that keeps its rules elsewhere") from exc
    tables.append(batching.primitive_batchers)
    if _checked_rules.includes(tables):
        return
    foreign = {
        primitive
        for primitive, rule in chain.from_iterable(table.items() for table in tables)
        if not all(map(_is_of_jax, _functions(getattr(rule, "rule", rule), _DEPTH)))
    }
    # Those for primitives of their own are not used here.
    if foreign:
        _check_primitives(foreign)
    _checked_rules.note(tables)


def _is_of_jax(function: FunctionType) -> bool:
    return _home(function).partition(".")[0] in _OF_JAX


def _check_primitives(primitives: set[Any]) -> None:
    """Look for primitives that a module of JAX has under the kind of name it gives them."""
    identities = set(map(id, primitives))
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] in _OF_JAX:
            for attribute, value in list(vars(module).items()):
                if attribute.endswith("_p") and id(value) in identities:
                    raise Undescribable(f"a rule of others for {value}")


def _functions(rule: Any, depth: int) -> Iterator[FunctionType]:
    """Yield the functions that a rule is made of."""
    if depth == 0:
        return
    parts: list[Any] = []
    if isinstance(rule, partial):
        parts = [rule.func, *rule.args, *rule.keywords.values()]
    elif isinstance(rule, FunctionType):
        yield rule
        for cell in rule.__closure__ or ():
            try:
                parts.append(cell.cell_contents)
            except ValueError:  # not filled yet
                continue
    if hasattr(rule, "__wrapped__"):
        parts.append(rule.__wrapped__)
    for part in parts:
        if callable(part):
            yield from _functions(part, depth - 1)


# Now rather than in a first call; what is registered later is looked at then.
with suppress(Undescribable):
    check_conversions()
