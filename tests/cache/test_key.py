"""Keys: equal for what means the same, in any process, and different for anything else."""

from __future__ import annotations

import math
import operator
import os
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import fixed_modes
from fixed_modes.cache.key import Key, Undescribable, digest_of_sources

INSTALLED_IN = Path(fixed_modes.__file__).parents[1]


def key_of(*values: Any) -> str:
    key = Key()
    for value in values:
        key.add(value)
    return key.hexdigest()


def key_of_code(source: str, **names: Any) -> str:
    namespace = dict(names)
    exec(source, namespace)
    key = Key()
    key.add_function(namespace["f"])
    return key.hexdigest()


def same(a: Any, b: Any) -> bool:
    """Compare, but 1, 1.0 and True are three things, as are 0.0 and -0.0."""
    if type(a) is not type(b):
        return False
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return len(a) == len(b) and same(list(a.items()), list(b.items()))
    if isinstance(a, float):
        if math.isnan(a) or math.isnan(b):
            return math.isnan(a) and math.isnan(b)
        return a == b and math.copysign(1, a) == math.copysign(1, b)
    if isinstance(a, np.ndarray):
        alike = a.dtype == b.dtype and a.shape == b.shape
        return alike and a.tobytes() == b.tobytes()
    return bool(a == b)


arrays = hnp.arrays(
    st.sampled_from(["f8", "f4", "i8", "u1", "?", "c16"]), hnp.array_shapes(min_side=0, max_dims=2)
)
leaves = (
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.sampled_from([0.0, -0.0, 1.0, -1.0, math.inf, math.nan])
    | st.text("ab", max_size=3)
    | st.binary(max_size=2)
    | arrays
)
trees = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text("ab", max_size=2), inner, max_size=3)
    ),
    max_leaves=6,
)


@settings(max_examples=300, deadline=None)
@given(trees, trees)
def test_keys_are_equal_exactly_where_the_values_are(a: Any, b: Any) -> None:
    assert key_of(a) == key_of(a)
    assert (key_of(a) == key_of(b)) == same(a, b)
    # Two values are not one, and their border counts.
    assert key_of(a, b) != key_of((a, b))
    assert key_of([a], [b]) != key_of([a, b])


def test_values_that_look_alike_have_different_keys() -> None:
    array = np.arange(6.0).reshape(2, 3)
    frozen = array.copy()
    frozen.flags.writeable = False
    values = [
        *(1, True, 1.0, 1 + 0j, "1", b"1", -1, 2**70, "a", ("a",), ["a"], {"a"}, frozenset("a")),
        *(np.float64(1), np.float32(1), np.int64(1), np.int8(1), np.bool_(True)),
        *(array, np.asfortranarray(array), frozen, array.astype("f4"), array.ravel()),
        *(array.astype(">f8"), np.dtype("f8"), np.dtype(">f8"), np.dtype([("a", "f8")])),
        *(
            np.dtype([("b", "f8")]),
            np.dtype([("a", "f4"), ("b", "f8")], align=True),
            np.dtype("M8[s]"),
        ),
        *(
            slice(1),
            slice(None, 1, 1),
            slice(True),
            slice(1.0),
            slice(np.array(1)),
            range(1),
            None,
            Ellipsis,
            (),
            "",
            {},
            {"a": 1},
            {1: "a"},
        ),
        *(math, np, math.sin, np.sin, operator.add, np.add, ValueError, KeyError, abs),
        # Two signs of zero, and two kinds of NaN.
        *(0.0, -0.0, math.nan, float(np.array([0x7FF8000000000001], "u8").view("f8")[0])),
    ]
    keys = [key_of(value) for value in values]
    assert [
        (values[i], values[j]) for i in range(len(keys)) for j in range(i) if keys[i] == keys[j]
    ] == []


def test_sets_have_no_order() -> None:
    assert key_of({"a", "b", "c", 1}) == key_of({1, "c", "b", "a"})
    assert key_of({"a", "b"}) != key_of({"a", "c"})


class Sub(np.ndarray):
    pass


class Mine:
    pass


def mine() -> None:
    pass


@pytest.mark.parametrize(
    ("value", "named"),
    [
        (Mine(), "Mine"),
        (Mine, "Mine"),
        (mine, "mine"),
        (types.ModuleType("numpy"), "numpy"),
        (np.random.default_rng(1), "Generator"),
        (np.array([1, None], dtype=object), "Python objects"),
        (np.zeros(2).view(Sub), "Sub"),
        (type("OrderedDict", (dict,), {})(), "OrderedDict"),
        (slice(Mine()), "Mine"),
        ([1, {"a": (Mine(),)}], "Mine"),
    ],
)
def test_what_has_no_exact_description_is_refused_by_name(value: Any, named: str) -> None:
    with pytest.raises(Undescribable, match=named):
        key_of(value)


def test_cycles_end() -> None:
    def nested(depth: int) -> list[Any]:
        inner: list[Any] = []
        outer: list[Any] = [inner]
        for _ in range(depth):
            outer = [outer]
        inner.append(outer)
        return outer

    assert key_of(nested(0)) == key_of(nested(0))
    assert key_of(nested(0)) != key_of(nested(1))
    assert key_of_code("def f(x): return f(x - 1) if x else 0") != key_of_code(
        "def f(x): return f(x - 2) if x else 0"
    )


FUNCTION = """
def f(x, scale=2.0):
    total = 0.0
    for value in x:
        total += scale * value + g(k)
    return total
"""


def test_names_of_variables_make_no_difference_to_a_function() -> None:
    one = key_of_code(FUNCTION, g=math.sin, k=3)
    assert one == key_of_code(FUNCTION.replace("total", "t").replace("value", "v"), g=math.sin, k=3)
    assert one == key_of_code("# a line\n\n" + FUNCTION, g=math.sin, k=3)


def test_names_of_arguments_count_since_calls_may_use_them() -> None:
    """Of these functions ``f(x=1, y=2)`` gives -1 and 1, and the instructions are the same."""
    one, other = "def f(x, y): return x - y", "def f(y, x): return y - x"
    assert key_of_code(one) != key_of_code(other)
    inside = "def f(a):\n    {}\n    return g(x=a, y=2)"
    keys = {key_of_code(inside.format(g.replace(" f(", " g("))) for g in (one, other)}
    assert len(keys) == 2


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("0.0", "-0.0"),
        ("0.0", "0"),
        ("scale *", "scale +"),
        ("+ g(k)", "- g(k)"),
        ("scale=2.0", "scale=3.0"),
        ("scale * value", "value * value"),
        ("return total", "return -total"),
        ("x, scale", "scale, x"),
    ],
)
def test_any_change_of_a_function_is_another_key(old: str, new: str) -> None:
    changed = FUNCTION.replace(old, new)
    assert changed != FUNCTION
    assert key_of_code(FUNCTION, g=math.sin, k=3) != key_of_code(changed, g=math.sin, k=3)


def test_what_a_function_refers_to_is_part_of_its_key() -> None:
    def closure(number: Any) -> Any:
        return lambda: number

    assert key_of_code(FUNCTION, g=math.sin, k=3) != key_of_code(FUNCTION, g=math.cos, k=3)
    assert key_of_code(FUNCTION, g=math.sin, k=3) != key_of_code(FUNCTION, g=math.sin, k=3.0)
    # What it does not refer to is not.
    assert key_of_code(FUNCTION, g=math.sin, k=3) == key_of_code(FUNCTION, g=math.sin, k=3, other=1)
    keys = set()
    for number in (1, 2, 1.0):
        key = Key()
        key.add_function(closure(number))
        keys.add(key.hexdigest())
    assert len(keys) == 3


def test_keys_are_the_same_in_every_process() -> None:
    code = (
        "import math, numpy as np\n"
        "from fixed_modes.cache.key import Key\n"
        "key = Key()\n"
        "key.add([1.5, {'a', 'b', 'c'}, math.sin, np.arange(3), {'x': np.float32(2)}])\n"
        'exec(\'def f(x): return {"p", "q"} if x in {"u", "v", "w"} else k\')\n'
        "k = 1\n"
        "key.add_function(f)\n"
        "print(key.hexdigest())"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONPATH": str(INSTALLED_IN), "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(found) == 1
    assert len(found.pop()) == 65


def test_an_edited_source_file_is_another_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "package_of_this_test"
    (package / "inside").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "inside" / "a.py").write_text("x = 1\n")
    (package / "data.txt").write_text("1")
    monkeypatch.syspath_prepend(str(tmp_path))
    first = digest_of_sources(package.name)
    (package / "data.txt").write_text("2")
    assert digest_of_sources(package.name) == first
    (package / "inside" / "a.py").write_text("x = 2\n")
    second = digest_of_sources(package.name)
    (package / "inside" / "a.py").rename(package / "inside" / "b.py")
    assert len({first, second, digest_of_sources(package.name)}) == 3


def test_every_entry_of_a_long_array_counts() -> None:
    found = {key_of(np.zeros(10_000))}
    for position in (0, 5_000, 9_999):
        values = np.zeros(10_000)
        values[position] = 1.0
        found.add(key_of(values))
    assert len(found) == 4


def test_ranges_and_lookalikes_differ() -> None:
    values = [range(3), range(0, 3, 2), slice(0, 3), (0, 3, None), [0, 3, None], ("tuple", 0, 3)]
    assert len({key_of(value) for value in values}) == len(values)
    assert key_of((1, 2), 3) != key_of((1, 2, 3)) != key_of(1, 2, 3) != key_of((), 1, 2, 3)


def test_text_of_a_class_of_its_own_is_refused() -> None:
    class Text(str):
        pass

    key = Key()
    key.write("name", Text("x"))
    with pytest.raises(Undescribable, match="of its own"):
        key.hexdigest()
