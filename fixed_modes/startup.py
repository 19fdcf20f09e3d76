"""Registers the modes at the moment Aesara is imported, or at once if it is."""

from __future__ import annotations

import sys


def register_with_aesara() -> None:
    """Make the modes known to Aesara now, or as soon as it is imported."""
    import aesara  # noqa: F401

    from fixed_modes import modes

    modes.register()
