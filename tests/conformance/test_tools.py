"""What the two commands of this folder do with what they see."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tests.conformance import not_applicable, upstream
from tests.conformance.check import (
    Mismatch,
    Outcome,
    _is_about_rows_of_no_step,
    _nearer_results,
    check,
)
from tests.conformance.fuzz import SCRIPTS, Campaign
from tests.conformance.program import Program
from tests.conformance.upstream_source import Runner


def program(result: str, value: str = "np.array([1.0, 2.0])") -> Program:
    return Program(
        f"""\
def build(scan_mode):
    x = at.TensorType("float64", (None,))("x")
    return [x], [{result}], {{}}, []


def arguments():
    return [{value}]
"""
    )


class Wrong(Program):
    """A program that any mode but the reference gets wrong."""

    def functions(self):
        build, makers = super().functions()

        def build_wrongly(scan_mode):
            inputs, outputs, updates, shared = build(scan_mode)
            if scan_mode is None:
                outputs = [out * 1.5 for out in outputs]
            return inputs, outputs, updates, shared

        return build_wrongly, makers


def test_a_right_program_is_told_from_a_wrong_one():
    right = program("x * 2.0")
    assert check(right, "JAX_FIXED") == "values"
    with pytest.raises(Mismatch, match="values differ"):
        check(Wrong(right.body), "JAX_FIXED")


def test_errors_of_both_are_agreement():
    assert check(program("x[5]"), "JAX_FIXED") == "IndexError"


def test_a_result_that_only_rewrites_account_for_is_told():
    # Aesara's rewrites make 0 of it; the graph as it stands has a NaN.
    assert check(program("x - x", "np.array([np.nan, 1.0])"), "JAX_FIXED") == "rewritten"


def test_each_result_may_be_the_rewritten_one_or_not():
    nan, one, two = np.array([np.nan, 1.0]), np.array([0.0, 1.0]), np.array([2.0, 2.0])
    expected, rewritten = Outcome([nan, two]), Outcome([one, np.array([2.0])])
    chosen = _nearer_results(expected, rewritten, Outcome([one, two])).results
    np.testing.assert_array_equal(chosen[0], one)
    np.testing.assert_array_equal(chosen[1], two)
    wrong = Outcome([one, np.array([2.0, 3.0])])
    chosen = _nearer_results(expected, rewritten, wrong).results
    np.testing.assert_array_equal(chosen[1], rewritten.results[1])


@pytest.mark.parametrize(
    ("message", "is_about"),
    [
        (
            "non-broadcastable output operand with shape (0,1) "
            "doesn't match the broadcast shape (0,0)",
            True,
        ),
        ("operands could not be broadcast together with shapes (0,3) (0,0) (0,3) ", True),
        ("operands could not be broadcast together with shapes (0,0,0) (0,2,3) ", True),
        ("operands could not be broadcast together with shapes (2,3) (3,3) ", False),
        ("operands could not be broadcast together with shapes (0,) (3,) ", False),
        ("operands could not be broadcast together with shapes (0,3) (0,4) ", False),
        ("(0,0) is no shape", False),
    ],
)
def test_errors_for_rows_that_no_step_has_made_are_told_from_others(message, is_about):
    assert _is_about_rows_of_no_step(ValueError(message + "\nApply node: (0,0)")) == is_about
    assert not _is_about_rows_of_no_step(TypeError(message))


def test_a_loop_without_a_step_leaves_a_shared_variable_as_it_was():
    body = """\
def build(scan_mode):
    x = at.TensorType("float64", (None,))("x")
    kept = aesara.shared(np.array([3.0, 4.0]), name="kept")
    trace, updates = aesara.scan(lambda x: (x, {kept: kept * x}), [x], mode=scan_mode)
    return [x], [trace], updates, [kept]


def arguments():
    return [np.zeros(0)]
"""
    assert check(Program(body), "JAX_FIXED") == "a shared variable after no step"
    assert check(Program(body.replace("zeros(0)", "full(2, 0.5)")), "JAX_FIXED") == "values"


def test_failures_that_look_alike_are_written_a_few_times_only(tmp_path):
    campaign = Campaign("JAX_FIXED", tmp_path, patience=1.0)
    for n in range(SCRIPTS + 2):
        campaign.take({"failure": "values differ: it's all wrong", "script": f"print({n})"})
    campaign.take({"failure": "shape differs", "script": "print()"})
    assert len(list(tmp_path.glob("*values-differ*.py"))) == SCRIPTS
    assert len(list(tmp_path.glob("*shape-differs*.py"))) == 1
    assert campaign.known.read_text().splitlines() == ["values differ: it's all wrong"]


@pytest.mark.parametrize(
    ("reference", "here", "expected"),
    [
        ("passed", "passed", "passed in both"),
        ("passed", "failed", "failed only here"),
        ("passed", "timeout", "failed only here"),
        ("passed", "crashed", "failed only here"),
        ("failed", "failed", "failed in both"),
        ("timeout", "passed", "passed only here"),
        ("skipped", "skipped", "skipped"),
        ("xfailed", "failed", "skipped"),
        ("xfailed", "passed", "passed only here"),
    ],
)
def test_verdicts(reference, here, expected):
    assert upstream.verdict("tests/none.py::test", "JAX_FIXED", reference, here) == expected


def test_a_failure_with_a_reason_is_not_applicable(monkeypatch):
    reasons = (("tests/a.py::test_c[*]", ("NUMBA_FIXED",), "it looks at C code"),)
    monkeypatch.setattr(not_applicable, "REASONS", reasons)
    test = "tests/a.py::test_c[x0-1]"
    assert upstream.verdict(test, "NUMBA_FIXED", "passed", "failed") == "not applicable"
    assert upstream.verdict(test, "JAX_FIXED", "passed", "failed") == "failed only here"
    assert upstream.verdict(test, "NUMBA_FIXED", "passed", "passed") == "passed in both"


def test_the_last_result_counts_and_a_test_without_an_end_crashed(tmp_path):
    runner = Runner(tmp_path, tmp_path, "JAX_FIXED", 1.0)
    entries = [
        {"id": "a", "started": 1.0},
        {"id": "a", "outcome": "failed", "seconds": 1.0, "text": "no"},
        {"id": "b", "started": 2.0},
        {"id": "a", "started": 3.0},
        {"id": "a", "outcome": "passed", "seconds": 1.0, "text": ""},
    ]
    runner.path.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    outcomes = {test: result["outcome"] for test, result in runner.results().items()}
    assert outcomes == {"a": "passed", "b": "crashed"}


def test_results_are_kept_apart_by_mode_and_compiler(tmp_path):
    paths = {
        Runner(tmp_path, tmp_path, mode, 1.0, compiler=compiler).path
        for mode in ("FAST_RUN", "JAX_FIXED")
        for compiler in (True, False)
    }
    assert len(paths) == 4


def test_linkers_are_replaced_for_their_own_tests_only(tmp_path):
    numba = Runner(tmp_path, tmp_path, "NUMBA_FIXED", 1.0)
    assert numba.linker("tests/link/numba/test_basic.py") == "NUMBA_FIXED"
    assert numba.linker("tests/link/jax/test_basic.py") == ""
    assert numba.linker("tests/scan/test_basic.py") == ""
