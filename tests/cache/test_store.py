"""Entries on disk: kept, bounded, and never wrong, whatever happens to files and processes."""

from __future__ import annotations

import hashlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

import fixed_modes
from fixed_modes.cache.store import Store
from fixed_modes.errors import FixedModesWarning

INSTALLED_IN = Path(fixed_modes.__file__).parents[1]
ROOM = 10**9
A, B = "a" * 64, "b" * 64

# What the processes of these tests have in common: content that follows from its key.
COMMON = """
import hashlib, os, sys, warnings
from pathlib import Path
from fixed_modes.cache.store import Store

def content_of(key, size=300_000):
    return hashlib.shake_128(key.encode()).digest(size)

store = Store(Path(sys.argv[1]))
"""


def content_of(key: str, size: int = 300_000) -> bytes:
    return hashlib.shake_128(key.encode()).digest(size)


def start(code: str, *arguments: object, **options: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", COMMON + textwrap.dedent(code), *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(INSTALLED_IN)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,  # type: ignore[call-overload]
    )


def output_of(process: subprocess.Popen[str]) -> str:
    output, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    return output


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "entries"


@pytest.fixture
def store(directory: Path) -> Store:
    return Store(directory)


def entry(directory: Path) -> Path:
    (path,) = directory.iterdir()
    return path


def expect_a_miss_and_one_warning(directory: Path, match: str) -> None:
    """Ask a new store twice, as two functions of a process would."""
    store = Store(directory)
    with pytest.warns(FixedModesWarning, match=match) as caught:
        assert store.get(A) is None
    assert store.get(A) is None
    assert len(caught) == 1


def test_another_process_finds_what_was_put(store: Store, directory: Path) -> None:
    assert store.get(A) is None
    assert store.put(A, content_of(A), ROOM)
    assert store.put(B, b"", ROOM)
    found = output_of(
        start(
            f"print(store.get({A!r}) == content_of({A!r}), store.get({B!r}), store.get('c' * 64))",
            directory,
        )
    )
    assert found == "True b'' None\n"


def test_directory_and_entries_are_for_their_owner_alone(store: Store, directory: Path) -> None:
    before = os.umask(0)
    try:
        store.put(A, b"1", ROOM)
    finally:
        os.umask(before)
    assert directory.stat().st_mode & 0o777 == 0o700
    assert entry(directory).stat().st_mode & 0o777 == 0o600


def test_an_entry_that_is_cut_short_is_removed(store: Store, directory: Path) -> None:
    for kept in (0, 1, 20, 90, 110, 100_000, -1):
        store.put(A, content_of(A), ROOM)
        path = entry(directory)
        os.truncate(path, kept if kept >= 0 else path.stat().st_size - 1)
        expect_a_miss_and_one_warning(directory, "is damaged, or not complete")
        assert not path.exists()
    assert store.put(A, content_of(A), ROOM)
    assert store.get(A) == content_of(A)


def test_no_changed_byte_goes_unnoticed(store: Store, directory: Path) -> None:
    content = content_of(A, 500)
    store.put(A, content, ROOM)
    path = entry(directory)
    whole = path.read_bytes()
    for position in range(0, len(whole), 13):
        damaged = bytearray(whole)
        damaged[position] ^= 1
        path.write_bytes(bytes(damaged))
        with pytest.warns(FixedModesWarning, match="damaged"):
            assert Store(directory).get(A) is None
    path.write_bytes(whole + b"more")
    expect_a_miss_and_one_warning(directory, "damaged")


def test_an_entry_under_the_name_of_another_is_not_taken_for_it(
    store: Store, directory: Path
) -> None:
    store.put(B, content_of(B), ROOM)
    entry(directory).rename(directory / f"{A}.entry")
    expect_a_miss_and_one_warning(directory, "damaged")


def test_what_belongs_to_another_user_is_refused(
    store: Store, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.put(A, content_of(A), ROOM)
    real = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: real + 1)
    expect_a_miss_and_one_warning(directory, f"belongs to another user .number {real}.")
    with pytest.warns(FixedModesWarning, match="is not kept in .*: it belongs to another user"):
        assert not Store(directory).put(B, b"1", ROOM)
    monkeypatch.undo()
    assert store.get(A) == content_of(A)
    assert store.get(B) is None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_an_entry_that_another_user_has_written_is_refused(store: Store, directory: Path) -> None:
    store.put(A, content_of(A), ROOM)
    os.chown(entry(directory), 65534, 65534)
    expect_a_miss_and_one_warning(directory, "belongs to another user .number 65534.")
    os.chown(entry(directory), 0, 0)
    assert store.get(A) == content_of(A)
    os.chown(directory, 65534, 65534)
    expect_a_miss_and_one_warning(directory, "belongs to another user .number 65534.")


def test_a_clock_that_was_wrong_removes_nothing_that_is_in_use(
    store: Store, directory: Path
) -> None:
    ahead = time.time() + 10 * 365 * 86400
    store.put(A, content_of(A), ROOM)
    os.utime(entry(directory), (ahead, ahead))
    (directory / "young.new").write_bytes(b"part")
    os.utime(directory / "young.new", (ahead, ahead))
    assert store.put(B, content_of(B), ROOM)
    assert (store.get(A), store.get(B)) == (content_of(A), content_of(B))
    assert (directory / "young.new").exists()
    # Being used puts the time right.
    assert all(found.used < ahead for found in store.entries())


@pytest.mark.parametrize("home", [None, "/", "/nowhere/at/all", "/dev/null"])
def test_a_home_that_is_missing_or_of_no_use_is_at_most_one_warning(home: str | None) -> None:
    code = """
        import fixed_modes.errors
        from fixed_modes.cache.place import directory
        directory("")  # nobody may not be able to read the modules that this imports
        if os.geteuid() == 0:
            os.setgid(65534)
            os.setuid(65534)
        os.environ.pop("XDG_CACHE_HOME", None)
        os.environ.pop("HOME", None)
        if sys.argv[1] != "None":
            os.environ["HOME"] = sys.argv[1]
        store = Store(directory(""))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            # Where it can be written, that is somebody's: only looked at.
            if not os.access(store.directory.parents[1], os.W_OK):
                assert not store.put("a" * 64, b"1", 10**9)
            assert store.get("a" * 64) is None
        assert len(caught) <= 1
        print(*(warning.category.__name__ for warning in caught))
    """
    assert output_of(start(code, home)) in ("FixedModesWarning\n", "\n")


@pytest.mark.parametrize("mode", [0o620, 0o602])
def test_an_entry_that_others_may_write_to_is_refused(
    store: Store, directory: Path, mode: int
) -> None:
    store.put(A, content_of(A), ROOM)
    entry(directory).chmod(mode)
    expect_a_miss_and_one_warning(directory, f"others may write to it .mode {mode:04o}.")


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o1777])
def test_a_directory_that_others_may_write_to_is_refused(
    store: Store, directory: Path, mode: int
) -> None:
    store.put(A, content_of(A), ROOM)
    directory.chmod(mode)
    expect_a_miss_and_one_warning(directory, "others may write to it")
    with pytest.warns(FixedModesWarning, match="others may write to it"):
        assert not Store(directory).put(B, b"1", ROOM)
    directory.chmod(0o700)
    assert store.get(B) is None


def test_links_and_pipes_are_no_entries(store: Store, directory: Path, tmp_path: Path) -> None:
    store.put(A, content_of(A), ROOM)
    path = entry(directory)
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    expect_a_miss_and_one_warning(directory, "can't be read")
    path.unlink()
    # Whoever opens a pipe for reading waits for a writer, unless they take care.
    os.mkfifo(path)
    expect_a_miss_and_one_warning(directory, "not an ordinary file")
    path.unlink()
    path.mkdir()
    expect_a_miss_and_one_warning(directory, "can't be read|not an ordinary file")


def test_a_directory_that_is_a_link_is_refused(
    store: Store, directory: Path, tmp_path: Path
) -> None:
    store.put(A, content_of(A), ROOM)
    directory.rename(tmp_path / "elsewhere")
    directory.symlink_to(tmp_path / "elsewhere")
    expect_a_miss_and_one_warning(directory, "not a directory")


def test_a_directory_that_cannot_be_made_is_one_warning(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    store = Store(tmp_path / "file" / "entries")
    with pytest.warns(FixedModesWarning, match="can't be kept in") as caught:
        assert not store.put(A, b"1", ROOM)
    assert not store.put(A, b"1", ROOM)
    assert len(caught) == 1


def test_a_read_only_directory_is_read_and_one_warning_when_written() -> None:
    # The superuser may write anywhere; a process of nobody may not.
    code = """
        import fixed_modes.errors
        if os.geteuid() == 0:
            os.setgid(65534)
            os.setuid(65534)
        key, other = "a" * 64, "b" * 64
        store.put(key, content_of(key), 10**9)
        store.directory.chmod(0o500)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            written = [store.put(other, b"1", 10**9) for _ in range(2)]
        print(written, store.get(key) == content_of(key), len(os.listdir(store.directory)))
        print(*(warning.message for warning in caught))
        store.directory.chmod(0o700)
    """
    with tempfile.TemporaryDirectory() as place:
        # Unlike the fixture's directory this one is open to every user.
        os.chmod(place, 0o777)
        seen, message = output_of(start(code, Path(place) / "entries")).splitlines()
    assert seen == "[False, False] True 1"
    assert re.match("Compiled code can't be kept in .*Permission denied", message)


def test_a_full_disk_is_one_warning_and_leaves_nothing_behind(directory: Path) -> None:
    code = """
        import resource
        import fixed_modes.errors
        key = "a" * 64
        store.put(key, content_of(key, 5_000), 10**9)
        # The system then refuses to write more, as it does on a full disk.
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            written = [store.put("b" * 64, content_of("b"), 10**9) for _ in range(2)]
        print(written, store.get(key) == content_of(key, 5_000), len(os.listdir(store.directory)))
        print(*(warning.message for warning in caught))
    """
    seen, message = output_of(start(code, directory)).splitlines()
    assert seen == "[False, False] True 1"
    assert message.startswith(f"Compiled code can't be kept in {directory}: ")


def test_a_directory_that_vanishes_is_made_again(store: Store, directory: Path) -> None:
    store.put(A, b"1", ROOM)
    entry(directory).unlink()
    directory.rmdir()
    assert store.get(A) is None
    assert store.put(A, b"2", ROOM)
    assert store.get(A) == b"2"


def test_the_least_recently_used_go_first(store: Store, directory: Path) -> None:
    keys = [letter * 64 for letter in "0123456789"]
    for age, key in enumerate(reversed(keys)):
        store.put(key, content_of(key, 10_000), ROOM)
        then = time.time() - 100 * (age + 1)
        os.utime(directory / f"{key}.entry", (then, then))
    # Asked for, and so not the oldest any more.
    assert store.get(keys[0]) == content_of(keys[0], 10_000)
    assert store.put(A, content_of(A, 10_000), 60_000)
    assert {entry.path.stem for entry in store.entries()} == {A, keys[0], *keys[7:]}
    assert sum(path.stat().st_size for path in directory.iterdir()) <= 60_000
    assert not store.put(B, content_of(B, 60_000), 60_000)


def _size(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.iterdir())


def test_the_bound_holds_after_every_entry(store: Store, directory: Path) -> None:
    for number in range(40):
        assert store.put(f"{number:064}", content_of(str(number), 9_000), 100_000)
        assert _size(directory) <= 100_000
    assert len(store.entries()) >= 5
    # A smaller bound counts at once.
    assert store.put(A, content_of(A, 9_000), 50_000)
    assert _size(directory) <= 50_000


def test_the_bound_holds_for_what_other_processes_have_written(
    store: Store, directory: Path
) -> None:
    assert store.put(A, content_of(A, 9_000), 100_000)
    other = Store(directory)
    for number in range(20):
        assert other.put(f"{number:064}", content_of(str(number), 9_000), ROOM)
    assert _size(directory) > 100_000
    assert Store(directory).put(B, content_of(B, 9_000), 100_000)
    assert _size(directory) <= 100_000


def test_entries_are_not_listed_for_each_that_is_written(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed, scandir = [], os.scandir
    monkeypatch.setattr(os, "scandir", lambda path: listed.append(path) or scandir(path))
    for number in range(10):
        assert store.put(f"{number:064}", content_of(str(number), 1_000), ROOM)
    assert len(listed) == 1


def test_other_files_in_the_directory_are_left_alone(store: Store, directory: Path) -> None:
    store.put(A, content_of(A), ROOM)
    (directory / "notes.txt").write_text("mine")
    (directory / "folder.entry").mkdir()
    assert store.prune(0) == 1
    store.put(A, content_of(A), ROOM)
    assert store.clear() == 1
    assert sorted(os.listdir(directory)) == ["folder.entry", "notes.txt"]


def test_prune_removes_what_dead_processes_left(store: Store, directory: Path) -> None:
    store.put(A, content_of(A), ROOM)
    for name, age in (("old.new", 7200), ("young.new", 60)):
        (directory / name).write_bytes(b"part")
        then = time.time() - age
        os.utime(directory / name, (then, then))
    assert store.prune(ROOM) == 0
    assert sorted(os.listdir(directory)) == [f"{A}.entry", "young.new"]


WRITE_FOR_EVER = """
    import itertools
    print("ready", flush=True)
    for number in itertools.count():
        key = f"{number % 5:064x}"
        store.put(key, content_of(key), 1_000_000)
"""


@pytest.fixture
def killed() -> Callable[..., None]:
    """Start a process and kill it with SIGKILL after so many seconds of work."""

    def kill(code: str, directory: Path, seconds: float) -> None:
        process = start(code, directory)
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            time.sleep(seconds)
        finally:
            os.kill(process.pid, signal.SIGKILL)
            process.communicate()
        assert process.returncode == -signal.SIGKILL

    return kill


def test_kill_9_at_any_point_leaves_whole_entries(
    store: Store, directory: Path, killed: Callable[..., None]
) -> None:
    for round_ in range(12):
        killed(WRITE_FOR_EVER, directory, 0.003 * round_)
        for number in range(5):
            key = f"{number:064x}"
            # Warnings are errors: nothing in place is damaged.
            assert store.get(key) in (None, content_of(key))
    assert store.entries()
    assert store.put(A, content_of(A), ROOM)


def test_ten_processes_at_once(directory: Path) -> None:
    code = """
        warnings.simplefilter("error")
        seen = set()
        for _ in range(20):
            for number in range(3):
                key = f"{number:064x}"
                found = store.get(key)
                seen.add("nothing" if found is None else found == content_of(key))
                # Room for two: they remove one another's entries too.
                store.put(key, content_of(key), 650_000)
        print(sorted(seen, key=str))
    """
    processes = [start(code, directory) for _ in range(10)]
    outputs = {output_of(process) for process in processes}
    assert outputs <= {"[True, 'nothing']\n", "['nothing']\n", "[True]\n"}
    left = Store(directory)
    assert 0 < sum(entry.size for entry in left.entries()) <= 650_000
    assert [path for path in directory.iterdir() if path.suffix == ".new"] == []


def test_a_warning_says_what_can_be_done(store: Store, directory: Path) -> None:
    store.put(A, b"1", ROOM)
    entry(directory).chmod(0o666)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        store.get(A)
    text = str(caught[0].message)
    assert str(directory) in text
    assert "python -m fixed_modes cache info" in text
    assert "fixed_modes__cache=False" in text
