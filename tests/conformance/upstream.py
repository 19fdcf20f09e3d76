"""Upstream's own tests in one of the modes: ``python -m tests.conformance.upstream``."""

from __future__ import annotations

import re
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import click

from fixed_modes.cli.console import make_console, new_table
from fixed_modes.cli.flags import MODES
from tests.conformance.not_applicable import reason_for
from tests.conformance.upstream_source import Runner, fetch

REFERENCE = "FAST_RUN"
_TENSOR_TESTS = "basic subtensor elemwise math extra_ops nlinalg slinalg sort"
#: What runs without a path on the command line.
PATHS = (
    "tests/scan/test_basic.py",
    "tests/scan/test_checkpoints.py",
    "tests/scan/test_printing.py",
    "tests/scan/test_rewriting.py",
    "tests/scan/test_utils.py",
    "tests/scan/test_views.py",
    "tests/test_ifelse.py",
    "tests/compile/test_builders.py",
    "tests/test_gradient.py",
    "tests/test_rop.py",
    *(
        f"tests/tensor/random/test_{n}.py"
        for n in ["basic", "op", "rewriting", "type", "utils", "var"]
    ),
    *(f"tests/tensor/test_{n}.py" for n in _TENSOR_TESTS.split()),
)
_LINK_TESTS = {
    "NUMBA_FIXED": "basic elemwise extra_ops nlinalg performance random scalar scan sparse "
    "tensor_basic",
    "JAX_FIXED": "basic elemwise extra_ops nlinalg random scalar scan shape slinalg subtensor "
    "tensor_basic",
}
LINK_PATHS = {
    mode: tuple(f"tests/link/{mode.split('_')[0].lower()}/test_{name}.py" for name in names.split())
    for mode, names in _LINK_TESTS.items()
}
#: The columns of the table.
VERDICTS = (
    "passed in both",
    "failed only here",
    "not applicable",
    "passed only here",
    "failed in both",
    "skipped",
)


def verdict(test: str, mode: str, reference: str, here: str) -> str:
    """Compare what became of one test."""
    if here == "passed":
        return "passed in both" if reference == "passed" else "passed only here"
    if reference in ("skipped", "xfailed") or here in ("skipped", "xfailed"):
        return "skipped"
    if reference != "passed":
        return "failed in both"
    return "not applicable" if reason_for(test, mode) else "failed only here"


@click.command()
@click.option("--mode", type=click.Choice(MODES), required=True)
@click.option(
    "--cache",
    type=click.Path(path_type=Path),
    default=Path.home() / ".cache" / "fixed-modes",
    help="Sources and results.",
)
@click.option("--jobs", default=2, show_default=True, help="Files that run at once.")
@click.option(
    "--timeout", default=300.0, show_default=True, help="Seconds of computing for one test."
)
@click.option(
    "--again",
    type=click.Choice(["failed", "all"]),
    help="Run tests again that have a result in this mode.",
)
@click.option("--table", type=click.Path(path_type=Path), help="Write the table in Markdown.")
@click.option(
    "--no-compiler",
    is_flag=True,
    help="Without a C compiler FAST_RUN runs in Python: its C code takes hours.",
)
@click.option("--only-here", is_flag=True, help="Leave FAST_RUN's results as they are.")
@click.option("--no-run", is_flag=True, help="Only show the results there are.")
@click.argument("paths", nargs=-1)
@click.pass_context
def upstream(
    ctx: click.Context,
    mode: str,
    cache: Path,
    jobs: int,
    timeout: float,
    again: str | None,
    table: Path | None,
    no_compiler: bool,
    only_here: bool,
    no_run: bool,
    paths: tuple[str, ...],
) -> None:
    """Run Aesara's tests with a mode as the default, and compare with FAST_RUN.

    A test that has a result is not run again, unless asked for: an interrupted run
    goes on where it was. The exit status is 1 if a test fails in this mode only.
    """
    folder = fetch(cache)
    chosen = list(paths or (*LINK_PATHS[mode], *PATHS))
    results = cache / "results"
    stock = Runner(folder, results, REFERENCE, timeout, compiler=not no_compiler)
    ours = Runner(folder, results, mode, timeout, compiler=not no_compiler)
    if not no_run:
        run_all([ours] if only_here else [stock, ours], chosen, jobs, again)
    reference, here = stock.results(), ours.results()
    failed = report(mode, chosen, reference, here, table)
    ctx.exit(int(failed))


def run_all(runners: list[Runner], paths: list[str], jobs: int, again: str | None) -> None:
    """Run what has no result yet, file by file, in both modes."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console = make_console()
    lock = threading.Lock()
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True) as display:

        def run_file(job: tuple[Runner, str]) -> None:
            runner, path = job
            task = display.add_task(f"{runner.mode} {path}", total=None)
            ids = runner.collect(path)
            known = runner.results()
            wanted = [i for i in ids if _is_wanted(known.get(i), again, runner.mode)]
            display.update(task, total=len(ids))
            done = len(ids) - len(wanted)
            display.update(task, completed=done)
            names = set(wanted)

            def tell() -> None:
                fresh = runner.results()
                count = sum(
                    fresh[i] is not None and fresh.get(i) != known.get(i)
                    for i in names
                    if i in fresh
                )
                display.update(task, completed=done + count)

            runner.run(path, wanted, tell)
            with lock:
                fresh = runner.results()
                counts = Counter(fresh[i]["outcome"] for i in ids if i in fresh)
                text = ", ".join(f"{n} {what}" for what, n in counts.most_common())
                console.print(f"{runner.name}, {path}: {text}", soft_wrap=True)
            display.remove_task(task)

        pairs = [(runner, path) for path in paths for runner in runners]
        with ThreadPoolExecutor(jobs) as pool:
            list(pool.map(run_file, pairs))


def _is_wanted(known: dict[str, Any] | None, again: str | None, mode: str) -> bool:
    if known is None:
        return True
    if again is None:
        return False
    if mode == REFERENCE:
        # What fails there fails again; a process that was stopped is another matter.
        return known["outcome"] in ("crashed", "timeout")
    return again == "all" or known["outcome"] not in ("passed", "skipped", "xfailed")


def report(
    mode: str,
    paths: list[str],
    reference: dict[str, Any],
    here: dict[str, Any],
    markdown: Path | None,
) -> bool:
    """Print the table and the tests that fail in this mode only."""
    counts: dict[str, Counter[str]] = {path: Counter() for path in paths}
    failures = []
    for test, result in here.items():
        path = next((p for p in paths if test.startswith(p)), None)
        if path is None or test not in reference:
            continue
        what = verdict(test, mode, reference[test]["outcome"], result["outcome"])
        counts[path][what] += 1
        if what == "failed only here":
            failures.append((test, result))
    console = make_console()
    console.width = max(console.width, 140)
    table = new_table("File", *VERDICTS, right=VERDICTS)
    rows = [(path, *(str(c[v]) for v in VERDICTS)) for path, c in counts.items() if c]
    total = sum(counts.values(), Counter())
    rows.append(("all", *(str(total[v]) for v in VERDICTS)))
    for row in rows:
        table.add_row(*row)
    console.print(table)
    for test, result in failures:
        console.print(f"{result['outcome']}: {test}\n    {_reason(result['text'])}", soft_wrap=True)
    if markdown is not None:
        lines = [("File", *VERDICTS), ("---", *("--:" for _ in VERDICTS)), *rows]
        markdown.write_text("".join(f"| {' | '.join(line)} |\n" for line in lines))
    return bool(failures)


def _reason(text: str) -> str:
    """Give the line of a traceback that says most."""
    lines = [line for line in text.splitlines() if line.strip()]
    errors = [
        line for line in lines if re.match(r"E\s+[\w.]*(Error|Exception|Timeout|Failed)", line)
    ]
    return (errors or lines or ["no output"])[-1][:200]


if __name__ == "__main__":
    upstream()
