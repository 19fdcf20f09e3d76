"""The collection of garbage is put off, and goes on as it was."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from fixed_modes.cache.pause import garbage_left_alone


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    before = gc.isenabled()
    yield
    (gc.enable if before else gc.disable)()


def test_it_goes_on_afterwards() -> None:
    gc.enable()
    with garbage_left_alone():
        assert not gc.isenabled()
        with garbage_left_alone():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_it_goes_on_after_an_error() -> None:
    gc.enable()
    with pytest.raises(ValueError, match="inside"), garbage_left_alone():
        raise ValueError("inside")
    assert gc.isenabled()


def test_a_user_who_has_turned_it_off_finds_it_off() -> None:
    gc.disable()
    with garbage_left_alone():
        assert not gc.isenabled()
    assert not gc.isenabled()
