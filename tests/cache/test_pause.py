"""The collection of garbage is put off, and goes on as it was."""

from __future__ import annotations

import gc
import threading
import warnings
from collections.abc import Iterator
from typing import Any

import aesara
import aesara.tensor as at
import jax
import numba
import numpy as np
import pytest
from aesara.graph.basic import Apply
from aesara.graph.op import Op

from fixed_modes import FixedModesWarning
from fixed_modes.cache.pause import garbage_left_alone, garbage_rarely_collected


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    before, thresholds = gc.isenabled(), gc.get_threshold()
    yield
    (gc.enable if before else gc.disable)()
    gc.set_threshold(*thresholds)


def test_it_goes_on_afterwards() -> None:
    gc.enable()
    with garbage_left_alone():
        assert not gc.isenabled()
        with garbage_left_alone():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_it_goes_on_after_an_error() -> None:
    gc.enable()
    with pytest.raises(ValueError, match="inside"), garbage_left_alone():
        raise ValueError("inside")
    assert gc.isenabled()


def test_a_user_who_has_turned_it_off_finds_it_off() -> None:
    gc.disable()
    with garbage_left_alone():
        assert not gc.isenabled()
    assert not gc.isenabled()


def test_it_is_rare_and_goes_on_as_often_as_before() -> None:
    gc.set_threshold(700, 10, 10)
    with garbage_rarely_collected():
        assert gc.get_threshold()[0] > 700
        with garbage_rarely_collected():
            assert gc.get_threshold()[0] > 700
        assert gc.get_threshold()[0] > 700
        assert gc.isenabled()
    assert gc.get_threshold() == (700, 10, 10)
    with pytest.raises(ValueError, match="inside"), garbage_rarely_collected():
        raise ValueError("inside")
    assert gc.get_threshold() == (700, 10, 10)


@pytest.mark.parametrize("thresholds", [(0, 10, 10), (10**6, 1000, 1000)])
def test_what_is_rarer_stays(thresholds: tuple[int, int, int]) -> None:
    gc.set_threshold(*thresholds)
    with garbage_rarely_collected():
        assert gc.get_threshold() == thresholds
    assert gc.get_threshold() == thresholds


def test_thresholds_that_the_user_sets_meanwhile_stay() -> None:
    gc.set_threshold(700, 10, 10)
    with garbage_rarely_collected():
        gc.set_threshold(123, 4, 5)
    assert gc.get_threshold() == (123, 4, 5)


def test_it_is_rare_until_the_last_thread_is_done() -> None:
    gc.set_threshold(700, 10, 10)
    entered, may_end = threading.Event(), threading.Event()

    def compile_something() -> None:
        with garbage_rarely_collected():
            entered.set()
            may_end.wait(10)

    thread = threading.Thread(target=compile_something)
    with garbage_rarely_collected():
        thread.start()
        assert entered.wait(10)
    assert gc.get_threshold()[0] > 700
    may_end.set()
    thread.join()
    assert gc.get_threshold() == (700, 10, 10)


@pytest.mark.parametrize("mode", ["NUMBA_FIXED", "JAX_FIXED"])
def test_a_function_leaves_the_collector_as_it_was(mode: str) -> None:
    gc.set_threshold(701, 11, 12)
    seen = []

    class Watching(Op):
        """Notes the thresholds while the graph is rewritten."""

        def make_node(self, x: Any) -> Apply:
            return Apply(self, [x], [x.type()])

        def infer_shape(self, fgraph: Any, node: Apply, shapes: Any) -> Any:
            seen.append(gc.get_threshold())
            return shapes

        def perform(self, node: Apply, inputs: Any, outputs: Any) -> None:
            outputs[0][0] = inputs[0] + 1.0

    x = at.dvector("x")
    # An op of the user's runs in Python, which is said.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FixedModesWarning)
        f = aesara.function([x], Watching()(x) * 2.0, mode=mode)
        np.testing.assert_array_equal(f(np.array([1.0, 2.0])), [4.0, 6.0])
    assert seen
    assert all(thresholds[0] > 701 for thresholds in seen)
    assert gc.get_threshold() == (701, 11, 12)


def test_numba_compiles_a_first_call_under_it() -> None:
    gc.set_threshold(701, 11, 12)
    seen: list[int] = []

    class Watching(numba.core.event.Listener):
        def on_start(self, event: Any) -> None:
            seen.append(gc.get_threshold()[0])

        def on_end(self, event: Any) -> None:
            pass

    x = at.dvector("x")
    with aesara.config.change_flags(fixed_modes__cache=False):
        f = aesara.function([x], at.exp(x).sum(), mode="NUMBA_FIXED")
        with numba.core.event.install_listener("numba:compile", Watching()):
            np.testing.assert_allclose(f(np.zeros(3)), 3.0)
    assert seen
    assert min(seen) > 701
    assert gc.get_threshold() == (701, 11, 12)


def test_jax_compiles_a_first_call_under_it() -> None:
    gc.set_threshold(701, 11, 12)
    seen: list[int] = []

    def note(event: str, duration: float, **details: Any) -> None:
        if "backend_compile" in event:
            seen.append(gc.get_threshold()[0])

    x = at.dvector("x")
    with aesara.config.change_flags(fixed_modes__cache=False):
        f = aesara.function([x], at.exp(x).sum(), mode="JAX_FIXED")
        # JAX has no public way to take a listener back.
        jax.monitoring.register_event_duration_secs_listener(note)
        np.testing.assert_allclose(f(np.zeros(3)), 3.0)
    assert seen
    assert min(seen) > 701
    assert gc.get_threshold() == (701, 11, 12)
