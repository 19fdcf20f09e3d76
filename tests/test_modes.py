"""The two modes as Aesara's own machinery handles them."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Iterator

import aesara
import pytest
from aesara.compile import mode as aesara_mode
from aesara.compile.mode import Mode, get_default_mode, get_mode, get_target_language
from aesara.graph.rewriting.basic import WalkingGraphRewriter, in2out, node_rewriter
from aesara.link.jax.linker import JAXLinker
from aesara.link.numba.linker import NumbaLinker

import fixed_modes
from fixed_modes import modes
from fixed_modes.jax.linker import FixedJAXLinker
from fixed_modes.numba.linker import FixedNumbaLinker

LINKERS = {"NUMBA_FIXED": FixedNumbaLinker, "JAX_FIXED": FixedJAXLinker}


@pytest.fixture(params=sorted(LINKERS))
def name(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def mode(name: str) -> Mode:
    return get_mode(name)


@pytest.fixture
def configured_mode() -> Iterator[None]:
    """Put the configured mode, and Aesara's copy of it, back afterwards."""
    with aesara.config.change_flags(mode=aesara.config.mode):
        yield
    aesara_mode.instantiated_default_mode = None


@node_rewriter(None)
def does_nothing(fgraph: object, node: object) -> None:
    return None


def a_rewriter() -> WalkingGraphRewriter:
    return in2out(does_nothing)


def test_modes_are_registered_under_their_names(name: str) -> None:
    assert aesara.compile.predefined_modes[name] is getattr(fixed_modes, name)
    assert get_mode(name) is getattr(fixed_modes, name)


def test_registering_again_changes_nothing(name: str) -> None:
    before = dict(aesara_mode.predefined_modes)
    modes.register()
    assert aesara_mode.predefined_modes == before


def test_a_taken_name_is_an_error_and_neither_name_is_registered(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = {**aesara_mode.predefined_modes, name: aesara_mode.FAST_RUN}
    others = set(LINKERS) - {name}
    for other in others:
        del known[other]
    monkeypatch.setattr(aesara_mode, "predefined_modes", known)
    with pytest.raises(ValueError, match=f"mode '{name}': the name is taken by another mode, of "):
        modes.register()
    assert known[name] is aesara_mode.FAST_RUN
    assert others.isdisjoint(known)


def test_linkers_are_subclasses_of_aesaras() -> None:
    assert issubclass(FixedNumbaLinker, NumbaLinker)
    assert issubclass(FixedJAXLinker, JAXLinker)


def test_target_language() -> None:
    assert get_target_language(fixed_modes.NUMBA_FIXED) == ("numba",)
    assert get_target_language(fixed_modes.JAX_FIXED) == ("jax",)


@pytest.mark.parametrize(
    "change",
    [
        lambda mode: mode.including("inline_ofg_expansion"),
        lambda mode: mode.excluding("fusion"),
        lambda mode: mode.requiring("canonicalize"),
        lambda mode: mode.register((a_rewriter(), 60)),
        lambda mode: mode.clone(),
        lambda mode: mode.including("a").excluding("b").clone(),
    ],
    ids=["including", "excluding", "requiring", "register", "clone", "all in a row"],
)
def test_changed_modes_keep_class_linker_and_its_options(mode: Mode, name: str, change) -> None:
    allocating = mode.clone(link_kwargs={"allow_gc": not mode.linker.allow_gc})
    changed = change(allocating)
    assert type(changed) is type(mode)
    assert type(changed.linker) is LINKERS[name]
    assert changed.linker is not mode.linker
    assert changed.linker.allow_gc is not mode.linker.allow_gc
    # What reaches inner graphs is what the changed mode asks for, not the first mode.
    assert changed.linker.rewrites is changed._optimizer


def test_changed_modes_ask_for_the_changed_rewrites(mode: Mode) -> None:
    query = mode.including("inline_ofg_expansion").excluding("ShapeOpt").requiring("merge")
    rewrites = query.linker.rewrites
    assert "inline_ofg_expansion" in rewrites.include
    assert "ShapeOpt" in rewrites.exclude
    assert "merge" in rewrites.require
    # The registered mode is left as it was.
    assert "ShapeOpt" not in mode.linker.rewrites.exclude


def test_pickled_modes_keep_their_linker(mode: Mode, name: str) -> None:
    again = pickle.loads(pickle.dumps(mode))
    assert type(again) is type(mode)
    assert type(again.linker) is LINKERS[name]
    assert again.linker.rewrites == again._optimizer


@pytest.mark.usefixtures("configured_mode")
def test_default_mode_follows_the_configuration() -> None:
    sequence = ["NUMBA_FIXED", "JAX_FIXED", "FAST_RUN", "JAX_FIXED", "NUMBA", "NUMBA_FIXED", "JAX"]
    for name in sequence:
        aesara.config.mode = name
        assert get_default_mode() is aesara_mode.predefined_modes[name]


@pytest.mark.usefixtures("configured_mode")
def test_default_mode_heeds_the_optimizer_flags(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    aesara_mode.instantiated_default_mode = None
    # As if set in AESARA_FLAGS: a running program can't change these two.
    parameters = vars(type(aesara.config))
    monkeypatch.setattr(parameters["optimizer_including"], "val", "inline_ofg_expansion")
    monkeypatch.setattr(parameters["optimizer_excluding"], "val", "fusion:inplace")
    aesara.config.mode = name
    rewrites = get_default_mode().linker.rewrites
    assert "inline_ofg_expansion" in rewrites.include
    assert {"fusion", "inplace"} <= set(rewrites.exclude)


def test_a_mode_that_aesara_does_not_know_stays_unknown() -> None:
    with pytest.raises(Exception, match="No predefined mode exist for string: FIXED"):
        get_mode("FIXED")


def test_rewrites_that_a_later_import_registers_are_taken():
    """Aesara's database refuses a name that was asked for before it was there."""
    script = (
        "import sys, aesara, aesara.tensor as at, fixed_modes\n"
        "assert 'aesara.tensor.nnet' not in sys.modules\n"
        "x = at.dscalar()\n"
        "modes = 'NUMBA_FIXED', 'JAX_FIXED'\n"
        "print([float(aesara.function([x], x * 2, mode=mode)(3.0)) for mode in modes])\n"
        "import aesara.tensor.nnet\n"
        "print([float(aesara.function([x], at.exp(x), mode=mode)(0.0)) for mode in modes])\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[:2] == ["[6.0, 6.0]", "[1.0, 1.0]"]
