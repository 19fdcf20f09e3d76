"""``run`` is compared with ``python`` itself, which says what to expect."""

from __future__ import annotations

import os
import py_compile
import threading
import zipfile

import pytest

RUN = ("-m", "fixed_modes", "run")

SITUATION = """
import pickle, sys
from __main__ import __name__ as name
class Thing: pass
print(sys.argv, sys.path[0], name, __name__, __spec__, __package__, __cached__)
print(__file__, __builtins__, __doc__, type(__loader__))
print(type(pickle.loads(pickle.dumps(Thing()))) is Thing, sys.modules["__main__"].Thing is Thing)
print(__import__("beside").value, sys.stdin.read())
# No future import of the runner reaches this file.
def annotated(x: 1 + 1): pass
print(annotated.__annotations__)
"""


def test_a_script_sees_what_it_sees_under_python(python, write) -> None:
    write("below/script.py", SITUATION)
    write("below/beside.py", "value = 'from the directory of the script'")
    command = ("below/script.py", "--help", "-m", "x", "--", "--mode=JAX_FIXED", "-")
    expected = python(*command, stdin="typed in")
    done = python(*RUN, *command, stdin="typed in")
    assert expected.returncode == 0, expected.stderr
    assert (done.returncode, done.stdout, done.stderr) == (0, expected.stdout, "")


@pytest.mark.parametrize(
    "end",
    [
        "raise SystemExit",
        "import sys; sys.exit(3)",
        "import sys; sys.exit('a message')",
        "import os; os._exit(5)",
        "raise ValueError('bad')",
        "1 / 0",
        "raise KeyboardInterrupt",
        "import click; raise click.ClickException('from the script')",
        "import click; raise click.exceptions.Exit(4)",
        "def f():\n    raise KeyError(1)\ntry:\n    f()\nexcept KeyError as e:\n"
        "    raise RuntimeError('second') from e",
        "this is no Python",
        "import sys\nsys.excepthook = lambda *a: print('hooked', a[0], a[2].tb_lineno)\n1 / 0",
        "import atexit\natexit.register(lambda: print(value))\nvalue = 'at exit'\n1 / 0",
        "import os, signal\nos.kill(os.getpid(), signal.SIGTERM)",
    ],
)
def test_the_end_of_a_script_is_that_under_python(python, write, end) -> None:
    write("script.py", end)
    expected = python("script.py")
    done = python(*RUN, "script.py")
    assert done.returncode == expected.returncode
    assert done.stdout == expected.stdout
    assert done.stderr == expected.stderr


def test_a_module_is_run_with_all_arguments_after_its_name(python, write) -> None:
    write("package/__init__.py", "")
    write("package/tool.py", "import sys; print(sys.argv, sys.path[0], __name__, __package__)")
    command = ("-m", "package.tool", "--mode", "x", "-m", "y", "--", "z")
    expected = python(*command)
    done = python(*RUN, *command)
    assert expected.returncode == 0
    assert (done.returncode, done.stdout, done.stderr) == (0, expected.stdout, "")


def test_an_error_inside_a_module_is_not_taken_for_a_missing_module(python, write) -> None:
    write("package/__init__.py", "import not_there_at_all")
    write("package/tool.py", "")
    done = python(*RUN, "-m", "package.tool")
    assert done.returncode == 1
    assert "No module named 'not_there_at_all'" in done.stderr


@pytest.mark.parametrize("name", ["nowhere", "nowhere.below", "json.nowhere"])
def test_a_module_that_is_missing_is_one_line_and_status_1(python, name) -> None:
    done = python(*RUN, "-m", name)
    assert done.returncode == 1
    assert done.stderr == f"Error: there is no module named {name!r}.\n"


def test_a_directory_is_run_by_its_main_file(python, write) -> None:
    write("app/__main__.py", "import sys, beside; print(sys.argv, sys.path[0], __file__)")
    write("app/beside.py", "")
    expected = python("app", "-x")
    done = python(*RUN, "app", "-x")
    assert expected.returncode == 0, expected.stderr
    assert (done.returncode, done.stdout, done.stderr) == (0, expected.stdout, "")


def test_a_zip_file_is_run_by_its_main_file(python, tmp_path) -> None:
    with zipfile.ZipFile(tmp_path / "app.zip", "w") as archive:
        archive.writestr(
            "__main__.py", "import sys; print(sys.argv, sys.path[0], __name__, __spec__.name)"
        )
    expected = python("app.zip", "-x")
    done = python(*RUN, "app.zip", "-x")
    assert expected.returncode == 0, expected.stderr
    assert (done.returncode, done.stdout, done.stderr) == (0, expected.stdout, "")


def test_a_zip_file_without_main_file_is_one_line_and_status_2(python, tmp_path) -> None:
    with zipfile.ZipFile(tmp_path / "app.zip", "w") as archive:
        archive.writestr("other.py", "")
    done = python(*RUN, "app.zip")
    assert done.returncode == 2
    assert done.stderr == "Error: can't find a __main__.py in the zip file 'app.zip'.\n"


def test_a_compiled_script_is_run(python, write, tmp_path) -> None:
    script = write("script.py", "import sys; print(sys.argv, sys.path[0], __name__, __file__)")
    py_compile.compile(str(script), cfile=str(tmp_path / "compiled.pyc"), doraise=True)
    expected = python("compiled.pyc", "x")
    done = python(*RUN, "compiled.pyc", "x")
    assert expected.returncode == 0, expected.stderr
    assert (done.returncode, done.stdout, done.stderr) == (0, expected.stdout, "")


def test_a_dash_runs_standard_input(python) -> None:
    script = "import sys; print(sys.argv, repr(sys.path[0]), __name__, '__file__' in globals())"
    expected = python("-", "-x", stdin=script)
    done = python(*RUN, "-", "-x", stdin=script)
    assert (done.returncode, done.stdout, done.stderr) == (0, expected.stdout, "")


def test_a_named_pipe_is_run(python, tmp_path) -> None:
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(
        target=(tmp_path / "pipe").write_text, args=("print('from the pipe')",), daemon=True
    )
    writer.start()
    done = python(*RUN, "pipe")
    assert (done.returncode, done.stdout, done.stderr) == (0, "from the pipe\n", "")


def test_a_script_that_does_not_exist_is_one_line_and_status_2(python) -> None:
    done = python(*RUN, "nowhere.py", "x")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == "Error: the script 'nowhere.py' does not exist.\n"


def test_a_directory_without_main_file_is_one_line_and_status_2(python, tmp_path) -> None:
    (tmp_path / "empty").mkdir()
    done = python(*RUN, "empty")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == "Error: can't find a __main__.py in the directory 'empty'.\n"


@pytest.mark.parametrize("mode", ["NUMBA", "JAX_FIX"])
def test_an_unknown_mode_is_answered_with_the_names_of_both(python, write, mode) -> None:
    write("script.py", "print('must not run')")
    done = python(*RUN, "--mode", mode, "script.py")
    assert done.returncode == 2
    assert done.stdout == ""
    assert f"'{mode}'" in done.stderr
    assert "'NUMBA_FIXED', 'JAX_FIXED'" in done.stderr


def test_without_a_script_it_says_what_is_missing(python) -> None:
    done = python(*RUN, "--mode", "JAX_FIXED")
    assert done.returncode == 2
    assert "SCRIPT" in done.stderr


def test_the_mode_is_the_default_and_children_inherit_it_with_the_other_flags(
    python, write
) -> None:
    write(
        "script.py",
        "import os, subprocess, sys\n"
        "import aesara\n"
        "print(aesara.config.mode, aesara.config.floatX)\n"
        "print(type(aesara.compile.mode.get_default_mode()).__name__)\n"
        "sys.stdout.flush()\n"
        "child = 'import os; print(os.environ[\"AESARA_FLAGS\"])'\n"
        "subprocess.run([sys.executable, '-c', child], check=True)\n",
    )
    done = python(
        *RUN, "--mode", "JAX_FIXED", "script.py", AESARA_FLAGS="mode=FAST_RUN,floatX=float32"
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "JAX_FIXED float32",
        "JAXFixedMode",
        "floatX=float32,mode=JAX_FIXED",
    ]


def test_a_script_without_changes_computes_in_the_default_mode(python, write) -> None:
    write(
        "script.py",
        "import aesara, aesara.tensor as at\n"
        "x = at.dvector()\n"
        "f = aesara.function([x], (x ** 2).sum())\n"
        "print(float(f([1.0, 2.0, 3.0])), type(f.maker.mode.linker).__name__)\n",
    )
    done = python(*RUN, "script.py")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "14.0 FixedNumbaLinker\n"


def test_aesara_imported_before_the_script_gets_the_mode_too(python, write) -> None:
    write("sitecustomize.py", "import aesara")
    write("script.py", "import aesara; print(aesara.config.mode)")
    # On Python 3.12 Aesara alone can't look for a BLAS, so it is told not to.
    flags = "blas__ldflags="
    done = python(*RUN, "--mode", "JAX_FIXED", "script.py", PYTHONPATH=".", AESARA_FLAGS=flags)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "JAX_FIXED\n"
