"""How the modes become known to Aesara: before, while and after it is imported.

The finder is tried on small stand-ins for Aesara, each in a process of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import zipfile
from pathlib import Path

import aesara
import pytest
from aesara.compile.mode import get_default_mode
from aesara.configparser import ConfigParam

import fixed_modes
from fixed_modes import modes, startup

INSTALLED_IN = Path(fixed_modes.__file__).parents[1]

# Enough of Aesara to have the variable "mode"; too little to register modes with.
STAND_IN = {
    "aesara/__init__.py": "from aesara.configdefaults import config\n",
    "aesara/configparser.py": """
        class ConfigParam:
            def __init__(self, apply, default=None):
                self._apply = apply
                self.default = self._default = default

        TypedParam = ConfigParam

        class AesaraConfigParser:
            def add(self, name, doc, configparam, in_c_key=True):
                setattr(type(self), name, configparam)
    """,
    "aesara/configdefaults.py": """
        from aesara.configparser import AesaraConfigParser, ConfigParam

        def _filter_mode(value):
            raise ValueError(f"Expected one of ['Mode'], or more. Instead got: {value}.")

        config = AesaraConfigParser()
        config.add("floatX", "", ConfigParam(str))
        config.add("mode", "", ConfigParam(_filter_mode), in_c_key=False)
        import aesara.link.c.cmodule
    """,
    "aesara/link/__init__.py": "",
    "aesara/link/c/__init__.py": "",
    "aesara/link/c/cmodule.py": """
        from aesara.configdefaults import ConfigParam, config

        def try_blas_flag(flags):
            return " ".join(flags)

        def default_blas_ldflags():
            import numpy.there_is_no_such_module

        config.add("blas__ldflags", "", ConfigParam(str, default_blas_ldflags))
    """,
}


@pytest.fixture
def stand_in(tmp_path: Path) -> Path:
    for name, text in STAND_IN.items():
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).write_text(textwrap.dedent(text))
    return tmp_path


def run(
    code: str, *path: Path, options: tuple[str, ...] = (), **variables: str
) -> subprocess.CompletedProcess[str]:
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("AESARA", "FIXED"))}
    # The hook of the environment is turned off: the tests install the finder themselves.
    variables = {
        "FIXED_MODES_STARTUP": "0",
        "PYTHONPATH": os.pathsep.join(map(str, (*path, INSTALLED_IN))),
        # Without it, and without the hook, Aesara does not import on Python 3.12.
        "AESARA_FLAGS": "blas__ldflags=",
        **variables,
    }
    return subprocess.run(
        [sys.executable, *options, "-c", textwrap.dedent(code)],
        env={**inherited, **variables},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


ASK_THE_STAND_IN = """
    import sys
    import aesara
    mode = type(aesara.config).mode
    print(mode._apply("JAX_FIXED"), type(aesara.config).floatX._apply is str)
    try:
        mode._apply("other")
    except ValueError as exc:
        print(exc)
    print(type(aesara.config).blas__ldflags._default())
    print(*(type(finder).__name__ for finder in sys.meta_path))
    print(aesara.configparser.AesaraConfigParser.add.__module__, type(aesara.__loader__).__name__)
"""


def check_the_stand_in(process: subprocess.CompletedProcess[str], loader: str) -> None:
    assert process.returncode == 0, process.stderr
    mode, message, blas, finders, add = process.stdout.splitlines()
    assert mode == "JAX_FIXED True"
    assert message == (
        "Expected one of ['Mode', 'NUMBA_FIXED', 'JAX_FIXED'], or more. Instead got: other."
    )
    assert blas == "-lblas"
    assert "AesaraFinder" not in finders
    assert add == f"aesara.configparser {loader}"


def test_finder_mends_the_configuration_and_removes_itself(stand_in: Path) -> None:
    process = run("import fixed_modes\n" + textwrap.dedent(ASK_THE_STAND_IN), stand_in)
    check_the_stand_in(process, "SourceFileLoader")


def test_failed_registration_is_one_warning_at_the_users_import(stand_in: Path) -> None:
    process = run("import fixed_modes\n\nimport aesara\nprint('imported')", stand_in)
    assert process.stdout == "imported\n"
    assert process.stderr.startswith("<string>:3: RuntimeWarning: The modes NUMBA_FIXED and")
    assert "ModuleNotFoundError: No module named 'aesara." in process.stderr
    assert process.stderr.count("not available") == 1


def test_failed_registration_breaks_no_import_where_warnings_are_errors(stand_in: Path) -> None:
    code = "import fixed_modes, aesara; print('imported')"
    process = run(code, stand_in, options=("-W", "error"))
    assert process.stdout == "imported\n", process.stderr
    assert process.stderr.startswith("The modes NUMBA_FIXED and JAX_FIXED are not available")
    assert process.stderr.count("not available") == 1


def test_aesara_in_a_zip_file(stand_in: Path) -> None:
    with zipfile.ZipFile(stand_in / "aesara.zip", "w") as archive:
        for name, text in STAND_IN.items():
            archive.writestr(name, textwrap.dedent(text))
    code = "import fixed_modes\n" + textwrap.dedent(ASK_THE_STAND_IN)
    check_the_stand_in(run(code, stand_in / "aesara.zip"), "zipimporter")


def test_another_finder_that_asks_all_others(stand_in: Path) -> None:
    code = """
        import importlib.util, sys
        import fixed_modes

        class Asking:
            busy = False

            def find_spec(self, name, path=None, target=None):
                if self.busy or name.partition(".")[0] != "aesara":
                    return None
                self.busy = True
                try:
                    for finder in sys.meta_path:
                        spec = finder.find_spec(name, path, target)
                        if spec is not None:
                            return spec
                finally:
                    self.busy = False

        sys.meta_path.insert(POSITION, Asking())
    """
    for position in ("0", "1"):
        text = textwrap.dedent(code.replace("POSITION", position))
        check_the_stand_in(
            run(text + textwrap.dedent(ASK_THE_STAND_IN), stand_in), "SourceFileLoader"
        )


def test_looking_for_aesara_without_importing_it_changes_nothing(stand_in: Path) -> None:
    code = """
        import importlib.util, sys
        import fixed_modes
        spec = importlib.util.find_spec("aesara")
        print(spec.origin == spec.loader.get_filename("aesara"), "aesara" in sys.modules)
    """
    process = run(textwrap.dedent(code) + textwrap.dedent(ASK_THE_STAND_IN), stand_in)
    first, _, rest = process.stdout.partition("\n")
    assert first == "True False"
    process.stdout = rest
    check_the_stand_in(process, "SourceFileLoader")


def test_without_aesara_the_error_is_pythons_own(tmp_path: Path) -> None:
    code = """
        import sys
        import fixed_modes
        sys.path[:] = [path for path in sys.path if "site-packages" not in path]
        try:
            import aesara
        except ModuleNotFoundError as exc:
            print(exc)
    """
    assert run(code).stdout == "No module named 'aesara'\n"


def test_a_namespace_package_called_aesara_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "aesara").mkdir()
    code = """
        import sys
        import fixed_modes
        sys.path[:] = [path for path in sys.path if "site-packages" not in path]
        import aesara
        print(list(aesara.__path__))
    """
    assert run(code, tmp_path).stdout == f"[{str(tmp_path / 'aesara')!r}]\n"


def test_importing_the_package_first_is_free_and_enough() -> None:
    code = """
        import importlib, json, sys
        import fixed_modes
        import fixed_modes
        heavy = [name for name in ("aesara", "numpy", "numba", "jax") if name in sys.modules]
        finders = [type(finder).__name__ for finder in sys.meta_path].count("AesaraFinder")

        import aesara
        from aesara.compile.mode import get_default_mode, predefined_modes
        default = type(get_default_mode()).__name__
        ours = [predefined_modes[name] is getattr(fixed_modes, name)
                for name in ("NUMBA_FIXED", "JAX_FIXED")]

        importlib.reload(fixed_modes)
        from fixed_modes import modes
        importlib.reload(modes)
        modes.register()
        importlib.reload(fixed_modes.startup)
        fixed_modes.startup.register_with_aesara()
        apply = type(aesara.config).mode._apply
        print(json.dumps({
            "heavy": heavy,
            "finders": finders,
            "default": default,
            "ours": ours,
            "back ends": [name for name in ("numba", "jax") if name in sys.modules],
            "wrapped once": not hasattr(apply.__wrapped__, "__wrapped__"),
            "left over": [type(f).__name__ for f in sys.meta_path].count("AesaraFinder"),
        }))
    """
    process = run(code, AESARA_FLAGS="mode=NUMBA_FIXED")
    assert process.returncode == 0, process.stderr
    assert json.loads(process.stdout) == {
        "heavy": [],
        "finders": 1,
        "default": "NumbaFixedMode",
        "ours": [True, True],
        "back ends": [],
        "wrapped once": True,
        "left over": 0,
    }


@pytest.mark.parametrize(
    "first", ["from fixed_modes import NUMBA_FIXED", "import fixed_modes.modes"]
)
def test_a_mode_may_be_asked_for_before_aesara_is_imported(first: str) -> None:
    code = f"""
        {first}
        import aesara
        from aesara.compile.mode import get_mode
        aesara.config.mode = "JAX_FIXED"
        print(type(get_mode("NUMBA_FIXED")).__name__, type(get_mode(None)).__name__)
    """
    process = run(code)
    assert process.returncode == 0, process.stderr
    assert "RuntimeWarning" not in process.stderr
    assert process.stdout.split() == ["NumbaFixedMode", "JAXFixedMode"]


def test_importing_aesara_first_is_enough_unless_a_name_is_taken() -> None:
    code = """
        import aesara
        from aesara.compile.mode import predefined_modes

        predefined_modes["JAX_FIXED"] = aesara.compile.mode.FAST_RUN
        try:
            import fixed_modes
        except ValueError as exc:
            print(exc)
        print("NUMBA_FIXED" in predefined_modes)

        del predefined_modes["JAX_FIXED"]
        import fixed_modes
        aesara.config.mode = "JAX_FIXED"
        print(aesara.config.mode, aesara.compile.mode.get_mode(None) is fixed_modes.JAX_FIXED)
    """
    process = run(code)
    assert process.returncode == 0, process.stderr
    error, registered, now = process.stdout.splitlines()
    assert error.startswith("fixed_modes can't register the mode 'JAX_FIXED': the name is taken")
    assert registered == "False"
    assert now == "JAX_FIXED True"


def test_config_takes_the_names_and_names_them_in_its_error() -> None:
    with aesara.config.change_flags(mode="JAX_FIXED"):
        assert aesara.config.mode == "JAX_FIXED"
    with aesara.config.change_flags(mode=modes.NUMBA_FIXED):
        assert get_default_mode() is modes.NUMBA_FIXED
    with pytest.raises(ValueError, match=r"'NUMBA', 'NUMBA_FIXED', 'JAX_FIXED'\], or an instance"):
        aesara.config.mode = "NUMBA_BROKEN"


def test_error_without_a_list_of_names_still_gets_ours() -> None:
    def refuse(value: object) -> object:
        raise ValueError("no")

    param = ConfigParam("Mode", apply=refuse)
    startup.accept_mode_names(param)
    with pytest.raises(ValueError, match=r"^no \(or one of 'NUMBA_FIXED', 'JAX_FIXED'\)$"):
        param.apply("x")


def test_where_aesara_finds_its_blas_nothing_changes() -> None:
    param = ConfigParam(lambda: "-lmkl")
    startup.do_without_numpy_distutils(param)
    assert param.default() == "-lmkl"


def test_names_are_those_of_the_modes() -> None:
    assert set(startup.MODE_NAMES) == set(modes._MODES)


def test_modules_for_users_may_be_imported_first(tmp_path: Path) -> None:
    """The modes are registered while a module of this package waits for Aesara."""
    for module in ("errors", "config", "cache.place"):
        code = (
            f"import fixed_modes.{module}\n"
            "import aesara\n"
            "print(*(aesara.compile.mode.get_mode(m).__class__.__name__"
            " for m in ('NUMBA_FIXED', 'JAX_FIXED')))\n"
        )
        run = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=True
        )
        assert run.stdout == "NumbaFixedMode JAXFixedMode\n", module
        assert "not available" not in run.stderr
