"""Conversions for parts of Aesara that are imported only by those who use them.

``aesara.tensor.nnet`` warns that it is deprecated when it is imported.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

#: Packages of Aesara, and the modules here that register conversions for their ops.
LATE = {"aesara.tensor.nnet": ("fixed_modes.jax.nnet", "fixed_modes.jax.conv")}

_loaded: set[str] = set()


def load_conversions_for(op: Any) -> bool:
    """Import what converts an op; False: there is nothing that was not imported before."""
    package = ".".join(type(op).__module__.split(".")[:3])
    if package not in LATE or package in _loaded:
        return False
    _loaded.add(package)
    for name in LATE[package]:
        import_module(name)
    return True
