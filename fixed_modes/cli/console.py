"""Output that suits a terminal, and a pipe."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol, TextIO

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


def make_console() -> Console:
    """Make a console on standard output: plain text unless that is a terminal.

    Colours follow ``NO_COLOR`` and ``TERM``.
    """
    from rich.console import Console

    _replace_what_cannot_be_written(sys.stdout)
    # Told, since a pipe can be declared a terminal by variables such as FORCE_COLOR.
    return Console(force_terminal=sys.stdout.isatty(), highlight=False, markup=False, emoji=False)


def _replace_what_cannot_be_written(stream: TextIO) -> None:
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="replace")


def new_table(*columns: str, right: tuple[str, ...] = ()) -> Table:
    """Make a table with a line under its head only; the columns in `right` hold numbers."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, justify="right" if column in right else "left")
    return table


class Progress(Protocol):
    """Told what is going on."""

    def __call__(self, step: int, what: str) -> None: ...


@contextmanager
def show_progress(total: int) -> Iterator[Progress]:
    """Show how many of `total` steps are done, and the current one.

    On a terminal a line that is redrawn and goes away at the end; elsewhere one
    line a step, on standard error, so that a redirected run is not silent.
    """
    if not (sys.stdout.isatty() and sys.stderr.isatty()):

        def write_line(step: int, what: str) -> None:
            print(f"[{step + 1}/{total}] {what}", file=sys.stderr, flush=True)

        yield write_line
        return

    from rich.console import Console
    from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Display

    with Display(
        SpinnerColumn(),
        BarColumn(bar_width=20),
        TimeElapsedColumn(),
        TextColumn("{task.description}", markup=False),
        console=Console(stderr=True),
        transient=True,
    ) as display:
        task = display.add_task("", total=total)

        def redraw(step: int, what: str) -> None:
            display.update(task, completed=step, description=what)

        yield redraw
