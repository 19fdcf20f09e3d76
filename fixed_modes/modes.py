"""The modes ``NUMBA_FIXED`` and ``JAX_FIXED``, and their registration with Aesara."""

from __future__ import annotations

from typing import Any

from aesara.compile import mode as aesara_mode
from aesara.compile.function.types import FunctionMaker
from aesara.compile.mode import Mode
from aesara.graph.rewriting.basic import GraphRewriter
from aesara.graph.rewriting.db import RewriteDatabaseQuery

from fixed_modes.jax.linker import FixedJAXLinker
from fixed_modes.maker import FixedFunctionMaker
from fixed_modes.numba.linker import FixedNumbaLinker
from fixed_modes.rewrites.flags import FlaggedRewriter
from fixed_modes.rewrites.query import DEFAULT_REWRITES, JAX_REWRITES, with_own_rewrites


class FixedMode(Mode):
    """A `Mode` whose linker knows the rewrites that the mode asks for.

    The linker needs them for the inner graphs.  Every `Mode` method that makes
    a changed mode (``including``, ``excluding``, ``requiring``, ``register``,
    ``clone``) goes through ``__setstate__``, and so does unpickling.
    """

    def __setstate__(self, state: tuple[Any, Any]) -> None:
        super().__setstate__(state)
        self.linker.rewrites = self._optimizer

    @property
    def function_maker(self) -> type[FunctionMaker]:
        """Where ``aesara.function`` looks for what makes its functions."""
        return FixedFunctionMaker

    @property
    def optimizer(self) -> GraphRewriter:
        """The rewriter of the mode."""
        rewriter = self._optimizer
        if isinstance(rewriter, RewriteDatabaseQuery):
            rewriter = self.optdb.query(with_own_rewrites(rewriter))
        return FlaggedRewriter(rewriter)


# One class for each mode: `aesara.compile.mode.get_mode` keeps the default mode
# until the *class name* of the configured one changes, so modes that share a
# class can't be switched through `aesara.config.mode`.
class NumbaFixedMode(FixedMode):
    """The class of ``NUMBA_FIXED``."""


class JAXFixedMode(FixedMode):
    """The class of ``JAX_FIXED``."""


NUMBA_FIXED = NumbaFixedMode(FixedNumbaLinker(), DEFAULT_REWRITES)
JAX_FIXED = JAXFixedMode(FixedJAXLinker(), JAX_REWRITES)

_MODES = {"NUMBA_FIXED": NUMBA_FIXED, "JAX_FIXED": JAX_FIXED}


def register() -> None:
    """Make both modes known to Aesara under their names.

    Doing it again, also after a reload of this module, changes nothing.

    Raises
    ------
    ValueError
        If a name is taken by a mode that is not from this package; then neither
        name is registered.
    """
    known = aesara_mode.predefined_modes
    for name in _MODES:
        if name in known and not _is_ours(known[name]):
            # Not the mode itself: its text is every rewrite of Aesara, pages long.
            other = type(known[name])
            raise ValueError(
                f"fixed_modes can't register the mode {name!r}: the name is taken by "
                f"another mode, of type {other.__module__}.{other.__qualname__}. Remove that "
                "mode from aesara.compile.mode.predefined_modes, or register it "
                "under another name, before fixed_modes is imported."
            )
    for name, mode in _MODES.items():
        if name not in known:
            aesara_mode.register_mode(name, mode)


def _is_ours(mode: Mode) -> bool:
    # By name, not by class: a reload makes new classes.
    return any(
        base.__module__ == __name__ and base.__name__ == "FixedMode" for base in type(mode).__mro__
    )


register()
