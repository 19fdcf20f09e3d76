"""``cache``: what is kept on disk, and how to get rid of it."""

from __future__ import annotations

import json
import logging
import os
import sys
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

import click

from fixed_modes.cli.console import make_console

if TYPE_CHECKING:
    from fixed_modes.cache.store import Store


class _Size(click.ParamType):
    """A number of bytes, with a unit or without."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        from fixed_modes.config import as_size

        try:
            return as_size(value)
        except ValueError as error:
            self.fail(f"{value!r}: {error}", param, ctx)


@click.group(epilog="AESARA_FLAGS and .aesararc say where it is: fixed_modes__cache_dir.")
def cache() -> None:
    """Show, bound or clear the cache of compiled code."""


@cache.command()
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
def info(as_json: bool) -> None:
    """Show where the cache is, how much is in it, and whether it is used.

    The exit status is 1 if the directory is there and can't be trusted.
    """
    store, settings = _open()
    entries = store.entries()
    found = {
        "directory": str(store.directory),
        "used": settings["cache"],
        "entries": len(entries),
        "bytes": sum(entry.size for entry in entries),
        "max_bytes": settings["cache_size"],
        "oldest_use": _time(entries[0].used) if entries else None,
        "problem": _problem(store),
    }
    if as_json:
        click.echo(json.dumps(found))
    else:
        _print(found)
    if found["problem"]:
        raise SystemExit(1)


@cache.command()
def clear() -> None:
    """Remove all that is in the cache."""
    store, _ = _open()
    try:
        removed = store.clear()
    except OSError as error:
        raise click.ClickException(f"{store.directory} can't be cleared: {error}") from error
    click.echo(f"Removed {_counted(removed)} from {store.directory}.")


@cache.command()
@click.option("--size", type=_Size(), help="Bytes, or a number with a unit, such as 200MiB.")
def prune(size: int | None) -> None:
    """Remove what was used least recently, down to a size.

    By default that of the flag fixed_modes__cache_size. What processes that were
    killed have left behind goes too.
    """
    store, settings = _open()
    bound = settings["cache_size"] if size is None else size
    removed = store.prune(bound)
    left = sum(entry.size for entry in store.entries())
    click.echo(f"Removed {_counted(removed)} from {store.directory}; {_size(left)} are left.")


def _open() -> tuple[Store, dict[str, Any]]:
    """Find the cache that Aesara's flags name."""
    if "aesara" not in sys.modules:
        # Nothing is computed here, so that Aesara needs no BLAS: it would run a C
        # compiler to find one, and warn of what it did not find.
        flags = os.environ.get("AESARA_FLAGS", "")
        os.environ["AESARA_FLAGS"] = ",".join(filter(None, [flags, "blas__ldflags="]))
        logging.getLogger("aesara.tensor.blas").setLevel(logging.ERROR)
    from aesara.configdefaults import config

    import fixed_modes  # noqa: F401
    from fixed_modes.cache.store import store_in
    from fixed_modes.config import FLAGS, PREFIX

    settings = {flag.name: getattr(config, PREFIX + flag.name) for flag in FLAGS}
    return store_in(settings["cache_dir"]), settings


def _problem(store: Store) -> str:
    from fixed_modes.cache import place

    try:
        place.check_directory(store.directory)
    except FileNotFoundError:
        return ""
    except (OSError, place.Untrusted) as error:
        return str(error)
    return ""


def _print(found: dict[str, Any]) -> None:
    console = make_console()
    lines = {
        "Directory": found["directory"],
        "Used": "yes" if found["used"] else "no (fixed_modes__cache=False)",
        "Entries": f"{found['entries']}",
        "Size": f"{_size(found['bytes'])} of at most {_size(found['max_bytes'])}",
        "Least recent use": found["oldest_use"] or "",
        "Problem": found["problem"] and f"it is not used: {found['problem']}",
    }
    for name, text in lines.items():
        if text:
            console.print(f"{name + ':':18}{text}", soft_wrap=True)


def _size(number: int) -> str:
    """Write a number of bytes with a unit.

    >>> _size(3), _size(2**20 + 2**19)
    ('3 bytes', '1.5 MiB')
    """
    if number < 1024:
        return f"{number} byte{'s' * (number != 1)}"
    power = min((number.bit_length() - 1) // 10, 3)
    return f"{number / 1024**power:.1f} {'KMG'[power - 1]}iB"


def _counted(number: int) -> str:
    return f"{number} entr{'y' if number == 1 else 'ies'}"


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, tz=timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
