"""JAX_FIXED with the cache: what was traced once is not traced again, nor taken for it."""

from __future__ import annotations

import functools
import json
import os
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import aesara
import aesara.scalar as aes
import aesara.tensor as at
import jax
import numpy as np
import pytest
from aesara.graph.basic import Apply
from aesara.graph.op import Op
from aesara.ifelse import ifelse
from aesara.printing import Print
from aesara.scan.utils import until
from aesara.tensor.random.utils import RandomStream
from jax.interpreters import mlir

import fixed_modes
from fixed_modes.cache.key import Undescribable
from fixed_modes.cache.warned import WarningWatch
from fixed_modes.errors import FixedModesWarning
from fixed_modes.jax import variants
from fixed_modes.jax.foreign import check_conversions
from fixed_modes.jax.graph_names import GraphNames
from fixed_modes.jax.scalar import scalar_lower
from fixed_modes.jax.variants import Variant
from tests.jax_versions import needs_storing

pytestmark = needs_storing
X = np.array([1.0, -2.0, 0.5])


@pytest.fixture(autouse=True)
def directory(tmp_path: Path) -> Iterator[Path]:
    with aesara.config.change_flags(
        fixed_modes__cache=True, fixed_modes__cache_dir=str(tmp_path / "cache")
    ):
        yield tmp_path / "cache" / "compiled-1"


@pytest.fixture(autouse=True)
def traces(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Note every graph that is traced from now on."""
    found: list[str] = []
    trace = Variant._trace_outputs

    def spy(self: Variant, args: Any) -> Any:
        found.append(str(self.fgraph.outputs))
        return trace(self, args)

    monkeypatch.setattr(Variant, "_trace_outputs", spy)
    return found


def entries(directory: Path) -> list[Path]:
    return sorted(directory.glob("trace-*"))


def tanh_of(x: Any, **options: Any) -> Any:
    return aesara.function([x], at.tanh(x) * 2.0, mode="JAX_FIXED", **options)


def test_an_equal_graph_is_not_traced(traces: list[str]) -> None:
    x = at.dvector("x")
    for _ in range(2):
        f = tanh_of(x)
        np.testing.assert_allclose(f(X), 2 * np.tanh(X), rtol=1e-15)
        np.testing.assert_allclose(f(X[:2]), 2 * np.tanh(X[:2]), rtol=1e-15)
        assert len(traces) == 2
    assert fixed_modes.cache_report(f) == ["graph loaded", "loaded", "loaded"]


def test_lengths_that_must_be_known_are_remembered(traces: list[str]) -> None:
    x, n = at.dvector("x"), at.lscalar("n")
    counts = []
    for _ in range(2):
        powers, _ = aesara.scan(lambda p, x: p * x, None, [at.ones_like(x)], [x], n_steps=n)
        f = aesara.function([x, n], [powers, at.arange(n)], mode="JAX_FIXED")
        for steps in (3, 2, 3):
            values, numbers = f(X, steps)
            expected = [X ** (k + 1) for k in range(steps)]
            np.testing.assert_allclose(values, expected, rtol=1e-14)
            np.testing.assert_array_equal(numbers, np.arange(steps))
        counts.append(len(traces))
    # One that ends for want of a number, and one for each number of steps.
    assert counts == [3, 3]


def test_generators_scalars_and_traces_of_until_loops_come_back(traces: list[str]) -> None:
    def make() -> Any:
        stream = RandomStream(7)
        x, bound = at.dscalar("x"), at.dscalar("bound")
        rows, _ = aesara.scan(
            lambda s: (2 * s, until(2 * s > bound)),
            outputs_info=[x],
            n_steps=20,
        )
        f = aesara.function([x, bound], [rows, stream.normal(size=2), x + 1], mode="JAX_FIXED")
        return [f(1.0, bound) for bound in (5.0, 30.0)]

    first, second = make(), make()
    assert len(traces) == 1
    for found in (first, second):
        for rows, expected in zip((found[0][0], found[1][0]), ([2, 4, 8], [2, 4, 8, 16, 32])):
            np.testing.assert_array_equal(rows, np.array(expected, "float64"))
            assert rows.flags.writeable
        assert found[0][2] == 2
        # The generator goes on.
        assert not np.array_equal(found[0][1], found[1][1])
    np.testing.assert_array_equal(first[0][1], second[0][1])
    np.testing.assert_array_equal(first[1][1], second[1][1])


def test_parts_of_a_graph_are_told_apart(traces: list[str]) -> None:
    x, c = at.dvector("x"), at.dscalar("c")
    counts = []
    for _ in range(2):
        where = at.nonzero(x > 0)[0]
        sides = ifelse(at.gt(c, 0), (where + 1).sum(), (where * 3).sum())
        f = aesara.function([x, c], [where, at.exp(x), sides, x[where] ** 2], mode="JAX_FIXED")
        for sign, total in ((1.0, 4), (-1.0, 6)):
            found = f(X, sign)
            np.testing.assert_array_equal(found[0], [0, 2])
            np.testing.assert_allclose(found[1], np.exp(X), rtol=1e-15)
            assert found[2] == total
            np.testing.assert_allclose(found[3], [1.0, 0.25], rtol=1e-15)
        counts.append(len(traces))
        traces.clear()
    # That a node must run by itself is found out anew.
    assert counts[1] < counts[0]
    assert all("Nonzero" not in name for name in traces)


def expect_traced(traces: list[str], make: Callable[[], Any], *args: Any) -> Any:
    """Make a function and call it: it must be traced, and once more not."""
    before = len(traces)
    found = make()(*args)
    assert len(traces) > before
    before = len(traces)
    np.testing.assert_array_equal(make()(*args), found)
    assert len(traces) == before
    return found


def test_constants_dtypes_shapes_and_names(traces: list[str]) -> None:
    x = at.dvector("x")

    def scaled(x: Any, factor: Any) -> Callable[[], Any]:
        return lambda: aesara.function([x], x * factor, mode="JAX_FIXED")

    vector = np.arange(3.0)
    assert expect_traced(traces, scaled(x, 2.0), X).tolist() == [2, -4, 1]
    assert expect_traced(traces, scaled(x, 3.0), X).tolist() == [3, -6, 1.5]
    assert expect_traced(traces, scaled(x, 3.0), X[:1]).tolist() == [3]
    assert expect_traced(traces, scaled(x, vector), X).tolist() == [0, -2, 1]
    assert expect_traced(traces, scaled(x, vector + 1), X).tolist() == [1, -4, 1.5]
    assert expect_traced(traces, scaled(at.lvector("x"), 2), np.array([3])).tolist() == [6]
    assert expect_traced(traces, scaled(at.ivector("x"), 2), np.array([3], "i4")).tolist() == [6]
    # An error would name the variable.
    assert expect_traced(traces, scaled(at.dvector("y"), 2.0), X).tolist() == [2, -4, 1]


def test_flags_options_and_settings(traces: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    x, i = at.dvector("x"), at.lscalar("i")

    def make() -> Any:
        return aesara.function([x, i], at.tanh(x)[i], mode="JAX_FIXED")

    expected = np.tanh(X[1])
    assert expect_traced(traces, make, X, 1) == expected
    for flag, value in (
        ("fixed_modes__index_checks", False),
        ("fixed_modes__strict", True),
        ("fixed_modes__jax_compile_options", "xla_cpu_enable_fast_min_max=False"),
        ("floatX", "float32"),
    ):
        with aesara.config.change_flags(**{flag: value}):
            assert expect_traced(traces, make, X, 1) == pytest.approx(expected)
    f = make()
    before = len(traces)
    with aesara.config.change_flags(cast_policy="numpy+floatX"):
        f(X, 1)
    assert len(traces) == before + 1
    with jax.default_matmul_precision("float32"):
        assert expect_traced(traces, make, X, 1) == expected
    with monkeypatch.context() as patch:
        patch.setenv("XLA_FLAGS", "--xla_cpu_enable_fast_math=false")
        assert expect_traced(traces, make, X, 1) == expected
    with jax.default_device(jax.devices()[0]):
        for _ in range(2):
            before = len(traces)
            assert make()(X, 1) == expected
            assert len(traces) == before + 1
    before = len(traces)
    assert make()(X, 1) == expected
    assert len(traces) == before


def test_index_checks_that_are_off_stay_off(traces: list[str]) -> None:
    x, i = at.dvector("x"), at.lscalar("i")

    def make() -> Any:
        return aesara.function([x, i], x[i], mode="JAX_FIXED")

    for _ in range(2):
        with pytest.raises(IndexError):
            make()(X, 3)
        with aesara.config.change_flags(fixed_modes__index_checks=False):
            make()(X, 3)
    assert make()(X, 2) == 0.5


def test_a_check_that_fails_raises_what_it_says(traces: list[str], directory: Path) -> None:
    def make() -> Any:
        x, i, m = at.dvector("x"), at.lscalar("i"), at.dmatrix("m")
        outputs = [x[i], at.linalg.cholesky(m)]
        return aesara.function([x, i, m], outputs, mode="JAX_FIXED", on_unused_input="ignore")

    good, bad = 4 * np.eye(2), -np.eye(2)
    messages = []
    for with_cache in (True, True, False):
        with aesara.config.change_flags(fixed_modes__cache=with_cache):
            f = make()
        assert f(X, 2, good)[0] == 0.5
        with pytest.raises(IndexError, match="index is out of bounds for axis 0") as outside:
            f(X, 3, good)
        with pytest.raises(np.linalg.LinAlgError) as negative:
            f(X, 0, bad)
        np.testing.assert_array_equal(f(X, 0, good)[1], 2 * np.eye(2))
        messages.append((str(outside.value), str(negative.value)))
        if with_cache:
            # The compiled code is counted once.
            assert len(fixed_modes.cache_report(f)) == 2
    assert messages[0] == messages[1] == messages[2]
    assert "x" in messages[0][0]
    # Once for the code, then for the errors of what was loaded, then without the cache.
    assert len(traces) == 3


def test_what_was_compiled_for_the_common_case_runs_by_itself_where_it_does_not_hold(
    traces: list[str],
) -> None:
    def make() -> Any:
        lengths, x = at.lvector("lengths"), at.dscalar("x")

        def inner(s: Any) -> Any:
            return 2 * s, until(s > 1e6)

        def outer(n: Any, x: Any) -> Any:
            rows, _ = aesara.scan(inner, outputs_info=[x], n_steps=n)
            return rows[-1]

        out, _ = aesara.scan(outer, [lengths], non_sequences=[x])
        return aesara.function([lengths, x], out, mode="JAX_FIXED")

    for _ in range(2):
        f = make()
        np.testing.assert_array_equal(f(np.array([1, 3]), 1.0), [2.0, 8.0])
        found = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FixedModesWarning)
            for _ in range(2):
                try:
                    found.append(f(np.array([1, 0]), 1.0))
                except IndexError as error:
                    found.append(type(error))
        assert found == [IndexError, IndexError]
        np.testing.assert_array_equal(f(np.array([2, 2]), 1.0), [4.0, 4.0])


class Foreign:
    """Registers functions for a test, and puts back what was there."""

    def __init__(self, table: Any, kind: type, function: Any) -> None:
        self.table, self.kind, self.function = table, kind, function
        self.before = table.dispatch(kind)

    def __enter__(self) -> None:
        self.table.register(self.kind)(self.function)

    def __exit__(self, *error: object) -> None:
        self.table.register(self.kind)(self.before)


def test_conversions_of_others(traces: list[str]) -> None:
    x = at.dvector("x")
    assert expect_traced(traces, lambda: tanh_of(x), X).tolist() == (2 * np.tanh(X)).tolist()

    def half(op: Any, *args: Any, **kwargs: Any) -> Any:
        return args[-1][0] / 2

    before = scalar_lower.dispatch(aes.Tanh)
    # Decorators give a function the name of another.
    others = (half, functools.wraps(before)(half), functools.partial(half))
    # The last one is one of our own, in another place.
    for function in (*others, scalar_lower.dispatch(aes.Sin)):
        expected = X if function in others else 2 * np.sin(X)
        with Foreign(scalar_lower, aes.Tanh, function):
            for _ in range(2):
                n_traces = len(traces)
                np.testing.assert_allclose(tanh_of(x)(X), expected, rtol=1e-14)
                assert len(traces) == n_traces + 1
    n_traces = len(traces)
    np.testing.assert_allclose(tanh_of(x)(X), 2 * np.tanh(X), rtol=1e-15)
    assert len(traces) == n_traces


class Doubled(Op):
    """An op of somebody else's."""

    __props__ = ()

    def make_node(self, x: Any) -> Apply:
        return Apply(self, [x], [x.type()])

    def perform(self, node: Apply, inputs: Any, outputs: Any) -> None:
        outputs[0][0] = 2 * inputs[0]


def test_conversions_in_aesaras_table() -> None:
    from aesara.link.jax.dispatch import jax_funcify

    def convert(op: Any, **kwargs: Any) -> Any:
        return lambda x: 2 * x

    class TheirOp(Doubled):
        """An op that no graph here has."""

    # Graphs with such an op have no key.
    jax_funcify.register(TheirOp)(convert)
    check_conversions()
    with (
        Foreign(jax_funcify, at.extra_ops.CumOp, convert),
        pytest.raises(Undescribable, match="which converts CumOp"),
    ):
        check_conversions()
    check_conversions()


def test_rules_of_others_for_primitives_of_jax() -> None:
    from jax._src.core import Primitive
    from jax._src.interpreters import mlir as table

    def rule(ctx: Any, *args: Any, **params: Any) -> Any:
        raise NotImplementedError

    mlir.register_lowering(Primitive("theirs"), rule)
    check_conversions()
    before = table._lowerings[jax.lax.tanh_p]
    for registered in (rule, functools.partial(rule), mlir.lower_fun(rule)):
        mlir.register_lowering(jax.lax.tanh_p, registered)
        try:
            with pytest.raises(Undescribable, match="a rule of others for tanh"):
                check_conversions()
        finally:
            table._lowerings[jax.lax.tanh_p] = before
    check_conversions()


def test_ops_of_others_are_traced_every_time(traces: list[str], directory: Path) -> None:
    x = at.dvector("x")
    for _ in range(2):
        f = aesara.function([x], Doubled()(at.exp(x)), mode="JAX_FIXED")
        with pytest.warns(FixedModesWarning, match="runs it in Python"):
            np.testing.assert_allclose(f(X), 2 * np.exp(X), rtol=1e-15)
    assert not entries(directory)
    assert len(traces) == 4


def test_what_prints_prints_every_time(
    traces: list[str], capfd: pytest.CaptureFixture[str], directory: Path
) -> None:
    x = at.dvector("x")
    for _ in range(2):
        f = aesara.function([x], Print("seen")(x) * 2, mode="JAX_FIXED")
        np.testing.assert_array_equal(f(X), 2 * X)
        assert "seen" in capfd.readouterr().out
    assert not entries(directory)


def test_what_was_warned_of_is_warned_of_again(
    traces: list[str], directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluate = variants.evaluate

    def warning(*args: Any) -> Any:
        warnings.warn("something about this graph", RuntimeWarning, stacklevel=1)
        return evaluate(*args)

    monkeypatch.setattr(variants, "evaluate", warning)
    x, n = at.dvector("x"), at.lscalar("n")
    for shown in (True, False, True):
        f = aesara.function([x, n], at.alloc(x.sum(), n), mode="JAX_FIXED")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always" if shown else "ignore")
            np.testing.assert_array_equal(f(X, 2), [-0.5, -0.5])
        assert [str(w.message) for w in caught] == 2 * shown * ["something about this graph"]
    assert len(traces) == 6
    assert not entries(directory)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"c\x80\x05",
        b"[]",
        b"{}",
        b'{"needs": [7]}',
        b'{"needs": "x"}',
        b'{"program": "x", "outputs": [["list"]], "words": 0}',
        b'{"program": "x", "outputs": [["key", "os.system", false]], "words": 0}',
        b'{"program": "0", "outputs": [["array"]], "words": 0}',
    ],
)
def test_an_entry_of_another_kind_is_no_entry(
    traces: list[str], directory: Path, content: bytes
) -> None:
    x = at.dvector("x")
    f = tanh_of(x)
    f(X)
    (path,) = entries(directory)
    before = path.read_bytes()
    store = f.vm.jit_fn.graph.steps[0].variants.run._store
    assert store.put(path.stem, content, 1 << 30)
    np.testing.assert_allclose(tanh_of(x)(X), 2 * np.tanh(X), rtol=1e-15)
    assert len(traces) == 2
    assert path.read_bytes() == before


def test_damaged_and_missing_entries(traces: list[str], directory: Path) -> None:
    x = at.dvector("x")
    tanh_of(x)(X)
    (path,) = entries(directory)
    os.truncate(path, 100)
    with pytest.warns(FixedModesWarning, match="is damaged") as caught:
        np.testing.assert_allclose(tanh_of(x)(X), 2 * np.tanh(X), rtol=1e-15)
    assert (len(caught), len(traces)) == (1, 2)
    # The program went first, since there was no room.
    content = json.loads(path.read_bytes().partition(b"{")[2].join([b"{", b""]))
    (directory / f"{content['program']}.entry").unlink()
    f = tanh_of(x)
    np.testing.assert_allclose(f(X), 2 * np.tanh(X), rtol=1e-15)
    assert fixed_modes.cache_report(f) == ["graph loaded", "compiled"]
    assert len(traces) == 3


def test_copies_and_functions_without_the_cache(traces: list[str]) -> None:
    x, s = at.dvector("x"), aesara.shared(2.0, name="s")
    f = aesara.function([x], x * s, updates={s: s + 1}, mode="JAX_FIXED")
    other = aesara.shared(5.0, name="s")
    swapped = f.copy(swap={s: other})
    np.testing.assert_array_equal(swapped(X), 5 * X)
    np.testing.assert_array_equal(f(X), 2 * X)
    with aesara.config.change_flags(fixed_modes__cache=False):
        before = len(traces)
        tanh_of(x)(X)
        tanh_of(x)(X)
        assert len(traces) == before + 2


def test_names_of_parts() -> None:
    def names(identity: str = "a") -> tuple[GraphNames, Any, Any]:
        x, y = at.dvector("x"), at.dvector("y")
        outputs = [at.exp(x) + y, x * 2.0]
        return GraphNames(identity, [x, y], outputs), (x, y), outputs

    graph, (x, y), (both, double) = names()
    middle = both.owner.inputs[0]
    parts = [
        ((x, y), (both, double)),
        ((y, x), (both, double)),
        ((x, y), (double, both)),
        ((x,), (double,)),
        ((x,), (middle,)),
        ((middle, y), (both,)),
        ((x, y), (both,)),
    ]
    found = [graph.part(*part) for part in parts]
    assert len(set(found)) == len(parts)
    again, inputs, outputs = names()
    assert again.part(inputs, outputs) == found[0]
    again, inputs, outputs = names("b")
    assert again.part(inputs, outputs) not in found
    with pytest.raises(Undescribable, match="which is of another graph"):
        graph.part(inputs, outputs)


def test_a_warning_that_was_shown_before_is_noticed() -> None:
    def warn() -> None:
        warnings.warn("once", UserWarning, stacklevel=1)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        filters = list(warnings.filters)
        for _ in range(2):
            with WarningWatch() as watch:
                warn()
            assert watch.has_warned
        assert warnings.filters == filters
        assert len(caught) >= 1
        with WarningWatch() as watch:
            pass
        assert not watch.has_warned
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="once"), WarningWatch() as watch:
            warn()
        assert watch.has_warned
    # Filters that another thread has put in place.
    with warnings.catch_warnings():
        watch = WarningWatch()
        watch.__enter__()
        warnings.filters = list(filters)  # type: ignore[misc]
        watch.__exit__()
        assert watch.has_warned
        assert warnings.filters == filters
