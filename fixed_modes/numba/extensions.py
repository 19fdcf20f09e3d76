"""What other packages have taught Numba, as part of a key.

A package may say how Numba compiles a function of NumPy, or a method of an array
(``numba.extending.overload``, for one).  Code that calls it names the function alone,
and is other code when the package changes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import lru_cache
from types import FunctionType
from typing import Any

from numba.core import entrypoints, imputils
from numba.core.typing import templates

from fixed_modes.cache.key import KNOWN_PACKAGES, Key, Undescribable, digest_of_sources

# What Numba makes of templates are classes of the module `abc`.
_OF_NUMBA = KNOWN_PACKAGES | {"abc"}
_known: tuple[tuple[int, ...], list[Any]] = (), []


def add_extensions(key: Key) -> None:
    """Add what compiles calls of known functions, and is not from a known package.

    Raises
    ------
    Undescribable
        If it can't be described exactly.
    """
    # Numba does so before it compiles or loads anything.
    entrypoints.init_all()
    for extension in _foreign():
        key.write("extension of Numba")
        try:
            _add_code(key, extension)
        except (Undescribable, ValueError):
            package = extension.__module__.partition(".")[0]
            # A script or a file alone may refer to any other.
            found = sys.modules.get(package)
            if not (hasattr(found, "__path__") and getattr(found, "__file__", None)):
                raise Undescribable(
                    f"what {extension.__module__}.{extension.__qualname__} has Numba compile"
                ) from None
            key.write("package", package, _sources(package))


_sources = lru_cache(maxsize=None)(digest_of_sources)


def _add_code(key: Key, extension: Any) -> None:
    if not isinstance(extension, FunctionType):
        raise Undescribable("a class")
    # In a key of its own: half a description is none.
    own = key.sibling()
    own.add_function(extension)
    key.write("code", own.hexdigest())


def _foreign() -> list[Any]:
    """List the functions and classes, looked up again when there are more than before."""
    global _known
    typing, lowering = templates.builtin_registry, imputils.builtin_registry
    parts = (typing.functions, typing.attributes, lowering.functions, lowering.getattrs)
    counts = tuple(map(len, (*parts, lowering.casts)))
    if _known[0] != counts:
        _known = counts, list(_unknown(*parts, lowering.casts))
    return _known[1]


def _unknown(functions: Any, attributes: Any, *lowerings: Any) -> Iterator[Any]:
    for template in (*functions, *attributes):
        extension = _maker_of(template)
        is_method = hasattr(template, "_attr")
        # Calls of a function that is not known by its name have no key anyway.
        if not _is_known(extension) and (is_method or _is_known(template.key)):
            yield extension
    for lowering in lowerings:
        for implementation, *_ in lowering:
            extension = getattr(implementation, "__wrapped__", implementation)
            if not _is_known(extension):
                yield extension


def _maker_of(template: Any) -> Any:
    """Give the function that decides what is compiled; without one the template itself."""
    for name in ("_overload_func", "_definition_func"):
        function = getattr(template, name, None)
        if isinstance(function, FunctionType):
            return function
    return template


def _is_known(value: Any) -> bool:
    module = getattr(value, "__module__", None)
    # Built-in functions and operators have none, or none of a package.
    return not isinstance(module, str) or module.partition(".")[0] in _OF_NUMBA
