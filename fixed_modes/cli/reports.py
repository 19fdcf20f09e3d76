"""The graphs of ``demo``; each function runs in a child process and returns JSON.

Report A: a scan whose inner graph holds an `OpFromGraph` that is to be inlined.
Report B: a scan that draws from a normal distribution.
"""

from __future__ import annotations

import hashlib
import statistics
import time
from typing import Any

SEED = 23


def import_stock_numba() -> None:
    """Import what stock ``NUMBA`` needs, as it is installed."""
    import aesara.link.numba.dispatch  # noqa: F401


def report_a(mode: str, size: int = 4) -> dict[str, Any]:
    """Map an inlined ``OpFromGraph`` of ``log`` over a vector.

    Parameters
    ----------
    mode
        The mode to compile in.
    size
        The length of the vector.

    Returns
    -------
    dict
        ``graph``: the inner graph, as lines of text; ``given`` and ``values``:
        the input and the result.
    """
    prepare(mode)
    import aesara
    import aesara.tensor as at
    import numpy as np
    from aesara.compile.builders import OpFromGraph

    x = at.scalar("x", dtype="float64")
    logarithm = OpFromGraph([x], [at.log(x)], inline=True)
    xs = at.vector("xs", dtype="float64")
    mapped, _ = aesara.scan(lambda entry: logarithm(entry), sequences=[xs])
    f = aesara.function([xs], mapped, mode=mode)
    given = np.arange(1.0, size + 1.0)
    values = f(given)
    return {
        "graph": inner_graph(aesara.dprint(f, file="str")),
        "given": given.tolist(),
        "values": np.asarray(values).tolist(),
    }


def report_b(mode: str, steps: int = 10) -> dict[str, Any]:
    """Draw `steps` normal numbers in a scan.

    Returns
    -------
    dict
        ``graph``: the inner graph, as lines of text; ``values`` and
        ``next_values``: the draws of two calls.
    """
    prepare(mode)
    import aesara
    import numpy as np
    from aesara.tensor.random.utils import RandomStream

    srng = RandomStream(SEED)
    draws, updates = aesara.scan(lambda: srng.normal(), n_steps=steps, strict=True)
    f = aesara.function([], draws, updates=updates, mode=mode)
    return {
        "graph": inner_graph(aesara.dprint(f, file="str")),
        "values": np.asarray(f()).tolist(),
        "next_values": np.asarray(f()).tolist(),
    }


def time_stock_draws(mode: str, count: int, limit: float) -> dict[str, Any]:
    """Time `count` draws of a stock mode, or fewer where they would take too long.

    The number of steps is an input here.  A short call is then enough to compile
    and to foresee the time, and the long one, seconds long, is made only once.

    Parameters
    ----------
    mode
        A stock mode.
    count
        The number of draws wanted.
    limit
        Seconds that one call may take.

    Returns
    -------
    dict
        ``count``: the draws made; ``seconds``: the time of the call that made
        them; ``first``: what compilation and a short first call took; ``mean``,
        ``deviation`` and ``digests`` of the draws; ``has_compiler``: whether
        Aesara found a C++ compiler.
    """
    prepare(mode)
    import aesara
    import aesara.tensor as at
    from aesara.tensor.random.utils import RandomStream

    srng = RandomStream(SEED)
    steps = at.scalar("steps", dtype="int64")
    draws, updates = aesara.scan(lambda: srng.normal(), n_steps=steps, strict=True)
    start = time.perf_counter()
    f = aesara.function([steps], draws, updates=updates, mode=mode)
    short = min(count, 200)
    f(short)
    first = time.perf_counter() - start

    per_draw = min(_timed(f, short)[0] for _ in range(3)) / short
    count = shortened(count, per_draw, limit)
    srng.seed(SEED)
    seconds, values = _timed(f, count)
    return {**_measured(values, seconds, first), "has_compiler": bool(aesara.config.cxx)}


def time_fixed_draws(mode: str, count: int) -> dict[str, Any]:
    """Time `count` draws: the median of several calls.

    Returns
    -------
    dict
        As `time_stock_draws`, but for ``has_compiler``.
    """
    prepare(mode)
    import aesara
    from aesara.tensor.random.utils import RandomStream

    srng = RandomStream(SEED)
    draws, updates = aesara.scan(lambda: srng.normal(), n_steps=count, strict=True)
    start = time.perf_counter()
    f = aesara.function([], draws, updates=updates, mode=mode)
    values = f()
    first = time.perf_counter() - start

    calls = [_timed(f)[0]]
    while len(calls) < 15 and sum(calls) < 2.0:
        calls.append(_timed(f)[0])
    return _measured(values, statistics.median(calls), first)


def shortened(count: int, seconds_per_draw: float, limit: float) -> int:
    """Return `count`, or a round smaller number where `count` draws exceed `limit`.

    >>> shortened(100_000, 1e-4, limit=15.0)
    100000
    >>> shortened(100_000, 4e-4, limit=15.0)
    10000
    """
    if count * seconds_per_draw <= limit:
        return count
    # A third of the limit is plenty: the time is proportional to the draws.
    affordable = max(1, int(limit / 3 / seconds_per_draw))
    return int(10 ** (len(str(affordable)) - 1))


def prepare(mode: str) -> None:
    """Make `mode` usable in this process."""
    import fixed_modes  # noqa: F401

    if mode == "NUMBA":
        from fixed_modes.numba.compat import ensure_stock_dispatch_imports

        ensure_stock_dispatch_imports()


def inner_graph(printed: str) -> list[str]:
    """Return the inner graphs in what `aesara.dprint` printed, each of them once.

    A scan with several outputs is printed once for each; the later ones only
    point back at the first.
    """
    _, _, inner = printed.partition("Inner graphs:")
    kept: list[str] = []
    seen: set[str] = set()
    for block in inner.strip().split("\n\n"):
        header = block.splitlines()[0] if block else ""
        _, _, identity = header.partition("[id ")
        if identity not in seen:
            seen.add(identity)
            kept.extend(block.splitlines())
    return kept


def _timed(f: Any, *arguments: Any) -> tuple[float, Any]:
    start = time.perf_counter()
    values = f(*arguments)
    return time.perf_counter() - start, values


def _measured(values: Any, seconds: float, first: float) -> dict[str, Any]:
    import numpy as np

    values = np.asarray(values)
    return {
        "count": int(values.size),
        "seconds": seconds,
        "first": first,
        "mean": float(values.mean()),
        "deviation": float(values.std()),
        "digests": digests(values),
    }


def digests(values: Any) -> dict[str, str]:
    """Return a digest of the first 10, 100, ... values, and of all, by their number.

    Equal draws have equal digests, and digests are short enough to send.  Modes
    that made different numbers of draws can be compared by what both made.
    """
    import numpy as np

    values = np.ascontiguousarray(values)
    sizes = {10**k for k in range(1, len(str(values.size)))} | {values.size}
    return {
        str(size): hashlib.sha256(values[:size].tobytes()).hexdigest() for size in sorted(sizes)
    }
