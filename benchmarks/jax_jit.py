"""`jax.jit` with the compile options that are the fastest for loops on the CPU.

Code written by hand is a yardstick only if it is as fast as JAX can make it, and
the defaults of recent versions are slow for loops.
"""

from __future__ import annotations

from typing import Any, Callable

import jax

# The graphs are in double precision.
jax.config.update("jax_enable_x64", True)


def compile_options() -> dict[str, Any]:
    """Choose the options for the installed version, as measured on loops of small steps."""
    version = tuple(int(part) for part in jax.__version__.split(".")[:3])
    if jax.default_backend() != "cpu" or version < (0, 4, 32):
        return {}
    if version < (0, 7):
        return {"xla_cpu_use_thunk_runtime": False}
    return {"xla_cpu_use_fusion_emitters": False}


def jit(function: Callable[..., Any], **arguments: Any) -> Callable[..., Any]:
    """Compile a function; takes the arguments of `jax.jit`."""
    options = compile_options()
    if options:
        arguments["compiler_options"] = options
    return jax.jit(function, **arguments)
