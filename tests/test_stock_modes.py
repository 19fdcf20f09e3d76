"""Aesara's own modes are what they were: same graphs, results and errors."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from fixed_modes.cli.flags import without_c_scans

SCRIPT = """
import json, re, sys
when = sys.argv[1]
if when != "without":
    import fixed_modes
import aesara, aesara.tensor as at, numpy as np
from aesara.compile.builders import OpFromGraph
from aesara.tensor.random.utils import RandomStream


def mapped_op():
    v, x = at.dscalar(), at.dvector("x")
    op = OpFromGraph([v], [at.log(v)], inline=True)
    return [x], aesara.scan(lambda v: op(v), sequences=[x])[0], {}


def loop_of_draws():
    stream = RandomStream(23)
    draws, updates = aesara.scan(lambda: stream.normal(), n_steps=4, strict=True)
    return [], draws, updates


def expression():
    x = at.dvector("x")
    return [x], at.exp(x * 2.0) + x.sum(), {}


def gradient():
    x = at.dvector("x")
    step = lambda s, x: at.tanh(s * x)  # noqa: E731
    out, _ = aesara.scan(step, outputs_info=[x], non_sequences=[x], n_steps=3)
    return [x], aesara.grad(out[-1].sum(), x), {}


def describe(build, mode):
    inputs, outputs, updates = build()
    values = [np.array([0.5, 1.5])] * len(inputs)
    try:
        f = aesara.function(inputs, outputs, updates=updates, mode=mode)
        text = aesara.dprint(f, file="str")
        results = [np.asarray(f(*values)).tolist() for _ in range(2)]
    except Exception as exc:
        return [type(exc).__name__, str(exc).splitlines()[:1]]
    return [re.sub("0x[0-9A-Fa-f]+", "0x", text), results]


builders = [mapped_op, loop_of_draws, expression, gradient]
if when == "used":
    for build in builders:
        for mode in ("NUMBA_FIXED", "JAX_FIXED"):
            describe(build, mode)
print(json.dumps({
    mode: [describe(build, mode) for build in builders] for mode in ("FAST_RUN", "JAX", "NUMBA")
}))
"""


def described(when: str) -> dict:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SCRIPT, when],
        env={
            **os.environ,
            "AESARA_FLAGS": without_c_scans("blas__ldflags="),
            "FIXED_MODES_STARTUP": "0",
        },
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def without() -> dict:
    return described("without")


def test_import_changes_nothing(without):
    assert described("imported") == without


def test_use_changes_nothing(without):
    used = described("used")
    assert used["FAST_RUN"] == without["FAST_RUN"]
    assert used["JAX"] == without["JAX"]
    # With a Numba that Aesara does not know, stock NUMBA can't be imported; once
    # our mode has made its dispatch importable, it can.
    first_error = without["NUMBA"][0][1][0]
    if isinstance(first_error, str) and "impl_kind" in first_error:
        assert isinstance(used["NUMBA"][0][1][0], list)
    else:
        assert used["NUMBA"] == without["NUMBA"]


def test_fast_run_ran(without):
    (log_graph, logs), (draw_graph, draws), (_, values), _ = without["FAST_RUN"]
    assert "log" in log_graph
    assert logs[0] == pytest.approx([-0.6931471805599453, 0.4054651081081644])
    assert "normal_rv{0, (0, 0), floatX, False}" in draw_graph
    assert draws[0] != draws[1]
    assert values[0] == pytest.approx([2.718281828459045 + 2.0, 20.085536923187668 + 2.0])
