"""Inner graphs are rewritten and compiled on clones, in both modes."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys

import aesara
import aesara.tensor as at
import numpy as np
import pytest
from aesara.compile.builders import OpFromGraph
from aesara.compile.mode import Mode
from aesara.ifelse import ifelse
from aesara.scan.op import Scan
from aesara.tensor.elemwise import Elemwise
from aesara.tensor.random.op import RandomVariable
from aesara.tensor.random.utils import RandomStream

import fixed_modes

VALUES = np.array([0.5, 1.0, 2.0, 7.0])


def log_op(inline: bool) -> OpFromGraph:
    x = at.dscalar()
    return OpFromGraph([x], [at.log(x)], inline=inline)


def mapped_log(inline: bool, **kwargs):
    x = at.dvector("x")
    op = log_op(inline)
    out, _ = aesara.scan(lambda v: op(v), sequences=[x], **kwargs)
    return x, out


def op_names(nodes) -> list[str]:
    return [str(node.op) for node in nodes]


def test_inlined_op_from_graph_leaves_only_its_inner_graph(mode, inner_nodes):
    x, out = mapped_log(inline=True)
    f = aesara.function([x], out, mode=mode)
    nodes = inner_nodes(f)
    assert not any(isinstance(node.op, OpFromGraph) for node in nodes)
    assert op_names(nodes) == ["Elemwise{log,no_inplace}"]
    assert "OpFromGraph" not in aesara.dprint(f, file="str")
    np.testing.assert_allclose(f(VALUES), np.log(VALUES))


def test_scan_mode_that_names_the_expansion_inlines_every_op_from_graph(mode, inner_nodes):
    x, out = mapped_log(inline=False, mode=Mode().including("inline_ofg_expansion"))
    f = aesara.function([x], out, mode=mode)
    assert op_names(inner_nodes(f)) == ["Elemwise{log,no_inplace}"]
    np.testing.assert_allclose(f(VALUES), np.log(VALUES))


FLAG_SCRIPT = """
import fixed_modes
import aesara, aesara.tensor as at, numpy as np
from aesara.compile.builders import OpFromGraph

for mode in (None, "NUMBA_FIXED", "JAX_FIXED"):
    v, x = at.dscalar(), at.dvector("x")
    op = OpFromGraph([v], [at.log(v)], inline=False)
    out, _ = aesara.scan(lambda v: op(v), sequences=[x])
    f = aesara.function([x], out, mode=mode)
    text = aesara.dprint(f, file="str")
    assert "OpFromGraph" not in text and "Elemwise{log" in text, text
    np.testing.assert_allclose(f(np.array([1.0, 2.0])), np.log([1.0, 2.0]))
    print(mode, type(f.maker.linker).__name__)
"""


def test_global_flag_that_names_the_expansion_reaches_inner_graphs():
    flags = "optimizer_including=inline_ofg_expansion,mode=NUMBA_FIXED"
    done = subprocess.run(
        [sys.executable, "-c", FLAG_SCRIPT],
        env={**os.environ, "AESARA_FLAGS": flags},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [
        *("None", "FixedNumbaLinker"),
        *("NUMBA_FIXED", "FixedNumbaLinker"),
        *("JAX_FIXED", "FixedJAXLinker"),
    ]


def test_op_from_graph_that_is_not_inlined_runs(mode, inner_nodes):
    x, out = mapped_log(inline=False)
    f = aesara.function([x], out, mode=mode)
    assert any(isinstance(node.op, OpFromGraph) for node in inner_nodes(f))
    np.testing.assert_allclose(f(VALUES), np.log(VALUES))


def test_excluding_on_the_mode_reaches_inner_graphs(mode, inner_nodes):
    x, out = mapped_log(inline=True)
    excluding = aesara.compile.mode.get_mode(mode).excluding("inline_ofg_expansion")
    f = aesara.function([x], out, mode=excluding)
    assert any(isinstance(node.op, OpFromGraph) for node in inner_nodes(f))
    np.testing.assert_allclose(f(VALUES), np.log(VALUES))


START = np.array([0.3, 0.7])


def recurrence():
    x0 = at.dvector("x0")
    out, _ = aesara.scan(lambda x: at.exp(-x) * 2.0 + 0.1, outputs_info=[x0], n_steps=5)
    return x0, out


def recurrence_by_hand(x: np.ndarray) -> np.ndarray:
    values = []
    for _ in range(5):
        x = np.exp(-x) * 2.0 + 0.1
        values.append(x)
    return np.array(values)


def is_composite(node) -> bool:
    return isinstance(node.op, Elemwise) and "Composite" in str(node.op)


@pytest.mark.parametrize("mode", ["NUMBA_FIXED"])  # XLA fuses by itself
def test_excluding_fusion_keeps_single_ops_in_the_step(mode, inner_nodes):
    x0, out = recurrence()
    fused = aesara.function([x0], out, mode=mode)
    assert any(is_composite(node) for node in inner_nodes(fused))
    plain = aesara.function([x0], out, mode=aesara.compile.mode.get_mode(mode).excluding("fusion"))
    assert not any(is_composite(node) for node in inner_nodes(plain))
    for f in (fused, plain):
        np.testing.assert_allclose(f(START), recurrence_by_hand(START))


def test_excluding_a_rewrite_reaches_inner_graphs(mode, inner_nodes):
    draws, updates = aesara.scan(lambda: RandomStream(5).normal(), n_steps=3)
    registered = aesara.compile.mode.get_mode(mode)
    for used, expected in (
        (registered, {True}),
        (registered.excluding("random_make_inplace"), {False}),
    ):
        f = aesara.function([], draws, updates=updates, mode=used)
        assert {
            node.op.inplace for node in inner_nodes(f) if isinstance(node.op, RandomVariable)
        } == expected


def test_requiring_on_the_mode_reaches_inner_graphs(mode, inner_nodes):
    x0, out = recurrence()
    required = aesara.compile.mode.get_mode(mode).requiring("merge")
    f = aesara.function([x0], out, mode=required)
    assert not any(is_composite(node) for node in inner_nodes(f))
    np.testing.assert_allclose(f(START), recurrence_by_hand(START))


def test_nested_inner_graphs_are_compiled_at_every_depth(mode, inner_nodes):
    matrix = at.dmatrix("matrix")
    row_in = at.dvector()
    inlined = log_op(inline=True)
    row_log, _ = aesara.scan(lambda v: inlined(v), sequences=[row_in])
    row_op = OpFromGraph([row_in], [row_log.sum()], inline=False)
    out, _ = aesara.scan(lambda row: row_op(row), sequences=[matrix])
    f = aesara.function([matrix], out, mode=mode)
    assert not any(
        isinstance(node.op, OpFromGraph) and node.op.is_inline for node in inner_nodes(f)
    )
    value = np.arange(1.0, 7.0).reshape(2, 3)
    np.testing.assert_allclose(f(value), np.log(value).sum(axis=1))


def test_scan_in_a_branch_of_ifelse_is_compiled(mode, inner_nodes):
    flag = at.bscalar("flag")
    x, logs = mapped_log(inline=True)
    f = aesara.function([flag, x], ifelse(flag, logs, x), mode=mode)
    assert op_names(inner_nodes(f)) == ["Elemwise{log,no_inplace}"]
    np.testing.assert_allclose(f(1, VALUES), np.log(VALUES))
    np.testing.assert_allclose(f(0, VALUES), VALUES)


def test_the_user_s_graph_is_the_same_after_compilation(mode):
    rng = RandomStream(5)
    draws, updates = aesara.scan(lambda: rng.normal(), n_steps=3)
    (scan_node,) = [
        v.owner
        for v in aesara.graph.basic.ancestors([draws])
        if v.owner and isinstance(v.owner.op, Scan)
    ]
    before = aesara.dprint(draws, file="str")
    inner_before = list(scan_node.op.fgraph.toposort())
    aesara.function([], draws, updates=updates, mode=mode)
    assert aesara.dprint(draws, file="str") == before
    assert list(scan_node.op.fgraph.toposort()) == inner_before
    assert not any(node.op.destroy_map for node in inner_before)


def test_fast_run_afterwards_is_as_before(mode):
    def compiled_in_fast_run(first):
        stream = RandomStream(23)
        draws, updates = aesara.scan(lambda: stream.normal(), n_steps=10, strict=True)
        if first is not None:
            aesara.function([], draws, updates=updates, mode=first)
        f = aesara.function([], draws, updates=updates, mode="FAST_RUN")
        (scan,) = [n.op for n in f.maker.fgraph.toposort() if isinstance(n.op, Scan)]
        (rv,) = [n.op for n in scan.fgraph.toposort() if isinstance(n.op, RandomVariable)]
        return rv.inplace, f()

    untouched, expected = compiled_in_fast_run(None)
    after_ours, draws = compiled_in_fast_run(mode)
    assert not untouched
    assert not after_ours
    np.testing.assert_array_equal(draws, expected)


def normals(seed: int, n_steps: int = 10):
    stream = RandomStream(seed)
    draws, updates = aesara.scan(lambda: stream.normal(), n_steps=n_steps, strict=True)
    return draws, updates, next(iter(updates))


def state_of(shared) -> dict:
    return shared.get_value(borrow=True).bit_generator.state


def test_draws_in_a_loop_are_made_in_place(mode, inner_nodes):
    draws, updates, _ = normals(23)
    f = aesara.function([], draws, updates=updates, mode=mode)
    (rv,) = [n.op for n in inner_nodes(f) if isinstance(n.op, RandomVariable)]
    assert rv.inplace
    first, second = f(), f()
    assert np.unique(np.concatenate([first, second])).size == 20


def test_without_updates_the_draws_repeat_and_the_generator_stays(mode, inner_nodes):
    draws, _, shared = normals(23)
    before = state_of(shared)
    f = aesara.function([], draws, mode=mode, no_default_updates=True)
    (rv,) = [n.op for n in inner_nodes(f) if isinstance(n.op, RandomVariable)]
    assert rv.inplace
    first, second = f(), f()
    np.testing.assert_array_equal(first, second)
    assert np.unique(first).size == 10
    assert state_of(shared) == before


def test_numba_draws_are_those_of_fast_run():
    expected = []
    for mode in ("FAST_RUN", "NUMBA_FIXED"):
        draws, updates, shared = normals(23)
        f = aesara.function([], draws, updates=updates, mode=mode)
        expected.append([f(), f(), np.array(state_of(shared)["state"]["state"] % 2**63)])
    for ours, theirs in zip(*expected):
        np.testing.assert_array_equal(ours, theirs)


def test_generator_used_twice_gives_each_draw_the_same_start():
    rng = aesara.shared(np.random.default_rng(7))
    stream_a = at.random.normal(0, 1, size=(3,), rng=rng)
    stream_b = at.random.normal(0, 1, size=(4,), rng=rng)
    f = aesara.function([], [stream_a, stream_b], mode="NUMBA_FIXED")
    a, b = f()
    expected = np.random.default_rng(7).normal(size=4)
    np.testing.assert_array_equal(a, expected[:3])
    np.testing.assert_array_equal(b, expected)


@pytest.mark.parametrize(
    "made_again",
    [
        lambda f: f.copy(),
        lambda f: f.copy(share_memory=True),
        copy.copy,
        copy.deepcopy,
        lambda f: pickle.loads(pickle.dumps(f)),
    ],
    ids=["method", "sharing", "copy", "deepcopy", "pickle"],
)
def test_copies_of_a_function_without_updates_repeat_its_draws(mode, made_again):
    draws, _, _ = normals(23)
    f = aesara.function([], draws, mode=mode, no_default_updates=True)
    first = f()
    g = made_again(f)
    for again in (g(), g(), f()):
        np.testing.assert_array_equal(again, first)


def test_a_copy_that_drops_the_updates_leaves_the_generator_alone(mode):
    draws, updates, _ = normals(23)
    f = aesara.function([], draws, updates=updates, mode=mode)
    g = f.copy(delete_updates=True)
    first = g()
    np.testing.assert_array_equal(g(), first)
    np.testing.assert_array_equal(f(), first)


def test_default_rewrites_serve_a_linker_without_a_mode():
    linker = fixed_modes.NUMBA_FIXED.linker.clone()
    linker.rewrites = type(linker).rewrites
    x, out = mapped_log(inline=True)
    f = aesara.function([x], out, mode=Mode(linker, "fast_run"))
    np.testing.assert_allclose(f(VALUES), np.log(VALUES))
