"""What the steps of a loop compute without one another is computed ahead of the loop.

All steps of a loop that only maps, and the draws of a loop that draws from a
distribution known beforehand (up to location and scale), are computed at once:
that is vector code, where a loop runs scalar code that is several times slower.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Callable

import jax
import jax.numpy as jnp
import numpy as np

from fixed_modes.jax.flat_jaxpr import FlatFunction, Operation, Slot, carry_out, flatten, value_of
from fixed_modes.jax.scan_shared import Drawn
from fixed_modes.jax.scan_split import Split, split_draws, split_map

#: What is computed ahead takes no more bytes than this at one time.
MOST_BYTES = 1 << 26

Body = Callable[[Any, Any], tuple[Any, Any]]
_leaves = jax.tree_util.tree_leaves


def scan(
    body: Body, carry: Any, entering: Any, draws: Sequence[Drawn | None], steps: int
) -> tuple[Any, Any]:
    """Do what `lax.scan` does, with some of the work done ahead of it.

    Parameters
    ----------
    body
        Gives the next carry and what is stacked, of the carry and of the rows of
        `entering` and the keys for the draws of one step.
    carry
        The first carry.
    entering
        What the steps read, stacked.
    draws
        For each shared state, how the draws of all steps come from it, if they do.
    steps
        The number of steps.
    """
    shapes = [None if draw is None else draw.shape_of_keys() for draw in draws]
    is_map = not _leaves(carry) and bool(_leaves(entering) or any(draws))
    if steps > 1 and (is_map or any(draws)):
        rows = jax.tree_util.tree_map(_row_shape, entering)
        flat = flatten(body, carry, (rows, shapes))
        if flat is not None and not any(map(_calls_python, flat.operations)):
            n_carry, n_keys = len(_leaves(carry)), len(_leaves(shapes))
            split = (split_map if is_map else split_draws)(flat, n_carry, n_keys)
            if split is not None:
                return _Ahead(flat, split, n_carry, n_keys).run(carry, entering, draws, steps)
    keys = [None if draw is None else draw.keys_of_steps() for draw in draws]
    return jax.lax.scan(body, carry, (entering, keys), length=steps)


def _calls_python(operation: Operation) -> bool:
    """Say whether an operation may do more than compute: it must be done at its step."""
    return operation.primitive.name.endswith("callback")


class _Ahead:
    """A loop in two parts."""

    def __init__(self, flat: FlatFunction, split: Split, n_carry: int, n_keys: int) -> None:
        self.flat, self.split, self.n_keys = flat, split, n_keys
        self.carried = flat.inputs[:n_carry]
        self.rows = flat.inputs[n_carry : len(flat.inputs) - n_keys]
        self.keys = flat.inputs[len(flat.inputs) - n_keys :]
        self.fixed: dict[Slot, Any] = {}
        carry_out(split.fixed, self.fixed)

    def run(
        self, carry: Any, entering: Any, draws: Sequence[Drawn | None], steps: int
    ) -> tuple[Any, Any]:
        at_once = max(1, MOST_BYTES // max(1, self.split.nbytes))
        rows = _leaves(entering)
        n_blocks = max(1, -(-steps // at_once))
        drawn = [draw for draw in draws if draw is not None]
        if not self.split.keys_are_fixed:
            rows += [draw.keys_of_steps() for draw in drawn]
        keys = [draw.keys_of_blocks(n_blocks) for draw in drawn]
        if n_blocks == 1:
            return self.block(carry, rows, [key[0] for key in keys], steps)
        return self.blocks(carry, rows, keys, steps, at_once)

    def blocks(
        self, carry: Any, rows: list[Any], keys: list[Any], steps: int, at_once: int
    ) -> tuple[Any, Any]:
        """Run blocks of `at_once` steps, and then what is left."""
        count, left = divmod(steps, at_once)
        whole = [row[: count * at_once].reshape(count, at_once, *row.shape[1:]) for row in rows]
        carry, stacked = jax.lax.scan(
            lambda carried, block: self.block(carried, block[0], block[1], at_once),
            carry,
            (whole, [key[:count] for key in keys]),
        )
        join = jax.tree_util.tree_map
        stacked = join(lambda x: x.reshape(count * at_once, *x.shape[2:]), stacked)
        if left:
            rest = [row[count * at_once :] for row in rows]
            carry, last = self.block(carry, rest, [key[-1] for key in keys], left)
            stacked = join(lambda x, y: jnp.concatenate([x, y]), stacked, last)
        return carry, stacked

    def block(self, carry: Any, rows: list[Any], keys: list[Any], steps: int) -> tuple[Any, Any]:
        """Run some steps, with one key for each draw in a step, or with keys among `rows`."""
        split, flat = self.split, self.flat
        values = dict(self.fixed)
        slots = self.rows
        if split.keys_are_fixed:
            values.update(zip(self.keys, keys))
            carry_out(split.keys, values)
        else:
            slots = [*self.rows, *self.keys]
        bits = [operation.outputs[0] for operation in split.bits]
        rows = [*rows, *(_bits_of_steps(operation, values, steps) for operation in split.bits)]
        slots = [*slots, *bits]

        def ahead(row: list[Any]) -> list[Any]:
            found = {**values, **dict(zip(slots, row))}
            carry_out(split.ahead, found)
            return [value_of(slot, found) for slot in split.taken]

        def body(carried: Any, row: Any) -> tuple[Any, Any]:
            found = {**values, **dict(zip(self.carried, _leaves(carried)))}
            found.update(zip(slots, row[0]))
            found.update(zip(split.taken, row[1]))
            carry_out(split.rest, found)
            outputs = [value_of(atom, found) for atom in flat.outputs]
            return jax.tree_util.tree_unflatten(flat.structure, outputs)

        if self.carried or split.rest:
            return jax.lax.scan(body, carry, (rows, jax.vmap(ahead)(rows)), length=steps)
        return jax.vmap(lambda row: body(carry, (row, ahead(row))), axis_size=steps)(rows)


def _bits_of_steps(operation: Any, values: dict[Slot, Any], steps: int) -> Any:
    params = {**operation.params, "shape": (steps, *operation.params["shape"])}
    return operation.primitive.bind(value_of(operation.inputs[0], values), **params)


def _row_shape(stacked: Any) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(np.shape(stacked)[1:], stacked.dtype)
