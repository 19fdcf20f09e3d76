"""The linker of the mode ``JAX_FIXED``."""

from __future__ import annotations

from typing import Any

from aesara.link.jax.linker import JAXLinker

from fixed_modes.linker import InnerGraphLinker


class FixedJAXLinker(InnerGraphLinker, JAXLinker):
    """A `JAXLinker` that compiles inner graphs first and evaluates concrete nodes."""

    excluded_tags = ("cxx_only", "BlasOpt", "jax")

    def check_back_end(self) -> None:
        try:
            import jax  # noqa: F401
            import jaxlib  # noqa: F401
        except ImportError as exc:
            raise ImportError(
                "The mode JAX_FIXED needs JAX, which can't be imported here "
                f"({exc}). Install it with: pip install jax jaxlib"
            ) from exc
