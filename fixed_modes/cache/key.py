"""Keys: a hash of an exact description of Python values.

Two values with one key mean the same to a compiler, in any process.  A value that
can't be described so (an object of a class that nothing is known about, a
function that may change with a file of the user) has no key: `Undescribable`.
"""

from __future__ import annotations

import dis
import hashlib
import importlib
import marshal
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

#: Packages whose versions are part of every key.  What one of them holds under a
#: name is described by that name.
KNOWN_PACKAGES = frozenset(
    [
        *("aesara", "fixed_modes", "llvmlite", "numba", "numpy", "scipy"),
        *("_operator", "builtins", "cmath", "math", "operator"),
    ]
)

# What `marshal` writes alike for equal values, and never alike for two of different types.
_SIMPLE = frozenset([type(None), type(Ellipsis), bool, int, float, complex, str, bytes])
# The newest format that does not depend on which values are the same object.
_FORMAT = 2
# Of longer arrays there is a hash in what is hashed, so that none is copied often.
_LONG = 4096


class Undescribable(Exception):
    """A value without an exact description; the message says which."""


class Key:
    """Collects descriptions of values and hashes them.

    Parameters
    ----------
    describe_more
        Describes, through the key's methods, what a back end knows of; says False
        for anything else.
    """

    def __init__(self, describe_more: Callable[[Key, Any], bool] | None = None) -> None:
        # Values of simple types as they are; all else begins with a tuple.
        self._items: list[Any] = []
        self._describe_more = describe_more
        self._inside: list[Any] = []

    def hexdigest(self) -> str:
        """Give the hash of what was added so far."""
        try:
            return hashlib.sha256(marshal.dumps(self._items, _FORMAT)).hexdigest()
        except ValueError as exc:
            raise Undescribable("text of a class of its own") from exc

    def sibling(self) -> Key:
        """Make a key that describes values as this one does; nothing is in it yet."""
        key = Key(self._describe_more)
        key._inside = list(self._inside)
        return key

    def add(self, value: Any) -> None:
        """Add a value.

        Raises
        ------
        Undescribable
            If the value, or one inside it, has no exact description.
        """
        kind = type(value)
        if kind in _SIMPLE:
            self._items.append(value)
        elif (kind is tuple or kind is list) and _SIMPLE.issuperset(map(type, value)):
            self._items.append((kind.__name__, len(value), *value))
        elif isinstance(value, (list, tuple, dict, set, frozenset)):
            with self._enter(value) as is_new:
                if is_new:
                    self._add_container(value)
        elif isinstance(value, (np.ndarray, np.generic, np.dtype)):
            self._add_numpy(value)
        elif kind is range:
            self.write("range", repr(value))
        elif kind is slice:
            self.write("slice")
            self._add_container((value.start, value.stop, value.step))
        elif any(outer is value for outer in self._inside):
            # A function that calls itself, say; this only notes how far out it is.
            with self._enter(value):
                pass
        elif self._describe_more is None or not self._describe_more(self, value):
            self.add_by_name(value)

    def add_named(self, kind: str, values: Iterable[tuple[str, Any]]) -> None:
        """Add values with their names, in the order that they come in."""
        items = self._items
        for name, value in values:
            items.append((kind, name))
            if type(value) in _SIMPLE:
                items.append(value)
            else:
                self.add(value)

    def write(self, kind: str, *parts: bytes | str | int) -> None:
        """Add text, bytes or numbers, so that nothing else adds the same."""
        self._items.append((kind, *parts))

    def add_function(self, function: FunctionType) -> None:
        """Add what a function does: its code and all that the code refers to.

        Where it stands and what it and its local variables are called makes no
        difference; what its arguments are called does, since calls may name them.
        """
        with self._enter(function) as is_new:
            if not is_new:
                return
            self.write("function")
            self.add_code(function.__code__, with_arguments=True)
            self.add(function.__defaults__)
            self.add(function.__kwdefaults__)
            for cell in function.__closure__ or ():
                self.add(cell.cell_contents)
            for name in sorted(_globals_of(function.__code__)):
                if name in function.__globals__:
                    self.write("global", name)
                    self.add(function.__globals__[name])

    def add_code(self, code: CodeType, with_arguments: bool = False) -> None:
        """Add compiled Python code, but none of what it refers to by name.

        Parameters
        ----------
        code
            The code.
        with_arguments
            Whether the names of the arguments of functions count.
        """
        self.write("code", code.co_code, getattr(code, "co_exceptiontable", b""))
        self.add((code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags))
        # The code has the names of globals and attributes; variables are numbers in it.
        self.add(code.co_names)
        self.add(tuple(map(len, (code.co_varnames, code.co_freevars, code.co_cellvars))))
        if with_arguments:
            self.add(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                self.add_code(constant, with_arguments)
            else:
                self.add(constant)

    @contextmanager
    def _enter(self, value: Any) -> Iterator[bool]:
        """Say whether `value` is not being added already, so that cycles end."""
        for depth, outer in enumerate(self._inside):
            if outer is value:
                self.write("one of the values around", str(depth))
                yield False
                return
        self._inside.append(value)
        try:
            yield True
        finally:
            self._inside.pop()

    def _add_container(self, value: Any) -> None:
        kind = type(value)
        if kind not in (list, tuple, dict, set, frozenset):
            raise Undescribable(f"a value of type {kind.__module__}.{kind.__qualname__}")
        self.write(kind.__name__, str(len(value)))
        if isinstance(value, dict):
            # The order of insertion means something to who iterates over it.
            for name, item in value.items():
                self.add(name)
                self.add(item)
        elif isinstance(value, (set, frozenset)):
            for digest in sorted(self._digest_of(item) for item in value):
                self.write("item", digest)
        else:
            for item in value:
                self.add(item)

    def _digest_of(self, value: Any) -> str:
        key = self.sibling()
        key.add(value)
        return key.hexdigest()

    def _add_numpy(self, value: Any) -> None:
        if isinstance(value, np.dtype):
            self._add_dtype(value)
            return
        if type(value) is np.ndarray:
            flags = value.flags
            self.write("array")
            self.add((value.shape, flags.c_contiguous, flags.f_contiguous))
            self.add((flags.writeable, flags.aligned))
        elif isinstance(value, np.ndarray):
            raise Undescribable(f"an array of type {type(value).__name__}")
        self._add_dtype(value.dtype)
        data = value.tobytes()
        is_long = len(data) > _LONG
        self.write(
            "hash" if is_long else "values", hashlib.sha256(data).digest() if is_long else data
        )

    def _add_dtype(self, dtype: np.dtype[Any]) -> None:
        if dtype.hasobject:
            raise Undescribable(f"an array of Python objects ({dtype})")
        self.write("dtype", dtype.str, str(dtype.itemsize), str(dtype.alignment))
        self.add(dtype.names)
        if dtype.fields is not None:
            for field, offset, *_ in (dtype.fields[name] for name in dtype.names or ()):
                self._add_dtype(field)
                self.add(offset)
        elif dtype.subdtype is not None:
            self._add_dtype(dtype.subdtype[0])
            self.add(dtype.subdtype[1])

    def add_by_name(self, value: Any) -> None:
        """Add what a known package holds under a name.

        Raises
        ------
        Undescribable
            If `value` is nothing of the kind; then nothing has been added.
        """
        if isinstance(value, ModuleType):
            module, name = value.__name__, ""
        else:
            module, name = _home(value)
        package = module.partition(".")[0]
        is_exception = isinstance(value, type) and issubclass(value, BaseException)
        # A class of exceptions is all that compiled code knows of it: its name.
        known = package in KNOWN_PACKAGES or (is_exception and module != "__main__")
        if not known or _found(module, name) is not value:
            raise Undescribable(f"{_shown(value)}, which nothing is known about")
        self.write("name", module, name)


def _globals_of(code: CodeType) -> set[str]:
    """Name the globals that code reads, functions inside it included."""
    names = {
        step.argval for step in dis.get_instructions(code) if step.opname.startswith("LOAD_GLOBAL")
    }
    return names.union(*(_globals_of(c) for c in code.co_consts if isinstance(c, CodeType)))


def _home(value: Any) -> tuple[str, str]:
    """Name the module that a function or class is at home in, and itself."""
    if isinstance(value, np.ufunc):
        return "numpy", value.__name__
    if isinstance(value, (type, FunctionType, BuiltinFunctionType)) or callable(value):
        module = getattr(value, "__module__", None)
        name = getattr(value, "__qualname__", None)
        if isinstance(module, str) and isinstance(name, str):
            return module, name
    return "", ""


def _found(module: str, name: str) -> Any:
    """Look up what has a name; None where nothing has."""
    found: Any = sys.modules.get(module)
    for part in name.split(".") if name else ():
        found = getattr(found, part, None)
    return found


def _shown(value: Any) -> str:
    kind = type(value)
    name = getattr(value, "__qualname__", None) or getattr(value, "__name__", "")
    return f"{kind.__module__}.{kind.__qualname__} {name}".strip()


@lru_cache(maxsize=1)
def own_sources() -> str:
    """Hash this package, which does not change while a process runs."""
    return digest_of_sources("fixed_modes")


def digest_of_sources(package: str) -> str:
    """Hash the source files of a package, so that an edited one is another version.

    Parameters
    ----------
    package
        The name of a package that can be imported; files of its subpackages count.
    """
    found = hashlib.sha256()
    origin = importlib.import_module(package).__file__
    if origin is None:
        return ""
    folder = os.path.dirname(origin)
    for path in sorted(_source_files(folder)):
        try:
            with open(path, "rb", buffering=0) as file:
                content = file.read()
        except OSError:
            continue
        found.update(f"{os.path.relpath(path, folder)} {len(content)} ".encode())
        found.update(content)
    return found.hexdigest()


def _source_files(folder: str) -> Iterator[str]:
    """Yield the files; `Path.rglob` takes several times as long, at every start."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from _source_files(entry.path)
            elif entry.name.endswith(".py"):
                yield entry.path
