"""Keys of graphs: equal in every process, and never equal for two graphs that differ."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from copy import copy
from pathlib import Path
from typing import Any, Callable

import aesara
import aesara.scalar.basic as aes
import aesara.tensor as at
import numpy as np
import pytest
from aesara.compile.builders import OpFromGraph
from aesara.compile.ops import FromFunctionOp
from aesara.graph.basic import Apply, Variable, io_toposort
from aesara.graph.fg import FunctionGraph
from aesara.graph.op import Op
from aesara.ifelse import ifelse
from aesara.printing import Print
from aesara.raise_op import Assert, CheckAndRaise
from aesara.scan.op import Scan
from aesara.tensor.elemwise import CAReduce, DimShuffle, Elemwise
from aesara.tensor.random.basic import NormalRV
from aesara.tensor.type import TensorType

import fixed_modes
from fixed_modes.cache.graph_key import GraphKey, derived_attributes
from fixed_modes.cache.key import Undescribable

INSTALLED_IN = Path(fixed_modes.__file__).parents[1]


def key_of(inputs: list[Variable], outputs: list[Variable]) -> str:
    key = GraphKey()
    key.add_function_graph(FunctionGraph(inputs, outputs, clone=False))
    return key.hexdigest()


def key_of_op(op: Op) -> str:
    return GraphKey().digest_of(op)


def vector(**details: Any) -> Any:
    return TensorType(details.pop("dtype", "float64"), details.pop("shape", (None,)))("x")


def loop(step: Callable[..., Any], **options: Any) -> tuple[list[Any], list[Any]]:
    x = vector()
    start = {"initial": x, "taps": options.pop("taps", [-1])}
    trace, _ = aesara.scan(step, outputs_info=[start], n_steps=options.pop("n", 5), **options)
    return [x], [trace]


def of(function: Callable[[Any], Any], **details: Any) -> tuple[list[Any], list[Any]]:
    x = vector(**details)
    return [x], [function(x)]


def of_two(function: Callable[[Any, Any], Any], names: str = "xy") -> tuple[list[Any], list[Any]]:
    x, y = (at.dvector(name) for name in names)
    return [x, y], [function(x, y)]


def inner(function: Callable[[Any], Any], **options: Any) -> tuple[list[Any], list[Any]]:
    a, x = vector(), vector()
    return [x], [OpFromGraph([a], [function(a)], **options)(x)]


def drawn(generator: np.random.Generator | np.random.RandomState, **options: Any) -> Any:
    rng = aesara.shared(generator)
    size, dtype = options.get("size", 3), options.get("dtype", "float64")
    return [rng], [NormalRV(dtype=dtype, inplace=options.get("inplace", False))(rng=rng, size=size)]


def table(last: float, **options: Any) -> np.ndarray:
    values = np.append(np.zeros(99), last).astype(options.get("dtype", "f8"))
    return values.reshape(options.get("shape", -1), order=options.get("order", "C"))


def marked(name: str, value: Any) -> Callable[[Any], Any]:
    def mark(x: Any) -> Any:
        y = x + 1.0
        setattr(y.tag, name, value)
        return y

    return mark


def with_attribute(op: Op, **attributes: Any) -> Op:
    changed = copy(op)
    vars(changed).update(attributes)
    return changed


def identity(x: Any) -> Any:
    return x


GRAPHS: dict[str, Callable[[], tuple[list[Any], list[Any]]]] = {
    "sum": lambda: of(lambda x: x + 1.0),
    "another constant": lambda: of(lambda x: x + 2.0),
    "a constant of another dtype": lambda: of(lambda x: x + at.constant(1.0, dtype="float64")),
    "a constant of another shape": lambda: of(lambda x: x + np.ones(1)),
    "minus zero": lambda: of(lambda x: x + -0.0),
    "zero": lambda: of(lambda x: x + 0.0),
    "not a number": lambda: of(lambda x: x + np.nan),
    "another function": lambda: of(lambda x: x - 1.0),
    "another dtype": lambda: of(lambda x: x + 1.0, dtype="float32"),
    "a static shape": lambda: of(lambda x: x + 1.0, shape=(3,)),
    "another static shape": lambda: of(lambda x: x + 1.0, shape=(4,)),
    "broadcast": lambda: of(lambda x: x + 1.0, shape=(1,)),
    "another rank": lambda: of(lambda x: x + 1.0, shape=(None, None)),
    "a rank that is broadcast": lambda: of(lambda x: x + 1.0, shape=(1, None)),
    "the other one": lambda: of(lambda x: x + 1.0, shape=(None, 1)),
    "x - y": lambda: of_two(lambda x, y: x - y),
    "y - x": lambda: of_two(lambda x, y: y - x),
    "exchanged names": lambda: of_two(lambda x, y: x - y, names="yx"),
    "x - x": lambda: of_two(lambda x, y: x - x),
    "a large constant": lambda: of(lambda x: x + table(1.0)),
    "with another last entry": lambda: of(lambda x: x + table(2.0)),
    "in rows": lambda: of(lambda x: x + table(0.0, shape=(10, 10))),
    "in columns": lambda: of(lambda x: x + table(0.0, shape=(10, 10), order="F")),
    "loop": lambda: loop(lambda s: 0.5 * s),
    "another factor in a loop": lambda: loop(lambda s: 0.25 * s),
    "another function in a loop": lambda: loop(lambda s: 0.5 + s),
    "another tap": lambda: loop(lambda s: 0.5 * s, taps=[-2]),
    "two taps": lambda: loop(lambda s, t: 0.5 * s + t, taps=[-1, -2]),
    "exchanged taps": lambda: loop(lambda s, t: 0.5 * t + s, taps=[-1, -2]),
    "another length": lambda: loop(lambda s: 0.5 * s, n=6),
    "over a vector": lambda: of(lambda x: aesara.scan(lambda e: 2 * e, [x])[0]),
    "backwards": lambda: of(lambda x: aesara.scan(lambda e: 2 * e, [x], go_backwards=True)[0]),
    "a truncated gradient": lambda: loop(lambda s: 0.5 * s, truncate_gradient=2),
    "a loop in a loop": lambda: loop(lambda s: loop_of(s, 0.5)),
    "another factor in the inner loop": lambda: loop(lambda s: loop_of(s, 0.25)),
    "an assertion": lambda: of(lambda x: Assert("one")(x, x.sum() > 0)),
    "another message": lambda: of(lambda x: Assert("two")(x, x.sum() > 0)),
    "another exception": lambda: of(
        lambda x: CheckAndRaise(ValueError, "one")(x, x.sum() > 0)
    ),
    "inner graph": lambda: inner(lambda a: a * 2.0),
    "another inner graph": lambda: inner(lambda a: a * 3.0),
    "one that is inlined": lambda: inner(lambda a: a * 2.0, inline=True),
    "one with a name": lambda: inner(lambda a: a * 2.0, name="f"),
    "print": lambda: of(lambda x: Print("one")(x)),
    "print another message": lambda: of(lambda x: Print("two")(x)),
    "print a shape": lambda: of(lambda x: Print("one", attrs=("shape",))(x)),
    "draws": lambda: drawn(np.random.default_rng(1)),
    "more draws": lambda: drawn(np.random.default_rng(1), size=4),
    "draws of single precision": lambda: drawn(np.random.default_rng(1), dtype="float32"),
    "draws in place": lambda: drawn(np.random.default_rng(1), inplace=True),
    "draws of another kind": lambda: drawn(np.random.RandomState(1)),
    "a sum over": lambda: of(lambda x: x.sum()),
    "a sum of another precision": lambda: of(lambda x: x.sum(dtype="float32")),
    "a product over": lambda: of(lambda x: x.prod()),
    "a part": lambda: of(lambda x: x[1:]),
    "another part": lambda: of(lambda x: x[2:]),
    "an end": lambda: of(lambda x: x[:1]),
    "every second": lambda: of(lambda x: x[::2]),
    "an entry put in": lambda: of(lambda x: at.set_subtensor(x[0], 1.0)),
    "an entry added": lambda: of(lambda x: at.inc_subtensor(x[0], 1.0)),
    "a branch": lambda: of(lambda x: ifelse(x[0] > 0, x, 2 * x)),
    "the other branch": lambda: of(lambda x: ifelse(x[0] > 0, 2 * x, x)),
    "a note": lambda: of(marked("note", "a")),
    "another note": lambda: of(marked("note", "b")),
    "a note of another name": lambda: of(marked("other", "a")),
    "in place": lambda: of(lambda x: Elemwise(aes.exp, {})(x)),
    "not in place": lambda: of(
        lambda x: with_attribute(Elemwise(aes.exp, {}), destroy_map={0: [0]})(x)
    ),
    "converted": lambda: of(lambda x: at.cast(x, "int8")),
    "converted to another": lambda: of(lambda x: at.cast(x, "uint8")),
}  # fmt: skip


def loop_of(s: Any, factor: float) -> Any:
    return aesara.scan(lambda t: t * factor, outputs_info=[s], n_steps=2)[0][-1]


def test_no_two_of_many_graphs_have_one_key() -> None:
    found: dict[str, str] = {}
    for name, make in GRAPHS.items():
        key = key_of(*make())
        assert key not in found, (name, found[key])
        found[key] = name
        # Built again it has the same one.
        assert key_of(*make()) == key, name


class OwnScalar(aes.Exp):
    """A user's op that is compared like Aesara's."""


class OwnElemwise(Elemwise):
    """One that does something else than its base."""


class OwnType(TensorType):
    """A user's type."""


class OwnAttribute(aesara.graph.op.Op):
    """An op with a state that its `__props__` don't name."""

    __props__ = ()

    def __init__(self, factor: float) -> None:
        self.factor = factor

    def make_node(self, x: Any) -> Any:
        return Apply(self, [x], [x.type()])

    def perform(self, node: Any, inputs: Any, outputs: Any) -> None:
        outputs[0][0] = self.factor * inputs[0]


def from_function(function: Callable[..., Any]) -> tuple[list[Any], list[Any]]:
    return of(FromFunctionOp(function, [at.dvector], [at.dvector], None))


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: of(Elemwise(OwnScalar(aes.same_out, name="exp"))), "OwnScalar"),
        (lambda: of(OwnElemwise(aes.exp)), "OwnElemwise"),
        (lambda: of(OwnAttribute(2.0)), "OwnAttribute"),
        (lambda: ([(x := OwnType("float64", (None,))("x"))], [x + 1.0]), "OwnType"),
        (lambda: from_function(lambda x: 2 * x), "lambda"),
        (lambda: from_function(identity), "identity"),
        (lambda: from_function(np.vectorize(identity)), "vectorize"),
        (lambda: of(Print("x", global_fn=lambda op, x: None)), "lambda"),
        (lambda: of(marked("note", identity)), "identity"),
        (lambda: of(marked("note", [OwnAttribute(1.0)])), "OwnAttribute"),
        (lambda: loop(lambda s: OwnAttribute(2.0)(s)), "OwnAttribute"),
        (lambda: inner(lambda a: OwnAttribute(2.0)(a)), "OwnAttribute"),
        (lambda: of(lambda x: with_attribute(Elemwise(aes.exp), note=identity)(x)), "identity"),
    ],
)
def test_what_a_user_has_written_is_refused_by_name(make: Any, named: str) -> None:
    with pytest.raises(Undescribable, match=named):
        key_of(*make())


def ops_of(outputs: list[Variable]) -> Iterator[Op]:
    """Yield the ops of a graph, and of the graphs and functions inside it."""
    for node in io_toposort([], outputs):
        yield node.op
        if isinstance(node.op, (Scan, OpFromGraph)):
            yield from ops_of(node.op.fgraph.outputs)
        if isinstance(node.op, (Elemwise, CAReduce)):
            yield node.op.scalar_op


def changes(value: Any) -> Iterator[Any]:
    """Yield values that are none of each other, if anything is known of the type."""
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, (int, float)):
        yield value + 1
    elif isinstance(value, str):
        yield f"{value}."
    elif isinstance(value, (tuple, list)):
        yield type(value)([*value, 1]) if type(value) in (tuple, list) else None
        yield value[:-1] if value and type(value) in (tuple, list) else 0
    elif isinstance(value, dict):
        yield {**value, 7: [7]}
    else:
        yield "another"
    yield None if value is not None else 0


def test_every_attribute_of_every_op_is_part_of_the_key() -> None:
    seen: dict[type, set[str]] = {}
    for make in GRAPHS.values():
        for op in ops_of(make()[1]):
            key = key_of_op(op)
            assert key_of_op(copy(op)) == key
            for name, value in vars(op).items():
                if name in derived_attributes(type(op)):
                    continue
                seen.setdefault(type(op), set()).add(name)
                for change in changes(value):
                    assert key_of_op(with_attribute(op, **{name: change})) != key, (op, name)
    assert {Scan, OpFromGraph, Elemwise, DimShuffle, NormalRV, Assert} <= set(seen)
    assert {"info", "mode", "name", "truncate_gradient"} <= seen[Scan]
    assert {"scalar_op", "inplace_pattern", "destroy_map"} <= seen[Elemwise]
    assert {"dtype", "inplace"} <= seen[NormalRV]


MODULES = (
    *("blas", "extra_ops", "fft", "io", "nlinalg", "nnet", "random.basic", "signal.pool"),
    *("slinalg", "sort", "special", "subtensor"),
)


def subclasses(kind: type) -> set[type]:
    return {kind, *(c for direct in kind.__subclasses__() for c in subclasses(direct))}


@pytest.mark.filterwarnings("ignore:The module:DeprecationWarning")
def test_no_attribute_that_ops_are_compared_by_is_left_out() -> None:
    for module in MODULES:
        importlib.import_module(f"aesara.tensor.{module}")
    kinds = [kind for kind in subclasses(Op) if kind.__module__.startswith("aesara.")]
    assert len(kinds) > 300
    for kind in kinds:
        compared = set(getattr(kind, "__props__", None) or ())
        assert not compared & derived_attributes(kind), kind


KEYS = """
import json, sys, warnings
warnings.simplefilter("ignore")
import aesara, fixed_modes
import aesara.tensor as at
from aesara.compile.builders import OpFromGraph
from aesara.ifelse import ifelse
from aesara.tensor.random.utils import RandomStream
from fixed_modes.cache import graphs

prefix = sys.argv[1]
def vector(name):
    return at.dvector(prefix + name)

def gradient():
    x, w = vector("x"), vector("w")
    trace, _ = aesara.scan(lambda x, s, w: at.tanh(w[0] * s) + x * w[1], [x], [x[0]], [w])
    return [x, w], [trace[-1], *aesara.grad(trace.sum(), [x, w])], {}

def draws():
    stream, x = RandomStream(1), vector("x")
    trace, updates = aesara.scan(lambda s: stream.normal(s), outputs_info=[x[0]], n_steps=3)
    return [x], [trace], updates

def branches():
    x, y = vector("x"), vector("y")
    a, b = vector("a"), vector("b")
    op = OpFromGraph([a, b], [a * at.exp(b), at.log(abs(a) + 1) - b])
    one, other = op(x, y)
    return [x, y], [ifelse(at.lt(x[0], y[0]), one, other), at.switch(x > y, one, 2 * other)], {}

found = {}
for make in (gradient, draws, branches):
    inputs, outputs, updates = make()
    f = aesara.function(inputs, outputs, updates=updates, mode="NUMBA_FIXED")
    found[make.__name__] = f.maker.rewritten.outcome.key, f.vm.jit_fn.cache.key
print(json.dumps(found))
"""


def test_keys_are_the_same_in_every_process(tmp_path: Path) -> None:
    found = []
    for number, (seed, prefix) in enumerate([("1", ""), ("2", ""), ("3", "the_"), ("4", "the_")]):
        flags = f"fixed_modes__cache=True,fixed_modes__cache_dir={tmp_path / str(number)}"
        process = subprocess.run(
            [sys.executable, "-c", KEYS, prefix],
            env={
                **os.environ,
                "PYTHONPATH": str(INSTALLED_IN),
                "AESARA_FLAGS": f"{os.environ['AESARA_FLAGS']},{flags}",
                "PYTHONHASHSEED": seed,
            },
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert process.returncode == 0, process.stderr
        found.append(json.loads(process.stdout.splitlines()[-1]))
    for name in ("gradient", "draws", "branches"):
        graphs, codes = zip(*(keys[name] for keys in found))
        assert all(len(key) == 64 for key in (*graphs, *codes))
        # Names are part of the graph, which errors show, and no part of the code.
        assert graphs[0] == graphs[1] != graphs[2] == graphs[3]
        assert len(set(codes)) == 1, name
