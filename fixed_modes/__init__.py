"""Aesara graphs, loops above all, at hand-written speed in Numba and JAX.

Importing this package makes the modes ``"NUMBA_FIXED"`` and ``"JAX_FIXED"``
known to Aesara.  The import itself is cheap: where Aesara is not imported yet,
the modes are registered at the moment it is, and neither Numba nor JAX is
imported before one of the modes compiles a function.

>>> import fixed_modes
>>> import numpy as np, aesara, aesara.tensor as at
>>> x = at.dvector("x")
>>> f = aesara.function([x], (2 * x).sum(), mode="NUMBA_FIXED")
>>> float(f(np.arange(3.0)))
6.0
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fixed_modes import startup
from fixed_modes._version import __version__
from fixed_modes.errors import FixedModesWarning, UnsupportedOpError

if TYPE_CHECKING:
    from fixed_modes.inspection import cache_report, numba_source
    from fixed_modes.jax.function import jax_function
    from fixed_modes.modes import JAX_FIXED, NUMBA_FIXED

__all__ = [
    "JAX_FIXED",
    "NUMBA_FIXED",
    "FixedModesWarning",
    "UnsupportedOpError",
    "__version__",
    "cache_report",
    "jax_function",
    "numba_source",
]

startup.register_with_aesara()


def __getattr__(name: str) -> Any:
    """Give the modes and functions on first use: they import Aesara."""
    if name in ("NUMBA_FIXED", "JAX_FIXED"):
        from fixed_modes import modes

        return getattr(modes, name)
    if name in ("cache_report", "numba_source"):
        from fixed_modes import inspection

        return getattr(inspection, name)
    if name == "jax_function":
        from fixed_modes.jax.function import jax_function

        return jax_function
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
