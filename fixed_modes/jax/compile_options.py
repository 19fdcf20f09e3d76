"""XLA options for each JAX version, measured on loops.

Milliseconds on two cores; the gradient of a Runge-Kutta loop of 4 000 steps and
that of a recurrent network with 16 units, 5 000 steps, by its weights:

    JAX 0.4.30                                       0.30    2.1
    JAX 0.6.2                                        18.9    9.2
    JAX 0.6.2, xla_cpu_use_thunk_runtime=False       0.29    3.0
    JAX 0.7.1                                        9328     58
    JAX 0.7.1, xla_cpu_use_fusion_emitters=False     21.6    3.3

With ``xla_cpu_use_thunk_runtime=False`` JAX 0.7.1 aborts the process.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any, Callable

import jax
import numpy as np

from fixed_modes.jax.cache import StoredJit, can_store
from fixed_modes.jax.untraced import Origin, UntracedJit


def options_for(version: tuple[int, ...], platform: str) -> dict[str, Any]:
    """Give the compile options for a JAX version on a platform.

    >>> options_for((0, 6, 2), "cpu")
    {'xla_cpu_use_thunk_runtime': False}
    >>> options_for((0, 6, 2), "gpu")
    {}
    """
    if platform != "cpu":
        return {}
    if (0, 4, 32) <= version < (0, 7):
        return {"xla_cpu_use_thunk_runtime": False}
    if version >= (0, 7):
        return {"xla_cpu_use_fusion_emitters": False}
    return {}


def chosen_options(own: Mapping[str, Any]) -> dict[str, Any]:
    """Give the options for the JAX that runs, with the user's `own` added to them."""
    version, platform = jax.version.__version_info__[:3], jax.default_backend()
    return {**options_for(version, platform), **own}


def check_options(own: Mapping[str, Any]) -> None:
    """Compile next to nothing with the user's options.

    Raises
    ------
    ValueError
        If XLA knows no such option, or not with such a value.
    """
    if not own:
        return
    try:
        jax.jit(lambda: 0).lower().compile(compiler_options=dict(own))
    except Exception as exc:
        pairs = ",".join(f"{name}={value}" for name, value in own.items())
        raise ValueError(
            f"JAX {jax.__version__} can't compile with fixed_modes__jax_compile_options={pairs}: "
            f"{exc}"
        ) from exc


def jit(
    function: Callable[..., Any],
    own_options: Mapping[str, Any],
    calls_python: bool = False,
    origin: Origin | None = None,
) -> Callable[..., Any]:
    """Do what `jax.jit` does, with the options for the JAX that runs.

    Parameters
    ----------
    function
        Takes one argument, a pytree of arrays.
    own_options
        The user's options; they win over those that are chosen here.
    calls_python
        Whether the compiled code calls Python back.  With JAX 0.6.2 and
        ``xla_cpu_use_thunk_runtime=False`` such code may compute wrong numbers
        elsewhere (seen in a large graph with matrix exponentials), so no options
        are chosen; and what refers to Python objects can't be stored.
    origin
        What the function is traced from, where that is known exactly.
    """
    options = dict(own_options) if calls_python else chosen_options(own_options)
    if can_store() and not calls_python:
        if origin is not None:
            return UntracedJit(function, options, origin)
        return StoredJit(function, options)
    if not options:
        return jax.jit(function)
    if "compiler_options" in inspect.signature(jax.jit).parameters:
        return jax.jit(function, compiler_options=options)
    return AheadOfTime(function, options)


class AheadOfTime:
    """A jitted function for versions of `jax.jit` that take no compile options."""

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        self.function = jax.jit(function)
        self.options = options
        self.compiled: dict[Any, Callable[..., Any]] = {}

    def __call__(self, args: Sequence[Any]) -> Any:
        leaves, structure = jax.tree_util.tree_flatten(args)
        key = (structure, *((np.shape(leaf), np.asarray(leaf).dtype.str) for leaf in leaves))
        if key not in self.compiled:
            lowered = self.function.lower(args)
            self.compiled[key] = lowered.compile(compiler_options=self.options)
        return self.compiled[key](args)
