"""What the wheel and the editable install bring, and the start-up hook in both.

The wheels are built once and unpacked into environments without pip, which see
the dependencies of the environment that runs the tests.
"""

from __future__ import annotations

import email
import json
import os
import shutil
import subprocess
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest
from hatchling import build

import fixed_modes

ROOT = Path(__file__).parents[1]

# Imports only Aesara, in a process of its own that multiprocessing starts afresh.
SCRIPT = """
import json, multiprocessing, sys

def work(queue):
    import aesara
    from aesara.compile.mode import get_default_mode, predefined_modes

    queue.put({
        "mode": aesara.config.mode,
        "default": type(get_default_mode()).__name__,
        "registered": sorted(name for name in predefined_modes if "FIXED" in name),
        "back ends": [name for name in ("numba", "jax") if name in sys.modules],
        "loader": type(aesara.__loader__).__name__,
        "finders": [type(finder).__name__ for finder in sys.meta_path],
        "add": aesara.configparser.AesaraConfigParser.add.__module__,
        "package": sys.modules["fixed_modes"].__file__,
    })

if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    process = context.Process(target=work, args=(queue,))
    process.start()
    print(json.dumps(queue.get(timeout=300)))
    process.join()
"""


class Environment:
    """A virtual environment with one unpacked wheel of this project."""

    def __init__(self, directory: Path, wheel: Path) -> None:
        venv.create(directory, symlinks=os.name != "nt", with_pip=False)
        scripts = directory / ("Scripts" if os.name == "nt" else "bin")
        self.python = scripts / "python"
        base = {"base": str(directory), "platbase": str(directory)}
        scheme = "nt" if os.name == "nt" else "posix_prefix"
        self.site_packages = Path(sysconfig.get_path("purelib", scheme, vars=base))
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(self.site_packages)
        here = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
        (self.site_packages / "zz_dependencies.pth").write_text("\n".join(sorted(here)))

    def run(
        self, *arguments: object, flags: str = "", **variables: str
    ) -> subprocess.CompletedProcess[str]:
        inherited = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("AESARA", "PYTHON", "FIXED_MODES"))
        }
        return subprocess.run(
            [str(self.python), *map(str, arguments)],
            env={**inherited, "AESARA_FLAGS": flags, **variables},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    directory = tmp_path_factory.mktemp("wheels")
    before = Path.cwd()
    os.chdir(ROOT)
    try:
        normal = build.build_wheel(str(directory / "normal"))
        editable = build.build_editable(str(directory / "editable"))
    finally:
        os.chdir(before)
    return {
        "normal": directory / "normal" / normal,
        "editable": directory / "editable" / editable,
    }


@pytest.fixture(scope="module", params=["normal", "editable"])
def installed(
    request: pytest.FixtureRequest,
    wheels: dict[str, Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> Environment:
    return Environment(tmp_path_factory.mktemp(request.param), wheels[request.param])


@pytest.fixture
def damaged(wheels: dict[str, Path], tmp_path: Path) -> Environment:
    """Give an environment that the test may spoil."""
    return Environment(tmp_path, wheels["normal"])


def test_wheel_holds_the_package_and_the_hook_and_nothing_else(wheels: dict[str, Path]) -> None:
    with zipfile.ZipFile(wheels["normal"]) as archive:
        names = set(archive.namelist())
    info = f"fixed_modes-{fixed_modes.__version__}.dist-info"
    assert {name.split("/")[0] for name in names} == {
        "fixed_modes",
        "_fixed_modes_startup.py",
        "fixed_modes_startup.pth",
        info,
    }
    assert {"fixed_modes/py.typed", f"{info}/licenses/LICENSE"} <= names


def test_metadata_bounds_the_versions(wheels: dict[str, Path]) -> None:
    with zipfile.ZipFile(wheels["normal"]) as archive:
        info = f"fixed_modes-{fixed_modes.__version__}.dist-info"
        metadata = email.message_from_bytes(archive.read(f"{info}/METADATA"))
    required = {
        requirement.replace(" ", "")
        for requirement in metadata.get_all("Requires-Dist", [])
        if "extra ==" not in requirement
    }
    assert metadata["Version"] == fixed_modes.__version__
    assert metadata["License-Expression"] == "BSD-3-Clause"
    assert {
        "aesara<3,>=2.9.3",
        "numba>=0.57.1",
        "llvmlite>=0.40.1",
        "jax<0.7,>=0.4.20",
        "jaxlib<0.7,>=0.4.20",
        "numpy<2,>=1.22",
    } <= required


def test_flags_choose_the_mode_of_a_script_that_imports_only_aesara(
    installed: Environment, tmp_path: Path
) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    process = installed.run(script, flags="mode=JAX_FIXED")
    assert process.returncode == 0, process.stderr
    seen = json.loads(process.stdout)
    assert seen["mode"] == "JAX_FIXED"
    assert seen["default"] == "JAXFixedMode"
    assert seen["registered"] == ["JAX_FIXED", "NUMBA_FIXED"]
    assert seen["back ends"] == []
    # Nothing of the hook is left.
    assert seen["loader"] == "SourceFileLoader"
    assert "AesaraFinder" not in seen["finders"]
    assert seen["add"] == "aesara.configparser"
    assert "fixed_modes could not" not in process.stderr


def test_aesararc_chooses_the_mode(installed: Environment, tmp_path: Path) -> None:
    settings = tmp_path / "aesararc"
    settings.write_text("[global]\nmode = NUMBA_FIXED\n")
    code = "import aesara; print(type(aesara.compile.mode.get_default_mode()).__name__)"
    # -I leaves out the user's directory and PYTHON* variables, not the hook.
    process = installed.run("-I", "-c", code, AESARARC=str(settings))
    assert process.stdout.strip() == "NumbaFixedMode", process.stderr


def test_hook_can_be_turned_off(installed: Environment) -> None:
    process = installed.run("-c", "import aesara", flags="mode=JAX_FIXED", FIXED_MODES_STARTUP="0")
    assert process.returncode == 1
    assert "ValueError: Expected one of ['Mode'," in process.stderr
    assert "NUMBA_FIXED" not in process.stderr


def test_unknown_mode_gives_aesaras_error_with_our_names(installed: Environment) -> None:
    process = installed.run("-c", "import aesara", flags="mode=NUMBA_FIX")
    last = process.stderr.strip().splitlines()[-1]
    assert last.startswith("ValueError: Expected one of ['Mode', ")
    assert "'NUMBA', 'NUMBA_FIXED', 'JAX_FIXED'], or an instance of" in last
    assert last.endswith("Instead got: NUMBA_FIX.")


@pytest.mark.parametrize("options", [[], ["-I"], ["-E"], ["-s"], ["-S"], ["-W", "error"]])
def test_interpreter_starts_silently(installed: Environment, options: list[str]) -> None:
    process = installed.run(*options, "-c", "pass")
    assert (process.returncode, process.stdout, process.stderr) == (0, "", "")


def test_hook_loads_one_module_of_ours_and_no_other(damaged: Environment) -> None:
    code = "import sys; print(*sorted(sys.modules))"
    with_hook = set(damaged.run("-c", code).stdout.split())
    (damaged.site_packages / "fixed_modes_startup.pth").unlink()
    without_hook = set(damaged.run("-c", code).stdout.split())
    assert with_hook - without_hook == {"_fixed_modes_startup"}


def test_interpreter_starts_silently_when_the_hook_is_missing_or_broken(
    damaged: Environment,
) -> None:
    hook = damaged.site_packages / "_fixed_modes_startup.py"
    hook.write_text("this is not Python")
    broken = damaged.run("-c", "print('started')")
    hook.unlink()
    missing = damaged.run("-c", "print('started')")
    for process in (broken, missing):
        assert (process.stdout.strip(), process.stderr) == ("started", "")


def test_aesara_imports_when_the_package_is_missing(damaged: Environment) -> None:
    shutil.rmtree(damaged.site_packages / "fixed_modes")
    # Not an installed one of the environment that runs the tests either.
    code = """
import sys
sys.modules["fixed_modes"] = None
import aesara
print(aesara.config.mode)
"""
    # Without the flag, and without our help, Aesara does not import on Python 3.12.
    process = damaged.run("-c", code, flags="blas__ldflags=")
    assert process.stdout.strip() == "Mode"
    assert process.stderr.count("RuntimeWarning: The modes NUMBA_FIXED and JAX_FIXED") == 1
