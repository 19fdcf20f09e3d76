from __future__ import annotations

import json
import warnings

import aesara
import aesara.tensor as at
import numpy as np
import pytest
from aesara.compile.ops import as_op
from click.testing import CliRunner

from fixed_modes.cli.app import cli
from fixed_modes.cli.ops import HOW, list_ops
from fixed_modes.errors import FixedModesWarning


@pytest.fixture(scope="module")
def rows():
    return {(row.module, row.name): row for row in list_ops(["NUMBA_FIXED", "JAX_FIXED"])}


def test_every_op_is_listed_once_with_what_each_mode_does(rows):
    assert len(rows) > 300
    for row in rows.values():
        assert set(row.how) == {"NUMBA_FIXED", "JAX_FIXED"}
        assert set(row.how.values()) <= set(HOW)


@pytest.mark.parametrize(
    "op",
    [
        ("aesara.scan.op", "Scan"),
        ("aesara.ifelse", "IfElse"),
        ("aesara.compile.builders", "OpFromGraph"),
        ("aesara.scalar.basic", "Add"),
        ("aesara.scalar.math", "Psi"),
        ("aesara.tensor.random.basic", "NormalRV"),
        ("aesara.tensor.elemwise", "CAReduce"),
        ("aesara.tensor.subtensor", "AdvancedIncSubtensor1"),
    ],
    ids=lambda op: op[1],
)
def test_what_loops_need_most_is_native(rows, op):
    assert set(rows[op].how.values()) == {"native"}


def test_python_functions_as_ops_run_in_python(rows):
    row = rows["aesara.compile.ops", "FromFunctionOp"]
    assert set(row.how.values()) == {"Python"}


def test_bases_of_ops_are_not_listed(rows):
    names = {name for _, name in rows}
    assert not names & {"Op", "COp", "ScalarOp", "UnaryScalarOp", "BinaryScalarOp"}


def test_the_list_on_the_command_line():
    done = CliRunner().invoke(cli, ["ops", "--mode", "NUMBA_FIXED", "scan.op"])
    assert done.exit_code == 0
    assert "Scan" in done.output
    assert "NUMBA_FIXED: 1 native" in done.output
    assert "JAX_FIXED" not in done.output


def test_the_list_as_json():
    done = CliRunner().invoke(cli, ["ops", "--json", "--how", "Python", "FromFunctionOp"])
    (row,) = json.loads(done.output)
    assert row["how"] == {"NUMBA_FIXED": "Python", "JAX_FIXED": "Python"}


@as_op([at.dvector], [at.dvector])
def running_sum(x):
    return np.cumsum(x)


@pytest.fixture
def python_warning():
    """Collect what the modes warn of, and say what the warnings were about."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", FixedModesWarning)
        yield lambda: [w for w in caught if "FromFunctionOp" in str(w.message)]


def test_an_op_that_runs_in_python_alone_and_in_a_loop(mode, python_warning):
    x = at.dmatrix("x")
    out, _ = aesara.scan(lambda row, s: running_sum(s + row), [x], [at.zeros(3)])
    f = aesara.function([x], [running_sum(x[0]), out], mode=mode)
    values = np.array([[1.0, -2.0, 0.5], [3.0, 0.0, 1.0], [0.25, 1.0, 2.0]])
    state, trace = np.zeros(3), []
    for row in values:
        state = np.cumsum(state + row)
        trace.append(state)
    alone, looped = f(values)
    np.testing.assert_array_equal(alone, np.cumsum(values[0]))
    np.testing.assert_array_equal(looped, trace)
    assert python_warning()
