"""Why a ratio to code written by hand is above its target."""

from __future__ import annotations

# By contender and workload; a ratio that is not above its target shows no reason.
_REASONS: dict[tuple[str, str], str] = {}


def reason_for(contender: str, workload: str) -> str:
    """Give the reason; empty where none is known."""
    return _REASONS.get((contender, workload), "")
