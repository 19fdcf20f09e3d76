"""Why a ratio to code written by hand is above its target."""

from __future__ import annotations

# By contender and workload; a ratio that is not above its target shows no reason.
_SAVED = (
    "The kernel keeps each step's exponentials for the way back.  Aesara's gradient of "
    "logsumexp has them once more, and with six states there is nothing to compute a "
    "vector at a time."
)
_REASONS: dict[tuple[str, str], str] = {
    ("NUMBA_FIXED", "hmm-grad"): _SAVED,
    ("JAX_FIXED", "hmm-grad"): _SAVED,
    ("NUMBA_FIXED", "lotka-grad"): (
        "What each step sends back is written down before the loop that goes back: two "
        "arrays of 800 kB more than the kernel's two, whose pages the system has to provide "
        "at each call.  See the times by numbers of steps."
    ),
    ("JAX_FIXED", "newton-map"): (
        "The function by hand is batched by `vmap`: all entries take steps until the last "
        "one has converged.  The graph says that each entry ends by itself, and so does the "
        "mode."
    ),
    ("JAX_FIXED", "rnn-train"): (
        "A step of training takes 0.07 ms more than the 0.13 ms of the one by hand.  How "
        "much of that is the conversion of the five shared variables, and how much the "
        "gradient that Aesara writes, has not been taken apart."
    ),
}


def reason_for(contender: str, workload: str) -> str:
    """Give the reason; empty where none is known."""
    return _REASONS.get((contender, workload), "")
