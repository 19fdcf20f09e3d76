"""Upstream tests that say nothing about a mode, each with the reason."""

from __future__ import annotations

from fnmatch import fnmatchcase

#: For patterns of test ids (the brackets of parameters are ordinary characters in them),
#: the modes that they hold for and the reason.
REASONS: tuple[tuple[str, tuple[str, ...], str], ...] = ()


def reason_for(test: str, mode: str) -> str:
    """Give the reason why a test is not applicable in a mode; empty if it is."""
    escaped = test.replace("[", "(").replace("]", ")")
    for pattern, modes, reason in REASONS:
        if mode in modes and fnmatchcase(escaped, pattern.replace("[", "(").replace("]", ")")):
            return reason
    return ""
