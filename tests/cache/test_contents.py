"""Whether what is registered with others is still what it was."""

from __future__ import annotations

from typing import Any

from fixed_modes.cache.contents import Contents, are_same


def _contents(table: dict[str, Any]) -> Contents:
    return Contents([table.keys(), table.values()])


def test_what_stays_is_as_it_was() -> None:
    table = {"a": object(), "b": object()}
    contents = _contents(table)
    assert contents.are_as_they_were()
    table["c"] = object()
    assert not contents.are_as_they_were()
    del table["c"]
    assert contents.are_as_they_were()


def test_another_object_is_seen_even_where_it_is_equal() -> None:
    first, second = [1.0], [1.0]
    table = {"a": first}
    contents = _contents(table)
    table["a"] = second
    assert not contents.are_as_they_were()
    table["a"] = first
    assert contents.are_as_they_were()


def test_another_order_is_seen() -> None:
    table = {"a": object(), "b": object()}
    contents = _contents(table)
    table["a"] = table.pop("a")
    assert not contents.are_as_they_were()


def test_what_moves_to_another_place_is_seen() -> None:
    value = object()
    places: list[list[Any]] = [[value], []]
    contents = Contents(places)
    places[1].append(places[0].pop())
    assert not contents.are_as_they_were()


def test_objects_are_compared_by_identity() -> None:
    value = [1.0]
    assert are_same([value, None], [value, None])
    assert not are_same([value], [[1.0]])
