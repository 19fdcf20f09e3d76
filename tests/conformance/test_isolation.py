"""Compiled functions don't get in one another's way: threads, copies, pickles, processes."""

from __future__ import annotations

import copy
import multiprocessing
import os
import pickle
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import aesara
import aesara.tensor as at
import numpy as np
import pytest
from aesara.tensor.random.utils import RandomStream

import fixed_modes


def powers(number: float):
    """Make a graph of its own for each number, and the function that it is in NumPy."""
    x = at.dvector("x")
    out, _ = aesara.scan(
        lambda v, s: s * number + v, sequences=[x], outputs_info=[at.constant(np.float64(number))]
    )

    def expected(values):
        state, trace = number, []
        for v in values:
            state = state * number + v
            trace.append(state)
        return np.array(trace)

    return [x], out, expected


def test_threads_compile_and_run_at_once(mode):
    start = threading.Barrier(2)
    flags = ("traceback__limit", "cxx", "compute_test_value", "mode")
    before = [getattr(aesara.config, flag) for flag in flags]

    def work(graphs: list) -> list[bool]:
        start.wait()
        right = []
        for k, (inputs, out, expected) in enumerate(graphs):
            f = aesara.function(inputs, out, mode=mode)
            values = np.arange(4.0) + k
            right.append(np.allclose(f(values), expected(values)))
        return right

    # Aesara can't put graphs together in two threads: it changes flags as it does so.
    graphs = [[powers(first + k) for k in range(20)] for first in (0.25, -30.5)]
    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(work, graphs))
    assert results == [[True] * 20] * 2
    assert [getattr(aesara.config, flag) for flag in flags] == before


def counting_function(mode):
    total = aesara.shared(np.zeros(2), name="total")
    x = at.dmatrix("x")
    out, _ = aesara.scan(lambda row, s: s + row, sequences=[x], outputs_info=[total])
    return aesara.function([x], out, updates={total: out[-1]}, mode=mode), total


def test_a_copy_of_a_function_has_the_same_shared_variables(mode):
    f, total = counting_function(mode)
    for again in (copy.copy(f), f.copy(share_memory=True), f.copy(share_memory=False)):
        total.set_value(np.zeros(2))
        rows = np.ones((3, 2))
        np.testing.assert_array_equal(again(rows)[-1], [3.0, 3.0])
        np.testing.assert_array_equal(f(rows)[-1], [6.0, 6.0])
        np.testing.assert_array_equal(total.get_value(), [6.0, 6.0])


def test_a_copy_may_have_other_shared_variables(mode):
    f, total = counting_function(mode)
    other = aesara.shared(np.array([10.0, 20.0]), name="other")
    g = f.copy(swap={total: other})
    np.testing.assert_array_equal(g(np.ones((1, 2))), [[11.0, 21.0]])
    np.testing.assert_array_equal(total.get_value(), [0.0, 0.0])
    np.testing.assert_array_equal(other.get_value(), [11.0, 21.0])


def test_a_deep_copy_has_its_own_shared_variables(mode):
    f, total = counting_function(mode)
    g = copy.deepcopy(f)
    np.testing.assert_array_equal(g(np.ones((1, 2))), [[1.0, 1.0]])
    np.testing.assert_array_equal(g(np.ones((1, 2))), [[2.0, 2.0]])
    np.testing.assert_array_equal(total.get_value(), [0.0, 0.0])
    np.testing.assert_array_equal(f(np.ones((1, 2))), [[1.0, 1.0]])


def test_a_pickled_function_goes_on_where_it_was(mode):
    f, _ = counting_function(mode)
    f(np.ones((1, 2)))
    g = pickle.loads(pickle.dumps(f))
    np.testing.assert_array_equal(g(np.ones((1, 2))), [[2.0, 2.0]])
    np.testing.assert_array_equal(f(np.ones((1, 2))), [[2.0, 2.0]])


def test_a_pickled_stream_goes_on_where_it_was(mode):
    stream = RandomStream(5)
    f = aesara.function([], stream.uniform(size=(2,)), mode=mode)
    f()
    (generator,) = stream.state_updates[0][:1]
    twin = pickle.loads(pickle.dumps(generator))
    following = f()
    generator.set_value(twin.get_value())
    np.testing.assert_array_equal(f(), following)


# Every mode once before and once after every other one.
@pytest.mark.parametrize("order", [(0, 1, 2, 3, 4), (4, 3, 2, 1, 0)])
def test_modes_compile_one_graph_in_any_order(order):
    m, c = at.dmatrix("m"), at.dscalar("c")
    out, _ = aesara.scan(
        lambda row, s: at.tanh(row * c + s), sequences=[m], outputs_info=[at.zeros(2)]
    )
    stock = [aesara.compile.mode.Mode("vm", name) for name in ("fast_run", "fast_compile", None)]
    modes = ["NUMBA_FIXED", stock[0], "JAX_FIXED", stock[1], stock[2]]
    values = np.array([[0.5, -1.0], [0.25, 2.0]]), 0.5
    state = np.zeros(2)
    for row in values[0]:
        state = np.tanh(row * 0.5 + state)
    for position in order:
        got = aesara.function([m, c], out[-1], mode=modes[position])(*values)
        np.testing.assert_allclose(got, state)


CHILD = """\
import multiprocessing
import sys
import warnings

import numpy as np

warnings.simplefilter("ignore")


def call(f, values, results):
    results.put(f(values))


if __name__ == "__main__":
    import aesara
    import aesara.tensor as at

    import fixed_modes

    x = at.dvector("x")
    out, _ = aesara.scan(lambda v, s: s + v, sequences=[x], outputs_info=[at.zeros(())])
    context = multiprocessing.get_context(sys.argv[1])
    for mode in sys.argv[2:]:
        f = aesara.function([x], out, mode=mode)
        f(np.ones(2))
        results = context.Queue()
        child = context.Process(target=call, args=(f, np.arange(4.0), results))
        child.start()
        print(mode, results.get(timeout=300))
        child.join()
"""


# JAX has threads of its own, which don't survive a fork: it warns of that itself.
@pytest.mark.parametrize(
    ("way", "modes"), [("fork", ["NUMBA_FIXED"]), ("spawn", ["NUMBA_FIXED", "JAX_FIXED"])]
)
def test_another_process_runs_a_compiled_function(way, modes, tmp_path):
    if way not in multiprocessing.get_all_start_methods():
        pytest.skip(f"no {way} on this system")
    script = tmp_path / "parent.py"
    script.write_text(CHILD)
    root = Path(fixed_modes.__file__).parents[1]
    done = subprocess.run(
        [sys.executable, script, way, *modes],
        env={**os.environ, "PYTHONPATH": str(root)},
        capture_output=True,
        encoding="utf-8",
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [f"{mode} [0. 1. 3. 6.]" for mode in modes]
