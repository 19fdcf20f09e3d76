"""Arrays in a step of which the length changes from step to step: compiled, and right."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any, Callable

import aesara
import aesara.tensor as at
import jax
import numpy as np
import pytest
from aesara.scan.utils import until

import fixed_modes
from fixed_modes.errors import FixedModesWarning
from tests import changes

MODE = "JAX_FIXED"


@pytest.fixture(autouse=True)
def compiled() -> Iterator[None]:
    """See that nothing runs in Python: that is warned of."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", FixedModesWarning)
        yield


PLACES = np.array([0, 1, 2, 1, 0, 3])


class _Symbolic:
    """What steps are made of, on symbolic arrays."""

    places = at.as_tensor(PLACES)
    concatenate = staticmethod(at.concatenate)
    cumsum = staticmethod(at.cumsum)
    cumprod = staticmethod(at.cumprod)
    sort = staticmethod(at.sort)
    argsort = staticmethod(at.argsort)
    argmax = staticmethod(at.argmax)
    dot = staticmethod(at.dot)
    exp = staticmethod(at.exp)
    where = staticmethod(at.switch)
    maximum = staticmethod(at.maximum)
    arange = staticmethod(at.arange)
    nonzero = staticmethod(lambda x: at.nonzero(x)[0])
    outer = staticmethod(at.outer)
    ones = staticmethod(lambda *shape: at.ones(shape))
    roll = staticmethod(at.roll)
    eq = staticmethod(at.eq)
    put = staticmethod(lambda x, index, value: at.set_subtensor(x[index], value))
    add = staticmethod(lambda x, index, value: at.inc_subtensor(x[index], value))


class _Arrays:
    """The same on NumPy's."""

    places = PLACES
    concatenate = staticmethod(np.concatenate)
    cumsum = staticmethod(np.cumsum)
    cumprod = staticmethod(np.cumprod)
    sort = staticmethod(np.sort)
    argsort = staticmethod(lambda x: np.argsort(x, kind="stable"))
    argmax = staticmethod(np.argmax)
    dot = staticmethod(np.dot)
    exp = staticmethod(np.exp)
    where = staticmethod(np.where)
    maximum = staticmethod(max)
    arange = staticmethod(np.arange)
    nonzero = staticmethod(lambda x: np.nonzero(x)[0])
    outer = staticmethod(np.outer)
    ones = staticmethod(lambda *shape: np.ones(shape))
    roll = staticmethod(np.roll)
    eq = staticmethod(np.equal)
    put = staticmethod(changes.put)
    add = staticmethod(changes.add)


Step = Callable[[Any, Any, Any, Any], Any]

#: Of the position, which may be anything, a vector and a matrix.
ANYWHERE: dict[str, Step] = {
    "start": lambda lib, t, x, m: x[:t].sum(),
    "end": lambda lib, t, x, m: x[t:].sum(),
    "backwards from": lambda lib, t, x, m: lib.cumsum(x[t::-1]).sum(),
    "backwards to": lambda lib, t, x, m: (x[:t:-1] * 2).sum(),
    "every second": lambda lib, t, x, m: lib.cumsum(x[t::2]).sum(),
    "every third, backwards": lambda lib, t, x, m: lib.cumsum(x[t::-3]).sum(),
    "every second to": lambda lib, t, x, m: lib.cumsum(x[1:t:2]).sum(),
    "between": lambda lib, t, x, m: lib.cumsum(x[t - 3 : t]).sum(),
    "nothing": lambda lib, t, x, m: x[t:t].sum(),
    "between limits": lambda lib, t, x, m: lib.cumsum(x[lib.maximum(t - 2, 0) : t + 1]).sum(),
    "between others": lambda lib, t, x, m: lib.cumsum(x[t : 2 * t]).sum(),
    "of a part": lambda lib, t, x, m: lib.cumsum(x[1:][:t][::2]).sum(),
    "part of a part": lambda lib, t, x, m: lib.cumsum(x[t:][t:]).sum(),
    "turned round": lambda lib, t, x, m: lib.dot(x[:t][::-1], x[:t]),
    "length": lambda lib, t, x, m: x[:t].shape[0] + x[t:].shape[0],
    "product": lambda lib, t, x, m: x[:t].prod(),
    "any": lambda lib, t, x, m: (x[:t] > 1.0).any(),
    "all": lambda lib, t, x, m: (x[t:] < 1.0).all(),
    "exponentials": lambda lib, t, x, m: lib.exp(x[:t]).sum(),
    "infinite beyond": lambda lib, t, x, m: lib.dot((1 / (x - 1.5))[:t], x[:t] / (x - 1.5)[:t]),
    "choice": lambda lib, t, x, m: lib.where(x[:t] > 0, x[:t], -1.0).sum(),
    "without one": lambda lib, t, x, m: lib.cumsum(
        lib.concatenate([x[:t], x[t + 1 :], x[2:3]])
    ).sum(),
    "one put in": lambda lib, t, x, m: lib.cumsum(lib.concatenate([x[:t], x[:1], x[t:]])).sum(),
    "joined with itself": lambda lib, t, x, m: lib.cumsum(lib.concatenate([x[:t], x[:t]])).sum(),
    "rows": lambda lib, t, x, m: m[:t].sum(axis=0),
    "columns": lambda lib, t, x, m: m[:, :t].sum(axis=1),
    "columns, all": lambda lib, t, x, m: (m[:, t:] * 2).sum(),
    "rows and columns": lambda lib, t, x, m: m[:t, t:].sum(),
    "row sums": lambda lib, t, x, m: lib.cumsum(m[:t].sum(axis=1)).sum(),
    "rows times vector": lambda lib, t, x, m: lib.dot(m[:t], x[:3]).sum(),
    "vector times rows": lambda lib, t, x, m: lib.dot(x[:6][:t], m[:t]),
    "rows times columns": lambda lib, t, x, m: lib.dot(m[:t].T, m[:t]),
    "outer product": lambda lib, t, x, m: lib.outer(x[:t], x[t:]).sum(),
    "column vector": lambda lib, t, x, m: (x[:t][:, None] * m[:t]).sum(axis=0),
    "sorted": lambda lib, t, x, m: (lib.sort(x[:t]) * lib.cumsum(x[:t])).sum(),
    "order": lambda lib, t, x, m: (lib.argsort(x[:t]) * x[:t]).sum(),
    "running product": lambda lib, t, x, m: lib.cumprod(x[:t] + 2).sum(),
    "mask": lambda lib, t, x, m: lib.cumsum(x[x > x[t % 6]]).sum(),
    "mask of rows": lambda lib, t, x, m: m[x > x[t % 6]].sum(axis=0),
    "mask of a part": lambda lib, t, x, m: lib.cumsum(x[:t][x[:t] > 0]).sum(),
    "how many": lambda lib, t, x, m: x[x > x[t % 6]].shape[0],
    "places": lambda lib, t, x, m: (lib.nonzero(x > x[t % 6]) * 3).sum(),
    "places of a part": lambda lib, t, x, m: lib.nonzero(x[t:]).sum(),
    "rows that are chosen": lambda lib, t, x, m: m[lib.nonzero(x > x[t % 6])].sum(axis=0),
    "rolled": lambda lib, t, x, m: lib.cumsum(lib.roll(x, t)).sum(),
    "set start": lambda lib, t, x, m: lib.put(x, np.s_[:t], 7.0),
    "set to the last": lambda lib, t, x, m: lib.put(x, np.s_[:t], x[t % 6]),
    "set end to start": lambda lib, t, x, m: lib.put(lib.put(x, np.s_[t:], 0.5), np.s_[:t], x[:t]),
    "set turned round": lambda lib, t, x, m: lib.put(x, np.s_[:t], x[:t][::-1]),
    "set backwards": lambda lib, t, x, m: lib.put(x, np.s_[t::-1], x[: x[t::-1].shape[0]]),
    "add to the end": lambda lib, t, x, m: lib.add(x, np.s_[t:], x[t:] * 2),
    "add to every second": lambda lib, t, x, m: lib.add(x, np.s_[t::2], 1.0),
    "set every second": lambda lib, t, x, m: lib.put(x, np.s_[t::2], x[t::2] + 1),
    "set rows": lambda lib, t, x, m: lib.put(m, np.s_[:t], x[:3]),
    "set columns": lambda lib, t, x, m: lib.put(m, np.s_[:, t:], 1.0),
    "set rows of a column": lambda lib, t, x, m: lib.put(m, np.s_[t:, 1], x[t:]),
    "add to rows of columns": lambda lib, t, x, m: lib.add(m, np.s_[t:, 1:], m[t:, 1:]),
    "change a part of a part": lambda lib, t, x, m: lib.cumsum(
        lib.put(x[t:], np.s_[:2], 9.0)
    ).sum(),
    "compared": lambda lib, t, x, m: lib.eq(x[:t], x[:t][::-1]).sum(),
}

#: Where there has to be an entry; the position is one of the vector's.
INSIDE: dict[str, Step] = {
    "largest": lambda lib, t, x, m: x[: t + 1].max(),
    "smallest": lambda lib, t, x, m: x[t:].min(),
    "place of the largest": lambda lib, t, x, m: lib.argmax(x[: t + 1]),
    "mean": lambda lib, t, x, m: x[: t + 1].mean(),
    "variance": lambda lib, t, x, m: x[: t + 1].var(),
    "last": lambda lib, t, x, m: lib.cumsum(x[: t + 1])[-1],
    "first": lambda lib, t, x, m: lib.sort(x[t:])[0],
    "median": lambda lib, t, x, m: lib.sort(x[: t + 1])[t // 2],
    "largest of columns": lambda lib, t, x, m: m[: t + 1].max(axis=0),
    "range": lambda lib, t, x, m: (lib.arange(t) ** 2 + x[:t]).sum(),
    "range from": lambda lib, t, x, m: (lib.arange(t, 6) * x[t:]).sum(),
    "range of steps": lambda lib, t, x, m: lib.arange(0, t, 2).sum(),
    "ones": lambda lib, t, x, m: (lib.ones(t) * x[:t]).sum() + lib.ones(t, 2).sum(),
    "softmax": lambda lib, t, x, m: (
        lib.exp(x[: t + 1] - x[: t + 1].max()) / lib.exp(x[: t + 1] - x[: t + 1].max()).sum()
    )[t],
}

X = np.array([0.5, -1.25, 2.0, 0.75, -0.5, 1.5])
M = np.random.default_rng(5).normal(size=(6, 3))
POSITIONS = {"anywhere": [-9, -6, -4, -1, 0, 1, 3, 5, 6, 7, 12], "inside": [0, 1, 2, 3, 4, 5]}
#: What gives integers and booleans, of which there are no slopes.
WITHOUT_SLOPES = [
    *("length", "any", "all", "how many", "places", "places of a part", "compared"),
    *("place of the largest", "range of steps"),
]
CASES = [
    *(pytest.param(step, "anywhere", id=name) for name, step in ANYWHERE.items()),
    *(pytest.param(step, "inside", id=name) for name, step in INSIDE.items()),
]


def _loop(step: Step, x: Any, m: Any, positions: Any) -> Any:
    rows, _ = aesara.scan(
        lambda t, x, m: step(_Symbolic, t, x, m), sequences=[positions], non_sequences=[x, m]
    )
    return rows


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("step", "where"), CASES)
def test_values(step: Step, where: str, dtype: str) -> None:
    x, m = at.vector("x", dtype=dtype), at.matrix("m", dtype=dtype)
    chosen = np.array(POSITIONS[where])
    # As constants, so that it is known how large they are.
    f = aesara.function([x, m], _loop(step, x, m, at.as_tensor(chosen)), mode=MODE)
    values = X.astype(dtype), M.astype(dtype)
    with np.errstate(all="ignore"):
        expected = [step(_Arrays, int(t), *values) for t in chosen]
    for _ in range(2):
        found = f(*values)
        np.testing.assert_allclose(
            found, np.array(expected), rtol=1e-12 if dtype == "float64" else 2e-5, atol=1e-5
        )
    np.testing.assert_array_equal(values[0], X.astype(dtype))


@pytest.mark.parametrize(
    ("step", "where"), [case for case in CASES if case.id not in WITHOUT_SLOPES]
)
def test_slopes(step: Step, where: str) -> None:
    """The gradient that Aesara makes has slices of changing lengths too."""
    x, m = at.dvector("x"), at.dmatrix("m")
    chosen = np.array(POSITIONS[where])
    rows = _loop(step, x, m, at.as_tensor(chosen))
    cost = (rows * 0.5).sum()
    inputs = [x, m]
    slopes = aesara.grad(cost, inputs, disconnected_inputs="ignore")
    found = aesara.function(inputs, slopes, mode=MODE, on_unused_input="ignore")(X, M)
    reference = aesara.compile.mode.Mode("py", "fast_compile")
    expected = aesara.function(inputs, slopes, mode=reference, on_unused_input="ignore")(X, M)
    for slope, wanted in zip(found, expected):
        np.testing.assert_allclose(slope, wanted, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "bool", "complex128"])
def test_dtypes(dtype: str) -> None:
    x = at.vector("x", dtype=dtype)
    positions = at.lvector("positions")
    rows, _ = aesara.scan(
        lambda t, x: [x[:t].sum(), x[t:].prod(), (x[:t] * 2).sum()],
        sequences=[positions],
        non_sequences=[x],
    )
    f = aesara.function([positions, x], rows, mode=MODE)
    values = np.array([3, 0, 1, 7]).astype(dtype)
    chosen = np.array([0, 1, 2, 4, 9])
    # Constants are of the smallest dtype that holds them.
    two = np.int8(2)
    with np.errstate(all="ignore"):
        expected = [
            [values[:t].sum() for t in chosen],
            [values[t:].prod() for t in chosen],
            [(values[:t] * two).sum() for t in chosen],
        ]
    for found, wanted, variable in zip(f(chosen, values), expected, rows):
        assert found.dtype == variable.dtype
        np.testing.assert_array_equal(found, np.array(wanted).astype(variable.dtype))


@pytest.mark.parametrize("length", [0, 1, 4])
def test_short_arrays(length: int) -> None:
    x, positions = at.dvector("x"), at.lvector("positions")
    rows, _ = aesara.scan(
        lambda t, x: [x[:t].sum(), x[t::-1].sum(), at.set_subtensor(x[t:], 1.0).sum()],
        sequences=[positions],
        non_sequences=[x],
    )
    f = aesara.function([positions, x], rows, mode=MODE)
    values, chosen = np.arange(1.0, length + 1), [-3, -1, 0, 1, 2, 5]
    expected = [
        (values[:t].sum(), values[t::-1].sum(), changes.put(values, np.s_[t:], 1.0).sum())
        for t in chosen
    ]
    np.testing.assert_allclose(np.array(f(np.array(chosen), values)).T, expected)


@pytest.mark.filterwarnings("ignore::fixed_modes.errors.FixedModesWarning")
def test_small_parts_of_large_arrays_are_left_to_python() -> None:
    """Going through all of a large array in each step takes longer."""
    x, starts, stops = at.dvector("x"), at.lvector("starts"), at.lvector("stops")
    sums, _ = aesara.scan(
        lambda i, k, x: x[i:k].sum(), sequences=[starts, stops], non_sequences=[x]
    )
    f = aesara.function([starts, stops, x], sums, mode=MODE)
    values, bounds = np.arange(1e6), np.array([0, 3, 4, 999_990, 1_000_000])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FixedModesWarning)
        found = f(bounds[:-1], bounds[1:], values)
    expected = [values[i:k].sum() for i, k in zip(bounds, bounds[1:])]
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    with pytest.warns(FixedModesWarning, match="bounds of a slice"):
        aesara.function([starts, stops, x], sums, mode=MODE)(bounds[:-1], bounds[1:], values)


def test_states_decide_how_long() -> None:
    """A random walk in a table, with bounds that the loop computes."""
    table = at.dvector("table")

    def step(low: Any, high: Any, table: Any) -> Any:
        total = table[low:high].sum()
        new_low = at.switch(total > 0, low + 1, low)
        return [new_low, at.switch(total > 0, high, at.minimum(high + 2, 8))], until(high - low < 1)

    (lows, highs), _ = aesara.scan(
        step,
        outputs_info=[at.constant(0, dtype="int64"), at.constant(3, dtype="int64")],
        non_sequences=[table],
        n_steps=20,
    )
    f = aesara.function([table], [lows, highs], mode=MODE)
    values = np.array([1.0, -2.0, 0.5, 2.5, -1.0, 3.0, 0.25, -4.0])
    low, high, expected = 0, 3, []
    for _ in range(20):
        total, is_last = values[low:high].sum(), high - low < 1
        low, high = (low + 1, high) if total > 0 else (low, min(high + 2, 8))
        expected.append((low, high))
        if is_last:
            break
    np.testing.assert_array_equal(np.array(f(values)).T, expected)


def test_a_state_that_is_changed_up_to_a_bound() -> None:
    x, positions = at.dvector("x"), at.lvector("positions")
    states, _ = aesara.scan(
        lambda t, s: at.inc_subtensor(s[:t], s[t:][::-1].sum()),
        sequences=[positions],
        outputs_info=[x],
    )
    f = aesara.function([positions, x], states[-1], mode=MODE)
    expected, chosen = X.copy(), [2, 5, 0, 6, 3]
    for t in chosen:
        expected[:t] += expected[t:].sum()
    np.testing.assert_allclose(f(np.array(chosen), X), expected, rtol=1e-12)


def test_a_loop_over_what_has_no_fixed_length() -> None:
    x, positions = at.dvector("x"), at.lvector("positions")

    def horner(t: Any, x: Any) -> Any:
        values, _ = aesara.scan(
            lambda a, value: value * 0.5 + a,
            sequences=[x[:t][::-1]],
            outputs_info=[at.constant(0.25, dtype="float64")],
        )
        return values[-1]

    rows, _ = aesara.scan(horner, sequences=[positions], non_sequences=[x])
    f = aesara.function([positions, x], rows, mode=MODE)
    chosen = [1, 6, 3]
    expected = []
    for t in chosen:
        value = 0.25
        for a in X[:t][::-1]:
            value = value * 0.5 + a
        expected.append(value)
    np.testing.assert_allclose(f(np.array(chosen), X), expected, rtol=1e-12)


@pytest.mark.filterwarnings("ignore::fixed_modes.errors.FixedModesWarning")
def test_parts_of_the_trace_of_an_until_loop() -> None:
    """Neither the number of its rows nor that of the columns that are read is known."""
    m, limits = at.dmatrix("m"), at.lvector("limits")

    def part(t: Any, m: Any) -> Any:
        rows, _ = aesara.scan(
            lambda row, limit: (row * 2.0, until(row.sum() > limit)),
            sequences=[m],
            non_sequences=[at.cast(t, "float64")],
        )
        return rows[:, :t].sum() + rows[:t].sum() + rows[0, :t].sum()

    sums, _ = aesara.scan(part, sequences=[limits], non_sequences=[m])
    f = aesara.function([limits, m], sums, mode=MODE)
    values, chosen = np.abs(M), [1, 2, 3, 0]
    expected = []
    for t in chosen:
        over = np.flatnonzero(values.sum(axis=1) > t)
        rows = 2.0 * values[: over[0] + 1 if over.size else None]
        expected.append(rows[:, :t].sum() + rows[:t].sum() + rows[0, :t].sum())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FixedModesWarning)
        np.testing.assert_allclose(f(np.array(chosen), values), expected, rtol=1e-12)


def test_jax_differentiates_and_vectorises_it() -> None:
    x, positions = at.dvector("x"), at.lvector("positions")
    rows, _ = aesara.scan(
        lambda t, x: (x[:t] ** 2).sum() + x[t:].prod(), sequences=[positions], non_sequences=[x]
    )
    function = fixed_modes.jax_function([positions, x], [rows])
    chosen = np.array([0, 2, 6])
    with jax.experimental.enable_x64():
        slopes = jax.jacobian(lambda x: function(chosen, x)[0])(X)
        many = jax.vmap(lambda x: function(chosen, x)[0])(np.stack([X, 2 * X]))
    for t, slope in zip(chosen, slopes):
        expected = np.r_[2 * X[:t], X[t:].prod() / X[t:]]
        np.testing.assert_allclose(slope, expected, rtol=1e-12)
    for values, found in zip((X, 2 * X), many):
        expected = [(values[:t] ** 2).sum() + values[t:].prod() for t in chosen]
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_what_does_not_count_has_no_slope() -> None:
    """Where the slope of a logarithm or a root is infinite, too."""
    x, positions = at.dvector("x"), at.lvector("positions")
    rows, _ = aesara.scan(
        lambda t, x: at.log(x[x > t - 2]).sum() + at.sqrt(x[t:]).sum() + (1.0 / x[:t]).sum(),
        sequences=[positions],
        non_sequences=[x],
    )
    function = fixed_modes.jax_function([positions, x], [rows])
    values = np.array([4.0, 2.0, 0.0, 0.0, 1.0])
    with jax.experimental.enable_x64():
        (slope,) = jax.jacobian(lambda x: function(np.array([2]), x)[0])(values)
    expected = [0.25 - 1 / 16, 0.5 - 0.25, np.inf, np.inf, 1.0 + 0.5]
    np.testing.assert_allclose(slope, expected, rtol=1e-12)


WRONG: dict[str, tuple[Step, type[Exception], int]] = {
    "largest of nothing": (lambda lib, t, x, m: x[:t].max(), ValueError, 0),
    "place of the largest of nothing": (lambda lib, t, x, m: lib.argmax(x[:t]), ValueError, 0),
    "two lengths": (lambda lib, t, x, m: (x[:t] * x[1:]).sum(), ValueError, 3),
    "two that change": (lambda lib, t, x, m: (x[:t] * x[t:]).sum(), ValueError, 2),
    "a product": (lambda lib, t, x, m: lib.dot(x[:t], x[t:]), ValueError, 2),
    "too many to put": (lambda lib, t, x, m: lib.put(x, np.s_[:t], x[:5]), ValueError, 3),
    "an entry that is missing": (lambda lib, t, x, m: x[:t][2], IndexError, 1),
    "the last of nothing": (lambda lib, t, x, m: x[t:][-1], IndexError, 6),
}
RIGHT = {
    "two lengths": 5,
    "two that change": 3,
    "a product": 3,
    "too many to put": 5,
}


@pytest.mark.filterwarnings("ignore::fixed_modes.errors.FixedModesWarning")
@pytest.mark.parametrize("name", WRONG)
def test_what_does_not_fit_raises_in_the_step_that_makes_it(name: str) -> None:
    step, error, bad = WRONG[name]
    x, m, positions = at.dvector("x"), at.dmatrix("m"), at.lvector("positions")
    f = aesara.function(
        [positions, x, m], _loop(step, x, m, positions), mode=MODE, on_unused_input="ignore"
    )
    good = RIGHT.get(name, 4)
    np.testing.assert_allclose(f(np.array([good]), X, M), [step(_Arrays, good, X, M)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FixedModesWarning)
        with pytest.raises(error):
            f(np.array([good, bad]), X, M)
        # Nothing is the worse for it.
        np.testing.assert_allclose(f(np.array([good]), X, M), [step(_Arrays, good, X, M)])


#: What fits for no position, or not for this one.
NEVER_RIGHT: dict[str, tuple[Step, int]] = {
    "columns that don't fit": (lambda lib, t, x, m: lib.dot(m[:t], x[:2]).sum(), 2),
    "parts that don't fit": (
        lambda lib, t, x, m: lib.concatenate([m[:t] * 2, m[t:, :2] * 3])[t:].sum(axis=0),
        2,
    ),
    "nothing to add": (lambda lib, t, x, m: lib.add(x, lib.places[:2], x[:1][:t]), 0),
    "columns to add to": (lambda lib, t, x, m: lib.add(m, lib.places[:t], x[:3][:t]), 2),
}


@pytest.mark.filterwarnings("ignore::fixed_modes.errors.FixedModesWarning")
@pytest.mark.parametrize("name", NEVER_RIGHT)
def test_what_can_not_fit_raises(name: str) -> None:
    step, position = NEVER_RIGHT[name]
    with pytest.raises(ValueError, match=r"align|fit|shape|match"):
        step(_Arrays, position, X, M)
    x, m, positions = at.dvector("x"), at.dmatrix("m"), at.lvector("positions")
    f = aesara.function(
        [positions, x, m], _loop(step, x, m, positions), mode=MODE, on_unused_input="ignore"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FixedModesWarning)
        with pytest.raises(ValueError, match="scan_fn"):
            f(np.array([position]), X, M)


@pytest.mark.filterwarnings("ignore::fixed_modes.errors.FixedModesWarning")
def test_columns_to_add_to() -> None:
    """As many values as rows are added to columns, if there are as many of these."""
    x, m, positions = at.dvector("x"), at.dmatrix("m"), at.lvector("positions")

    def step(lib: Any, t: Any, x: Any, m: Any) -> Any:
        return lib.add(m, lib.places[:t], x[:3][:t])

    f = aesara.function([positions, x, m], _loop(step, x, m, positions), mode=MODE)
    chosen = [1, 3]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FixedModesWarning)
        found = f(np.array(chosen), X, M)
    np.testing.assert_allclose(found, [step(_Arrays, t, X, M) for t in chosen], rtol=1e-12)


def test_room_for_too_much_is_left_to_python() -> None:
    """A product of two slices needs room for the product of both bounds."""
    x, positions = at.dvector("x"), at.lvector("positions")
    rows, _ = aesara.scan(
        lambda t, x: (x[:t][:, None] < x[t:][None]).sum(), sequences=[positions], non_sequences=[x]
    )
    f = aesara.function([positions, x], rows, mode=MODE)
    values = np.linspace(0.0, 1.0, 5000)
    with pytest.warns(FixedModesWarning, match="bounds of a slice"):
        found = f(np.array([2]), values)
    np.testing.assert_array_equal(found, [2 * 4998])


def test_one_entry_is_broadcast_as_ever() -> None:
    """Where a slice happens to have one entry, NumPy and Aesara broadcast it."""
    x, positions = at.dvector("x"), at.lvector("positions")
    rows, _ = aesara.scan(
        lambda t, x: (x[:t] * x[:3]).sum(), sequences=[positions], non_sequences=[x]
    )
    f = aesara.function([positions, x], rows, mode=MODE)
    np.testing.assert_allclose(f(np.array([3]), X), [(X[:3] ** 2).sum()])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FixedModesWarning)
        reference = aesara.compile.mode.Mode("py", "fast_compile")
        expected = aesara.function([positions, x], rows, mode=reference)(np.array([1, 3]), X)
        np.testing.assert_allclose(f(np.array([1, 3]), X), expected)
