"""Upstream's tests: fetched with pip once, and run in processes of their own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from fixed_modes.cli.flags import with_mode

VERSION = "2.9.4"
PLUGIN = Path(__file__).parent / "plugin"
ROOT = Path(__file__).parents[2]


def fetch(cache: Path) -> Path:
    """Give the folder that holds upstream's tests; downloads them if need be.

    Only the tests are taken from the source distribution: they are to import the
    installed Aesara.
    """
    folder = cache / f"aesara-{VERSION}"
    if folder.exists():
        return folder
    download = cache / "download"
    download.mkdir(parents=True, exist_ok=True)
    pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", "aesara"]
    subprocess.run([*pip, "-d", str(download), f"aesara=={VERSION}"], check=True)
    partial = cache / "partial"
    shutil.rmtree(partial, ignore_errors=True)
    with tarfile.open(next(download.glob("*.tar.gz"))) as archive:
        for member in archive.getmembers():
            inside = member.name.split("/", 1)[-1]
            if member.isfile() and (inside == "conftest.py" or inside.startswith("tests/")):
                target = partial / inside
                target.parent.mkdir(parents=True, exist_ok=True)
                content = archive.extractfile(member)
                assert content is not None
                target.write_bytes(content.read())
    # Pytest's marks and options are in the project file of the distribution, not needed here.
    (partial / "pytest.ini").write_text("[pytest]\n")
    partial.rename(folder)
    return folder


class Runner:
    """Runs tests in one mode and keeps their results in a file, one JSON object a line.

    Parameters
    ----------
    folder
        What `fetch` gives.
    mode
        The default mode of the tests.
    timeout
        Seconds for one test.
    compiler
        Whether Aesara may use a C compiler; without one FAST_RUN runs in Python. Tests
        that ask for FAST_RUN themselves use it in every mode.
    """

    def __init__(
        self, folder: Path, results: Path, mode: str, timeout: float, compiler: bool = True
    ) -> None:
        self.folder, self.mode, self.timeout, self.compiler = folder, mode, timeout, compiler
        self.name = mode if compiler else f"{mode}, without a compiler"
        self.path = results / f"{mode}{'' if compiler else '-no-cxx'}.jsonl"
        results.mkdir(parents=True, exist_ok=True)

    def results(self) -> dict[str, dict[str, Any]]:
        """Give the last result of each test; a test without an end ended its process."""
        found: dict[str, dict[str, Any]] = {}
        if self.path.exists():
            for line in self.path.read_text(encoding="utf-8").splitlines():
                entry = json.loads(line)
                if "started" in entry:
                    entry = {"id": entry["id"], "outcome": "crashed", "seconds": 0.0, "text": ""}
                found[entry["id"]] = entry
        return found

    def collect(self, path: str) -> list[str]:
        """List the ids of the tests in a file or folder."""
        done = subprocess.run(
            [*self._pytest(path), "--collect-only", path],
            **self._where(path),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
        )
        ids = [line for line in done.stdout.splitlines() if line.startswith("tests/")]
        ids = [line for line in ids if "::" in line]
        if not ids:
            raise RuntimeError(f"no tests in {path}:\n{done.stdout[-2000:]}")
        return ids

    def run(self, path: str, ids: list[str], tell: Callable[[], None]) -> None:
        """Run the tests of one file; a process that dies is followed by another one."""
        left = list(ids)
        while left:
            before = self._size()
            self._run_once(path, left, tell)
            ended = {entry["id"] for entry in self._entries_since(before)}
            if not ended & set(left):
                for test in left:
                    self._note(test, "the process ended before its first test")
                return
            left = [test for test in left if test not in ended]
            tell()

    def _run_once(self, path: str, ids: list[str], tell: Callable[[], None]) -> None:
        names = self.path.with_suffix(f".{os.getpid()}.{abs(hash(path))}.args")
        names.write_text("\n".join(ids))
        child = subprocess.Popen(
            [*self._pytest(path), f"@{names}"],
            **self._where(path),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        size, since = self._size(), time.monotonic()
        # A test that its timer does not stop hangs, in compiled code for example.
        while child.poll() is None:
            time.sleep(0.5)
            if self._size() != size:
                size, since = self._size(), time.monotonic()
                tell()
            elif time.monotonic() - since > 10 * self.timeout + 60:
                child.kill()
        names.unlink()

    def _pytest(self, path: str) -> list[str]:
        return [
            *[sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
            *["-p", "upstream_plugin", "-p", "no:hypothesispytest", "--tb=short"],
        ]

    def _where(self, path: str) -> dict[str, Any]:
        linker = self.linker(path)
        mode = "FAST_RUN" if path.startswith("tests/link") else self.mode
        flags = with_mode(os.environ.get("AESARA_FLAGS", ""), mode)
        flags += "" if self.compiler else ",cxx="
        places = [str(PLUGIN), str(ROOT), os.environ.get("PYTHONPATH", "")]
        variables = {
            **os.environ,
            "AESARA_FLAGS": flags,
            "PYTHONPATH": os.pathsep.join(p for p in places if p),
            "UPSTREAM_RESULTS": str(self.path),
            "UPSTREAM_TIMEOUT": str(self.timeout),
            "UPSTREAM_LINKER": linker,
        }
        return {"cwd": self.folder, "env": variables}

    def linker(self, path: str) -> str:
        """Give the mode whose linker replaces the stock one, for tests of linkers."""
        kind = {"tests/link/numba": "NUMBA_FIXED", "tests/link/jax": "JAX_FIXED"}
        applies = any(path.startswith(k) and self.mode == mode for k, mode in kind.items())
        return self.mode if applies else ""

    def _size(self) -> int:
        return self.path.stat().st_size if self.path.exists() else 0

    def _entries_since(self, size: int) -> Iterator[dict[str, Any]]:
        with self.path.open("rb") as file:
            file.seek(size)
            for line in file.read().decode().splitlines():
                yield json.loads(line)

    def _note(self, test: str, text: str) -> None:
        entry = {"id": test, "outcome": "failed", "seconds": 0.0, "text": text}
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")
