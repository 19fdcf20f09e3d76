from __future__ import annotations

import numpy as np
import pytest
from click.testing import CliRunner

from fixed_modes.cli import demo as demo_module
from fixed_modes.cli.app import cli
from fixed_modes.cli.children import Job, Outcome, run_jobs
from fixed_modes.cli.claims import ModeResults
from fixed_modes.cli.demo import duration, measure, ratio
from fixed_modes.cli.reports import inner_graph, shortened

FIXED = ("NUMBA_FIXED", "JAX_FIXED")
COUNT = 40


@pytest.fixture(scope="module")
def measured():
    """Measure with few draws; shared, since every mode starts a process."""
    return measure(COUNT)


def test_report_a_gives_the_logarithm_and_shows_the_fault_of_the_stock_mode(measured) -> None:
    _, results = measured
    for mode in ("FAST_RUN", "NUMBA", *FIXED):
        outcome = results[mode].report_a
        assert outcome.ok, (mode, outcome.details)
        np.testing.assert_allclose(outcome.value["values"], np.log([1, 2, 3, 4]), rtol=1e-12)
        graph = "\n".join(outcome.value["graph"])
        assert ("OpFromGraph" in graph) == (mode == "NUMBA")
        assert "log" in graph


def test_report_b_draws_what_numpy_draws_and_shows_the_fault_of_the_stock_modes(measured) -> None:
    _, results = measured
    generator = np.random.default_rng(np.random.SeedSequence(23).spawn(1)[0])
    expected = generator.normal(size=20).tolist()
    for mode, in_place in (("FAST_RUN", "False"), ("NUMBA", "False"), ("NUMBA_FIXED", "True")):
        outcome = results[mode].report_b
        assert outcome.ok, (mode, outcome.details)
        assert outcome.value["values"] + outcome.value["next_values"] == expected
        assert f"floatX, {in_place}}}" in "\n".join(outcome.value["graph"])


def test_report_b_under_jax_fixed_draws_distinct_numbers_in_place(measured) -> None:
    outcome = measured[1]["JAX_FIXED"].report_b
    assert outcome.ok, outcome.details
    assert len({*outcome.value["values"], *outcome.value["next_values"]}) == 20
    assert "floatX, True}" in "\n".join(outcome.value["graph"])


def test_stock_jax_refuses_both_reports(measured) -> None:
    results = measured[1]["JAX"]
    assert results.report_a.error
    assert results.report_b.error


def test_draws_are_counted_timed_and_summarised(measured) -> None:
    generator = np.random.default_rng(np.random.SeedSequence(23).spawn(1)[0])
    expected = generator.normal(size=COUNT)
    results = measured[1]
    for mode in ("FAST_RUN", "NUMBA", "NUMBA_FIXED"):
        outcome = results[mode].draws
        assert outcome.ok, (mode, outcome.details)
        assert outcome.value["count"] == COUNT
        assert outcome.value["seconds"] > 0
        assert outcome.value["mean"] == pytest.approx(expected.mean(), rel=1e-12)
        assert outcome.value["deviation"] == pytest.approx(expected.std(), rel=1e-12)
    assert (
        results["FAST_RUN"].draws.value["digests"] == results["NUMBA_FIXED"].draws.value["digests"]
    )


def test_the_demo_shows_every_mode_and_all_claims_hold(measured, monkeypatch) -> None:
    monkeypatch.setattr(demo_module, "measure", lambda count: measured)
    result = CliRunner().invoke(cli, ["demo", "--draws", str(COUNT)])
    assert result.exit_code == 0, result.output
    assert "All 16 claims hold." in result.stdout
    assert "FAILS" not in result.stdout
    assert "stock NUMBA: the OpFromGraph is still there" in result.stdout
    assert result.stdout.count("inlined, a plain log") == 3
    assert result.stdout.count("inplace is False") == 2
    assert result.stdout.count("inplace is True") == 2
    assert result.stdout.count("stock JAX: does not compile") == 2
    assert f"stock JAX gives no time: {measured[1]['JAX'].draws.error}" in " ".join(
        result.stdout.split()
    )
    assert "\x1b" not in result.stdout


def test_fewer_draws_are_made_where_they_would_take_too_long() -> None:
    arguments = {"mode": "FAST_RUN", "count": 1_000_000, "limit": 0.01}
    (outcome,) = run_jobs([Job("fixed_modes.cli.reports:time_stock_draws", arguments)], 300.0)
    assert outcome.ok, outcome.details
    assert 1 <= outcome.value["count"] < 1_000_000


@pytest.fixture
def refused() -> dict[str, ModeResults]:
    failed = ModeResults(*[Outcome(error="TypeError: no such thing", warnings=["slow"])] * 3)
    return dict.fromkeys(("FAST_RUN", "NUMBA", "JAX", *FIXED), failed)


def test_a_demo_in_which_everything_fails_says_so_and_is_status_1(refused, monkeypatch) -> None:
    stock_import = Outcome(error="TypeError: impl_kind")
    monkeypatch.setattr(demo_module, "measure", lambda count: (stock_import, refused))
    result = CliRunner().invoke(cli, ["demo"])
    assert result.exit_code == 1
    assert result.stdout.count("FAILS") == 18
    assert "18 of 18 claims do not hold." in result.stdout
    assert result.stdout.count("JAX_FIXED warns: slow") == 1
    assert "Stock NUMBA can't be imported" in result.stdout
    assert "(TypeError: impl_kind)" in " ".join(result.stdout.split())


def test_shortened_runs_and_a_missing_compiler_are_told(refused, monkeypatch) -> None:
    timed = {"seconds": 2.0, "first": 0.5, "mean": 0.0, "deviation": 1.0, "digests": {"10": ""}}
    for mode, count in (("FAST_RUN", 100_000), ("NUMBA", 10_000)):
        draws = Outcome(value={**timed, "count": count, "has_compiler": False})
        refused[mode] = ModeResults(Outcome(error="-"), Outcome(error="-"), draws)
    monkeypatch.setattr(demo_module, "measure", lambda count: (Outcome(), refused))
    result = CliRunner().invoke(cli, ["demo"])
    shown = " ".join(result.stdout.split())
    assert "stock NUMBA made 10,000 draws only: 100,000 would have taken more than 15 s." in shown
    assert "stock FAST_RUN ran without C code" in shown
    assert "stock FAST_RUN made" not in shown
    assert "Stock NUMBA can't be imported" not in shown
    # Ten times the time for a draw, so a tenth of the speed.
    assert "NUMBA 10,000 2 s 200 us 0.1 1 500 ms" in shown


@pytest.mark.parametrize("count", ["1", "0", "many"])
def test_a_useless_number_of_draws_is_refused(count) -> None:
    result = CliRunner().invoke(cli, ["demo", "--draws", count])
    assert result.exit_code == 2
    assert "--draws" in result.output


@pytest.mark.parametrize(
    ("count", "per_draw", "limit", "expected"),
    [
        (100_000, 1e-4, 15.0, 100_000),
        (100_000, 1.6e-4, 15.0, 10_000),
        (100_000, 4.9e-4, 15.0, 10_000),
        (100_000, 5.1e-4, 15.0, 1000),
        (7, 1e-9, 15.0, 7),
        (7, 100.0, 15.0, 1),
    ],
)
def test_the_number_of_draws_is_cut_to_a_round_one(count, per_draw, limit, expected) -> None:
    assert shortened(count, per_draw, limit) == expected


def test_inner_graphs_are_taken_out_once_each() -> None:
    printed = (
        "for{cpu,scan_fn}.0 [id A]\n |x [id B]\n\nInner graphs:\n\n"
        "for{cpu,scan_fn}.0 [id A]\n >log [id C]\n\n"
        "for{cpu,scan_fn}.1 [id A]\n >log [id C]\n\n"
        "OpFromGraph [id D]\n >exp [id E]\n"
    )
    assert inner_graph(printed) == [
        "for{cpu,scan_fn}.0 [id A]",
        " >log [id C]",
        "OpFromGraph [id D]",
        " >exp [id E]",
    ]


def test_a_graph_without_inner_graphs_has_none() -> None:
    assert inner_graph("Elemwise{log} [id A]\n |x [id B]\n") == []


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(12.345, "12.3 s"), (0.00371, "3.71 ms"), (4.2e-5, "42 us"), (3.7e-8, "37 ns"), (1.0, "1 s")],
)
def test_durations_have_a_fitting_unit(seconds, text) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("value", "text"), [(0.32456, "0.325"), (1.0, "1"), (99.94, "99.9"), (2817.3, "2,817")]
)
def test_ratios_have_three_digits_or_all(value, text) -> None:
    assert ratio(value) == text
