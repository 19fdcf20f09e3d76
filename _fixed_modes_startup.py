"""Calls `fixed_modes.startup` while Aesara is being imported.

Aesara refuses a mode name that it does not know while its configuration is
being read, which is early in ``import aesara``.  So that ``AESARA_FLAGS`` and
``.aesararc`` can name the modes for a program that imports only Aesara, this
module is imported at every interpreter start, by ``fixed_modes_startup.pth``,
and puts one finder on ``sys.meta_path``.  ``import fixed_modes`` uses the same
finder where Aesara is not imported yet.

Every interpreter of the environment pays for what stands here.  That is why
this is a module outside the package (whose ``__init__`` would be run), and why
it imports nothing that an interpreter has not already loaded by itself.
"""

import _thread
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any, Callable, Optional

    Loaded = Callable[[ModuleType], None]

_WATCHED = ("aesara", "aesara.configparser")

#: Whether the ``.pth`` file has installed the finder in this interpreter.
installed_at_start = False


def at_interpreter_start() -> None:
    """Install the finder, unless ``FIXED_MODES_STARTUP=0`` is in the environment."""
    global installed_at_start
    if os.environ.get("FIXED_MODES_STARTUP") != "0":
        install()
        installed_at_start = True


def install() -> None:
    """Put the finder on ``sys.meta_path``; a second call changes nothing."""
    for finder in sys.meta_path:
        # By name: after a reload of this module the class is another one.
        kind = type(finder)
        if kind.__module__ == __name__ and kind.__name__ == "AesaraFinder":
            return
    # First, since a finder that stands before it could load Aesara unseen.
    sys.meta_path.insert(0, AesaraFinder())


class AesaraFinder:
    """A meta path finder that finds nothing itself.

    It lets the other finders look for Aesara and sees to it that
    `fixed_modes.startup` is told when a watched module has been executed.
    """

    def __init__(self) -> None:
        self._asking: set[tuple[str, int]] = set()
        self._done = False

    def find_spec(
        self, name: str, path: "Any" = None, target: "Optional[ModuleType]" = None
    ) -> "Optional[ModuleSpec]":
        if name not in _WATCHED or self._done:
            return None
        # Another finder may ask all others too, as this one does.
        question = (name, _thread.get_ident())
        if question in self._asking:
            return None
        self._asking.add(question)
        try:
            spec = _ask_the_others(self, name, path, target)
        finally:
            self._asking.discard(question)
        # Namespace packages have no loader on Python < 3.11.
        if spec is not None and spec.loader is not None:
            # zipimport before Python 3.10 has only the older protocol.
            kind = _Loader if hasattr(spec.loader, "exec_module") else _OldLoader
            spec.loader = kind(spec.loader, self._loaded)  # type: ignore[assignment]
        return spec

    def _loaded(self, module: "ModuleType") -> None:
        if self._done:
            return
        try:
            from fixed_modes import startup

            if module.__name__ == "aesara":
                self._remove()
                startup.aesara_is_loaded()
            else:
                startup.configparser_is_loaded(module)
        except Exception as exc:
            # Aesara has to import as if this package were not there.
            self._remove()
            _warn(exc)

    def _remove(self) -> None:
        self._done = True
        # A new list: to shorten the one that another thread's import walks
        # through would make that import miss a finder.
        sys.meta_path = [finder for finder in sys.meta_path if finder is not self]


def _ask_the_others(
    asking: AesaraFinder, name: str, path: "Any", target: "Optional[ModuleType]"
) -> "Optional[ModuleSpec]":
    for finder in list(sys.meta_path):
        find_spec = getattr(finder, "find_spec", None)
        if finder is not asking and find_spec is not None:
            spec: Optional[ModuleSpec] = find_spec(name, path, target)
            if spec is not None:
                return spec
    return None


class _Wrapped:
    """Stands in for a loader until that loader has something to load."""

    def __init__(self, loader: "Any", loaded: "Loaded") -> None:
        self._loader = loader
        self._loaded = loaded

    def __getattr__(self, name: str) -> "Any":
        return getattr(self.__dict__["_loader"], name)


class _Loader(_Wrapped):
    def exec_module(self, module: "ModuleType") -> None:
        # Whoever looks at the module later finds the loader that it really has.
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        module.__loader__ = self._loader
        self._loader.exec_module(module)
        self._loaded(module)


class _OldLoader(_Wrapped):
    def load_module(self, name: str) -> "ModuleType":
        module: ModuleType = self._loader.load_module(name)
        self._loaded(module)
        return module


def _warn(exc: Exception) -> None:
    message = (
        "The modes NUMBA_FIXED and JAX_FIXED are not available: fixed_modes could "
        f"not register them with Aesara ({type(exc).__name__}: {exc}). Reinstall "
        "fixed-modes, or set FIXED_MODES_STARTUP=0 to do without its start-up hook."
    )
    import warnings

    try:
        warnings.warn(message, RuntimeWarning, stacklevel=4)
    except RuntimeWarning:
        # Warnings are errors here, and this one must not stop the import.
        sys.stderr.write(message + "\n")
