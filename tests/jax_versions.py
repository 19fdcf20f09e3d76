"""What the installed JAX can do, by its version."""

from __future__ import annotations

import jax
import pytest

_VERSION = jax.version.__version_info__[:3]

#: Programs compiled for a CPU can be serialised.
CAN_STORE = _VERSION >= (0, 4, 30)
#: Its barrier can be differentiated and vectorised.
HAS_BARRIER = _VERSION >= (0, 5, 3)

needs_storing = pytest.mark.skipif(
    not CAN_STORE, reason="JAX before 0.4.30 can't serialise what it has compiled for a CPU"
)
needs_barrier = pytest.mark.skipif(
    not HAS_BARRIER, reason="with JAX before 0.5.3, XLA may read an array late, and copies it"
)
