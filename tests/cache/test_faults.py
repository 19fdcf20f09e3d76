"""Faults of disks and processes: at worst a compilation and one warning, and right values.

Each with real processes and real signals, and with both kinds of entries: rewritten graphs
and machine code.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import fixed_modes
from fixed_modes.cache.store import Store

INSTALLED_IN = Path(fixed_modes.__file__).parents[1]

COMMON = """
import json, os, sys, warnings
import aesara, fixed_modes
import aesara.tensor as at
from fixed_modes.errors import FixedModesWarning

def compile_and_call():
    "Compile a small graph; say what came of it, and what was warned of."
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", FixedModesWarning)
        x = at.dvector("x")
        f = aesara.function([x], x.cumsum(), mode="NUMBA_FIXED")
        values = f([1.0, 3.0]).tolist()
    texts = [str(w.message) for w in caught if w.category is FixedModesWarning]
    return f, {"values": values, "report": fixed_modes.cache_report(f), "warnings": texts}

def tell():
    print(json.dumps(compile_and_call()[1]), flush=True)

def become_nobody():
    if os.geteuid() == 0:
        os.setgid(65534)
        os.setuid(65534)
"""
COMPILED = ["graph rewritten", "compiled"]
LOADED = ["graph loaded", "loaded"]
NOT_WRITTEN = ["graph rewritten (the entry could not be written)",
               "compiled (the entry could not be written)"]  # fmt: skip


def start(place: Path, code: str) -> subprocess.Popen[str]:
    flags = f"{os.environ['AESARA_FLAGS']},fixed_modes__cache=True,fixed_modes__cache_dir={place}"
    return subprocess.Popen(
        [sys.executable, "-c", COMMON + textwrap.dedent(code)],
        env={**os.environ, "PYTHONPATH": str(INSTALLED_IN), "AESARA_FLAGS": flags},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def found_by(process: subprocess.Popen[str]) -> Any:
    output, errors = process.communicate(timeout=600)
    assert process.returncode == 0, errors
    return json.loads(output.splitlines()[-1])


def run(place: Path, code: str = "tell()") -> Any:
    return found_by(start(place, code))


def expect(found: Any, report: list[str], warned: str = "") -> None:
    """Compare values and reports; there is one warning, or none."""
    assert found["values"] == [1.0, 4.0]
    assert found["report"] == report
    assert len(found["warnings"]) == bool(warned)
    assert all(warned in text for text in found["warnings"])


def entries(place: Path) -> list[Path]:
    return sorted((place / "compiled-1").iterdir())


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a cache in which the graph is; it is copied, not changed."""
    place = tmp_path_factory.mktemp("full")
    expect(run(place), COMPILED)
    assert len(entries(place)) == 2
    return place


@pytest.fixture
def place(full: Path, tmp_path: Path) -> Path:
    """Copy a cache in which the graph is."""
    (tmp_path / "compiled-1").mkdir(mode=0o700)
    for path in entries(full):
        (tmp_path / "compiled-1" / path.name).write_bytes(path.read_bytes())
        (tmp_path / "compiled-1" / path.name).chmod(0o600)
    return tmp_path


def test_a_full_cache_is_loaded(place: Path) -> None:
    expect(run(place), LOADED)


def test_entries_that_are_cut_short(place: Path) -> None:
    for path in entries(place):
        os.truncate(path, path.stat().st_size // 2)
    expect(run(place), COMPILED, "damaged")
    expect(run(place), LOADED)


def test_entries_with_a_flipped_bit(place: Path) -> None:
    for path in entries(place):
        content = bytearray(path.read_bytes())
        content[len(content) * 2 // 3] ^= 0x10
        path.write_bytes(bytes(content))
    expect(run(place), COMPILED, "damaged")
    expect(run(place), LOADED)


def test_entries_that_have_changed_names(place: Path) -> None:
    one, other = entries(place)
    content = one.read_bytes()
    one.write_bytes(other.read_bytes())
    other.write_bytes(content)
    expect(run(place), COMPILED, "damaged")
    expect(run(place), LOADED)


def test_whole_entries_with_the_content_of_others(place: Path) -> None:
    """The checksum is right, as that of a program that writes what it likes."""
    store = Store(place / "compiled-1")
    one, other = (path.stem for path in entries(place))
    contents = {one: store.get(other), other: store.get(one)}
    for key, content in contents.items():
        assert content is not None
        assert store.put(key, content, 10**9)
    expect(run(place), COMPILED)
    expect(run(place), LOADED)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_entries_of_another_user(place: Path) -> None:
    for path in entries(place):
        os.chown(path, 65534, 65534)
    found = run(place)
    assert found["values"] == [1.0, 4.0]
    assert len(found["warnings"]) == 1
    assert "belongs to another user" in found["warnings"][0]


def test_a_directory_that_others_may_write_to(place: Path) -> None:
    (place / "compiled-1").chmod(0o777)
    expect(run(place), NOT_WRITTEN, "others may write to it")


def test_entries_that_others_may_write_to(place: Path) -> None:
    for path in entries(place):
        path.chmod(0o666)
    expect(run(place), COMPILED, "others may write to it")
    # They have been replaced.
    expect(run(place), LOADED)


def test_a_directory_that_vanishes_while_a_process_runs(place: Path) -> None:
    code = """
        import gc, shutil
        tell()
        gc.collect()
        shutil.rmtree(aesara.config.fixed_modes__cache_dir)
        tell()
    """
    expect(run(place, code), COMPILED)
    expect(run(place), LOADED)


def test_a_directory_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    expect(run(tmp_path / "file" / "cache"), NOT_WRITTEN, "Not a directory")


@pytest.fixture
def open_place() -> Iterator[Path]:
    """Make a directory that every user may write to, unlike those of pytest."""
    with tempfile.TemporaryDirectory() as place:
        os.chmod(place, 0o777)
        yield Path(place)


def test_a_read_only_directory(open_place: Path) -> None:
    # The superuser may write anywhere; a process of nobody may not.
    code = """
        from numba.core import entrypoints  # modules that nobody may not be able to read
        import fixed_modes.numba.module, fixed_modes.cache.graphs
        compile_and_call()
        directory = aesara.config.fixed_modes__cache_dir + "/read-only"
        aesara.config.fixed_modes__cache_dir = directory
        become_nobody()
        os.makedirs(directory + "/compiled-1", mode=0o700)
        os.chmod(directory + "/compiled-1", 0o500)
        tell()
        assert os.listdir(directory + "/compiled-1") == []
    """
    expect(run(open_place, code), NOT_WRITTEN, "Permission denied")


def test_a_full_disk(tmp_path: Path) -> None:
    # The system refuses to write more than so many bytes into a file, as on a full disk:
    # no byte at all, then the entry of the graph but not that of the code.
    code = """
        import gc, resource
        resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))
        tell()
    """
    expect(run(tmp_path, code.format(limit=0)), NOT_WRITTEN, "File too large")
    assert entries(tmp_path) == []
    limited = run(tmp_path, code.format(limit=6000))
    expect(limited, [COMPILED[0], NOT_WRITTEN[1]], "File too large")
    assert [path.name.startswith("graph-") for path in entries(tmp_path)] == [True]
    expect(run(tmp_path), ["graph loaded", "compiled"])
    expect(run(tmp_path), LOADED)


WRITE_FOR_EVER = """
    f, _ = compile_and_call()
    rewritten, code = f.maker.rewritten, f.vm.jit_fn.function._cache
    ((signature, result),) = f.vm.jit_fn.function.overloads.items()
    print("ready", flush=True)
    while True:
        rewritten.record()
        rewritten.save(True)
        code.save_overload(signature, result)
"""


@contextmanager
def writing(place: Path) -> Iterator[subprocess.Popen[str]]:
    """Have a process write both entries again and again; it is killed in the end."""
    process = start(place, WRITE_FOR_EVER)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()


def test_kill_9_while_graphs_and_code_are_written(tmp_path: Path) -> None:
    chance = random.Random(7)
    for _ in range(8):
        with writing(tmp_path) as process:
            time.sleep(chance.uniform(0, 0.05))
        assert process.returncode == -signal.SIGKILL
        # Warnings are errors here: what is in place is whole.
        store = Store(tmp_path / "compiled-1")
        keys = [path.stem for path in entries(tmp_path) if path.suffix == ".entry"]
        assert len(keys) == 2
        assert all(store.get(key) for key in keys)
    expect(run(tmp_path), LOADED)


def test_a_process_that_is_stopped_in_the_middle_of_writing_stops_nobody(tmp_path: Path) -> None:
    with writing(tmp_path) as process:
        for _ in range(3):
            time.sleep(0.02)
            os.kill(process.pid, signal.SIGSTOP)
            expect(run(tmp_path), LOADED)
            os.kill(process.pid, signal.SIGCONT)


def test_what_a_killed_process_leaves_behind_is_no_hindrance(place: Path) -> None:
    directory = place / "compiled-1"
    for path in entries(place):
        # As names of temporary files, and of the locks that other caches have.
        (directory / f"{path.stem}-0123.new").write_bytes(path.read_bytes()[:100])
        (directory / f"{path.stem}.lock").write_text("")
        path.unlink()
    expect(run(place), COMPILED)
    expect(run(place), LOADED)


def test_ten_processes_that_compile_one_graph_at_once(tmp_path: Path) -> None:
    with ThreadPoolExecutor(10) as pool:
        runs = [run_.result() for run_ in [pool.submit(run, tmp_path) for _ in range(10)]]
    for found in runs:
        assert found["values"] == [1.0, 4.0]
        assert found["warnings"] == []
        # Whoever comes late finds what another has stored.
        graph, code = found["report"]
        assert graph in (COMPILED[0], LOADED[0])
        assert code in (COMPILED[1], LOADED[1])
    assert len(entries(tmp_path)) == 2
    expect(run(tmp_path), LOADED)
