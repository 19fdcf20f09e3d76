"""The linker of the mode ``NUMBA_FIXED``."""

from __future__ import annotations

from typing import Any

from aesara.link.numba.linker import NumbaLinker

from fixed_modes.linker import InnerGraphLinker


class FixedNumbaLinker(InnerGraphLinker, NumbaLinker):
    """A `NumbaLinker` that compiles inner graphs first and lowers whole graphs."""

    excluded_tags = ("cxx_only", "BlasOpt", "jax")

    def check_back_end(self) -> None:
        try:
            import numba  # noqa: F401
        except ImportError as exc:
            raise ImportError(
                "The mode NUMBA_FIXED needs Numba, which can't be imported here "
                f"({exc}). Install it with: pip install numba"
            ) from exc
