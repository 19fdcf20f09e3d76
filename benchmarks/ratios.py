"""How many times longer one contender takes than another, and how sure that is."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from benchmarks.contenders import yardstick_of
from benchmarks.results import Result

Row = Mapping[str, Result]


@dataclass(frozen=True)
class Ratio:
    """A ratio of medians, with its 95 % interval."""

    value: float
    low: float
    high: float


def ratio(row: Row, name: str, other: str) -> Ratio | None:
    """Divide the time of a call of one contender by that of another.

    Returns
    -------
    Ratio or None
        None where one of them failed, gave wrong numbers, or was not measured.
    """
    one, two = row.get(name), row.get(other)
    if one is None or two is None or not (one.ok and two.ok):
        return None
    value = one.steady / two.steady
    low, high = _interval(one.samples, two.samples)
    return Ratio(value, min(low, value), max(high, value))


def to_hand_written(row: Row, name: str) -> Ratio | None:
    """Divide the time of a call by that of the code written by hand."""
    return ratio(row, name, yardstick_of(name))


def geometric_mean(values: Iterable[float | None]) -> float | None:
    """Give the geometric mean of the values that are known; None if none is."""
    known = [value for value in values if value is not None]
    return statistics.geometric_mean(known) if known else None


def _interval(samples: list[float], others: list[float]) -> tuple[float, float]:
    # Imported here: the process that measures does without SciPy (see `Plan`).
    import numpy as np
    from scipy.stats import bootstrap

    if min(len(samples), len(others)) < 2:
        return float("inf"), 0.0
    found = bootstrap(
        (samples, others),
        lambda one, two, axis: np.median(one, axis=axis) / np.median(two, axis=axis),
        method="percentile",
        n_resamples=2000,
        random_state=np.random.default_rng(0),
    ).confidence_interval
    return float(found.low), float(found.high)
