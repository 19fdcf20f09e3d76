from __future__ import annotations

import math
from dataclasses import replace

import pytest

from fixed_modes.cli.children import Outcome
from fixed_modes.cli.claims import (
    ModeResults,
    check_claims,
    holds_op_from_graph,
    is_in_place,
    shows_log,
    speed_ratio,
)

LOG = ["for{cpu,scan_fn} [id A]", " >Elemwise{log,no_inplace} [id K]"]
DRAWS = {
    "count": 100_000,
    "mean": 0.001,
    "deviation": 1.001,
    "digests": {"10000": "abc", "100000": "abc"},
}


def results_of(seconds: float) -> ModeResults:
    """Make what a mode gives for which every claim is true, but for those about speed."""
    values = {"given": [1.0, 2.0], "values": [0.0, math.log(2.0)]}
    return ModeResults(
        report_a=Outcome(value={"graph": LOG, **values}),
        report_b=Outcome(
            value={
                "graph": [" >normal_rv{0, (0, 0), floatX, True}.1 [id D]"],
                "values": [0.25, -1.5],
                "next_values": [0.5, 2.0],
            }
        ),
        draws=Outcome(value={**DRAWS, "seconds": seconds}),
    )


@pytest.fixture
def results() -> dict[str, ModeResults]:
    return {
        "FAST_RUN": results_of(0.5),
        "NUMBA": results_of(5.0),
        "JAX": ModeResults(*[Outcome(error="NotImplementedError")] * 3),
        "NUMBA_FIXED": results_of(0.004),
        "JAX_FIXED": results_of(0.01),
    }


def change(results, mode, part, **changes) -> None:
    outcome = getattr(results[mode], part)
    results[mode] = replace(
        results[mode], **{part: replace(outcome, value={**outcome.value, **changes})}
    )


def broken(results, count: int = 100_000) -> dict[str, str]:
    return {claim.text: claim.reason for claim in check_claims(results, count) if not claim.holds}


def test_all_claims_hold_for_what_makes_them_true(results) -> None:
    claims = check_claims(results, 100_000)
    assert broken(results) == {}
    assert len({claim.text for claim in claims}) == len(claims) == 18


@pytest.mark.parametrize("mode", ["NUMBA_FIXED", "JAX_FIXED"])
@pytest.mark.parametrize(
    ("part", "changes", "text"),
    [
        ("report_a", {"graph": ["Elemwise{exp}"]}, "the inner graph of A shows log"),
        ("report_a", {"graph": [*LOG, "OpFromGraph{inline=True}"]}, "holds no OpFromGraph"),
        ("report_a", {"values": [0.0, 0.6931]}, "the values of A equal np.log"),
        ("report_a", {"values": [0.0]}, "the values of A equal np.log"),
        ("report_b", {"graph": ["normal_rv{0, (0, 0), floatX, False}"]}, "works in place"),
        ("report_b", {"graph": []}, "works in place"),
        ("report_b", {"values": [0.25, 0.25]}, "the draws of B are distinct"),
        ("report_b", {"next_values": [0.25, -1.5]}, "a second call of B draws other numbers"),
        ("draws", {"mean": 0.02}, "mean 0 and deviation 1"),
        ("draws", {"deviation": 0.98}, "mean 0 and deviation 1"),
        ("draws", {"mean": math.nan}, "mean 0 and deviation 1"),
    ],
)
def test_a_false_claim_is_found_with_its_reason(results, mode, part, changes, text) -> None:
    change(results, mode, part, **changes)
    found = [(claim, why) for claim, why in broken(results).items() if claim.startswith(mode)]
    about = [(claim, why) for claim, why in found if text in claim]
    assert len(about) == 1
    assert about[0][1]


@pytest.mark.parametrize(
    ("part", "changes", "text"),
    [
        ("report_b", {"values": [0.25, -1.5000001]}, "(report B)"),
        ("report_b", {"next_values": [0.5, 2.5]}, "(report B)"),
        ("draws", {"digests": {"100000": "abd"}}, "(100,000 draws)"),
        ("draws", {"seconds": 0.0051}, "100 times as fast as FAST_RUN"),
        ("draws", {"seconds": 0.0051}, "1,000 times as fast as stock NUMBA"),
    ],
)
def test_numba_fixed_is_compared_with_the_stock_modes(results, part, changes, text) -> None:
    change(results, "NUMBA_FIXED", part, **changes)
    assert any(text in claim for claim in broken(results))


@pytest.mark.parametrize(("digest", "is_broken"), [("abc", False), ("abd", True)])
def test_fewer_draws_of_fast_run_are_compared_with_as_many(results, digest, is_broken) -> None:
    change(results, "FAST_RUN", "draws", count=10_000, digests={"10000": digest})
    claims = [text for text in broken(results) if "from the same seed" in text]
    assert any("(10,000 draws)" in text for text in claims) == is_broken
    assert len(claims) == is_broken


def test_nothing_is_claimed_about_the_speed_of_few_draws(results) -> None:
    texts = [claim.text for claim in check_claims(results, 99_999)]
    assert len(texts) == 16
    assert not any("times as fast" in text for text in texts)


def test_no_claim_about_a_mode_that_failed_holds(results) -> None:
    results["JAX_FIXED"] = ModeResults(*[Outcome(error="stopped after 1 s")] * 3)
    assert set(broken(results).values()) == {"stopped after 1 s"}
    assert len(broken(results)) == 7


def test_speed_is_compared_per_draw() -> None:
    fast = {"seconds": 0.5, "count": 1000}
    slow = {"seconds": 2.0, "count": 100}
    assert speed_ratio(fast, slow) == pytest.approx(40.0)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("Elemwise{log,no_inplace}", True),
        ("Elemwise{Composite{(log(i0) + i1)}}", True),
        ("Elemwise{log1p,no_inplace}", False),
        ("Elemwise{Composite{catalog(i0)}}", False),
    ],
)
def test_log_is_found_as_a_word(line, expected) -> None:
    assert shows_log([line]) is expected


def test_op_from_graph_is_found() -> None:
    assert holds_op_from_graph([" >OpFromGraph{inline=True} [id K]"])
    assert not holds_op_from_graph(LOG)


def test_in_place_means_every_random_variable_there() -> None:
    inside = " >normal_rv{0, (0, 0), floatX, True}.1 [id D]"
    outside = " >normal_rv{0, (0, 0), floatX, False}.0 [id E]"
    assert is_in_place([inside, inside])
    assert not is_in_place([inside, outside])
    assert not is_in_place(LOG)
