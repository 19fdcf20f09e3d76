"""What index checks cost: loops with them and without, in one process."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from time import perf_counter
from typing import Any, Callable, NamedTuple

import numpy as np

#: Gives the inputs and the outputs of a graph with loops over so many steps.
Build = Callable[[int], "tuple[list[Any], list[Any]]"]


class Cost(NamedTuple):
    """Nanoseconds a step, the shortest of several calls."""

    name: str
    without: float
    checked: float

    @property
    def ratio(self) -> float:
        return self.checked / self.without


def costs(mode: str, steps: int, calls: int) -> Iterator[Cost]:
    """Time each loop of `LOOPS`, the two functions by turns."""
    import aesara

    import fixed_modes  # noqa: F401  (registers the modes)

    rng = np.random.default_rng(0)
    values = {
        "x": rng.random(steps),
        "i": rng.integers(0, steps, steps),
        "follows": rng.permutation(steps),
        "n": np.int64(steps),
    }
    for name, build in LOOPS.items():
        functions = []
        for checked in (False, True):
            with aesara.config.change_flags(fixed_modes__index_checks=checked):
                inputs, outputs = build(steps)
                functions.append(aesara.function(inputs, outputs, mode=mode))
        args = [values[variable.name] for variable in inputs]
        times: list[list[float]] = [[], []]
        gc.disable()
        try:
            for _ in range(calls + 1):
                for function, taken in zip(functions, times):
                    start = perf_counter()
                    function(*args)
                    taken.append(perf_counter() - start)
        finally:
            gc.enable()
        # The first call compiles.
        without, with_checks = (min(taken[1:]) / steps * 1e9 for taken in times)
        yield Cost(name, without, with_checks)


def _recurrence(read: Callable[[Any, Any], Any]) -> Build:
    """Make a recurrence over a vector of indices; `read` takes an index and the vector."""

    def build(steps: int) -> tuple[list[Any], list[Any]]:
        import aesara
        import aesara.tensor as at

        x, i = at.dvector("x"), at.lvector("i")
        trace, _ = aesara.scan(
            lambda i, total, x: total / 2 + read(i, x),
            sequences=[i],
            outputs_info=[np.float64(0)],
            non_sequences=[x],
        )
        return [x, i], [trace]

    return build


def _gradient(steps: int) -> tuple[list[Any], list[Any]]:
    import aesara.tensor as at

    inputs, (trace,) = _recurrence(lambda i, x: x[i])(steps)
    return inputs, [at.grad((trace**2).sum(), inputs[0])]


def _map(steps: int) -> tuple[list[Any], list[Any]]:
    import aesara
    import aesara.tensor as at

    x, i = at.dvector("x"), at.lvector("i")
    rows, _ = aesara.scan(lambda i, x: 2 * x[i], sequences=[i], non_sequences=[x])
    return [x, i], [rows]


def _walk(steps: int) -> tuple[list[Any], list[Any]]:
    import aesara
    import aesara.tensor as at

    x, follows, n = at.dvector("x"), at.lvector("follows"), at.lscalar("n")
    (_, total), _ = aesara.scan(
        lambda i, total, x, follows: (follows[i], total / 2 + x[i]),
        outputs_info=[at.constant(0, dtype="int64"), np.float64(0)],
        non_sequences=[x, follows],
        n_steps=n,
    )
    return [x, follows, n], [total[-1]]


LOOPS: dict[str, Build] = {
    "one index": _recurrence(lambda i, x: x[i]),
    "two indices": _recurrence(lambda i, x: x[i] * x[i // 2 + 1]),
    "three indices": _recurrence(lambda i, x: x[i] * x[i // 2 + 1] + x[i // 3]),
    "gradient": _gradient,
    "map": _map,
    "index from the loop": _walk,
}
