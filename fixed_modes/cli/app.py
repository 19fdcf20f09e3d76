"""The command group, and the one door through which a process enters it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import NoReturn

import click

from fixed_modes._version import __version__
from fixed_modes.cli.cache import cache
from fixed_modes.cli.demo import demo
from fixed_modes.cli.doctor import doctor
from fixed_modes.cli.ops import ops
from fixed_modes.cli.run import Program, run


@click.group(
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80},
    epilog="The modes are NUMBA_FIXED and JAX_FIXED.",
)
@click.version_option(__version__, prog_name="fixed-modes")
def cli() -> None:
    """Aesara modes in which loops run at hand-written speed in Numba and JAX."""


cli.add_command(run)
cli.add_command(doctor)
cli.add_command(demo)
cli.add_command(ops)
cli.add_command(cache)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Parse the arguments, do what they say, and leave the process.

    Parameters
    ----------
    arguments
        The arguments after the program's name; by default those of the process.
    """
    try:
        result = cli.main(
            args=None if arguments is None else list(arguments), standalone_mode=False
        )
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except click.Abort:
        click.echo("Interrupted.", err=True)
        sys.exit(130)
    if isinstance(result, Program):
        # Outside of click, which would turn what the script raises into its own messages.
        result.execute()
        sys.exit(0)
    sys.exit(result)
