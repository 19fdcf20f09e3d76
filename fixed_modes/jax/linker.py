"""The linker of the mode ``JAX_FIXED``."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Callable

from aesara.graph.basic import Variable
from aesara.graph.fg import FunctionGraph
from aesara.link.jax.linker import JAXLinker

from fixed_modes.linker import InnerGraphLinker
from fixed_modes.rewrites.query import JAX_REWRITES


class FixedJAXLinker(InnerGraphLinker, JAXLinker):
    """A `JAXLinker` that compiles inner graphs first and evaluates concrete nodes.

    Parameters
    ----------
    keep_on_device
        Give JAX arrays as outputs instead of NumPy arrays that the caller owns.
        New values of shared variables are NumPy arrays all the same.
    max_variants
        The number of compiled variants of a function that are kept where shapes
        depend on values: one for each ``n_steps``, for example.  None: what the
        flag ``fixed_modes__jax_variants`` says when the function is built.
    """

    rewrites = JAX_REWRITES
    excluded_tags = ("cxx_only", "BlasOpt", "jax")

    def __init__(
        self,
        *args: Any,
        keep_on_device: bool = False,
        max_variants: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.keep_on_device = keep_on_device
        self.max_variants = max_variants

    def check_back_end(self) -> None:
        try:
            # In this order: without jaxlib, an import of jax fails half-way.
            import jaxlib  # noqa: F401, I001
            import jax  # noqa: F401
        except ImportError as exc:
            raise ImportError(
                "The mode JAX_FIXED needs JAX, which can't be imported here "
                f'({exc}). Install it with: pip install "jax<0.7" "jaxlib<0.7"'
            ) from exc

    def fgraph_convert(
        self, fgraph: FunctionGraph, *args: Any, **kwargs: Any
    ) -> Callable[..., list[Any]]:
        from fixed_modes.jax.compiled import CompiledGraph
        from fixed_modes.jax.settings import Settings

        settings = Settings.from_flags()
        if self.max_variants is not None:
            settings = replace(settings, max_variants=self.max_variants)
        known, identity = self.identity
        return CompiledGraph(
            fgraph, settings, self.keep_on_device, identity if known is fgraph else ""
        )

    def jit_compile(self, fn: Callable[..., list[Any]]) -> Callable[..., list[Any]]:
        return fn  # it compiles itself when it is called

    def create_thunk_inputs(self, storage_map: dict[Variable, list[Any]]) -> list[list[Any]]:
        return [storage_map[variable] for variable in self.fgraph.inputs]
