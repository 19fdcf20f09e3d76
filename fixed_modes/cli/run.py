"""``run``: a script as ``python`` would run it, with a fixed mode as the default."""

from __future__ import annotations

import builtins
import importlib.util
import io
import os
import runpy
import sys
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.machinery import PathFinder, SourceFileLoader, SourcelessFileLoader
from types import ModuleType, TracebackType
from typing import Any

import click

from fixed_modes.cli.flags import MODES, with_mode


@dataclass(frozen=True)
class Program:
    """What ``run`` was asked to run.

    Attributes
    ----------
    mode
        The mode that becomes Aesara's default.
    argv
        ``sys.argv`` of the program.
    search_path
        What Python puts first into ``sys.path`` for it.
    body
        Runs it as ``__main__``.
    """

    mode: str
    argv: list[str]
    search_path: str
    body: Callable[[], object]

    def execute(self) -> None:
        """Run the program in this process; what it raises comes out of here."""
        os.environ["AESARA_FLAGS"] = with_mode(os.environ.get("AESARA_FLAGS", ""), self.mode)
        if "aesara" in sys.modules:
            # A start-up file of the user imported it already, and the flags were read then.
            sys.modules["aesara"].config.mode = self.mode
        sys.argv[:] = self.argv
        if not getattr(sys.flags, "safe_path", sys.flags.isolated):
            # The first entry is the one that Python added for ``python -m fixed_modes``.
            sys.path[:1] = [self.search_path]
        try:
            self.body()
        except BaseException:
            _hide_own_frames()
            raise


class CannotRun(click.ClickException):
    """Nothing to run there; the message is the one line that is printed."""

    exit_code = 2


class _RunCommand(click.Command):
    """Leaves whatever follows ``-m MODULE`` to the module, as ``python`` does."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, _close_options_after_module(args))


def _close_options_after_module(args: Sequence[str]) -> list[str]:
    index = 0
    while index < len(args) and args[index].startswith("-"):
        argument = args[index]
        if argument in ("-", "--"):
            break
        takes_next = argument in ("-m", "--mode")
        index += 2 if takes_next else 1
        if argument.startswith("-m"):
            return [*args[:index], "--", *args[index:]]
    return list(args)


@click.command(cls=_RunCommand, context_settings={"allow_interspersed_args": False})
@click.option(
    "--mode",
    type=click.Choice(MODES),
    default=MODES[0],
    show_default=True,
    help="The mode that becomes Aesara's default.",
)
@click.option("-m", "module", metavar="MODULE", help="Run a module, as `python -m` does.")
@click.argument(
    "program", nargs=-1, type=click.UNPROCESSED, metavar="[SCRIPT | DIRECTORY | -] [ARGS]..."
)
def run(mode: str, module: str | None, program: tuple[str, ...]) -> Program:
    """Run a script as `python SCRIPT ARGS...` would, in a fixed mode.

    The mode is put into AESARA_FLAGS (the other flags are kept) before the
    script starts, so the script needs no change and no import of fixed_modes.
    Everything after the script's name belongs to the script.

    Processes that the script starts inherit the flag. They know the mode where
    fixed-modes is installed with its start-up hook (`doctor` says whether it
    is).
    """
    if module is not None:
        return Program(mode, [module, *program], os.getcwd(), lambda: _run_module(module))
    if not program:
        raise click.UsageError("Missing argument 'SCRIPT', or option '-m MODULE'.")
    path, *arguments = program
    if path == "-":
        return Program(mode, ["-", *arguments], "", _run_standard_input)
    if not os.path.exists(path):
        raise CannotRun(f"the script {path!r} does not exist.")
    # Looking into a pipe would take out of it what is to be run.
    if os.path.isdir(path) or (os.path.isfile(path) and zipfile.is_zipfile(path)):
        place = os.path.abspath(path)
        spec = PathFinder.find_spec("__main__", [place])
        if spec is None or spec.loader is None:
            kind = "directory" if os.path.isdir(path) else "zip file"
            raise CannotRun(f"can't find a __main__.py in the {kind} {path!r}.")
        return Program(mode, [path, *arguments], place, lambda: _run_spec(spec))
    try:
        with io.open_code(os.path.abspath(path)) as file:
            source = file.read()
    except OSError as error:
        raise CannotRun(f"can't read the script {path!r}: {error.strerror}.") from None
    directory = os.path.dirname(os.path.realpath(path))
    return Program(mode, [path, *arguments], directory, lambda: _run_source(source, path))


def _run_source(source: bytes, path: str) -> None:
    path = os.path.abspath(path)
    if path.endswith(".pyc"):
        loader: Any = SourcelessFileLoader("__main__", path)
        code = loader.get_code("__main__")
    else:
        loader = SourceFileLoader("__main__", path)
        # Without dont_inherit the script would get the future imports of this file.
        code = compile(source, path, "exec", dont_inherit=True)
    exec(code, _new_main_names(__file__=path, __loader__=loader))


def _run_standard_input() -> None:
    code = compile(sys.stdin.buffer.read(), "<stdin>", "exec", dont_inherit=True)
    exec(code, _new_main_names(__file__="<stdin>"))


def _run_spec(spec: Any) -> None:
    """Run what was found as ``__main__`` in a directory or zip file."""
    names = _new_main_names(
        __file__=spec.origin,
        __loader__=spec.loader,
        __cached__=spec.cached,
        __package__="",
        __spec__=spec,
    )
    exec(spec.loader.get_code("__main__"), names)


def _run_module(module: str) -> None:
    # `runpy` says this with a traceback of its own, `python -m` in one line.
    try:
        spec = importlib.util.find_spec(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise
        spec = None
    if spec is None:
        click.echo(f"Error: there is no module named {module!r}.", err=True)
        sys.exit(1)
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def _new_main_names(**names: Any) -> dict[str, Any]:
    """Put a new ``__main__`` in place, for good, and return its namespace.

    `runpy` takes its module away again after the script; then functions that
    run at exit, or pickling there, would not find the script's names.
    """
    main = ModuleType("__main__")
    main.__dict__.update({"__builtins__": builtins, "__cached__": None, **names})
    sys.modules["__main__"] = main
    return main.__dict__


def _hide_own_frames() -> None:
    """Let the traceback that ends the process begin in the script."""
    show = sys.excepthook

    def excepthook(
        kind: type[BaseException], error: BaseException, trace: TracebackType | None
    ) -> None:
        trace = _without_own_frames(trace)
        show(kind, error.with_traceback(trace), trace)

    sys.excepthook = excepthook


def _without_own_frames(trace: TracebackType | None) -> TracebackType | None:
    outer = trace
    while outer is not None and outer.tb_frame.f_globals is not globals():
        outer = outer.tb_next
    while outer is not None and (
        outer.tb_frame.f_globals is globals() or outer.tb_frame.f_globals is vars(runpy)
    ):
        outer = outer.tb_next
    return outer
