from __future__ import annotations

import pytest

import fixed_modes

HEAVY = {"aesara", "numpy", "scipy", "numba", "llvmlite", "jax", "jaxlib"}

REPORT_IMPORTS = """
import sys
try:
    from fixed_modes.cli.app import main
    main(sys.argv[1:])
finally:
    print("imported:", *sys.modules)
"""


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--help"], "doctor"),
        (["--version"], fixed_modes.__version__),
        (["run", "--help"], "[NUMBA_FIXED|JAX_FIXED]"),
        (["doctor", "--help"], "--json"),
        (["demo", "--help"], "--draws"),
        (["cache", "--help"], "prune"),
    ],
)
def test_help_and_version_import_nothing_heavy(python, arguments, expected) -> None:
    done = python("-c", REPORT_IMPORTS, *arguments)
    assert done.returncode == 0, done.stderr
    shown, _, imported = done.stdout.partition("imported:")
    assert expected in shown
    assert "fixed_modes.cli.app" in imported.split()
    assert not HEAVY & set(imported.split())
    assert max(map(len, shown.splitlines())) <= 80


def test_python_dash_m_names_itself_in_its_help(python) -> None:
    done = python("-m", "fixed_modes", "--help")
    assert done.returncode == 0
    assert done.stdout.startswith("Usage: python -m fixed_modes ")


def test_an_unknown_command_is_named(python) -> None:
    done = python("-m", "fixed_modes", "rum")
    assert done.returncode == 2
    assert "'rum'" in done.stderr
    assert done.stdout == ""
