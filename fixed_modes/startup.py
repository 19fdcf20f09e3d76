"""Makes Aesara know the modes, now or at the moment it is imported.

Two things have to happen, at two moments of ``import aesara``:

* after ``aesara.configparser`` is loaded and before the configuration variables
  are added, so that a mode name from ``AESARA_FLAGS`` or ``.aesararc`` is accepted,
  and the flags of `fixed_modes.config` are, and so that Aesara can be imported at
  all on Python 3.12;
* after all of Aesara is loaded, so that there are classes to build the modes from.

The finder in the module ``_fixed_modes_startup`` calls the two functions for it.
Nothing here imports Aesara where the program has not done so.
"""

from __future__ import annotations

import sys
from functools import wraps
from types import ModuleType
from typing import Any

import _fixed_modes_startup
from fixed_modes.config import add_flags

MODE_NAMES = ("NUMBA_FIXED", "JAX_FIXED")


def register_with_aesara() -> None:
    """Make the modes known to Aesara now, or as soon as it is imported.

    Raises
    ------
    ValueError
        If Aesara is imported already and a name is taken by another mode.
    """
    aesara = sys.modules.get("aesara")
    if aesara is None or _is_being_imported(aesara):
        _fixed_modes_startup.install()
    else:
        aesara_is_loaded()


def hook_is_active() -> bool:
    """Say whether the start-up hook has run in this interpreter.

    It has not where ``FIXED_MODES_STARTUP=0`` is set, and where the package is
    imported from a directory in which it was not installed.
    """
    return _fixed_modes_startup.installed_at_start


def configparser_is_loaded(configparser: ModuleType) -> None:
    """Catch the calls that add the configuration variables ``mode`` and ``blas__ldflags``.

    Ours are added before ``mode``.
    """
    parser = configparser.AesaraConfigParser
    stock_add = parser.add
    awaited = {"mode": accept_mode_names, "blas__ldflags": do_without_numpy_distutils}

    @wraps(stock_add)
    def add(self: Any, name: str, doc: str, configparam: Any, in_c_key: bool = True) -> Any:
        if name in awaited:
            add_flags(self, configparser, stock_add)
            awaited.pop(name)(configparam)
            if not awaited and parser.add is add:
                parser.add = stock_add
        return stock_add(self, name, doc, configparam, in_c_key)

    parser.add = add


def aesara_is_loaded() -> None:
    """Register the modes, and make Aesara's configuration know their names and our flags."""
    # Waits, where another thread is in the middle of importing it.
    import aesara
    from aesara import configparser

    from fixed_modes import modes

    # Where this very module has imported Aesara, it is not complete yet, and registers
    # the modes when it is.
    if not _is_being_imported(modes):
        modes.register()
    accept_mode_names(type(aesara.config).__dict__["mode"])
    add_flags(aesara.config, configparser, type(aesara.config).add)


def accept_mode_names(param: Any) -> None:
    """Let the configuration variable ``mode`` take the names of the modes.

    Parameters
    ----------
    param
        Aesara's `ConfigParam` for ``mode``.  One that takes them already is left
        as it is.
    """
    stock_filter = param._apply
    if getattr(stock_filter, "accepts_fixed_modes", False):
        return

    @wraps(stock_filter)
    def filter_mode(value: Any) -> Any:
        if isinstance(value, str) and value in MODE_NAMES:
            return value
        try:
            return stock_filter(value)
        except ValueError as exc:
            raise ValueError(_with_our_names(str(exc))) from None

    filter_mode.accepts_fixed_modes = True  # type: ignore[attr-defined]
    param._apply = filter_mode


def do_without_numpy_distutils(param: Any) -> None:
    """Let Aesara find its BLAS, and so import, where ``numpy.distutils`` can't be imported.

    Aesara asks ``numpy.distutils`` for the BLAS that NumPy was built with.  There
    is no such module on Python 3.12, and it fails to import with a setuptools that
    has no ``distutils.msvccompiler``.  Either makes ``import aesara`` fail.

    Parameters
    ----------
    param
        Aesara's `ConfigParam` for ``blas__ldflags``.
    """
    stock_default = param.default

    @wraps(stock_default)
    def default_blas_ldflags() -> str:
        try:
            return stock_default()
        except ImportError:
            # What Aesara does itself where NumPy does not name its BLAS.
            from aesara.link.c.cmodule import try_blas_flag

            return try_blas_flag(["-lblas"])

    param._default = default_blas_ldflags


def _with_our_names(message: str) -> str:
    """Add the names to the list of names in Aesara's message."""
    names, bracket, rest = message.partition("]")
    ours = ", ".join(repr(name) for name in MODE_NAMES)
    if not bracket:
        return f"{message} (or one of {ours})"
    return f"{names}, {ours}{bracket}{rest}"


def _is_being_imported(module: ModuleType) -> bool:
    # The import system's own mark; Python offers no public way to ask.
    return bool(getattr(module.__spec__, "_initializing", False))
