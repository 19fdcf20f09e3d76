"""What ``doctor`` calls in a child process."""

from __future__ import annotations

import time
from typing import Any


class WrongValueError(Exception):
    """A compiled function ran and gave something else than it should."""


def small_scan(mode: str) -> dict[str, Any]:
    """Compile and run an exponentially weighted sum in `mode`, and check it.

    Returns
    -------
    dict
        ``seconds``: what compilation and the first call took.

    Raises
    ------
    WrongValueError
        If the values are not those of a plain Python loop.
    """
    import aesara
    import aesara.tensor as at
    import numpy as np

    import fixed_modes  # noqa: F401

    start = time.perf_counter()
    x = at.vector("x", dtype="float64")
    trace, _ = aesara.scan(
        lambda entry, total: 0.5 * total + entry,
        sequences=[x],
        outputs_info=[at.constant(0.0, dtype="float64")],
    )
    given = np.array([1.0, -2.0, 4.0, 0.25])
    got = np.asarray(aesara.function([x], trace, mode=mode)(given))
    seconds = time.perf_counter() - start

    expected = []
    total = 0.0
    for entry in given.tolist():
        total = 0.5 * total + entry
        expected.append(total)
    if got.shape != given.shape or not np.allclose(got, expected, rtol=1e-12, atol=0.0):
        raise WrongValueError(f"a small scan gave {got.tolist()} instead of {expected}")
    return {"seconds": seconds}
