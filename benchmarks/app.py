"""The command line: ``python -m benchmarks``."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path
from time import perf_counter

import click

from benchmarks import machine
from benchmarks.comparison import changes
from benchmarks.contenders import CONTENDERS
from benchmarks.environments import default_directory, prepare
from benchmarks.report import markdown, replace_results
from benchmarks.results import Run, read_run
from benchmarks.runner import Plan, interpreters, measure
from benchmarks.workload import SIZES
from benchmarks.workloads import NAMES, QUICK

_CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 90}
_EXISTING = click.Path(exists=True, dir_okay=False, path_type=Path)


class NameList(click.ParamType):
    """Names out of `known`, with commas between them."""

    name = "a,b,..."

    def __init__(self, known: Sequence[str]) -> None:
        self._known = known

    def convert(
        self, value: str | tuple[str, ...], param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, ...]:
        """Split the text; every name once, in the order given."""
        if isinstance(value, tuple):
            return value
        names = tuple(dict.fromkeys(name.strip() for name in value.split(",") if name.strip()))
        for name in names:
            if name not in self._known:
                self.fail(f"{name!r} is none of {', '.join(self._known)}", param, ctx)
        if not names:
            self.fail("no name given", param, ctx)
        return names


@click.group(context_settings=_CONTEXT)
def cli() -> None:
    """Set the modes beside code that was written by hand."""


@cli.command("list")
def list_() -> None:
    """List the workloads and the contenders."""
    from benchmarks.workloads import load

    width = max(map(len, NAMES))
    for name in NAMES:
        click.echo(f"{name:{width}}  {load(name).title}")
    click.echo(f"\nContenders: {', '.join(CONTENDERS)}")


@cli.command()
@click.option("--only", type=NameList(NAMES), help="Workloads; all by default.")
@click.option(
    "--contenders",
    type=NameList(tuple(CONTENDERS)),
    default=tuple(CONTENDERS),
    help="Default: all.",
)
@click.option("--size", type=click.Choice(SIZES), default="default", show_default=True)
@click.option(
    "--quick",
    is_flag=True,
    help="One workload of each kind, one process for each contender, three samples.",
)
@click.option(
    "--launches",
    type=click.IntRange(min=1),
    default=2,
    show_default=True,
    help="Processes for each contender with a compile cache; the first one finds it empty.",
)
@click.option(
    "--rounds",
    type=click.IntRange(min=1),
    default=9,
    show_default=True,
    help="Samples from each process.",
)
@click.option(
    "--budget",
    type=click.FloatRange(min=0, min_open=True),
    default=90,
    show_default=True,
    help="Seconds for each process, its imports apart.",
)
@click.option(
    "--json",
    "target",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Where the results go; written after each workload.",
)
@click.option("--resume", is_flag=True, help="Keep the workloads that the file has already.")
@click.option(
    "--environments",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where the virtual environments of PyTensor and stock Aesara are made, or are "
    "already; by default in the user's cache directory.",
)
@click.option(
    "--check", is_flag=True, help="End with status 1 if a contender fails or numbers disagree."
)
def run(
    only: tuple[str, ...] | None,
    contenders: tuple[str, ...],
    size: str,
    quick: bool,
    launches: int,
    rounds: int,
    budget: float,
    target: Path | None,
    resume: bool,
    environments: Path | None,
    check: bool,
) -> None:
    """Measure, and print the tables.

    Each contender runs in a process of its own; the processes of one workload take
    turns.  A contender that fails is reported and stops nothing.
    """
    if quick:
        launches, rounds = 1, 3
    only = only or (QUICK if quick else NAMES)
    found = Run(
        date=datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        size=size,
        machine=machine.describe(),
    )
    if resume:
        found = _unfinished(target, found)
    done = set(found.by_workload())
    place = environments or default_directory()
    with _progress(len(only)) as report:

        def make(name: str) -> str:
            return str(prepare(name, place, lambda what: report(0, what)))

        plan = Plan(
            size=size,
            launches=launches,
            rounds=rounds,
            budget=budget,
            together=machine.cores(),
            pythons=interpreters(contenders, sys.executable, make),
            shared=place / "c-code",
        )
        for number, workload in enumerate(only):
            if workload in done:
                continue

            def tell(what: str, number: int = number, workload: str = workload) -> None:
                report(number, f"{workload}: {what}")

            start = perf_counter()
            found.results += measure(workload, contenders, plan, tell)
            found.seconds += perf_counter() - start
            if target is not None:
                found.write(target)
    click.echo(markdown(found))
    if check and not all(result.ok for result in found.results):
        sys.exit(1)


def _unfinished(target: Path | None, new: Run) -> Run:
    if target is None:
        raise click.UsageError("--resume needs --json")
    if not target.exists():
        return new
    old = _read(target)
    if (old.size, old.machine) != (new.size, new.machine):
        raise click.UsageError(f"{target} was measured at another size or on another machine")
    return old


@cli.command()
@click.argument("results", type=_EXISTING)
@click.option(
    "--into",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Put the tables into this page, between its marks, instead of printing them.",
)
@click.option(
    "--plots",
    type=click.Path(file_okay=False, path_type=Path),
    help="Draw the plots too, as SVG and PNG, into this directory.",
)
def report(results: Path, into: Path | None, plots: Path | None) -> None:
    """Write the tables of a result file, in Markdown, and draw its plots.

    The plots need Matplotlib: pip install "fixed-modes[bench]".
    """
    found = _read(results)
    if into is None:
        click.echo(markdown(found))
    else:
        page = into.read_text(encoding="utf-8")
        try:
            into.write_text(replace_results(page, markdown(found)), encoding="utf-8")
        except ValueError as error:
            raise click.ClickException(f"{into}: {error}") from error
    if plots is not None:
        try:
            from benchmarks.plots import draw_all

            for path in draw_all(found, plots):
                click.echo(path, err=True)
        except ModuleNotFoundError as error:
            if error.name != "matplotlib":
                raise
            raise click.ClickException('pip install "fixed-modes[bench]" first') from error


@cli.command()
@click.argument("before", type=_EXISTING)
@click.argument("after", type=_EXISTING)
@click.option(
    "--factor",
    type=click.FloatRange(min=1),
    default=1.3,
    show_default=True,
    help="How much larger a ratio may be.",
)
def compare(before: Path, after: Path, factor: float) -> None:
    """Compare the ratios to code written by hand of two result files.

    Ends with status 1 where one has become worse by more than the factor, or
    where a contender fails that did not.
    """
    found = changes(_read(before), _read(after))
    if not found:
        raise click.ClickException("the files have no contender on a workload in common")
    worse = 0
    for change in found:
        is_worse = change.is_worse(factor)
        worse += is_worse
        click.echo(
            f"{'WORSE' if is_worse else 'ok':5}  {change.workload}, {change.contender}: "
            f"{_shown(change.before)} -> {_shown(change.after)}"
        )
    if worse:
        sys.exit(1)


@cli.command()
@click.option("--only", type=NameList(NAMES), default=NAMES, help="Workloads; all by default.")
@click.option(
    "--modes",
    type=NameList(("NUMBA_FIXED", "JAX_FIXED")),
    default=("NUMBA_FIXED", "JAX_FIXED"),
    help="By default both.",
)
@click.option("--size", type=click.Choice(SIZES), default="tiny", show_default=True)
@click.option(
    "--workers",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Also start so many processes at once on a full cache.",
)
@click.option("--timeout", type=click.FloatRange(min=0, min_open=True), default=900.0)
@click.option(
    "--json",
    "target",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Where the results go; written after each workload.",
)
def cache(
    only: tuple[str, ...],
    modes: tuple[str, ...],
    size: str,
    workers: int,
    timeout: float,
    target: Path | None,
) -> None:
    """Measure the start of the modes with an empty compile cache and with a full one."""
    from benchmarks.cache import markdown as table_of
    from benchmarks.cache import measure as measure_starts

    results = []
    cases = [(workload, mode) for workload in only for mode in modes]
    with _progress(len(cases)) as report:
        for number, (workload, mode) in enumerate(cases):

            def tell(what: str, number: int = number, workload: str = workload) -> None:
                report(number, f"{workload}: {what}")

            results.append(measure_starts(workload, mode, size, workers, timeout, tell))
            if target is not None:
                found = {
                    "date": datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
                    "machine": machine.describe(),
                    "size": size,
                    "workers": workers,
                    "results": [result.as_json() for result in results],
                }
                target.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    click.echo(table_of(results, workers, machine.describe()["cores"]))


@cli.command()
@click.option("--steps", type=click.IntRange(min=1), default=100_000, show_default=True)
@click.option("--calls", type=click.IntRange(min=1), default=100, show_default=True)
def checks(steps: int, calls: int) -> None:
    """Measure loops with and without index checks, in nanoseconds a step."""
    from benchmarks.checks import costs

    click.echo("| mode | loop | without | with | ratio |\n| :-- | :-- | --: | --: | --: |")
    for mode in ("NUMBA_FIXED", "JAX_FIXED"):
        for cost in costs(mode, steps, calls):
            numbers = f"{cost.without:.2f} | {cost.checked:.2f} | {cost.ratio:.3f}"
            click.echo(f"| {mode} | {cost.name} | {numbers} |")


def _shown(ratio: float | None) -> str:
    return "failed" if ratio is None else f"{ratio:.3g}"


def _read(path: Path) -> Run:
    try:
        return read_run(path)
    except ValueError as error:
        raise click.ClickException(str(error)) from error


@contextmanager
def _progress(total: int) -> Iterator[Callable[[int, str], None]]:
    """Show a bar on a terminal, and a line for each workload where there is none."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    if not sys.stderr.isatty():
        last = -1

        def tell(done: int, what: str) -> None:
            nonlocal last
            if done != last:
                last = done
                click.echo(f"{done} of {total}, {what.partition(':')[0]}", err=True)

        yield tell
        return
    with Progress(
        BarColumn(bar_width=20),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}", markup=False),
        console=Console(stderr=True),
        transient=True,
    ) as display:
        task = display.add_task("", total=total)
        yield lambda done, what: display.update(task, completed=done, description=what)
