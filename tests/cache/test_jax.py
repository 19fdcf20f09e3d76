"""JAX_FIXED with the cache: what XLA has compiled once is loaded."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aesara
import aesara.tensor as at
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fixed_modes
from fixed_modes.errors import FixedModesWarning
from fixed_modes.jax import cache
from fixed_modes.jax.cache import StoredJit, can_store, program_key
from fixed_modes.jax.compile_options import jit
from tests.jax_versions import CAN_STORE, needs_storing

INSTALLED_IN = Path(fixed_modes.__file__).parents[1]


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[Path]:
    with aesara.config.change_flags(
        fixed_modes__cache=True, fixed_modes__cache_dir=str(tmp_path / "cache")
    ):
        yield tmp_path / "cache" / "compiled-1"


def cumulated(args: Any) -> Any:
    return {"sum": jnp.cumsum(args[0]) * args[1]}


ARGS = (np.arange(4.0, dtype=np.float32), np.float32(2))
EXPECTED = [0.0, 2.0, 6.0, 12.0]


def test_it_is_used_where_jax_can_serialise(directory: Path) -> None:
    assert can_store() == CAN_STORE
    assert isinstance(jit(cumulated, {}), StoredJit) == CAN_STORE


@needs_storing
def test_functions_that_ignore_another_argument_are_kept_apart(directory: Path) -> None:
    a, b, matrix = np.ones(2), np.zeros(2), np.zeros((2, 2))
    for position, args in enumerate([(a, b), (b, a), (matrix, b, a)]):
        function = StoredJit(lambda args, position=position: args[position] + 1.0, {})
        np.testing.assert_array_equal(function(args), [2.0, 2.0])
        np.testing.assert_array_equal(function(args), [2.0, 2.0])


def states(function: Any) -> list[str]:
    return [repr(outcome) for outcome in function.outcomes]


@needs_storing
def test_what_was_compiled_is_loaded_with_its_structure(directory: Path) -> None:
    for expected in ("compiled", "loaded"):
        function = jit(cumulated, {})
        assert isinstance(function, StoredJit)
        for _ in range(2):
            np.testing.assert_array_equal(function(ARGS)["sum"], EXPECTED)
        assert states(function) == [expected]
        # A shape more, a dtype more, and back to the first.
        np.testing.assert_array_equal(function((ARGS[0][:2], ARGS[1]))["sum"], EXPECTED[:2])
        integers = function((np.arange(4, dtype=np.int32), np.int32(2)))["sum"]
        assert integers.dtype == np.int32
        np.testing.assert_array_equal(integers, EXPECTED)
        np.testing.assert_array_equal(function(ARGS)["sum"], EXPECTED)
        assert states(function) == [expected] * 3
    assert len(list(directory.iterdir())) == 3


@needs_storing
def test_a_damaged_entry_is_compiled_again_with_one_warning(directory: Path) -> None:
    jit(cumulated, {})(ARGS)
    (path,) = directory.iterdir()
    os.truncate(path, 1000)
    function = jit(cumulated, {})
    with pytest.warns(FixedModesWarning, match="is damaged") as caught:
        np.testing.assert_array_equal(function(ARGS)["sum"], EXPECTED)
    assert len(caught) == 1
    assert states(function) == ["compiled"]


@needs_storing
def test_calls_back_are_not_stored_and_the_reason_is_told(
    directory: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "fixed_modes.cache")

    def calling_back(args: Any) -> Any:
        shape = jax.ShapeDtypeStruct((), np.float32)
        return jax.pure_callback(lambda x: np.float32(x + 1), shape, args[0])

    function = jit(calling_back, {})
    assert float(function((np.float32(1),))) == 2
    assert states(function) == ["refused (it calls Python back)"]
    assert "it calls Python back" in caplog.text
    assert not directory.exists()


@needs_storing
def test_the_report_has_a_line_for_each_compilation(directory: Path) -> None:
    x, n = at.dvector("x"), at.lscalar("n")
    f = aesara.function([x, n], at.alloc(x.sum(), n), mode="JAX_FIXED")
    assert fixed_modes.cache_report(f)[1:] == []
    for length, steps in ((3, 2), (3, 4), (5, 4)):
        np.testing.assert_array_equal(f(np.ones(length), steps), np.full(steps, float(length)))
    assert fixed_modes.cache_report(f)[1:] == ["compiled"] * 3
    stock = aesara.function([x], x, mode="FAST_COMPILE")
    with pytest.raises(TypeError, match="was not compiled with NUMBA_FIXED or JAX_FIXED"):
        fixed_modes.cache_report(stock)


@needs_storing
def test_programs_options_versions_and_settings_are_the_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = program_key("a", {"x": 1})
    keys = {before, program_key("b", {"x": 1}), program_key("a", {"x": 2}), program_key("a", {})}
    facts = cache.facts()
    for fact in ("jax", "jaxlib", "platform", "processor"):
        with monkeypatch.context() as patch:
            patch.setattr(cache, "facts", lambda fact=fact: {**facts, fact: facts[fact] + ",+x"})
            keys.add(program_key("a", {"x": 1}))
    with monkeypatch.context() as patch:
        patch.setenv("XLA_FLAGS", "--xla_cpu_enable_fast_math=true")
        keys.add(program_key("a", {"x": 1}))
    with jax.default_matmul_precision("float32"):
        keys.add(program_key("a", {"x": 1}))
    assert len(keys) == 10
    assert program_key("a", {"x": 1}) == before


def test_large_constants_are_part_of_the_program() -> None:
    texts = set()
    for last in (1.0, 2.0):
        constant = np.append(np.zeros(5_000), last).astype(np.float32)
        texts.add(jax.jit(lambda x, constant=constant: x * constant).lower(np.float32(1)).as_text())
    assert len(texts) == 2


@needs_storing
def test_the_users_own_cache_and_debugging_are_left_to_jax(directory: Path, tmp_path: Path) -> None:
    assert can_store()
    for name, value in (
        ("jax_compilation_cache_dir", str(tmp_path)),
        ("jax_disable_jit", True),
        ("jax_debug_nans", True),
    ):
        before = getattr(jax.config, name)
        jax.config.update(name, value)
        try:
            assert not can_store()
        finally:
            jax.config.update(name, before)
    with aesara.config.change_flags(fixed_modes__cache=False):
        assert not can_store()
        assert not isinstance(jit(cumulated, {}), StoredJit)
    assert can_store()


RUN = """
    import json, sys, warnings
    import numpy as np
    import fixed_modes, aesara, aesara.tensor as at, jax
    from aesara.tensor.random.utils import RandomStream

    compiled = []
    compile_ = jax.stages.Lowered.compile
    def compile(self, *args, **kwargs):
        compiled.append(1)
        return compile_(self, *args, **kwargs)
    jax.stages.Lowered.compile = compile

    x, n = at.dvector("x"), at.lscalar("n")
    trace, _ = aesara.scan(lambda x, s: at.tanh(s * x) + 1, [x], [x[0]])
    power, _ = aesara.scan(lambda p: p * 1.5, outputs_info=[at.ones(2)], n_steps=n)
    f = aesara.function([x, n], [trace, power, x[n]], mode="JAX_FIXED")
    results = [np.asarray(value).tolist() for value in f(np.arange(1.0, 5.0), 3)]
    try:
        f(np.arange(1.0, 4.0), 3)
    except IndexError as error:
        results.append(str(error))
    stream = RandomStream(3)
    g = aesara.function([], stream.normal(size=3), mode="JAX_FIXED")
    results.append(g().tolist())
    print(json.dumps([len(compiled), results]))
"""


@needs_storing
def test_a_second_process_compiles_nothing(tmp_path: Path) -> None:
    flags = (
        f"{os.environ['AESARA_FLAGS']},fixed_modes__cache=True,fixed_modes__cache_dir={tmp_path}"
    )
    runs = []
    for _ in range(2):
        process = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(RUN)],
            env={**os.environ, "PYTHONPATH": str(INSTALLED_IN), "AESARA_FLAGS": flags},
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert process.returncode == 0, process.stderr
        runs.append(json.loads(process.stdout))
    (cold, first), (warm, second) = runs
    assert cold >= 2
    assert warm == 0
    assert first == second
    np.testing.assert_allclose(first[1][-1], [1.5**3] * 2)
    assert first[2] == 4.0
    # Two shapes of one program, of which the second has an index that is out of bounds.
    assert "out of bounds" in first[3]
