"""The configuration variables of this package, as users set them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import aesara
import pytest

import fixed_modes
from fixed_modes.config import FLAGS, PREFIX, compile_options

INSTALLED_IN = Path(fixed_modes.__file__).parents[1]

# What the .pth file does at every interpreter start.
START = "import _fixed_modes_startup; _fixed_modes_startup.at_interpreter_start()\n"


def run(code: str, **variables: str) -> subprocess.CompletedProcess[str]:
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("AESARA", "FIXED"))}
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env={**inherited, "PYTHONPATH": str(INSTALLED_IN), **variables},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


SHOW = """
import json, sys, aesara
from fixed_modes.config import FLAGS, PREFIX
values = {flag.name: getattr(aesara.config, PREFIX + flag.name) for flag in FLAGS}
print(json.dumps([values, "fixed_modes.modes" in sys.modules]))
"""


def test_defaults() -> None:
    process = run(START + SHOW, AESARA_FLAGS="blas__ldflags=", AESARARC="")
    assert json.loads(process.stdout) == [
        {
            "cache": True,
            "cache_dir": "",
            "cache_size": 2**30,
            "index_checks": True,
            "jax_compile_options": "",
            "strict": False,
            "jax_variants": 64,
        },
        True,
    ], process.stderr


def test_a_script_that_imports_only_aesara_is_configured_by_flags_and_files(tmp_path: Path) -> None:
    (tmp_path / "rc").write_text(
        "[fixed_modes]\ncache_size = 2 GiB\nstrict = True\ncache_dir = ~/rc\n"
    )
    process = run(
        START + SHOW,
        AESARARC=str(tmp_path / "rc"),
        HOME=str(tmp_path),
        # The flags win over the file.
        AESARA_FLAGS="fixed_modes__cache=False,fixed_modes__strict=0,blas__ldflags=,"
        'fixed_modes__jax_compile_options="a=1,b=x",fixed_modes__jax_variants=3',
    )
    values, _ = json.loads(process.stdout)
    assert values == {
        "cache": False,
        "cache_dir": str(tmp_path / "rc"),
        "cache_size": 2**31,
        "index_checks": True,
        "jax_compile_options": "a=1,b=x",
        "strict": False,
        "jax_variants": 3,
    }
    assert "does not recognise" not in process.stderr


def test_flags_count_where_the_package_is_imported_after_aesara() -> None:
    code = """
        import aesara
        import fixed_modes
        print(aesara.config.fixed_modes__cache)
    """
    flags = "fixed_modes__cache=False,blas__ldflags="
    process = run(code, AESARA_FLAGS=flags, FIXED_MODES_STARTUP="0")
    # Python 3.12 can't import stock Aesara, which has nothing to do with flags.
    assert process.stdout == "False\n" or "numpy.distutils" in process.stderr


def test_a_bad_flag_stops_the_import_with_its_name() -> None:
    process = run(
        START + "import aesara", AESARA_FLAGS="fixed_modes__cache_size=lots,blas__ldflags="
    )
    assert process.returncode == 1
    assert process.stderr.splitlines()[-1] == (
        "ValueError: Invalid value ('lots') for configuration variable "
        "'fixed_modes__cache_size': expected a number of bytes, or one with a unit, such as "
        "500MiB or 2GiB."
    )


@pytest.mark.parametrize(
    ("name", "value", "read"),
    [
        ("cache", "0", False),
        ("cache", 1, True),
        ("cache_dir", "", ""),
        ("cache_dir", Path("/a/../b"), "/b"),
        ("cache_size", 5, 5),
        ("cache_size", "7", 7),
        ("cache_size", "1.5kB", 1500),
        ("cache_size", "3 mib", 3 * 1024**2),
        ("index_checks", "false", False),
        ("jax_variants", "8", 8),
        ("jax_compile_options", " a=1 ", " a=1 "),
        ("strict", "True", True),
    ],
)
def test_values_that_a_flag_takes(name: str, value: object, read: object) -> None:
    before = getattr(aesara.config, PREFIX + name)
    with aesara.config.change_flags({PREFIX + name: value}):
        assert getattr(aesara.config, PREFIX + name) == read
    assert getattr(aesara.config, PREFIX + name) == before


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("cache", "maybe"),
        ("cache", None),
        ("cache_dir", b"/a"),
        ("cache_dir", 3),
        ("cache_size", -1),
        ("cache_size", "1 furlong"),
        ("cache_size", True),
        ("jax_variants", 0),
        ("jax_variants", "few"),
        ("jax_variants", 2.5),
        ("jax_compile_options", "a"),
        ("jax_compile_options", "a=,b=2"),
        ("jax_compile_options", {"a": 1}),
        ("strict", []),
    ],
)
def test_values_that_a_flag_refuses(name: str, value: object) -> None:
    before = getattr(aesara.config, PREFIX + name)
    with pytest.raises(
        ValueError, match=rf"^Invalid value \(.*\) for configuration variable '{PREFIX}{name}': "
    ):
        setattr(aesara.config, PREFIX + name, value)
    assert getattr(aesara.config, PREFIX + name) == before


def test_options_keep_their_types() -> None:
    assert compile_options("a=True, b=2;c=1.5\nd=text,e=false") == {
        "a": True,
        "b": 2,
        "c": 1.5,
        "d": "text",
        "e": False,
    }
    assert compile_options("") == {}


def test_aesara_lists_the_flags_with_what_they_take() -> None:
    text = str(aesara.config)
    for flag in FLAGS:
        assert f"{PREFIX}{flag.name} ({flag.kind})" in text
        assert flag.doc in text


def test_no_flag_of_ours_is_a_reason_to_compile_c_code_anew() -> None:
    before = aesara.config.get_config_hash()
    with aesara.config.change_flags(fixed_modes__strict=True, fixed_modes__cache=False):
        assert aesara.config.get_config_hash() == before
