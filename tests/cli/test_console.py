from __future__ import annotations

import os
import subprocess
import sys

import pytest

PROGRAM = """
from fixed_modes.cli.console import make_console, new_table, show_progress

with show_progress(2) as progress:
    progress(0, "first [step]")
    progress(1, "second step")
console = make_console()
console.print("a line in red", style="red")
table = new_table("Name", "Number", right=("Number",))
table.add_row("[bold]x", "12")
console.print(table)
console.print("y" * 100, soft_wrap=True)
"""


def test_a_pipe_gets_plain_text_whatever_the_variables_say(python) -> None:
    done = python("-c", PROGRAM, FORCE_COLOR="1", TTY_COMPATIBLE="1", TERM="xterm-256color")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("a line in red\n")
    assert "[bold]x" in done.stdout
    assert "\n" + "y" * 100 + "\n" in done.stdout
    assert not set("\x1b\r\b") & set(done.stdout + done.stderr)


def test_a_pipe_gets_one_line_a_step_on_the_error_stream(python) -> None:
    done = python("-c", PROGRAM)
    assert done.stderr == "[1/2] first [step]\n[2/2] second step\n"


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_an_encoding_without_lines_gets_others(python, encoding) -> None:
    done = python("-c", PROGRAM + "console.print('\\u2713')", PYTHONIOENCODING=encoding)
    assert done.returncode == 0, done.stderr
    assert "?" in done.stdout


def _on_a_terminal(**variables: str) -> str:
    main, side = os.openpty()
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in ("NO_COLOR", "FORCE_COLOR", "COLORTERM")
    }
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        env={**environment, "TERM": "xterm", "COLUMNS": "80", **variables},
        stdin=subprocess.DEVNULL,
        stdout=side,
        stderr=side,
    ) as process:
        os.close(side)
        written = b""
        while True:
            try:
                part = os.read(main, 65536)
            except OSError:
                # Linux ends the stream so, when the last writer has closed it.
                break
            if not part:
                break
            written += part
    os.close(main)
    assert process.returncode == 0, written
    return written.decode()


def test_a_terminal_gets_colour_and_progress_that_goes_away() -> None:
    written = _on_a_terminal()
    assert "\x1b[31ma line in red" in written
    assert "second step" in written
    # The line of the progress display is erased.
    assert "\x1b[2K" in written


def test_no_color_is_honoured() -> None:
    assert "a line in red\r\n" in _on_a_terminal(NO_COLOR="1").replace("\x1b[?25h", "")


def test_a_dumb_terminal_gets_no_colour() -> None:
    assert "\x1b[31m" not in _on_a_terminal(TERM="dumb")
