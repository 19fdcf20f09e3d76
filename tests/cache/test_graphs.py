"""Rewritten graphs are kept: loaded for an equal graph, and for no other."""

from __future__ import annotations

import os
import pickle
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import aesara
import aesara.tensor as at
import numpy as np
import pytest
from aesara.compile.builders import OpFromGraph
from aesara.compile.io import In, Out
from aesara.compile.mode import optdb
from aesara.graph.basic import Apply, Variable
from aesara.graph.fg import FunctionGraph
from aesara.graph.op import Op
from aesara.graph.rewriting.basic import PatternNodeRewriter, in2out, node_rewriter
from aesara.ifelse import ifelse
from aesara.tensor.random.utils import RandomStream
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import fixed_modes
from fixed_modes.cache import graphs, registry
from fixed_modes.cache.graph_key import GraphKey
from fixed_modes.cache.store import Store
from fixed_modes.errors import FixedModesWarning

X = np.array([1.0, -2.0, 0.5])


@pytest.fixture(autouse=True)
def directory(tmp_path: Path) -> Iterator[Path]:
    with aesara.config.change_flags(
        fixed_modes__cache=True, fixed_modes__cache_dir=str(tmp_path / "cache")
    ):
        yield tmp_path / "cache" / "compiled-1"


def state(f: Any) -> str:
    """Say what the report says of the graph."""
    line = fixed_modes.cache_report(f)[0]
    assert line.startswith("graph ")
    return line[len("graph ") :]


def key(f: Any) -> str:
    return str(f.maker.rewritten.outcome.key)


def twice(make: Callable[[], Any]) -> tuple[Any, Any]:
    """Make a function from the graph and one from an equal graph."""
    first, second = make(), make()
    assert (state(first), state(second)) == ("rewritten", "loaded")
    assert key(first) == key(second) != ""
    # All that there is: ops, in-place patterns, types, names, inner graphs.
    assert printed(first) == printed(second)
    return first, second


def printed(f: Any) -> str:
    text = aesara.dprint(f, file="str", print_type=True, print_destroy_map=True)
    return re.sub("0x[0-9A-Fa-f]+", "(address)", str(text))


def cumulated(steps: int = 5, name: str = "loop") -> Callable[[str], Any]:
    def make(mode: str) -> Any:
        x = at.dvector("x")
        trace, _ = aesara.scan(lambda x, s: 0.5 * at.tanh(s) + x, [x], [x[0]], name=name)
        return aesara.function([x], [trace, aesara.grad(trace.sum(), x)], mode=mode)

    return make


def by_hand(x: np.ndarray) -> list[float]:
    value, trace = x[0], []
    for entry in x:
        value = 0.5 * np.tanh(value) + entry
        trace.append(value)
    return trace


def test_a_loop_and_its_gradient(mode: str) -> None:
    first, second = twice(lambda: cumulated()(mode))
    step = 1e-6 * np.eye(3)
    slope = [(sum(by_hand(X + d)) - sum(by_hand(X - d))) / 2e-6 for d in step]
    for f in (first, second):
        trace, gradient = f(X)
        np.testing.assert_allclose(trace, by_hand(X), rtol=1e-12)
        np.testing.assert_allclose(gradient, slope, rtol=1e-7)


def test_updates_go_to_the_shared_variables_of_the_graph_at_hand(mode: str) -> None:
    counters = []

    def make() -> Any:
        total = aesara.shared(np.float64(len(counters)), name="total")
        counters.append(total)
        x = at.dvector("x")
        updates = {total: total + x.sum()}
        return aesara.function([x], total * x, updates=updates, mode=mode)

    first, second = twice(make)
    np.testing.assert_allclose(second(X), 1 * X)
    np.testing.assert_allclose(second(X), (1 + X.sum()) * X)
    assert [float(c.get_value()) for c in counters] == [0.0, 1 + 2 * X.sum()]
    np.testing.assert_allclose(first(X), 0 * X)
    assert [float(c.get_value()) for c in counters] == [X.sum(), 1 + 2 * X.sum()]


def test_generators_are_those_of_the_graph_at_hand() -> None:
    streams = []

    def make() -> Any:
        stream = RandomStream(len(streams))
        streams.append(stream)
        draws, updates = aesara.scan(lambda: stream.normal(), n_steps=4)
        return aesara.function([], draws, updates=updates, mode="NUMBA_FIXED")

    for number, f in enumerate(twice(make)):
        seed = np.random.SeedSequence(number).spawn(1)[0]
        expected = np.random.Generator(np.random.PCG64(seed)).normal(size=8)
        np.testing.assert_array_equal(np.concatenate([f(), f()]), expected)


def branches() -> Any:
    x, chosen = at.dvector("x"), at.bscalar("chosen")
    return aesara.function([chosen, x], ifelse(chosen, x * 2, x[::-1]), mode="NUMBA_FIXED")


def inner_function() -> Any:
    a, b = at.dscalars("a", "b")
    op = OpFromGraph([a, b], [a * at.exp(b), a - b])
    x = at.dscalar("x")
    first, second = op(x, x + 1)
    return aesara.function([x], first + second, mode="NUMBA_FIXED")


def indices() -> Any:
    x, k, n = at.dmatrix("x"), at.lvector("k"), at.lscalar("n")
    y = at.set_subtensor(x[1:n, ::2], 7.0)
    return aesara.function([x, k, n], [y[k, 1], y[-1], x[:, None, 0]], mode="NUMBA_FIXED")


def test_many_kinds_of_ops() -> None:
    for f in twice(branches):
        np.testing.assert_allclose(f(1, X), 2 * X)
        np.testing.assert_allclose(f(0, X), X[::-1])
    for f in twice(inner_function):
        np.testing.assert_allclose(f(0.5), 0.5 * np.exp(1.5) - 1.0)
    matrix = np.arange(12.0).reshape(3, 4)
    changed = matrix.copy()
    changed[1:3, ::2] = 7
    for f in twice(indices):
        picked, last, column = f(matrix, [0, 2], 3)
        np.testing.assert_array_equal(picked, changed[[0, 2], 1])
        np.testing.assert_array_equal(last, changed[-1])
        np.testing.assert_array_equal(column, matrix[:, None, 0])
    assert matrix[1, 0] == 4


def test_copies_and_pickles_of_a_loaded_function() -> None:
    _, loaded = twice(lambda: cumulated()("NUMBA_FIXED"))
    for f in (loaded.copy(), pickle.loads(pickle.dumps(loaded))):
        np.testing.assert_allclose(f(X)[0], by_hand(X), rtol=1e-12)


def test_errors_show_the_lines_of_the_graph_at_hand() -> None:
    def here() -> Any:
        x, k = at.dvector("x"), at.lscalar("k")
        return x, k, x[k]  # the first

    def there() -> Any:
        x, k = at.dvector("x"), at.lscalar("k")
        return x, k, x[k]  # the second

    messages = []
    for make, expected in ((here, "rewritten"), (there, "loaded")):
        x, k, y = make()
        f = aesara.function([x, k], y, mode="NUMBA_FIXED")
        assert state(f) == expected
        with pytest.raises(IndexError) as caught:
            f(X, 7)
        messages.append(str(caught.value))
    assert "# the first" in messages[0]
    assert "# the second" in messages[1]
    assert "# the first" not in messages[1]


def test_what_a_caller_hands_over_is_overwritten_only_where_that_is_declared() -> None:
    def make(mutable: bool) -> Any:
        x = at.dvector("x")
        return aesara.function(
            [In(x, mutable=mutable)], at.set_subtensor(x[0], 9.0), mode="NUMBA_FIXED"
        )

    make(True)
    f = make(False)
    assert state(f) == "rewritten"
    assert key(f) != key(make(True))
    loaded = make(False)
    assert state(loaded) == "loaded"
    for function in (f, loaded):
        array = X.copy()
        np.testing.assert_array_equal(function(array), [9.0, *X[1:]])
        np.testing.assert_array_equal(array, X)


def test_any_change_is_another_key() -> None:
    x, y = at.dvector("x"), at.dvector("y")

    def loop(step: Any, **options: Any) -> Any:
        taps = options.pop("taps", [-1])
        start = {"initial": x, "taps": taps}
        return aesara.scan(step, outputs_info=[start], n_steps=5, **options)[0]

    renamed, single = at.dvector("z"), at.fvector("y")
    of_three = at.TensorType("float64", (3,))("y")
    pairs: list[tuple[Any, Any]] = [
        ([x, y], x + y),
        ([y, x], x + y),
        ([x, y], y + x),
        ([x, y], x - y),
        ([x, y], [x + y]),
        ([x, y], [x + y, x]),
        ([x, renamed], x + renamed),
        ([x, single], x + single),
        ([x, of_three], x + of_three),
        ([In(x, borrow=True), y], x + y),
        ([x, y], Out(x + y, borrow=True)),
        ([x], x + 1.0),
        ([x], x + 2.0),
        ([x], x + at.constant(1.0, dtype="float64")),
        ([x], x + at.constant(1.0, name="one")),
        ([x], x.sum()),
        ([x], x.sum(axis=0, keepdims=True)),
        ([x], x.sum(dtype="float32")),
        ([x], x[1:]),
        ([x], x[:1]),
        ([x], x[::1]),
        ([x], loop(lambda s: 0.5 * s)),
        ([x], loop(lambda s: 0.25 * s)),
        ([x], loop(lambda s: at.tanh(s))),
        ([x], loop(lambda s: 0.5 * s, taps=[-2])),
        ([x], loop(lambda s, t: 0.5 * s + t, taps=[-1, -2])),
        ([x], loop(lambda s, t: 0.5 * t + s, taps=[-1, -2])),
        ([x], loop(lambda s: 0.5 * s, name="loop")),
        ([x], loop(lambda s: 0.5 * s, mode=aesara.compile.mode.Mode("py", None))),
        ([x], loop(lambda s: 0.5 * s, allow_gc=True)),
        ([x], loop(lambda s: 0.5 * s)[-1]),
    ]
    keys = []
    for inputs, outputs in pairs:
        f = aesara.function(inputs, outputs, mode="NUMBA_FIXED")
        assert key(f), fixed_modes.cache_report(f)
        keys.append(key(f))
    same = [(i, j) for i in range(len(keys)) for j in range(i) if keys[i] == keys[j]]
    assert same == [(4, 0)]  # one output, and a list of one


def test_modes_rewrites_and_flags_are_part_of_the_key() -> None:
    def make(mode: Any = "NUMBA_FIXED") -> str:
        x = at.dvector("x")
        return key(aesara.function([x], at.log(1 + x), mode=mode))

    first = make()
    changed = fixed_modes.NUMBA_FIXED.excluding("local_log_add_exp")
    keys = [
        first,
        make("JAX_FIXED"),
        make(changed),
        make(changed.including("local_remove_all_assert")),
    ]
    for flag, value in (("tensor__local_elemwise_fusion", False), ("scan__allow_gc", True)):
        with aesara.config.change_flags(**{flag: value}):
            keys.append(make())
    assert len(set(keys)) == len(keys)
    assert make() == first
    with aesara.config.change_flags(fixed_modes__cache_size=10**6):
        assert make() == first


def test_versions_are_part_of_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    def make() -> str:
        x = at.dvector("x")
        return key(aesara.function([x], x + 1, mode="NUMBA_FIXED"))

    first, facts = make(), graphs.facts()
    assert set(facts) == {"fixed_modes", "aesara", "numpy", "scipy", "python"}
    for name in facts:
        monkeypatch.setattr(graphs, "facts", lambda name=name: {**facts, name: "another"})
        assert make() != first


class Doubled(Op):
    """A user's op: what it does may change with the user's file."""

    __props__ = ()

    def make_node(self, x: Any) -> Any:
        return Apply(self, [x], [x.type()])

    def perform(self, node: Any, inputs: Any, outputs: Any) -> None:
        outputs[0][0] = 2 * inputs[0]


@pytest.mark.filterwarnings("ignore::fixed_modes.errors.FixedModesWarning")
def test_what_is_not_aesaras_own_is_refused_by_name() -> None:
    x = at.dvector("x")
    marked = x + 1
    marked.tag.note = Doubled()
    for outputs, named in ((Doubled()(x), "Doubled"), (marked, "Doubled")):
        f = aesara.function([x], outputs, mode="NUMBA_FIXED")
        assert state(f).startswith("refused (there is ")
        assert named in state(f)
        assert np.shape(f(X)) == (3,)
    with aesara.config.change_flags(compute_test_value="warn"):
        y = at.dvector("y")
        y.tag.test_value = X
        f = aesara.function([y], y + 1, mode="NUMBA_FIXED")
    assert "compute_test_value" in state(f)


@pytest.fixture
def registered() -> Iterator[Callable[[str, Any], None]]:
    """Register a rewrite for all modes, for the time of a test."""
    names = []

    def register(name: str, rewrite: Any) -> None:
        optdb.register(name, rewrite, "fast_run", position=1.55)
        names.append((name, rewrite))

    yield register
    for name, rewrite in names:
        for found in optdb.__db__.values():
            if rewrite in found:
                found.remove(rewrite)
        del optdb.__db__[name]
        optdb._names.discard(name)
        del optdb.__position__[name]


def test_with_a_rewrite_of_another_library_nothing_is_kept(registered: Any) -> None:
    def make() -> Any:
        x = at.dvector("x")
        return aesara.function([x], at.sin(x), mode="NUMBA_FIXED")

    first = make()

    @node_rewriter([at.sin])
    def cosine_instead(fgraph: Any, node: Any) -> Any:
        return [at.cos(node.inputs[0])]

    registered("cosine_instead", in2out(cosine_instead, name="cosine_instead"))
    f = make()
    assert "cosine_instead" in state(f)
    np.testing.assert_allclose(f(X), np.cos(X))
    np.testing.assert_allclose(first(X), np.sin(X))


def test_patterns_that_are_registered_are_part_of_the_key(registered: Any) -> None:
    """They are made of Aesara's classes, so that the class says nothing."""
    before = registry.registry_digest()
    digests = {before}
    for number, replacement in enumerate((at.cos, at.tan)):
        pattern = PatternNodeRewriter((at.sin, "x"), (replacement, "x"))
        registered(f"pattern_{number}", in2out(pattern, name=f"pattern_{number}"))
        digests.add(registry.registry_digest())
    assert len(digests) == 3


def test_a_damaged_graph_is_rewritten_again_with_one_warning(directory: Path) -> None:
    make = cumulated()
    make("NUMBA_FIXED")
    (path,) = directory.glob("graph-*")
    os.truncate(path, path.stat().st_size // 2)
    with pytest.warns(FixedModesWarning, match="is damaged") as caught:
        f = make("NUMBA_FIXED")
    assert len(caught) == 1
    assert state(f) == "rewritten"
    np.testing.assert_allclose(f(X)[0], by_hand(X), rtol=1e-12)
    assert state(make("NUMBA_FIXED")) == "loaded"


class Bomb:
    """What an attacker would have unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.path),)


def test_nothing_of_an_entry_that_others_may_write_to_is_unpickled(
    directory: Path, tmp_path: Path
) -> None:
    make = cumulated()
    make("NUMBA_FIXED")
    (path,) = directory.glob("graph-*")
    Store(directory).put(path.stem, pickle.dumps(Bomb(tmp_path / "exploded")), 10**9)
    path.chmod(0o666)
    with pytest.warns(FixedModesWarning, match="others may write to it"):
        f = make("NUMBA_FIXED")
    assert state(f).startswith("rewritten")
    assert not (tmp_path / "exploded").exists()


def test_an_entry_of_no_use_is_replaced(directory: Path) -> None:
    make = cumulated()
    make("NUMBA_FIXED")
    (path,) = directory.glob("graph-*")
    contents = (b"", b"no pickle", pickle.dumps(None), pickle.dumps({"a": 1}))
    for content in (*contents, *(b"c" + content for content in contents)):
        Store(directory).put(path.stem, content, 10**9)
        f = make("NUMBA_FIXED")
        assert state(f) == "rewritten"
        np.testing.assert_allclose(f(X)[0], by_hand(X), rtol=1e-12)


def test_large_constants_are_taken_from_the_graph_at_hand(directory: Path) -> None:
    table = np.random.default_rng(1).normal(size=100_000)

    def make() -> Any:
        x = at.lscalar("x")
        return aesara.function([x], at.constant(table)[x], mode="NUMBA_FIXED")

    for f in twice(make):
        assert f(7) == table[7]
    assert sum(path.stat().st_size for path in directory.glob("graph-*")) < 20_000
    table[7] = 3.0
    f = make()
    assert state(f) == "rewritten"
    assert f(7) == 3.0


def test_turned_off_nothing_is_described(directory: Path) -> None:
    with aesara.config.change_flags(fixed_modes__cache=False):
        f = cumulated()("NUMBA_FIXED")
    assert fixed_modes.cache_report(f)[0] == "graph off"
    assert not directory.exists()


Expression = Any
leaves = st.sampled_from(["x", "y", 1.0, 2.0, -0.0])
expressions: st.SearchStrategy[Expression] = st.recursive(
    leaves,
    lambda inner: (
        st.tuples(st.sampled_from(["add", "mul", "sub", "maximum"]), inner, inner)
        | st.tuples(st.sampled_from(["tanh", "neg", "cumsum"]), inner)
    ),
    max_leaves=5,
)


def built(expression: Expression, where: dict[str, Any], library: Any) -> Any:
    """Build an expression: symbolically, or with NumPy."""
    if isinstance(expression, str):
        return where[expression]
    if isinstance(expression, float):
        # Not a number of Python, which Aesara takes for one of single precision.
        return library.full_like(where["x"], np.float64(expression))
    name, *parts = expression
    arguments = [built(part, where, library) for part in parts]
    if name == "neg":
        return -arguments[0]
    names = {"sub": "subtract", "mul": "multiply", "add": "add"} if library is np else {}
    return getattr(library, names.get(name, name))(*arguments)


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(expressions, expressions)
@example(("maximum", 1.0, 1.0), "x")
@example(("tanh", 1.0), "x")
def test_equal_graphs_and_no_others_share_a_result(
    directory: Path, one: Expression, other: Expression
) -> None:
    def graph(expression: Expression) -> tuple[list[Variable], Variable]:
        where = {"x": at.dvector("x"), "y": at.dvector("y")}
        return list(where.values()), built(expression, where, at)

    def key_of(expression: Expression) -> str:
        inputs, output = graph(expression)
        key = GraphKey()
        key.add_function_graph(FunctionGraph(inputs, [output], clone=False))
        return key.hexdigest()

    assert key_of(one) == key_of(one)
    # -0.0 and 0.0, 1 and 1.0: the texts differ where the constants do.
    assert (key_of(one) == key_of(other)) == (repr(one) == repr(other))
    inputs, output = graph(one)
    aesara.function(inputs, output, mode="JAX_FIXED", on_unused_input="ignore")
    inputs, output = graph(one)
    f = aesara.function(inputs, output, mode="JAX_FIXED", on_unused_input="ignore")
    assert state(f) == "loaded"
    values = {"x": X, "y": X[::-1].copy()}
    np.testing.assert_allclose(f(*values.values()), built(one, values, np), rtol=1e-12)


def test_all_modules_of_aesara_may_be_imported(tmp_path: Path) -> None:
    """What they register counts as Aesara's own, that of neural networks for example."""
    script = tmp_path / "script.py"
    script.write_text(
        "import aesara, aesara.sparse, aesara.tensor as at, aesara.tensor.nnet, fixed_modes\n"
        "import aesara.sandbox.multinomial, aesara.tensor.signal.pool\n"
        f"aesara.config.fixed_modes__cache_dir = {str(tmp_path / 'cache')!r}\n"
        "aesara.config.fixed_modes__cache = True\n"
        "for _ in range(2):\n"
        "    x = at.dvector('x')\n"
        "    f = aesara.function([x], at.cumsum(x) * 2, mode='JAX_FIXED')\n"
        "    print(fixed_modes.cache_report(f)[0])\n"
    )
    run = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=300, check=True
    )
    assert run.stdout.split("\n")[:2] == ["graph rewritten", "graph loaded"]
