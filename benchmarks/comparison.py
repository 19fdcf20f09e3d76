"""Whether one run is worse than another."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.contenders import yardstick_of
from benchmarks.results import Run


@dataclass(frozen=True)
class Change:
    """The ratio to code written by hand of one contender on one workload, before and after.

    A ratio is None where the contender failed, or gave wrong numbers.
    """

    workload: str
    contender: str
    before: float | None
    after: float | None

    def is_worse(self, factor: float) -> bool:
        """Tell whether the ratio grew by more than a factor, or was lost."""
        if self.before is None:
            return False
        return self.after is None or self.after > factor * self.before


def changes(before: Run, after: Run) -> list[Change]:
    """Compare what both runs measured, but for the code written by hand itself."""
    old, new = before.by_workload(), after.by_workload()
    return [
        Change(workload, name, _ratio(before, workload, name), _ratio(after, workload, name))
        for workload, row in old.items()
        for name in row
        if workload in new and name in new[workload] and not name.startswith("hand-")
    ]


def _ratio(run: Run, workload: str, contender: str) -> float | None:
    row = run.by_workload()[workload]
    result, hand = row[contender], row.get(yardstick_of(contender))
    if hand is None or not (result.ok and hand.ok):
        return None
    return result.steady / hand.steady
