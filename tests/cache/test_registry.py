"""The hash of what is registered follows every change, however small, and back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aesara
import aesara.tensor as at
import pytest
from aesara.compile.mode import optdb
from aesara.graph.rewriting.basic import PatternNodeRewriter, in2out

from fixed_modes.cache.registry import registry_digest

NAME = "sine_to_cosine"


def rewriter() -> Any:
    return in2out(PatternNodeRewriter((at.sin, "x"), (at.cos, "x")), name=NAME)


def remove() -> None:
    (found,) = optdb.__db__.pop(NAME)
    for tagged in optdb.__db__.values():
        tagged.discard(found)
    optdb._names.discard(NAME)
    del optdb.__position__[NAME]


@pytest.fixture
def registered() -> Iterator[str]:
    """Register a rewrite, for the time of a test; gives the hash before."""
    before = registry_digest()
    assert registry_digest() == before
    optdb.register(NAME, rewriter(), "fast_run", position=1.55)
    yield before
    if NAME in optdb.__db__:
        remove()
    assert registry_digest() == before


def test_a_rewrite_that_is_registered_and_removed_between_two_keys(registered: str) -> None:
    registered_first = registry_digest()
    assert registered_first != registered
    remove()
    assert registry_digest() == registered
    optdb.register(NAME, rewriter(), "fast_run", position=1.55)
    assert registry_digest() == registered_first


def test_a_tag_that_is_taken_away_and_given_back(registered: str) -> None:
    with_tag = registry_digest()
    optdb.remove_tags(NAME, "fast_run")
    without = registry_digest()
    assert without not in (with_tag, registered)
    optdb.add_tags(NAME, "fast_run")
    assert registry_digest() == with_tag


def test_a_position_that_changes(registered: str) -> None:
    before = registry_digest()
    optdb.__position__[NAME] = 1.56
    assert registry_digest() != before
    optdb.__position__[NAME] = 1.55
    assert registry_digest() == before


def test_a_rewrite_in_a_database_that_is_inside_of_another() -> None:
    before = registry_digest()
    inner = next(iter(optdb.__db__["canonicalize"]))
    inner.register(NAME, PatternNodeRewriter((at.sin, "x"), (at.cos, "x")), "fast_run")
    try:
        assert registry_digest() != before
    finally:
        (found,) = inner.__db__.pop(NAME)
        for tagged in inner.__db__.values():
            tagged.discard(found)
        inner._names.discard(NAME)
        inner.__final__.pop(NAME, None)
        inner.__cleanup__.pop(NAME, None)
    assert registry_digest() == before


def test_a_flag_that_is_changed_back_and_forth(tmp_path: Path) -> None:
    flags = {"fixed_modes__cache": True, "fixed_modes__cache_dir": str(tmp_path)}

    def key() -> str:
        x = at.dvector("x")
        with aesara.config.change_flags(**flags):
            f = aesara.function([x], x + 1, mode="NUMBA_FIXED")
        return f.maker.rewritten.outcome.key

    before = key()
    assert before
    for _ in range(2):
        with aesara.config.change_flags(scan__allow_gc=not aesara.config.scan__allow_gc):
            assert key() not in ("", before)
        assert key() == before
