"""What the cache did for one piece of compiled code."""

from __future__ import annotations

import logging

_log = logging.getLogger("fixed_modes.cache")


class Outcome:
    """What the cache did for one piece of compiled code.

    Attributes
    ----------
    state
        ``off``, ``refused``, or ``waiting`` for a first call; after one ``loaded``
        or ``compiled``.
    reason
        Why it was refused, or why what was compiled has not been stored.
    key
        The key of the code; empty where it has none.
    """

    def __init__(self, state: str = "waiting", key: str = "") -> None:
        self.state = state
        self.reason = ""
        self.key = key

    def __repr__(self) -> str:
        return f"{self.state} ({self.reason})" if self.reason else self.state

    def refuse(self, state: str, reason: str) -> None:
        """Note why nothing is stored."""
        self.state, self.reason = state, reason
        _log.debug("Compiled code is not stored: %s", reason)
