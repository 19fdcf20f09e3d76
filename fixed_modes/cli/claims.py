"""What ``demo`` claims, checked against what it measured."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from fixed_modes.cli.children import Outcome
from fixed_modes.cli.flags import MODES

#: The draws from which on the claims about speed are made.
FULL_COUNT = 100_000


@dataclass(frozen=True)
class ModeResults:
    """What one mode made of report A, of report B, and of many draws."""

    report_a: Outcome
    report_b: Outcome
    draws: Outcome


@dataclass(frozen=True)
class Claim:
    """A sentence, and why it is not true; `reason` is empty where it is."""

    text: str
    reason: str = ""

    @property
    def holds(self) -> bool:
        return not self.reason


def shows_log(graph: list[str]) -> bool:
    return any(re.search(r"\blog\b", line) for line in graph)


def holds_op_from_graph(graph: list[str]) -> bool:
    return any("OpFromGraph" in line for line in graph)


def is_in_place(graph: list[str]) -> bool:
    """Say whether every `normal_rv` there has ``inplace`` set, the last of its properties."""
    properties = re.findall(r"normal_rv\{([^}]*)\}", "\n".join(graph))
    return bool(properties) and all(each.endswith(", True") for each in properties)


def check_claims(results: Mapping[str, ModeResults], count: int) -> list[Claim]:
    """Check every claim.

    Parameters
    ----------
    results
        By the name of the mode; ``FAST_RUN``, ``NUMBA`` and the fixed modes.
    count
        The number of draws that was asked for.
    """
    fast_run, numba, numba_fixed = (results[m] for m in ("FAST_RUN", "NUMBA", "NUMBA_FIXED"))
    claims = []
    for mode in MODES:
        claims += _claims_about(mode, results[mode])
    claims.append(
        _claim(
            "NUMBA_FIXED draws what FAST_RUN draws from the same seed (report B).",
            _values_equal,
            numba_fixed.report_b,
            fast_run.report_b,
        )
    )
    # FAST_RUN is slow, and may have made fewer than was asked for.
    compared = count
    if numba_fixed.draws.ok and fast_run.draws.ok:
        compared = _drawn_by_both(numba_fixed.draws.value, fast_run.draws.value)
    claims.append(
        _claim(
            f"NUMBA_FIXED draws what FAST_RUN draws from the same seed ({compared:,} draws).",
            _digests_equal,
            numba_fixed.draws,
            fast_run.draws,
        )
    )
    if count >= FULL_COUNT:
        for factor, name, stock in ((100, "FAST_RUN", fast_run), (1000, "stock NUMBA", numba)):
            claims.append(
                _claim(
                    f"NUMBA_FIXED draws at least {factor:,} times as fast as {name}.",
                    lambda fixed, other, factor=factor: _is_faster(fixed, other, factor),
                    numba_fixed.draws,
                    stock.draws,
                )
            )
    return claims


def _claims_about(mode: str, results: ModeResults) -> list[Claim]:
    a, b, draws = results.report_a, results.report_b, results.draws
    return [
        _claim(f"{mode}: the inner graph of A shows log.", _shows_log, a),
        _claim(f"{mode}: the inner graph of A holds no OpFromGraph.", _no_op_from_graph, a),
        _claim(f"{mode}: the values of A equal np.log.", _equals_log, a),
        _claim(f"{mode}: the inner normal_rv of B works in place.", _in_place, b),
        _claim(f"{mode}: the draws of B are distinct.", _distinct, b),
        _claim(f"{mode}: a second call of B draws other numbers.", _differ, b),
        _claim(f"{mode}: the draws have mean 0 and deviation 1.", _standard_normal, draws),
    ]


def _claim(text: str, check: Callable[..., str], *needed: Outcome) -> Claim:
    for outcome in needed:
        if not outcome.ok:
            return Claim(text, outcome.error)
    return Claim(text, check(*(outcome.value for outcome in needed)))


# Each check returns the reason why the claim does not hold, or an empty string.


def _shows_log(a: dict[str, Any]) -> str:
    return "" if shows_log(a["graph"]) else "there is no log in the graph"


def _no_op_from_graph(a: dict[str, Any]) -> str:
    return "there is one in the graph" if holds_op_from_graph(a["graph"]) else ""


def _equals_log(a: dict[str, Any]) -> str:
    import numpy as np

    expected = np.log(a["given"])
    equal = expected.shape == np.shape(a["values"]) and np.allclose(
        a["values"], expected, rtol=1e-12, atol=1e-15
    )
    return "" if equal else f"{a['values']} instead of {expected.tolist()}"


def _in_place(b: dict[str, Any]) -> str:
    return "" if is_in_place(b["graph"]) else "the graph says otherwise"


def _distinct(b: dict[str, Any]) -> str:
    distinct = len(set(b["values"]))
    total = len(b["values"])
    return "" if distinct == total else f"only {distinct} of {total} are"


def _differ(b: dict[str, Any]) -> str:
    repeated = set(b["values"]) & set(b["next_values"])
    return f"{len(repeated)} numbers came again" if repeated else ""


def _standard_normal(draws: dict[str, Any]) -> str:
    # Five standard errors: by chance that fails once in a million runs, and the seed is fixed.
    count, mean, deviation = draws["count"], draws["mean"], draws["deviation"]
    good = abs(mean) < 5 / count**0.5 and abs(deviation - 1) < 5 / (2 * count) ** 0.5
    return "" if good else f"mean {mean:.4g}, deviation {deviation:.4g}"


def _values_equal(fixed: dict[str, Any], reference: dict[str, Any]) -> str:
    same = [fixed[key] == reference[key] for key in ("values", "next_values")]
    return "" if all(same) else f"{fixed['values']} instead of {reference['values']}"


def _digests_equal(fixed: dict[str, Any], reference: dict[str, Any]) -> str:
    number = str(_drawn_by_both(fixed, reference))
    return "" if fixed["digests"][number] == reference["digests"][number] else "some draws differ"


def _drawn_by_both(fixed: dict[str, Any], reference: dict[str, Any]) -> int:
    """Return the largest number of draws that both have a digest of."""
    return max(int(n) for n in set(fixed["digests"]) & set(reference["digests"]))


def _is_faster(fixed: dict[str, Any], stock: dict[str, Any], factor: float) -> str:
    ratio = speed_ratio(fixed, stock)
    return "" if ratio >= factor else f"it is {ratio:.0f} times as fast"


def speed_ratio(fast: dict[str, Any], slow: dict[str, Any]) -> float:
    """Return how many times as fast a draw is in `fast` as it is in `slow`."""
    ratio: float = (slow["seconds"] / slow["count"]) / (fast["seconds"] / fast["count"])
    return ratio
