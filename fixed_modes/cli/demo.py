"""``demo``: the two reports that this package began with, before and after."""

from __future__ import annotations

import os
import platform
from typing import TYPE_CHECKING

import click

from fixed_modes._version import __version__
from fixed_modes.cli.children import Job, Outcome, run_jobs
from fixed_modes.cli.claims import (
    FULL_COUNT,
    Claim,
    ModeResults,
    check_claims,
    holds_op_from_graph,
    is_in_place,
    shows_log,
    speed_ratio,
)
from fixed_modes.cli.console import make_console, new_table, show_progress
from fixed_modes.cli.flags import MODES, without_c_scans
from fixed_modes.cli.versions import find_versions

if TYPE_CHECKING:
    from rich.console import Console

STOCK_MODES = ("FAST_RUN", "NUMBA", "JAX")
#: Seconds that a timed call of a stock mode may take; with more, fewer draws are made.
_LIMIT = 15.0
#: Seconds that the process of a mode may take.
_TIMEOUT = 300.0
_REPORTS = "fixed_modes.cli.reports"


@click.command()
@click.option(
    "--draws",
    "count",
    type=click.IntRange(min=2),
    default=FULL_COUNT,
    show_default=True,
    help="How many normal draws are timed.",
)
@click.pass_context
def demo(ctx: click.Context, count: int) -> None:
    """Show both reported bugs in the stock modes, and gone in the fixed ones.

    Takes one to two minutes on two cores, most of them in the stock modes. What
    is claimed is checked: the exit status is 1 when a claim does not hold.
    """
    stock_import, results = measure(count)
    claims = check_claims(results, count)
    console = make_console()
    _print_head(console)
    _print_report_a(console, results)
    _print_report_b(console, results)
    _print_times(console, results, count)
    _print_stock_import(console, stock_import)
    _print_warnings(console, results)
    _print_claims(console, claims)
    ctx.exit(0 if all(claim.holds for claim in claims) else 1)


def measure(count: int) -> tuple[Outcome, dict[str, ModeResults]]:
    """Run everything, each mode in a process of its own.

    Returns
    -------
    tuple
        Whether stock Numba can be imported without help, and the results by mode.
    """
    flags = without_c_scans(os.environ.get("AESARA_FLAGS", ""))
    environment = {**os.environ, "AESARA_FLAGS": flags}
    modes = (*STOCK_MODES, *MODES)
    whats = ("report A", "report B", f"{count:,} draws")
    with show_progress(1 + len(modes) * len(whats)) as progress:
        progress(0, "stock NUMBA, imported as it is")
        job = Job(f"{_REPORTS}:import_stock_numba", {})
        (stock_import,) = run_jobs([job], _TIMEOUT, environment=environment)
        results = {}
        for number, mode in enumerate(modes):

            def on_start(index: int, mode: str = mode, done: int = 1 + number * 3) -> None:
                progress(done + index, f"{mode}: {whats[index]}")

            outcomes = run_jobs(_jobs(mode, count), _TIMEOUT, on_start, environment)
            results[mode] = ModeResults(*outcomes)
    return stock_import, results


def _jobs(mode: str, count: int) -> list[Job]:
    if mode in ("FAST_RUN", "NUMBA"):
        draws = Job(f"{_REPORTS}:time_stock_draws", {"mode": mode, "count": count, "limit": _LIMIT})
    else:
        draws = Job(f"{_REPORTS}:time_fixed_draws", {"mode": mode, "count": count})
    return [
        Job(f"{_REPORTS}:report_a", {"mode": mode}),
        Job(f"{_REPORTS}:report_b", {"mode": mode}),
        draws,
    ]


def _print_head(console: Console) -> None:
    shown = ("Python", "aesara", "numpy", "numba", "jax")
    versions = ", ".join(f"{v.name} {v.version}" for v in find_versions() if v.name in shown)
    console.print(f"fixed-modes {__version__} on {platform.machine()}, {os.cpu_count()} CPUs")
    console.print(versions)


def _print_report_a(console: Console, results: dict[str, ModeResults]) -> None:
    _print_title(
        console,
        "Report A: inner graphs of scans are not rewritten",
        "aesara.scan maps OpFromGraph([x], [log(x)], inline=True) over [1, 2, 3, 4].",
    )
    for mode in results:
        outcome = results[mode].report_a
        if not outcome.ok:
            _print_failure(console, mode, outcome)
            continue
        graph = outcome.value["graph"]
        if holds_op_from_graph(graph):
            fact = "the OpFromGraph is still there"
        elif shows_log(graph):
            fact = "inlined, a plain log"
        else:
            fact = "neither log nor OpFromGraph"
        _print_graph(console, mode, fact, graph, outcome.value["values"])


def _print_report_b(console: Console, results: dict[str, ModeResults]) -> None:
    _print_title(
        console,
        "Report B: random variables inside scans copy their generator at every step",
        "RandomStream(23).normal() in a scan of 10 steps. The last entry in the braces of\n"
        "normal_rv is `inplace`: False means a copy of the whole generator for each draw.",
    )
    for mode in results:
        outcome = results[mode].report_b
        if not outcome.ok:
            _print_failure(console, mode, outcome)
            continue
        graph = outcome.value["graph"]
        fact = f"inplace is {is_in_place(graph)}"
        _print_graph(console, mode, fact, graph, outcome.value["values"])


def _print_times(console: Console, results: dict[str, ModeResults], count: int) -> None:
    _print_title(
        console,
        f"Time of {count:,} normal draws in a scan",
        "Speeds are per draw. The first call includes compilation.",
    )
    numbers = ("Draws", "Time", "Per draw", "x FAST_RUN", "x NUMBA", "First call")
    table = new_table("Mode", *numbers, right=numbers)
    for mode in results:
        outcome = results[mode].draws
        if not outcome.ok:
            table.add_row(mode, *["-"] * len(numbers))
            continue
        timed = outcome.value
        speeds = [
            ratio(speed_ratio(timed, stock.value)) if stock.ok else "-"
            for stock in (results["FAST_RUN"].draws, results["NUMBA"].draws)
        ]
        table.add_row(
            mode,
            f"{timed['count']:,}",
            duration(timed["seconds"]),
            duration(timed["seconds"] / timed["count"]),
            *speeds,
            duration(timed["first"]),
        )
    console.print(table)
    for mode in results:
        outcome = results[mode].draws
        if not outcome.ok:
            console.print(f"{_label(mode)} gives no time: {outcome.error}")
        elif outcome.value["count"] < count:
            console.print(
                f"{_label(mode)} made {outcome.value['count']:,} draws only: {count:,} would "
                f"have taken more than {_LIMIT:g} s."
            )
        elif not outcome.value.get("has_compiler", True) and mode == "FAST_RUN":
            console.print(f"{_label(mode)} ran without C code: Aesara found no C++ compiler.")


def _print_stock_import(console: Console, stock_import: Outcome) -> None:
    if not stock_import.ok:
        console.print()
        console.print(
            "Stock NUMBA can't be imported with the Numba that is installed here "
            f"({stock_import.error}). For this comparison fixed_modes helped it."
        )


def _print_warnings(console: Console, results: dict[str, ModeResults]) -> None:
    for mode, result in results.items():
        outcomes = (result.report_a, result.report_b, result.draws)
        warned = [warning for outcome in outcomes for warning in outcome.warnings]
        for warning in dict.fromkeys(warned):
            console.print()
            console.print(f"{mode} warns: {warning}", style="yellow")


def _print_claims(console: Console, claims: list[Claim]) -> None:
    _print_title(console, "Checked", "")
    for claim in claims:
        if claim.holds:
            console.print(f"holds  {claim.text}", style="green", soft_wrap=True)
        else:
            console.print(f"FAILS  {claim.text}", style="red", soft_wrap=True)
            console.print(f"       {claim.reason}", soft_wrap=True)
    failed = sum(not claim.holds for claim in claims)
    console.print()
    if failed:
        console.print(f"{failed} of {len(claims)} claims do not hold.", style="bold red")
    else:
        console.print(f"All {len(claims)} claims hold.", style="bold green")


def _print_title(console: Console, title: str, text: str) -> None:
    console.print()
    console.print(title, style="bold")
    console.print("-" * len(title))
    if text:
        console.print(text)


def _print_graph(
    console: Console, mode: str, fact: str, graph: list[str], values: list[float]
) -> None:
    console.print()
    console.print(f"{_label(mode)}: {fact}", style="bold")
    for line in graph:
        console.print(f"    {line}", soft_wrap=True)
    shown = " ".join(f"{value:.3f}" for value in values)
    console.print(f"    values: {shown}", soft_wrap=True)


def _print_failure(console: Console, mode: str, outcome: Outcome) -> None:
    console.print()
    console.print(f"{_label(mode)}: does not compile", style="bold")
    console.print(f"    {outcome.error}", soft_wrap=True)


def _label(mode: str) -> str:
    return f"stock {mode}" if mode in STOCK_MODES else mode


def duration(seconds: float) -> str:
    """Write a time with three digits and a fitting unit.

    >>> duration(0.00371)
    '3.71 ms'
    """
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def ratio(value: float) -> str:
    """Write a ratio with three digits, and all of those before the point.

    >>> ratio(0.32456), ratio(2817.3)
    ('0.325', '2,817')
    """
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
