"""The sequence of a loop that is not at hand as an array, since its length changes.

``arange(n)``, with an `n` that changes while a loop around it runs, can't be compiled
as an array.  A loop over it needs only the row of each step, which is computed from its
number; and so is what Aesara computes elementwise of it before the loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Callable

import jax.numpy as jnp
from aesara.graph.basic import Apply
from aesara.scan.op import Scan
from aesara.tensor.elemwise import DimShuffle, Elemwise
from aesara.tensor.shape import Shape_i
from aesara.tensor.subtensor import Subtensor


@dataclass(frozen=True, eq=False)
class LazyRows:
    """An array of which each row can be computed.

    Attributes
    ----------
    length
        The number of rows: int64 scalar, traced, not negative.
    row
        Gives the row at a position that is not negative.
    most
        The length is known to be no more; None if nothing is known.
    """

    length: Any
    row: Callable[[Any], Any]
    most: int | None = None

    def part(self, start: Any, stop: Any) -> LazyRows:
        """Give the slice ``[start:stop]``; None stands for an end."""
        first = 0 if start is None else self._position(start)
        end = self.length if stop is None else self._position(stop)
        # Where nothing is left out, it is the same length, and known to be the same.
        all_of_it = stop is None and start is None
        length = self.length if all_of_it else jnp.maximum(end - first, 0)
        return LazyRows(length, lambda index: self.row(first + index), self.most)

    def _position(self, bound: Any) -> Any:
        bound = jnp.asarray(bound).astype("int64")
        return jnp.clip(jnp.where(bound < 0, bound + self.length, bound), 0, self.length)


def progression(start: Any, stop: Any, step: int, dtype: str, most: int | None) -> LazyRows:
    """Give ``arange(start, stop, step)`` of integers; `step` is not zero."""
    start, stop = (jnp.asarray(bound).astype("int64") for bound in (start, stop))
    length = -((start - stop) // step)  # rounded up
    return LazyRows(
        jnp.maximum(length, 0),
        lambda index: (start + jnp.asarray(index).astype("int64") * step).astype(dtype),
        most,
    )


def takes_lazy_rows(node: Apply, position: int) -> bool:
    """Say whether an op can do with `LazyRows` for its input at `position`."""
    op = node.op
    if isinstance(op, Scan):
        return 1 <= position <= op.info.n_seqs
    if isinstance(op, Elemwise):
        return len(node.outputs) == 1
    if isinstance(op, DimShuffle):
        # The rows stay rows.
        return op.new_order[:1] == (0,) and op.input_broadcastable[:1] == (False,)
    return isinstance(op, (Shape_i, Subtensor)) and position == 0


def map_rows(values: Sequence[Any], compute: Callable[[list[Any]], Any]) -> LazyRows | None:
    """Apply a function of arrays row by row.

    Parameters
    ----------
    values
        Its arguments, some of them lazy.
    compute
        The function, which treats all rows alike; gets arguments with one row each.

    Returns
    -------
    None where it isn't known that the arguments have the same length.
    """
    lazy = [value for value in values if isinstance(value, LazyRows)]
    if any(value.length is not lazy[0].length for value in lazy):
        return None
    others = [value for value in values if not isinstance(value, LazyRows)]
    if any(jnp.ndim(value) and jnp.shape(value)[0] != 1 for value in others):
        return None

    def row(index: Any) -> Any:
        rows = [
            jnp.asarray(value.row(index))[None] if isinstance(value, LazyRows) else value
            for value in values
        ]
        return compute(rows)[0]

    return LazyRows(lazy[0].length, row, lazy[0].most)
