"""The child of `children.run_jobs`: reads jobs, calls them, writes what came out."""

from __future__ import annotations

import importlib
import json
import os
import sys
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO


def main() -> None:
    """Call the jobs that come in as JSON on standard input."""
    # Messages get the real standard output to themselves; whatever else prints,
    # C libraries included, is moved to the error stream.
    messages = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
    os.dup2(2, 1)
    with messages:
        for index, job in enumerate(json.load(sys.stdin)):
            _write(messages, {"start": index})
            with _own_warnings() as warned:
                message = _call(job["function"], job["arguments"])
            _write(messages, {**message, "warnings": warned})


def _call(function: str, arguments: dict[str, Any]) -> dict[str, Any]:
    try:
        module, name = function.split(":")
        return {"value": getattr(importlib.import_module(module), name)(**arguments)}
    except Exception as error:
        return {"error": first_line(error), "details": traceback.format_exc()}


@contextmanager
def _own_warnings() -> Iterator[list[str]]:
    """Collect what this package warns of; other warnings only go to the error stream."""
    collected: list[str] = []
    show = warnings.showwarning

    def showwarning(message: Any, category: type[Warning], *args: Any, **kwargs: Any) -> None:
        if category.__module__.partition(".")[0] == "fixed_modes":
            collected.append(first_line(message))
        show(message, category, *args, **kwargs)

    with warnings.catch_warnings():
        warnings.showwarning = showwarning
        yield collected


def first_line(error: BaseException) -> str:
    """Name the error's type and give the first line of its message; "..." stands for more."""
    lines = str(error).strip().splitlines()
    if not lines:
        return type(error).__name__
    return f"{type(error).__name__}: {lines[0].strip()}" + (" ..." if len(lines) > 1 else "")


def _write(messages: TextIO, message: dict[str, Any]) -> None:
    messages.write(json.dumps(message) + "\n")
