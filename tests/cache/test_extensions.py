"""What other packages teach Numba is part of the key of what calls it."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba import types
from numba.core import imputils
from numba.core.typing import templates
from numba.extending import lower_builtin, overload, overload_method, register_jitable

import fixed_modes
from fixed_modes.cache.key import Key, Undescribable
from fixed_modes.numba import extensions
from fixed_modes.numba.cache import _describe

INSTALLED_IN = Path(fixed_modes.__file__).parents[1]


@pytest.fixture(autouse=True)
def numba_as_it_was() -> Iterator[None]:
    lists = [templates.builtin_registry.functions, templates.builtin_registry.attributes]
    lists.append(imputils.builtin_registry.functions)
    before = [list(entries) for entries in lists]
    yield
    for entries, kept in zip(lists, before):
        entries[:] = kept


def key() -> str:
    found = Key(_describe)
    extensions.add_extensions(found)
    return found.hexdigest()


def scaling(factor: Any) -> Any:
    return lambda x: lambda x: factor * x


def test_functions_of_numpy_and_methods_of_arrays_count() -> None:
    keys = [key()]
    for factor in (1.0, 2.0):
        overload(np.i0)(scaling(factor))
        keys.append(key())
        overload_method(types.Array, "scaled")(scaling(factor))
        keys.append(key())
    assert len(set(keys)) == 5
    assert key() == keys[-1]


def test_a_function_of_the_package_itself_does_not() -> None:
    before = key()
    register_jitable(lambda x: x + 1)
    overload(scaling)(scaling(1.0))
    assert key() == before


def test_what_cannot_be_described_is_refused_by_name() -> None:
    overload(np.i0)(scaling(object()))
    with pytest.raises(Undescribable, match=r"scaling.<locals>.<lambda> has Numba compile"):
        key()


def test_instructions_count() -> None:
    before = key()

    def lowering(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return arguments[0]

    lower_builtin(np.i0, types.float64)(lowering)
    assert key() != before


def test_a_package_is_known_by_its_sources(tmp_path: Path, monkeypatch: Any) -> None:
    package = tmp_path / "package_with_overloads"
    package.mkdir()
    (package / "__init__.py").write_text(
        "import numpy as np\n"
        "from numba.extending import overload\n"
        "undescribable = object()\n"
        "@overload(np.i0)\n"
        "def i0(x):\n"
        "    return lambda x: undescribable\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    __import__(package.name)
    keys = [key()]
    (package / "more.py").write_text("")
    extensions._sources.cache_clear()
    keys.append(key())
    assert len(set(keys)) == 2
    monkeypatch.delitem(sys.modules, package.name)


OVERLOADS = """
    import sys, warnings
    warnings.simplefilter("ignore")
    import numba, numpy as np
    from numba import types
    from numba.extending import overload, overload_method

    factor = float(sys.argv[1])

    @overload(np.i0)
    def i0(x):
        return lambda x: factor * x

    @overload_method(types.Array, "scaled")
    def scaled(x):
        return lambda x: factor * x

    import fixed_modes, aesara, aesara.tensor as at
    from aesara.graph.basic import Apply
    from aesara.graph.op import Op
    from fixed_modes.numba.compat import ensure_stock_dispatch_imports

    ensure_stock_dispatch_imports()
    from aesara.link.numba.dispatch.basic import _numba_funcify

    class Scaled(Op):
        __props__ = ()

        def make_node(self, x):
            return Apply(self, [x], [x.type()])

        def perform(self, node, inputs, outputs):
            raise AssertionError

    @_numba_funcify.register(Scaled)
    def convert(op, **kwargs):
        @numba.njit
        def kernel(x):
            return np.i0(x) + x.scaled()
        return kernel

    x = at.dvector("x")
    f = aesara.function([x], Scaled()(x), mode="NUMBA_FIXED")
    print(f([1.0, 2.0]).tolist(), fixed_modes.cache_report(f)[1])
"""


def test_another_overload_is_never_the_code_of_the_first(tmp_path: Path) -> None:
    flags = (
        f"{os.environ['AESARA_FLAGS']},fixed_modes__cache=True,fixed_modes__cache_dir={tmp_path}"
    )
    for factor, state in ((3.0, "compiled"), (5.0, "compiled"), (3.0, "loaded"), (5.0, "loaded")):
        process = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(OVERLOADS), str(factor)],
            env={**os.environ, "PYTHONPATH": str(INSTALLED_IN), "AESARA_FLAGS": flags},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert process.returncode == 0, process.stderr
        assert process.stdout == f"[{2 * factor}, {4 * factor}] {state}\n"
