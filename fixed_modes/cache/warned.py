"""Notes whether anything warns, and leaves it to Python what becomes of the warnings."""

from __future__ import annotations

import warnings
from typing import Any


class WarningWatch:
    """Notes whether anything warns while it is entered, whether that is shown or not.

    Whoever keeps a result that was warned of must warn again wherever it is used.
    (`warnings.catch_warnings` would take the warnings away from who filters them,
    and the filters from another thread that changes them at the same time.)

    Examples
    --------
    >>> import warnings
    >>> with WarningWatch() as watch:
    ...     watch.has_warned
    False
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     with WarningWatch() as watch:
    ...         warnings.warn("nobody sees it")
    >>> watch.has_warned
    True
    """

    def __init__(self) -> None:
        self.has_warned = False
        # A filter asks its pattern whether it matches: this one looks on.
        self._filter: Any = ("ignore", self, Warning, None, 0)
        self._filters: Any = []

    def match(self, text: str) -> bool:
        """Note a warning; it is for the other filters to say what becomes of it."""
        self.has_warned = True
        return False

    def __enter__(self) -> WarningWatch:
        self._filters = _filters()
        self._filters.insert(0, self._filter)
        # Else what was shown before is not asked for again.
        forget = getattr(warnings, "_filters_mutated", None)
        if forget is None:
            self.has_warned = True
        else:
            forget()
        return self

    def __exit__(self, *error: object) -> None:
        if _filters() is not self._filters or self._filter not in self._filters:
            # Another thread has put its own in place: some may have been missed.
            self.has_warned = True
        for filters in (self._filters, _filters()):
            if self._filter in filters:
                filters.remove(self._filter)


def _filters() -> Any:
    return warnings.filters
