"""Stores the machine code of a generated module, and loads it in the next process.

The key of a module is its text with all that the text refers to, the versions of
what compiles it and the processor; that of an entry has the types of the arguments
too.  Constant arrays are arguments, so that their values are no part of a key.

Numba's `Dispatcher` asks its cache for a compiled function before it compiles
one; here the cache is a `StoredCode`, which keeps Numba's own serialised form.
"""

from __future__ import annotations

import dis
import itertools
import logging
import os
import pickle
import platform
import re
import secrets
import sys
from collections.abc import Callable, Mapping
from functools import lru_cache
from types import CodeType
from typing import Any
from weakref import WeakValueDictionary

import aesara
import llvmlite
import llvmlite.binding as llvm
import numba
import numpy as np
import scipy
from aesara.configdefaults import config
from numba.core import config as numba_config
from numba.core import serialize, types
from numba.core.bytecode import FunctionIdentity
from numba.core.caching import _Cache
from numba.core.compiler import CompileResult
from numba.core.dispatcher import Dispatcher
from numba.core.lowering import Environment
from numba.core.runtime import rtsys
from numba.extending import _Intrinsic

from fixed_modes._version import __version__
from fixed_modes.cache.key import Key, Undescribable, own_sources
from fixed_modes.cache.outcome import Outcome
from fixed_modes.cache.store import Store, store_in
from fixed_modes.numba.extensions import add_extensions

_log = logging.getLogger("fixed_modes.cache")

#: The name under which generated functions are known to Numba: it has to be a module
#: that can be imported, since what it stores refers to it.
MODULE = __name__

# Settings of Numba that don't change the code of a function.
_HARMLESS = re.compile(
    "CACHE_DIR|CACHE_LOCATOR_CLASSES|COLOR_SCHEME|.*NUM_THREADS|DEVELOPER_MODE|SHOW_HELP"
    "|FULL_TRACEBACKS|HIGHLIGHT_DUMPS|DEBUG_CACHE|DUMP_.*|GDB_BINARY|THREADING_LAYER.*"
    "|.*CUDA.*|FUNCTION_CACHE_SIZE|CHROME_TRACE|TRACE|RUNNING_UNDER_PROFILER|_.*"
)
# Aesara's flags that its own conversions read.
_FLAGS = ("floatX", "cast_policy", "numba__vectorize_target")

# Numbers below this one are those that Numba counts by itself.
_FIRST_OWN_NUMBER = 2**48
# Where what has to be called before code is loaded stands in Numba's serialised form.
_PREPARATIONS = 7
_NUMBER_IN_NAME = re.compile(r"B\d+v(\d+)")


def module_key(code: CodeType, namespace: Mapping[str, Any], options: Mapping[str, Any]) -> str:
    """Give the key of a generated module.

    Aesara gives variables inside fused scalar ops other names in every process, and
    users give theirs as they like: that is why this is about the module's code and
    not about its text.

    Parameters
    ----------
    code
        The module, compiled by Python.
    namespace
        The globals that it refers to, before it has been run.
    options
        Those of `numba.njit`.

    Raises
    ------
    Undescribable
        If a global can't be described exactly.
    """
    key = Key(_describe)
    key.add(facts())
    key.add(settings())
    add_extensions(key)
    key.add_code(code)
    key.write("lines", _lines(code))
    key.add(dict(sorted(options.items())))
    for name, value in sorted(namespace.items()):
        if not name.startswith("__"):
            key.add(name)
            key.add(value)
    return key.hexdigest()


def _lines(code: CodeType) -> str:
    """Say which line which instruction stands in: Numba's messages name lines."""
    inside = (_lines(constant) for constant in code.co_consts if isinstance(constant, CodeType))
    return ";".join([repr(list(dis.findlinestarts(code))), *inside])


@lru_cache(maxsize=1)
def facts() -> dict[str, str]:
    """Say what compiles: versions, which don't change while a process runs."""
    return {
        "fixed_modes": f"{__version__} {own_sources()}",
        "aesara": aesara.__version__,
        "numba": numba.__version__,
        "llvmlite": llvmlite.__version__,
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "python": f"{sys.implementation.name} {sys.version}",
        "machine": f"{sys.platform} {platform.machine()} {sys.byteorder}",
    }


def settings() -> dict[str, str]:
    """Say which settings of Numba and flags of Aesara the machine code depends on."""
    values = vars(numba_config)
    found = {name: repr(values[name]) for name in _telling(tuple(values))}
    return {**found, **{name: str(getattr(config, name)) for name in _FLAGS}}


@lru_cache(maxsize=1)
def _telling(names: tuple[str, ...]) -> list[str]:
    """Give the names of the settings that count, sorted."""
    return [name for name in sorted(names) if name.isupper() and not _HARMLESS.fullmatch(name)]


def compiled_once(
    code: CodeType,
    namespace: Mapping[str, Any],
    options: Mapping[str, Any],
    make: Callable[[], Any],
) -> tuple[Any, Outcome]:
    """Give the compiled function of a module; equal modules of a process share it.

    It looks in the store before it compiles, and stores what it has compiled.

    Parameters
    ----------
    code, namespace, options
        As for `module_key`.
    make
        Runs the module and makes the function, with Numba's decorator.

    Returns
    -------
    The function, and what the cache does for it.
    """
    names_are_unique()
    if not config.fixed_modes__cache:
        return make(), Outcome("off")
    try:
        key = module_key(code, namespace, options)
    except Undescribable as exc:
        outcome = Outcome()
        outcome.refuse("refused", f"it refers to {exc}")
        return make(), outcome
    store = store_in(config.fixed_modes__cache_dir)
    function = _in_use.get((key, store))
    if function is None:
        function = make()
        function._cache = StoredCode(key, store)
        _in_use[key, store] = function
    return function, function._cache.outcome


_in_use: WeakValueDictionary[tuple[str, Store], Any] = WeakValueDictionary()


class StoredCode(_Cache):
    """The cache of one dispatcher.

    Parameters
    ----------
    key
        The key of the module.
    store
        Where entries are.

    Attributes
    ----------
    outcome
        What came of it.
    """

    def __init__(self, key: str, store: Store) -> None:
        self._key = key
        self._store = store
        self.outcome = Outcome(key=key)
        self._is_enabled = True

    @property
    def cache_path(self) -> str:
        """The directory of the entries."""
        return str(self._store.directory)

    def enable(self) -> None:
        self._is_enabled = True

    def disable(self) -> None:
        self._is_enabled = False

    def flush(self) -> None:
        """Do nothing: other functions have entries in the same place."""

    def load_overload(self, sig: Any, target_context: Any) -> CompileResult | None:
        """Load the code for argument types; None if it has to be compiled."""
        if not self._is_enabled:
            return None
        key = self._entry_key(sig, target_context)
        content = self._store.get(key) if key else None
        if key is None or content is None:
            return None
        try:
            result = _load(pickle.loads(content), target_context)
        except Exception as exc:
            # Whole, but of no use, which a version that is part of the key rules out.
            _log.debug("Stored code can't be loaded", exc_info=exc)
            self._store.remove(key)
            return None
        if result.signature.args != tuple(sig):
            return None
        self.outcome.state = "loaded"
        return result

    def save_overload(self, sig: Any, data: CompileResult) -> None:
        """Store what has been compiled, if it can be."""
        self.outcome.state = "compiled"
        key = self._entry_key(sig, data.target_context) if self._is_enabled else None
        if key is None:
            return
        reason = _why_not(data)
        if reason:
            self.outcome.refuse("compiled", reason)
            return
        try:
            content = serialize.dumps((_symbols_of(data), *_with_unique_names(data)))
        except Exception as exc:
            self.outcome.refuse("compiled", f"Numba can't serialise it ({exc})")
            return
        if not self._store.put(key, content, config.fixed_modes__cache_size):
            self.outcome.refuse("compiled", "the entry could not be written")

    def _entry_key(self, sig: Any, target_context: Any) -> str | None:
        key = Key(_describe)
        key.add(self._key)
        key.add(processor(target_context))
        try:
            key.add(tuple(sig))
        except Undescribable as exc:
            self.outcome.refuse("compiled", f"an argument's type is {exc}")
            return None
        return key.hexdigest()


def _symbols_of(compiled: CompileResult) -> list[str]:
    """List what compiled code needs from elsewhere in the process, by name."""
    module = compiled.library._final_module
    symbols = itertools.chain(*_symbols(module))
    return [s.name for s in symbols if s.is_declaration and not s.name.startswith("llvm.")]


def _with_unique_names(compiled: CompileResult) -> tuple[Any, ...]:
    """Reduce compiled code to what is stored.

    It may hold functions that Numba compiled before it was made to number them for all
    processes (`names_are_unique`).  They are stored under other names.
    """
    (name, kind, _), *parts = compiled._reduce()
    library = compiled.library
    numbers = {
        number
        for symbol in itertools.chain(*_symbols(library._final_module))
        for number in _NUMBER_IN_NAME.findall(symbol.name)
        if int(number) < _FIRST_OWN_NUMBER
    }
    if not numbers:
        return compiled._reduce()
    others = {number: str(next(FunctionIdentity._unique_ids)) for number in sorted(numbers)}

    def renamed(name: str) -> str:
        return _NUMBER_IN_NAME.sub(
            lambda match: match[0][: -len(match[1])] + others.get(match[1], match[1]), name
        )

    def copied(module: Any) -> Any:
        copy = llvm.parse_bitcode(module.as_bitcode())
        for symbol in itertools.chain(*_symbols(copy)):
            if not symbol.is_declaration and renamed(symbol.name) != symbol.name:
                symbol.name = renamed(symbol.name)
        return copy

    code = library.codegen._tm.emit_object(copied(library._final_module))
    shared = copied(library._get_module_for_linking()).as_bitcode()
    *parts, environments = parts
    copies = []
    for environment in environments:
        copy = Environment(environment.globals)
        copy.consts[:] = environment.consts
        copy.env_name = renamed(environment.env_name)
        copies.append(copy)
    return ((name, kind, (code, shared)), *parts, tuple(copies))


def _symbols(module: Any) -> tuple[Any, Any]:
    return module.functions, module.global_variables


def _load(stored: tuple[Any, ...], target_context: Any) -> CompileResult:
    """Load machine code.

    Numba's own cache registers all that Numba can compile first, which takes longer than
    the rest.  Machine code needs none of it, but for functions that are known to the linker
    from then on; a name that the linker does not know would end the process.

    Raises
    ------
    LookupError
        If there is no function of a name that the code refers to.
    """
    symbols, *parts = stored
    rtsys.initialize(target_context)
    for prepare in parts[_PREPARATIONS]:
        prepare()
    if not all(map(llvm.address_of_symbol, symbols)):
        target_context.refresh()
        missing = [name for name in symbols if not llvm.address_of_symbol(name)]
        if missing:
            raise LookupError(f"no function {missing[0]}")
    return CompileResult._rebuild(target_context, *parts)


def processor(target_context: Any) -> tuple[str, ...]:
    """Name the target, the processor and its features, as Numba hands them to LLVM."""
    return tuple(target_context.codegen().magic_tuple())


def _why_not(compiled: CompileResult) -> str:
    """Say why compiled code can't be stored; the empty string if it can."""
    if any(not lifted.can_cache for lifted in compiled.lifted):
        return "a part of it runs in Python"
    if compiled.library.has_dynamic_globals:
        return "it refers to an address in this process"
    return ""


def _describe(key: Key, value: Any) -> bool:
    """Describe what only Numba has: compiled functions and types."""
    if isinstance(value, Dispatcher):
        try:
            key.add_by_name(value)
        except Undescribable:
            key.write("compiled function")
            key.add(dict(sorted(value.targetoptions.items())))
            key.add(dict(sorted(value.locals.items())))
            key.add_function(value.py_func)
        return True
    if isinstance(value, _Intrinsic):
        # Those of packages whose sources or versions are part of the key.
        key.add_by_name(value)
        return True
    if isinstance(value, types.Type):
        _describe_type(key, value)
        return True
    return False


def _describe_type(key: Key, kind: types.Type) -> None:
    exact = (types.Number, types.Boolean, types.NoneType, types.UnicodeType)
    if isinstance(kind, types.BaseTuple):
        key.write("tuple type", type(kind).__name__)
        key.add(tuple(kind))
    elif isinstance(kind, types.Array):
        key.write("array type", type(kind).__name__)
        key.add((kind.dtype, kind.ndim, kind.layout, kind.mutable, kind.aligned))
    elif isinstance(kind, exact) or kind == types.npy_rng:
        key.write("type", type(kind).__name__, str(kind))
    else:
        raise Undescribable(f"the Numba type {kind}")


def names_are_unique() -> None:
    """See to it that no two processes give two functions one name.

    Numba puts a number into the name of the code of every function it compiles, and
    counts from 1 in each process.  Code that is loaded can then have the name of
    other code, and the linker takes the one for the other.  Here each process begins
    at a number of its own, and so does a child that it forks.
    """
    if not _numbering.is_own:
        _numbering.begin()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=_numbering.begin)


class _Numbering:
    is_own = False

    def begin(self) -> None:
        self.is_own = True
        FunctionIdentity._unique_ids = itertools.count(
            _FIRST_OWN_NUMBER + secrets.randbits(60) * 2**16
        )


_numbering = _Numbering()
