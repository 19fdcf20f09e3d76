"""Random graphs in both modes: ``python -m tests.conformance.fuzz --minutes 60 --seed 1``."""

from __future__ import annotations

import json
import os
import queue
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from fixed_modes.cli.console import make_console, new_table
from fixed_modes.cli.flags import MODES

#: Graphs that one process tries: a new process frees what compiled code holds.
BATCH = 150
#: Failures that look alike of which a script is written.
SCRIPTS = 3


@dataclass
class Tally:
    """What happened so far in one mode."""

    graphs: int = 0
    seen: Counter[str] = field(default_factory=Counter)
    failures: list[tuple[str, Path]] = field(default_factory=list)


class Campaign:
    """Runs batches in one mode, each in a process of its own, until the time is over.

    Parameters
    ----------
    folder
        Where the scripts of the failures are written.
    patience
        Seconds that one graph may take.
    """

    def __init__(self, mode: str, folder: Path, patience: float) -> None:
        self.mode, self.folder, self.patience = mode, folder, patience
        self.tally = Tally()
        self.folder.mkdir(parents=True, exist_ok=True)
        self.work = Path(tempfile.mkdtemp(prefix="conformance"))
        self.known = self.work / "known"

    def run(self, seed: int, seconds: float, show: Any) -> Tally:
        end = time.monotonic() + seconds
        batch = 0
        while time.monotonic() < end:
            self.run_batch(seed * 100_000 + batch, end, show)
            batch += 1
        return self.tally

    def run_batch(self, seed: int, end: float, show: Any) -> None:
        """Follow the lines of one child."""
        # What these graphs leave in a cache is of no use to anybody; a part of them is
        # stored all the same, to see that storing fails nowhere.
        cache = f"_dir={self.work / 'cache'}" if seed % 4 == 0 else "=False"
        flags = os.environ.get("AESARA_FLAGS", "") + f",fixed_modes__cache{cache}"
        current = self.work / "current.py"
        arguments = [self.mode, str(seed), str(BATCH), str(self.known), str(current)]
        child = subprocess.Popen(
            [sys.executable, "-m", "tests.conformance.worker", *arguments],
            env={**os.environ, "AESARA_FLAGS": flags.lstrip(",")},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
        )
        lines: queue.Queue[str | None] = queue.Queue()
        errors: list[str] = []
        readers = [
            threading.Thread(target=_forward, args=(child.stdout, lines.put), daemon=True),
            threading.Thread(target=_forward, args=(child.stderr, errors.append), daemon=True),
        ]
        for reader in readers:
            reader.start()
        finding = False
        while True:
            try:
                line = lines.get(timeout=self.patience)
            except queue.Empty:
                child.kill()
                self.keep("no result after the time that a graph may take", current.read_text())
                break
            if line is None:
                break
            message = json.loads(line) if line.startswith("{") else {}
            finding = finding or "found" in message
            self.take(message)
            show(self.tally)
            # A failure is made smaller also after the end.
            if time.monotonic() > end and not finding:
                child.kill()
                return
        child.wait()
        readers[1].join(5)
        if child.returncode not in (0, -9):
            text = "".join(e for e in errors if e)[-2000:]
            self.keep(
                f"{self.mode}: the process ended with {child.returncode}",
                f"{current.read_text()}\n# " + text.replace("\n", "\n# "),
            )

    def take(self, message: dict[str, Any]) -> None:
        self.tally.graphs += "try" in message
        if "seen" in message:
            self.tally.seen[message["seen"]] += 1
        if "failure" in message:
            self.keep(message["failure"], message["script"])

    def keep(self, signature: str, script: str) -> None:
        """Write the script of a failure, the first one of its kind only."""
        self.tally.seen[signature] += 1
        kept = [known for known, _ in self.tally.failures]
        if kept.count(signature) >= SCRIPTS:
            return
        number = len(self.tally.failures) + 1
        hint = re.sub(r"\W+", "-", signature.lower()).strip("-")[:60]
        path = self.folder / f"{self.mode.lower()}-{number:02d}-{hint}.py"
        path.write_text(script)
        self.tally.failures.append((signature, path))
        counts = Counter(known for known, _ in self.tally.failures)
        self.known.write_text("\n".join(s for s, count in counts.items() if count >= SCRIPTS))


def _forward(stream: Any, put: Any) -> None:
    for line in stream:
        put(line)
    put(None)


@click.command()
@click.option(
    "--minutes",
    type=click.FloatRange(min=0, min_open=True),
    default=5.0,
    show_default=True,
    help="Minutes for each mode.",
)
@click.option("--seed", type=int, default=1, show_default=True, help="Another seed, other graphs.")
@click.option("--mode", type=click.Choice(MODES), help="One mode only.")
@click.option(
    "--folder",
    type=click.Path(path_type=Path),
    default=Path("conformance-failures"),
    show_default=True,
    help="Where scripts of failures are written.",
)
@click.option("--patience", default=180.0, show_default=True, help="Seconds for one graph.")
@click.pass_context
def fuzz(
    ctx: click.Context, minutes: float, seed: int, mode: str | None, folder: Path, patience: float
) -> None:
    """Compare the modes with the Python VM on random graphs.

    Every kind of failure is made smaller and written as a script that runs on its
    own. The exit status is 1 if there is one.
    """
    from rich.progress import Progress

    console = make_console()
    failed = False
    for name in [mode] if mode else MODES:
        campaign = Campaign(name, folder, patience)
        with Progress(console=console, transient=True) as display:
            task = display.add_task(name, total=60 * minutes)
            start = time.monotonic()

            def show(
                tally: Tally,
                display: Any = display,
                task: Any = task,
                name: str = name,
                start: float = start,
            ) -> None:
                text = f"{name}: {tally.graphs} graphs, {len(tally.failures)} failures"
                display.update(task, completed=time.monotonic() - start, description=text)

            tally = campaign.run(seed, 60 * minutes, show)
        failed = failed or bool(tally.failures)
        table = new_table("Seen", "Graphs", right=("Graphs",))
        for what, count in tally.seen.most_common():
            table.add_row(what, str(count))
        console.print(f"{name}, seed {seed}: {tally.graphs} graphs in {minutes:g} minutes")
        console.print(table)
        for signature, path in tally.failures:
            console.print(f"failure: {signature}\n    {path}", soft_wrap=True)
    ctx.exit(int(failed))


if __name__ == "__main__":
    fuzz()
