"""``python -m fixed_modes cache``, on a cache that was filled by hand."""

from __future__ import annotations

import json
from pathlib import Path

import aesara
import pytest
from click.testing import CliRunner, Result

from fixed_modes.cache.store import Store
from fixed_modes.cli.app import cli


@pytest.fixture
def store(tmp_path: Path):
    """Make a cache of three entries of 10000 bytes, and point the flags at it."""
    flags = {"fixed_modes__cache_dir": str(tmp_path), "fixed_modes__cache_size": 50_000}
    with aesara.config.change_flags(flags, fixed_modes__cache=True):
        store = Store(tmp_path / "compiled-1")
        for letter in "abc":
            store.put(letter * 64, bytes(10_000), 10**9)
        yield store


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["cache", *arguments])


def test_info(store: Store) -> None:
    found = json.loads(run("info", "--json").stdout)
    assert found["directory"] == str(store.directory)
    assert found["used"] is True
    assert found["entries"] == 3
    # Each has a header besides its content.
    assert found["bytes"] == sum(path.stat().st_size for path in store.directory.iterdir())
    assert 30_000 < found["bytes"] < 31_000
    assert found["max_bytes"] == 50_000
    assert found["problem"] == ""
    lines = dict(line.split(":", 1) for line in run("info").stdout.splitlines())
    assert lines["Entries"].strip() == "3"
    assert lines["Used"].strip() == "yes"
    assert lines["Size"].strip() == "29.6 KiB of at most 48.8 KiB"


def test_info_names_a_problem_and_fails(store: Store) -> None:
    store.directory.chmod(0o777)
    result = run("info")
    assert result.exit_code == 1
    assert "it is not used: others may write to it (mode 0777)" in result.stdout


def test_info_of_a_cache_that_is_not_there_yet(store: Store, tmp_path: Path) -> None:
    with aesara.config.change_flags(
        fixed_modes__cache_dir=str(tmp_path / "none"), fixed_modes__cache=False
    ):
        result = run("info")
    assert result.exit_code == 0
    assert "0 bytes of at most" in result.stdout
    assert "no (fixed_modes__cache=False)" in result.stdout
    assert not (tmp_path / "none").exists()


def test_prune_keeps_to_a_size(store: Store) -> None:
    assert run("prune").stdout.startswith("Removed 0 entries from ")
    result = run("prune", "--size", "25kB")
    assert result.stdout == f"Removed 1 entry from {store.directory}; 19.7 KiB are left.\n"
    assert len(store.entries()) == 2
    refused = run("prune", "--size", "much")
    assert refused.exit_code == 2
    assert "expected a number of bytes" in refused.output


def test_clear_removes_everything(store: Store) -> None:
    assert run("clear").stdout == f"Removed 3 entries from {store.directory}.\n"
    assert list(store.directory.iterdir()) == []
    assert run("clear").stdout.startswith("Removed 0 entries")
