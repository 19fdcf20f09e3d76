"""Stores what XLA has compiled, and loads it in the next process.

JAX has a cache on disk too, but one for the whole process: to turn it on for our
functions would turn it on for everybody's.  So compiled code goes into the store that
NUMBA_FIXED uses, with its rules.  Whoever has turned on JAX's own cache keeps that.

The key is the text of the program that JAX hands to XLA.  To have it, a function must be
traced; `fixed_modes.jax.untraced` knows what came of that for graphs that have a key.
"""

from __future__ import annotations

import logging
import os
import pickle
import platform
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Callable, NamedTuple

import jax
import jaxlib
import numpy as np
from aesara.configdefaults import config
from jax.experimental import serialize_executable

from fixed_modes.cache.key import Key
from fixed_modes.cache.outcome import Outcome
from fixed_modes.cache.store import Store, store_in

_log = logging.getLogger("fixed_modes.cache")

# Older ones can't serialise what they have compiled for the CPU.
_OLDEST = (0, 4, 30)
# Settings of JAX that say nothing about code.
_HARMLESS = re.compile("cache|log|traceback|debug|explain|profil|distributed")
_SIMPLE = (bool, int, float, str, type(None))
# What Linux calls it, on x86 and on Arm.
_PROCESSOR = (
    *("vendor_id", "cpu family", "model", "model name", "stepping", "flags"),
    *("CPU implementer", "CPU architecture", "CPU variant", "CPU part", "Features"),
)


def can_store() -> bool:
    """Say whether functions are to be kept, as flags, JAX's settings and the device are now."""
    if not config.fixed_modes__cache or jax.version.__version_info__[:3] < _OLDEST:
        return False
    own = jax.config.jax_compilation_cache_dir
    # These work on what `jax.jit` returns.
    debugged = jax.config.jax_disable_jit or jax.config.jax_debug_nans
    return not own and not debugged and jax.default_backend() == "cpu" and jax.device_count() == 1


class Compiled(NamedTuple):
    """Compiled code, and what the cache did for it."""

    call: Callable[..., Any]
    outcome: Outcome


class StoredJit:
    """What `jax.jit` returns, with compiled code from the store.

    Parameters
    ----------
    function
        Takes one argument, a pytree of arrays.
    options
        The compile options.
    """

    def __init__(self, function: Callable[..., Any], options: Mapping[str, Any]) -> None:
        # Without unused arguments two functions of different ones have the same program.
        self._function = jax.jit(function, keep_unused=True)
        self._options = dict(options) or None
        self._compiled: dict[Any, Compiled] = {}
        self._last: Callable[..., Any] | None = None
        self._store = store_in(config.fixed_modes__cache_dir)

    @property
    def outcomes(self) -> list[Outcome]:
        """What the cache did, for each compilation."""
        return [compiled.outcome for compiled in list(self._compiled.values())]

    def __call__(self, args: Sequence[Any]) -> Any:
        if self._last is not None:
            try:
                return self._last(args)
            except TypeError:
                # Mostly arguments of other types or shapes; if not, it is raised again below.
                pass
        signature = signature_of(args)
        if signature not in self._compiled:
            self._compiled[signature] = self._load_or_compile(args)
        self._last = self._compiled[signature].call
        return self._last(args)

    def _load_or_compile(self, args: Sequence[Any]) -> Compiled:
        return self._compile(self._function.lower(args))

    def _compile(self, lowered: Any) -> Compiled:
        """Compile what was traced, or load what came of it before."""
        program = lowered.as_text()
        outcome = Outcome()
        if "callback" in program:
            outcome.refuse("refused", "it calls Python back")
            return Compiled(lowered.compile(compiler_options=self._options), outcome)
        outcome.key = program_key(program, self._options or {})
        found = load(self._store, outcome.key, lowered.in_tree, lowered.out_tree)
        if found is not None:
            outcome.state = "loaded"
            return Compiled(found, outcome)
        compiled = Compiled(lowered.compile(compiler_options=self._options), outcome)
        outcome.state = "compiled"
        try:
            content = pickle.dumps(serialize_executable.serialize(compiled.call)[0])
        except Exception as exc:
            outcome.refuse("compiled", f"JAX can't serialise it ({exc})")
            return compiled
        if not self._store.put(outcome.key, content, config.fixed_modes__cache_size):
            outcome.refuse("compiled", "the entry could not be written")
        return compiled


def signature_of(args: Sequence[Any]) -> tuple[Any, ...]:
    """Say what compiled code must fit: structure, shapes and dtypes of arguments."""
    leaves, structure = jax.tree_util.tree_flatten(args)
    return (structure, *map(_shape_and_dtype, leaves))


def _shape_and_dtype(leaf: Any) -> tuple[Any, ...]:
    # Asking an array of JAX for its values would wait for them.
    return np.shape(leaf), leaf.dtype if hasattr(leaf, "dtype") else np.asarray(leaf).dtype


def load(store: Store, key: str, in_tree: Any, out_tree: Any) -> Callable[..., Any] | None:
    """Load compiled code; None if there is none.

    Parameters
    ----------
    store
        Where it is looked for.
    key
        Its key.
    in_tree, out_tree
        The structures of its arguments, as `jax.stages.Lowered` has them, and of its result.
    """
    content = store.get(key)
    if content is None:
        return None
    try:
        return serialize_executable.deserialize_and_load(pickle.loads(content), in_tree, out_tree)
    except Exception as exc:
        # Whole, but of no use, which the versions in the key should rule out.
        _log.debug("Stored code can't be loaded", exc_info=exc)
        store.remove(key)
        return None


def program_key(program: str, options: Mapping[str, Any]) -> str:
    """Give the key of a program.

    Parameters
    ----------
    program
        Its text, as JAX hands it to XLA.
    options
        The compile options.
    """
    key = Key()
    key.add(facts())
    key.add(settings())
    key.add(dict(sorted(options.items())))
    key.add(program)
    return key.hexdigest()


@lru_cache(maxsize=1)
def facts() -> dict[str, str]:
    """Say what compiles, and for which processor."""
    device = jax.devices()[0]
    return {
        "jax": jax.__version__,
        "jaxlib": jaxlib.__version__,
        "platform": f"{device.platform} {device.client.platform_version}",
        "processor": _processor(),
    }


def settings() -> dict[str, str]:
    """Say which settings of JAX and XLA may change what is compiled."""
    return described_settings()[0]


def described_settings() -> tuple[dict[str, str], list[str]]:
    """Give `settings`, and the names of those that have no text, such as a device."""
    values = jax.config.values
    found, special = {"XLA_FLAGS": os.environ.get("XLA_FLAGS", "")}, []
    for name in _telling(tuple(values)):
        if isinstance(values[name], _SIMPLE):
            found[name] = repr(values[name])
        else:
            special.append(name)
    return found, special


@lru_cache(maxsize=1)
def _telling(names: tuple[str, ...]) -> list[str]:
    """Give the names of the settings that count, sorted."""
    return [name for name in sorted(names) if not _HARMLESS.search(name)]


def _processor() -> str:
    """Describe the processor with its features, or name this computer if there is no telling."""
    found: dict[str, str] = {}
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            for line in file:
                name, _, value = line.partition(":")
                if name.strip() in _PROCESSOR:
                    found.setdefault(name.strip(), value.strip())
                elif not line.strip():
                    break
    except OSError:
        pass
    return f"{platform.machine()} {found or (platform.processor(), platform.node())}"
