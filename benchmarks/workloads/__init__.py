"""The workloads, by name; a module is imported when one of its workloads is asked for."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from benchmarks.workload import Workload

# The names are written down here, and not collected, so that the process that starts
# the others does without Numba: Linux counts the memory of a parent into the peak of
# its child.
MODULES: dict[str, tuple[str, ...]] = {
    "recurrence": ("recurrence-full", "recurrence-last", "recurrence-grad"),
    "ar2": ("ar2",),
    "rnn": ("rnn16", "rnn64", "rnn16-grad", "rnn64-grad"),
    "while_scan": ("while-last", "while-full"),
    "hmm": ("hmm", "hmm-grad"),
    "kalman": ("kalman",),
    "kalman_grad": ("kalman-grad",),
    "rk4": ("rk4", "rk4-grad"),
    "nested": ("nested",),
    "garch": ("garch", "garch-grad"),
    "softmax": ("softmax-map",),
    "ar1_normal": ("ar1-normal",),
    "gibbs": ("gibbs",),
    "lotka": ("lotka-grad",),
    "diffusion": ("diffusion",),
    "particle_filter": ("particle-filter",),
    "metropolis": ("metropolis",),
    "rnn_train": ("rnn-train",),
    "newton": ("newton-map",),
    "matrix_power": ("matrix-power",),
    "lstm": ("lstm-grad",),
    "large_map": ("large-map",),
    "density": ("density",),
    "growing_window": ("growing-window",),
}

# One of each kind: what ``--quick`` measures.
QUICK = (
    "recurrence-grad",
    "rnn16",
    "while-last",
    "rk4",
    "ar1-normal",
    "diffusion",
    "newton-map",
    "matrix-power",
)

NAMES: tuple[str, ...] = tuple(name for names in MODULES.values() for name in names)


def load(name: str) -> Workload:
    """Import a workload.

    Raises
    ------
    KeyError
        If there is none of that name.
    """
    for module, names in MODULES.items():
        if name in names:
            found = importlib.import_module(f"benchmarks.workloads.{module}").WORKLOADS
            return next(workload for workload in found if workload.name == name)
    raise KeyError(name)
