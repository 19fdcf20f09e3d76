"""What is registered in collections of others, looked at once and watched from then on."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import chain
from operator import is_
from typing import Any


class Contents:
    """What collections hold.

    Parameters
    ----------
    places
        The collections, such as views of dictionaries.
    """

    def __init__(self, places: Iterable[Collection[Any]]) -> None:
        self._places = list(places)
        self._sizes = list(map(len, self._places))
        self._held = list(chain.from_iterable(self._places))

    def are_as_they_were(self) -> bool:
        """Say whether the collections hold the same objects in the same order."""
        if self._sizes != list(map(len, self._places)):
            return False
        return are_same(self._held, chain.from_iterable(self._places))


def are_same(values: Iterable[Any], others: Iterable[Any]) -> bool:
    """Say whether all are the same objects; what is equal is not always the same."""
    return all(map(is_, values, others))
