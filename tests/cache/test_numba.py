"""NUMBA_FIXED with the cache: what is compiled once is loaded, and only that."""

from __future__ import annotations

import gc
import logging
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import aesara
import aesara.tensor as at
import numpy as np
import pytest
from aesara.tensor.random.utils import RandomStream
from numba.core import event

import fixed_modes
from fixed_modes.errors import FixedModesWarning
from fixed_modes.numba import cache

INSTALLED_IN = Path(fixed_modes.__file__).parents[1]


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[Path]:
    with aesara.config.change_flags(
        fixed_modes__cache=True, fixed_modes__cache_dir=str(tmp_path / "cache")
    ):
        yield tmp_path / "cache" / "compiled-1"


def code_entries(directory: Path) -> list[Path]:
    """List the entries with machine code; those of rewritten graphs are others."""
    return [path for path in directory.iterdir() if not path.name.startswith("graph-")]


class Compilations(event.Listener):
    """Counts what Numba compiles."""

    def __init__(self) -> None:
        self.count = 0

    def on_start(self, event: Any) -> None:
        self.count += 1

    def on_end(self, event: Any) -> None:
        pass


@pytest.fixture
def compilations() -> Iterator[Compilations]:
    listener = Compilations()
    with event.install_listener("numba:compile", listener):
        yield listener


def compiled(f: Any) -> Any:
    return f.vm.jit_fn


def forget() -> None:
    """Let go of the functions of earlier lines, as the end of a process does."""
    gc.collect()


def recurrence(factor: float = 2.0, dtype: str = "float64", name: str = "x") -> Any:
    x = at.vector(name, dtype=dtype)
    trace, _ = aesara.scan(lambda x, s: s * at.constant(factor, dtype=dtype) + x, [x], [x[0]])
    return aesara.function([x], trace, mode="NUMBA_FIXED")


def cumulated(name: str = "x") -> Any:
    """Make a graph that takes Numba little time."""
    x = at.dvector(name)
    return aesara.function([x], x.cumsum(), mode="NUMBA_FIXED")


def by_hand(x: np.ndarray, factor: float = 2.0) -> list[float]:
    state, trace = x[0], []
    for value in x:
        state = state * factor + value
        trace.append(state)
    return trace


def test_machine_code_is_compiled_stored_and_loaded(
    directory: Path, compilations: Compilations
) -> None:
    x = np.array([1.0, -2.0, 0.5])
    f = recurrence()
    np.testing.assert_allclose(f(x), by_hand(x))
    assert fixed_modes.cache_report(f) == ["graph rewritten", "compiled"]
    first = compilations.count
    assert first >= 1
    assert len(code_entries(directory)) == 1

    # An equal graph of this process shares the function.
    again = recurrence(name="other")
    np.testing.assert_allclose(again(x), by_hand(x))
    assert compiled(again).function is compiled(f).function

    del f, again
    forget()
    loaded = recurrence(name="third")
    np.testing.assert_allclose(loaded(x), by_hand(x))
    assert repr(compiled(loaded).cache) == "loaded"
    assert compilations.count == first

    # An argument of another layout is another entry.
    np.testing.assert_allclose(loaded(np.repeat(x, 2)[::2]), by_hand(x))
    assert repr(compiled(loaded).cache) == "compiled"
    assert len(code_entries(directory)) == 2


def test_errors_of_loaded_code_name_the_graph_that_raised_them(directory: Path) -> None:
    def make(name: str) -> Any:
        x, index = at.dvector(name), at.lscalar("index")
        return aesara.function([x, index], x[index], mode="NUMBA_FIXED")

    for name, state in (("x", "compiled"), ("other", "loaded")):
        f = make(name)
        with pytest.raises(IndexError, match=f"Subtensor.*{name}"):
            f(np.zeros(2), 5)
        assert repr(compiled(f).cache) == state
        del f
        forget()


def test_a_damaged_entry_is_compiled_again_with_one_warning(directory: Path) -> None:
    x = np.array([1.0, 3.0])
    cumulated()(x)
    forget()
    (path,) = code_entries(directory)
    os.truncate(path, path.stat().st_size // 2)
    with pytest.warns(FixedModesWarning, match="is damaged") as caught:
        np.testing.assert_allclose(cumulated()(x), [1.0, 4.0])
    assert len(caught) == 1
    forget()
    f = cumulated()
    np.testing.assert_allclose(f(x), [1.0, 4.0])
    assert repr(compiled(f).cache) == "loaded"


def test_turned_off_it_neither_reads_nor_writes(directory: Path) -> None:
    with aesara.config.change_flags(fixed_modes__cache=False):
        f = cumulated()
        f(np.ones(2))
    assert repr(compiled(f).cache) == "off"
    assert not directory.exists()


def key(make: Callable[..., Any], *arguments: Any, **options: Any) -> str:
    return compiled(make(*arguments, **options)).cache.key


def scan_of(
    step: Callable[..., Any], taps: tuple[int, ...] = (-1,), name: str = "", dtype: str = "float64"
) -> str:
    start = at.vector(f"start{name}", dtype=dtype)
    trace, _ = aesara.scan(
        step, outputs_info=[{"initial": start, "taps": list(taps)}], n_steps=5, name=name or None
    )
    return compiled(aesara.function([start], trace, mode="NUMBA_FIXED")).cache.key


def test_equal_graphs_have_one_key_whatever_their_names(directory: Path) -> None:
    first = scan_of(lambda s: 0.5 * at.tanh(s) + 1)
    assert len(first) == 64
    assert first == scan_of(lambda s: 0.5 * at.tanh(s) + 1, name="loop")
    with aesara.config.change_flags(fixed_modes__cache_size=10**6):
        assert first == scan_of(lambda s: 0.5 * at.tanh(s) + 1)


def test_any_change_of_a_graph_is_another_key(directory: Path) -> None:
    keys = [
        scan_of(lambda s: 0.5 * at.tanh(s) + 1),
        scan_of(lambda s: 0.25 * at.tanh(s) + 1),
        scan_of(lambda s: -0.5 * at.tanh(s) + 1),
        scan_of(lambda s: 0.5 * at.sin(s) + 1),
        scan_of(lambda s: 0.5 * at.tanh(s) - 1),
        scan_of(lambda s: np.float32(0.5) * at.tanh(s) + 1, dtype="float32"),
        scan_of(lambda s: 0.5 * at.tanh(s) + 1, taps=(-2,)),
        scan_of(lambda s, t: 0.5 * at.tanh(s) + t, taps=(-1, -2)),
        scan_of(lambda s, t: 0.5 * at.tanh(t) + s, taps=(-1, -2)),
    ]
    assert len(set(keys)) == len(keys)
    # The order in which a user lists taps is no difference between loops.
    assert scan_of(lambda t, s: 0.5 * at.tanh(s) + t, taps=(-2, -1)) == keys[-2]


FACTS = ("fixed_modes", "aesara", "numba", "llvmlite", "numpy", "scipy", "python", "machine")


@pytest.mark.parametrize("fact", FACTS)
def test_every_version_is_part_of_the_key(
    directory: Path, monkeypatch: pytest.MonkeyPatch, fact: str
) -> None:
    before = key(recurrence)
    facts = cache.facts()
    assert set(facts) == set(FACTS)
    monkeypatch.setattr(cache, "facts", lambda: {**facts, fact: facts[fact] + ".1"})
    assert key(recurrence) != before


def test_settings_that_change_machine_code_are_part_of_the_key(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from numba.core import config

    before = key(recurrence)
    changes = {"OPT": 1, "BOUNDSCHECK": 1, "LOOP_VECTORIZE": 0, "CPU_FEATURES": "+avx"}
    for name, value in changes.items():
        with monkeypatch.context() as patch:
            patch.setattr(config, name, value)
            assert key(recurrence) != before
    monkeypatch.setattr(config, "NUMBA_NUM_THREADS", 1)
    monkeypatch.setattr(config, "COLOR_SCHEME", "dark_bg")
    assert key(recurrence) == before


def test_code_for_another_processor_is_not_loaded(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = np.array([1.0, 3.0])
    cumulated()(x)
    forget()
    for position in range(3):

        def other(context: Any, position: int = position) -> tuple[str, ...]:
            parts = list(context.codegen().magic_tuple())
            parts[position] += ",+other"
            return tuple(parts)

        with monkeypatch.context() as patch:
            patch.setattr(cache, "processor", other)
            f = cumulated()
            np.testing.assert_allclose(f(x), [1.0, 4.0])
        assert repr(compiled(f).cache) == "compiled"
        del f
        forget()


def test_code_that_needs_what_is_not_there_is_compiled_again(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name that the linker does not know would end the process."""
    x = np.array([1.0, 3.0])
    needed = cache._symbols_of
    with monkeypatch.context() as patch:
        patch.setattr(cache, "_symbols_of", lambda data: [*needed(data), "is_nowhere"])
        cumulated()(x)
    forget()
    for state in ("compiled", "loaded"):
        f = cumulated()
        np.testing.assert_allclose(f(x), [1.0, 4.0])
        assert repr(compiled(f).cache) == state
        del f
        forget()


class Doubled(aesara.graph.op.Op):
    """An op that only Python can run."""

    __props__ = ()
    itypes = (at.dvector,)
    otypes = (at.dvector,)

    def perform(self, node: Any, inputs: Any, outputs: Any) -> None:
        outputs[0][0] = 2 * inputs[0]


def test_python_inside_is_not_stored_and_the_reason_is_told(
    directory: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "fixed_modes.cache")
    x = at.dvector("x")
    with pytest.warns(FixedModesWarning, match="Python at every call"):
        f = aesara.function([x], Doubled()(x) + 1, mode="NUMBA_FIXED")
    np.testing.assert_array_equal(f([1.0, 2.0]), [3.0, 5.0])
    outcome = compiled(f).cache
    assert fixed_modes.cache_report(f)[1:] == [repr(outcome)]
    assert outcome.state == "refused"
    assert "PerformCall" in outcome.reason
    assert outcome.reason in caplog.text
    assert not directory.exists()


def test_generators_draw_the_same_from_loaded_code(directory: Path) -> None:
    def make() -> Any:
        stream = RandomStream(23)
        draws, updates = aesara.scan(lambda: stream.normal(), n_steps=4)
        return aesara.function([], draws, updates=updates, mode="NUMBA_FIXED")

    seed = np.random.SeedSequence(23).spawn(1)[0]
    expected = np.random.Generator(np.random.PCG64(seed)).normal(size=8)
    for state in ("compiled", "loaded"):
        f = make()
        np.testing.assert_array_equal(np.concatenate([f(), f()]), expected)
        assert repr(compiled(f).cache) == state
        del f
        forget()


OWN_KERNELS = """
    import sys, warnings
    warnings.simplefilter("ignore")
    import numba, numpy as np

    def make(factor):
        @numba.njit
        def helper(x):
            return factor * x
        return helper

    # Compiled before there is anything of this package: both processes give it one name.
    helper = make(float(sys.argv[1]))

    @numba.njit
    def kernel(x):
        return np.sort(helper(x)), np.linalg.cholesky(np.diag(x))

    kernel(np.array([3.0, 1.0]))
    print(helper.overloads[helper.signatures[0]].fndesc.mangled_name)

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

    _numba_funcify.register(Scaled)(lambda op, **kwargs: helper)
    x, m = at.dvector("x"), at.dmatrix("m")
    f = aesara.function(
        [x, m], [Scaled()(at.sort(x)), at.slinalg.cholesky(m)], mode="NUMBA_FIXED"
    )
    print(*(value.tolist() for value in f([3.0, 1.0], 4 * np.eye(1))))
    print(fixed_modes.cache_report(f)[1], helper(np.array([1.0])).tolist())
"""


def test_functions_that_numba_compiled_before_are_stored_too(tmp_path: Path) -> None:
    flags = (
        f"{os.environ['AESARA_FLAGS']},fixed_modes__cache=True,fixed_modes__cache_dir={tmp_path}"
    )
    code, names = textwrap.dedent(OWN_KERNELS), set()
    for factor, state in ((3.0, "compiled"), (5.0, "compiled"), (3.0, "loaded"), (5.0, "loaded")):
        name, values, report = output_of("-c", code, str(factor), AESARA_FLAGS=flags).splitlines()
        names.add(name)
        assert values == f"[{factor}, {3 * factor}] [[2.0]]"
        assert report == f"{state} [{factor}]"
    # That is what would be mixed up.
    assert len(names) == 1


def test_no_two_processes_give_two_functions_one_name() -> None:
    code = """
        import os
        import numba
        from fixed_modes.numba.cache import names_are_unique

        def number():
            f = numba.njit(lambda: 1)
            f()
            return f.overloads[()].fndesc.uid

        names_are_unique()
        names_are_unique()
        print(number(), number(), flush=True)
        for _ in range(2):
            child = os.fork()
            if child == 0:
                print(number(), flush=True)
                os._exit(0)
            os.waitpid(child, 0)
    """
    mother, sister, *children = map(int, output_of("-c", textwrap.dedent(code)).split())
    assert len(children) == 2
    assert 0 < sister - mother < 100
    starts = sorted([mother, *children])
    assert min(starts) >= 2**48
    # They don't meet before one of them has compiled so many functions.
    assert all(b - a > 2**15 for a, b in zip(starts, starts[1:]))


def output_of(*arguments: str, **variables: str) -> str:
    process = subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, "PYTHONPATH": str(INSTALLED_IN), **variables},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    return process.stdout


COMPILE_ONE_GRAPH = """
    import warnings
    warnings.simplefilter("ignore")
    import fixed_modes, aesara, aesara.tensor as at
    x = at.dvector("x")
    f = aesara.function([x], x.cumsum(), mode="NUMBA_FIXED")
    warnings.simplefilter("error")
    print(f([1.0, 3.0]).tolist(), *fixed_modes.cache_report(f)[1:])
"""


def test_processes_that_compile_one_graph_at_once(tmp_path: Path) -> None:
    flags = (
        f"{os.environ['AESARA_FLAGS']},fixed_modes__cache=True,fixed_modes__cache_dir={tmp_path}"
    )
    with ThreadPoolExecutor(4) as pool:
        runs = [
            pool.submit(output_of, "-c", textwrap.dedent(COMPILE_ONE_GRAPH), AESARA_FLAGS=flags)
            for _ in range(4)
        ]
        # Whoever comes late finds what another has stored.
        assert {run.result() for run in runs} <= {"[1.0, 4.0] compiled\n", "[1.0, 4.0] loaded\n"}
    assert len(code_entries(tmp_path / "compiled-1")) == 1


def test_source_is_the_same_in_every_process(tmp_path: Path) -> None:
    """Aesara numbers what a `Composite` computes as its sets happen to be ordered."""
    script = tmp_path / "script.py"
    script.write_text(
        "import aesara, aesara.tensor as at, fixed_modes\n"
        "x, y = at.dvectors('x', 'y')\n"
        "a, b = at.tanh(x) * y, at.exp(-x)\n"
        "z = at.switch(a > b, a * b, a + b) + at.sqrt(abs(a)) * (b - a) / (1 + b * b)\n"
        "f = aesara.function([x, y], [z, aesara.grad(z.sum(), x)], mode='NUMBA_FIXED')\n"
        "f([1.0, 2.0], [3.0, 4.0])\n"
        "print(fixed_modes.numba_source(f))\n"
    )
    sources = {
        subprocess.run(
            [sys.executable, str(script)],
            capture_output=True,
            text=True,
            timeout=300,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in "1234"
    }
    assert len(sources) == 1
