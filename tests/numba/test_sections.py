"""Long generated functions, which are cut into several."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import aesara
import aesara.tensor as at
import numpy as np
import pytest
from aesara.graph.basic import Apply
from aesara.ifelse import ifelse
from aesara.scan.utils import until
from aesara.tensor.random.utils import RandomStream
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import fixed_modes
from fixed_modes.numba import cache, module
from fixed_modes.numba.sections import cut
from fixed_modes.numba.source import Source


def _source(text: str) -> Source:
    source = Source()
    for line in text.splitlines():
        source.add(line)
    return source


def _function(text: str) -> Callable:
    namespace: dict[str, Any] = {}
    exec(text, namespace)
    return namespace["graph"]


# -- programs ----------------------------------------------------------------------

NAMES = ["a", "b", "c", "d", "e"]


@st.composite
def blocks(draw: st.DrawFn, depth: int, in_loop: bool) -> list[str]:
    """Give statements of names that all have values."""
    lines = []
    for _ in range(draw(st.integers(1, 7))):
        kind = draw(st.sampled_from(["assign", "add", "swap", "store", "if", "for", "comment"]))
        one, two, three = (draw(st.sampled_from(NAMES)) for _ in range(3))
        number = draw(st.integers(-3, 3))
        if kind == "assign":
            lines.append(f"{one} = {two} - 2 * {three} % 7 + {number}")
        elif kind == "add":
            lines.append(f"{one} += {two} % 5")
        elif kind == "swap":
            lines.append(f"{one}, {two} = {two}, {three}")
        elif kind == "store":
            lines.append(f"trace[{one} % 4] = {two} % 1000")
        elif kind == "comment":
            lines.append(f"# {one}")
        elif depth:
            inner = partial(_indented_block, draw, depth - 1)
            if kind == "for":
                index = draw(st.sampled_from(["i", "j", "k"]))
                lines += [f"for {index} in range({draw(st.integers(0, 3))}):", *inner(True)]
                lines.append(f"{one} = {one} % 1000")
                continue
            lines += [f"if {one} % 3 > {number}:", *inner(in_loop)]
            if draw(st.booleans()):
                lines += [f"elif {two} % 2 == 0:", *inner(in_loop)]
            if draw(st.booleans()):
                lines += ["else:", *inner(in_loop)]
    if in_loop and draw(st.booleans()):
        lines += [f"if {draw(st.sampled_from(NAMES))} % 5 == 1:", "    break"]
    return lines or ["pass"]


def _indented_block(draw: st.DrawFn, depth: int, in_loop: bool) -> list[str]:
    lines = draw(blocks(depth, in_loop))
    if all(line.startswith("#") for line in lines):
        lines.append("pass")
    return ["    " + line for line in lines]


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(blocks(3, False), st.integers(2, 12))
def test_a_program_in_sections_does_what_it_did(lines: list[str], most: int) -> None:
    text = "\n".join(
        [
            f"def graph({', '.join(NAMES)}, trace):",
            *("    " + line for line in lines),
            f"    return ({', '.join(NAMES)},)",
        ]
    )
    parts = cut(_source(text), longest=5, most=most, least=2)
    arguments = (1, -2, 3, 5, -7)
    traces = [0] * 4, [0] * 4
    expected = _function(text)(*arguments, traces[0])
    assert _function(parts.text)(*arguments, traces[1]) == expected
    assert traces[0] == traces[1]


def test_sections_are_as_long_as_they_may_be() -> None:
    lines = ["def graph(a):"]
    for number in range(200):
        lines.append(f"    a{number} = a{number - 1 if number else ''} + 1")
    parts = cut(_source("\n".join([*lines, "    return (a199,)"])), longest=50, most=20, least=5)
    functions = parts.text.split("\n\n\n")
    assert len(functions) >= 10
    assert max(function.count("\n") for function in functions) <= 24
    assert _function(parts.text)(3) == (203,)


def test_a_short_function_stays_whole() -> None:
    source = _source("def graph(a):\n    return (a,)")
    assert cut(source) is source


def test_a_section_does_not_take_a_name_of_the_function() -> None:
    lines = [f"    b{n} = section_1 + {n}" for n in range(20)]
    text = "\n".join(["def graph(section_1):", *lines, "    return (b19, b3)"])
    parts = cut(_source(text), longest=5, most=10, least=5)
    assert parts.text.count("def ") > 1
    assert _function(parts.text)(4) == (23, 7)


def test_a_value_that_a_loop_may_not_give_is_not_passed_on() -> None:
    text = "\n".join(
        [
            "def graph(n, x):",
            "    for i in range(n):",
            "        a = x + i",
            "        b = a * a",
            "        c = b + a",
            "    if n > 0:",
            "        x = x + c",
            "    return (x,)",
        ]
    )
    for most in range(2, 9):
        parts = cut(_source(text), longest=2, most=most, least=2)
        assert "(c" not in parts.text
        assert [_function(parts.text)(n, 5) for n in (0, 1, 3)] == [(5,), (35,), (61,)]


def test_a_value_from_the_step_before_is_passed_on() -> None:
    text = "\n".join(
        [
            "def graph(n, x):",
            "    for i in range(n):",
            "        if i > 0:",
            "            x += before",
            "        before = x * 2",
            "        x = x - 1",
            "    return (x,)",
        ]
    )
    for most in range(2, 7):
        parts = cut(_source(text), longest=2, most=most, least=1)
        assert [_function(parts.text)(n, 5) for n in (0, 1, 2, 3)] == [(5,), (4,), (13,), (40,)]


def test_lines_keep_their_nodes() -> None:
    node = at.exp(at.scalar()).owner
    assert isinstance(node, Apply)
    source = Source()
    source.add("def graph(a):")
    for number in range(30):
        source.add(f"    b{number} = a + {number}", (node, (str(number),)) if number % 2 else None)
    source.add("    return (b29, b11)")
    parts = cut(source, longest=5, most=10, least=5)
    assert len(parts.lines) > len(source.lines)
    for number, line in enumerate(parts.text.splitlines(), 1):
        origin = parts.origins.get(number)
        if " = a + " in line:
            value = int(line.split()[-1])
            assert origin == ((node, (str(value),)) if value % 2 else None)
        else:
            assert origin is None


# -- graphs ------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def short_sections(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have functions cut that are long for a test only."""
    monkeypatch.setattr(module, "cut", partial(cut, longest=12, most=12, least=3))


def _sections(f: Any) -> int:
    return fixed_modes.numba_source(f).count("def section_")


def test_the_gradient_of_a_loop() -> None:
    x, w = at.dvector("x"), at.dscalar("w")
    s, _ = aesara.scan(lambda x, s: at.tanh(w * s + x), [x], [x[0] * 0.0])
    f = aesara.function([x, w], [s[-1], *aesara.grad(s[-1], [x, w])], mode="NUMBA_FIXED")
    xs = np.array([0.3, -0.7, 1.1, 0.2])

    def last(xs: np.ndarray, w: float) -> float:
        s = 0.0
        for x in xs:
            s = np.tanh(w * s + x)
        return s

    value, by_x, by_w = f(xs, 0.8)
    h = 1e-6
    assert value == pytest.approx(last(xs, 0.8), rel=1e-13)
    steps = [(last(xs + h * e, 0.8) - last(xs - h * e, 0.8)) / (2 * h) for e in np.eye(4)]
    np.testing.assert_allclose(by_x, steps, rtol=1e-7)
    assert by_w == pytest.approx((last(xs, 0.8 + h) - last(xs, 0.8 - h)) / (2 * h), rel=1e-7)
    assert _sections(f) > 1


def test_a_loop_that_stops_inside_a_loop() -> None:
    n, limits = at.lscalar("n"), at.dvector("limits")

    def rows(limit: Any, total: Any) -> Any:
        (a, b), _ = aesara.scan(
            lambda a, b, limit: ((b, a + b), until(a + b > limit)),
            outputs_info=[total * 0.0 + 1.0, total * 0.0 + 1.0],
            non_sequences=[limit],
            n_steps=n,
        )
        return total + b[-1], a[-1], b.shape[0]

    (totals, firsts, lengths), _ = aesara.scan(
        rows, [limits], [at.constant(np.float64(0)), None, None], strict=False
    )
    f = aesara.function([n, limits], [totals, firsts, lengths], mode="NUMBA_FIXED")

    def by_hand(n: int, limits: list[float]) -> list[list[float]]:
        total, results = 0.0, []
        for limit in limits:
            a, b, steps = 1.0, 1.0, 0
            while steps < n:
                a, b, steps = b, a + b, steps + 1
                if b > limit:
                    break
            total += b
            results.append([total, a, steps])
        return [list(column) for column in zip(*results)]

    for n_steps in (1, 4, 30):
        got = f(n_steps, [3.0, 50.0, 1.0, 7.5])
        np.testing.assert_array_equal(got, by_hand(n_steps, [3.0, 50.0, 1.0, 7.5]))
    assert _sections(f) > 2


def test_states_that_swap_and_draws() -> None:
    stream = RandomStream(seed=3)
    n = at.lscalar("n")

    def step(a: Any, b: Any) -> Any:
        noise = stream.normal(size=(3,))
        return b, a * 0.5 + noise, stream.uniform() + noise[0], at.exp(-(b**2)).sum()

    (a, b, c, d), updates = aesara.scan(
        step, outputs_info=[at.zeros(3), at.ones(3), None, None], n_steps=n
    )
    f = aesara.function([n], [a, b, c, d], updates=updates, mode="NUMBA_FIXED")
    g = aesara.function([n], [a, b, c, d], updates=updates, mode="FAST_RUN")
    states = [v.get_value() for v in updates]
    for _ in range(2):
        got = f(5)
        after = [v.get_value() for v in updates]
        for variable, state in zip(updates, states):
            variable.set_value(state)
        for one, other in zip(got, g(5)):
            np.testing.assert_allclose(one, other, rtol=1e-13)
        states = [v.get_value() for v in updates]
        for one, other in zip(after, states):
            assert one.bit_generator.state == other.bit_generator.state
    assert _sections(f) > 1


def test_branches() -> None:
    x, flag = at.dvector("x"), at.bscalar("flag")
    squares, _ = aesara.scan(lambda v, s: s + v * v, [x], [at.constant(np.float64(0))])
    cubes, _ = aesara.scan(lambda v, s: s + v**3, [x[::-1]], [at.constant(np.float64(1))])
    one, other = ifelse(flag, [squares[-1], cubes * 2.0], [cubes.sum(), squares[1:]])
    f = aesara.function([x, flag], [one, other, (x * one).sum()], mode="NUMBA_FIXED")
    xs = np.array([1.0, -2.0, 0.5])
    sums, cubed = np.cumsum(xs**2), 1 + np.cumsum(xs[::-1] ** 3)
    for flag, a, b in ((1, sums[-1], cubed * 2), (0, cubed.sum(), sums[1:])):
        got = f(xs, flag)
        assert got[0] == pytest.approx(a, rel=1e-14)
        np.testing.assert_allclose(got[1], b, rtol=1e-14)
        assert got[2] == pytest.approx((xs * a).sum(), rel=1e-14)
    assert _sections(f) > 1


def test_an_error_in_a_section_names_the_scan() -> None:
    x, table = at.lvector("x"), at.dvector("table")
    s, _ = aesara.scan(
        lambda i, s: at.tanh(s) * at.exp(-s) + table[i] / (1 + s**2),
        [x],
        [at.constant(np.float64(0))],
        name="lookup",
    )
    f = aesara.function([x, table], [s, at.cumsum(s) * at.log(table).sum()], mode="NUMBA_FIXED")
    assert _sections(f) > 1
    with pytest.raises(IndexError, match=r"(?s)Inside: .*lookup.*test_sections\.py"):
        f([0, 1, 9], [1.0, 2.0])
    np.testing.assert_allclose(f([0], [1.0])[0], [1.0])


def test_sections_are_stored(tmp_path: Path) -> None:
    x = at.dvector("x")

    def make(mode: str = "NUMBA_FIXED") -> Any:
        s, _ = aesara.scan(
            lambda v, s: at.cos(s) * v + at.sin(v) / (2 + s), [x], [at.constant(np.float64(0))]
        )
        return aesara.function([x], [s[-1], aesara.grad(s[-1], x)], mode=mode)

    xs = np.array([0.1, 0.4, -2.0])
    expected = make("FAST_RUN")(xs)
    states = []
    with aesara.config.change_flags(
        fixed_modes__cache=True, fixed_modes__cache_dir=str(tmp_path / "cache")
    ):
        for _ in range(2):
            f = make()
            for one, other in zip(f(xs), expected):
                np.testing.assert_allclose(one, other, rtol=1e-13)
            assert _sections(f) > 1
            states.append(f.vm.jit_fn.cache.state)
            del f
            # As at the end of a process.
            cache._in_use.clear()
    assert states == ["compiled", "loaded"]
