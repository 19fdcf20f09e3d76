"""The rewrites that are registered with Aesara, as part of a key.

Libraries register rewrites of their own, for all modes.  Those of Aesara are known by
their names; with any other, rewritten graphs are not kept.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from types import FunctionType
from typing import Any, NamedTuple

import aesara.ifelse  # noqa: F401 (registers rewrites, and both back ends import it)
from aesara.compile.mode import optdb
from aesara.graph.rewriting.basic import FromFunctionNodeRewriter, PatternNodeRewriter

from fixed_modes.cache.contents import Contents, are_same
from fixed_modes.cache.key import Key, Undescribable

_PACKAGES = ("aesara", "fixed_modes")


class _Known(NamedTuple):
    """What was registered the last time.

    Attributes
    ----------
    contents
        Of the dictionaries that say so; None if they have not been looked at.
    members
        As `_members` lists them.
    digest
        Their hash.
    """

    contents: Contents | None
    members: list[Any]
    digest: str


_last = _Known(None, [], "")


def registry_digest() -> str:
    """Hash what is registered; quick where nothing has changed since the last time.

    Raises
    ------
    Undescribable
        If there is a rewrite that is not Aesara's own.
    """
    global _last
    if _last.contents is not None and _last.contents.are_as_they_were():
        return _last.digest
    members: list[Any] = []
    places: list[Collection[Any]] = []
    _members(optdb, members, places, set())
    digest = _last.digest
    if len(_last.members) != len(members) or not are_same(_last.members, members):
        key = Key()
        numbers: dict[int, int] = {}
        texts = []
        for member in members:
            if isinstance(member, (str, int, float, bool, type(None))):
                texts.append(repr(member))
            elif id(member) in numbers:
                texts.append(repr(("again", numbers[id(member)])))
            else:
                numbers[id(member)] = len(numbers)
                texts.append(repr(_described(member)))
        key.write("registry", *texts)
        digest = key.hexdigest()
    _last = _Known(Contents(places), members, digest)
    return digest


def _members(
    database: Any, found: list[Any], places: list[Collection[Any]], seen: set[int]
) -> None:
    """List tags and what has them, in the order of registration, and where that is noted."""
    seen.add(id(database))
    places += (vars(database).values(), database.__db__.keys(), database.__db__.values())
    for tag, rewriters in list(database.__db__.items()):
        # What an `OrderedSet` holds; its order is that of this dictionary.
        places.append(rewriters._OrderedSet__map.keys())
        if not rewriters:
            # Left behind where somebody asked for a tag.
            continue
        found.append(tag)
        for rewriter in rewriters:
            found.append(rewriter)
            if id(rewriter) in seen:
                continue
            seen.add(id(rewriter))
            places.append(vars(rewriter).values())
            for inner in (rewriter, *vars(rewriter).values()):
                if hasattr(inner, "__db__") and (inner is rewriter or id(inner) not in seen):
                    _members(inner, found, places, seen)
    for name in ("__position__", "__final__", "__cleanup__"):
        values = getattr(database, name, {})
        places += (values.keys(), values.values())
        for tag, value in values.items():
            found += (tag, value)


def _described(member: Any) -> tuple[Any, ...]:
    if isinstance(member, type):
        # The rewrites of neural networks name a class where others have a rewriter.
        _check_home(member)
        return "class", member.__module__, member.__qualname__
    _check_home(type(member))
    found = ("rewriter", type(member).__qualname__, str(member.name))
    if isinstance(member, FromFunctionNodeRewriter):
        _check_home(member.fn)
        return (*found, "function", member.fn.__module__, member.fn.__qualname__)
    if isinstance(member, PatternNodeRewriter):
        patterns = member.in_pattern, member.out_pattern, member.skip_identities_fn
        return (*found, "patterns", *map(_text_of, patterns))
    if hasattr(member, "node_rewriter") and hasattr(member.node_rewriter, "name"):
        return (*found, _described(member.node_rewriter))
    if isinstance(getattr(member, "rewrites", None), list):
        return (*found, *map(_described, member.rewrites))
    return found


def _check_home(code: Any) -> None:
    if code.__module__.partition(".")[0] not in _PACKAGES:
        raise Undescribable(f"the rewrite {code.__module__}.{code.__qualname__}")


def _text_of(pattern: Any) -> str:
    """Give a pattern as text: nested tuples of ops, variables and numbers."""
    # Aesara makes something of its own of the tuples that it is given.
    if isinstance(pattern, Sequence) and not isinstance(pattern, str):
        return f"({', '.join(map(_text_of, pattern))})"
    if hasattr(pattern, "constraint"):
        return f"{pattern.token} if {_text_of(pattern.constraint)}"
    if isinstance(pattern, FunctionType):
        _check_home(pattern)
        return f"{pattern.__module__}.{pattern.__qualname__}"
    # Of variables and constants the text is complete, and so it is of the ops in patterns.
    return f"{type(pattern).__qualname__} {pattern}"
