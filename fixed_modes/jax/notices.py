"""Says once, for each node, that something runs outside of compiled code."""

from __future__ import annotations

import warnings

from aesara.graph.basic import Apply

from fixed_modes.errors import FixedModesWarning, UnsupportedOpError
from fixed_modes.jax.settings import Settings

# Set on a node's tag: a graph is traced more than once.
_SAID = "_fixed_modes_said"


def say_slow(node: Apply, settings: Settings, message: str) -> None:
    """Warn that a node runs in Python; with the flag ``fixed_modes__strict`` refuse it.

    Parameters
    ----------
    node
        The node.
    settings
        The flags that the function was built with.
    message
        What happens and why, and the description of the node.

    Raises
    ------
    UnsupportedOpError
        With the flag.
    """
    if hasattr(node.tag, _SAID) and not settings.strict:
        return
    if settings.strict:
        raise UnsupportedOpError(message)
    setattr(node.tag, _SAID, True)
    warnings.warn(message, FixedModesWarning, stacklevel=2)
