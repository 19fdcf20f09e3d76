"""What the steps of a loop compute without one another is computed outside of the loop.

All steps of a loop that only maps, the draws of a loop that draws from a
distribution known beforehand (up to location and scale), and dear functions of what
the steps read are computed ahead, at once: that is vector code, where a loop runs
scalar code that is several times slower.  Sums of products follow after the loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Callable

import jax
import jax.numpy as jnp
import numpy as np

from fixed_modes.jax.chunks import any_true
from fixed_modes.jax.flag_words import fill_up, pack
from fixed_modes.jax.flat_jaxpr import FlatFunction, Slot, carry_out, flatten, value_of
from fixed_modes.jax.scan_shared import Drawn
from fixed_modes.jax.scan_split import is_plain, operations_for, split_step
from fixed_modes.jax.scan_sums import add_products, push_out_sums

#: What is computed ahead, or stacked for sums, takes no more bytes than this at one time.
MOST_BYTES = 1 << 26

Body = Callable[[Any, Any], tuple[Any, Any, list[Any]]]
_leaves = jax.tree_util.tree_leaves


def scan(
    body: Body,
    carry: Any,
    entering: Any,
    draws: Sequence[Drawn | None],
    steps: int,
    words: Sequence[Any] = (),
    known: int = 0,
    is_outermost: bool = False,
) -> tuple[Any, Any, list[Any]]:
    """Do what `lax.scan` does, with some of the work done ahead of it.

    Parameters
    ----------
    body
        Gives the next carry, what is stacked and a list of flags, of the carry and
        of the rows of `entering` and the keys for the draws of one step.
    carry
        The first carry.
    entering
        What the steps read, stacked.
    draws
        For each shared state, how the draws of all steps come from it, if they do.
    steps
        The number of steps.
    words, known
        Bits of `known` flags, see `fixed_modes.jax.flag_words`.
    is_outermost
        Whether this is no step of another loop, which might be vector code as a whole.

    Returns
    -------
    The last carry, the stacked rows, and words in which the bits of the body's flags
    follow, set if they were true in any step.
    """
    shapes = [None if draw is None else draw.shape_of_keys() for draw in draws]
    rows = jax.tree_util.tree_map(_row_shape, entering)
    flat = flatten(body, carry, (rows, shapes))
    if flat is None:
        return _plain(body, carry, entering, draws, steps, words, known)
    loop = _Ahead(flat, len(_leaves(carry)), len(_leaves(shapes)), known, is_outermost)
    return loop.run(carry, entering, draws, steps, words)


def _plain(
    body: Body,
    carry: Any,
    entering: Any,
    draws: Sequence[Drawn | None],
    steps: int,
    words: Sequence[Any],
    known: int,
) -> tuple[Any, Any, list[Any]]:
    keys = [None if draw is None else draw.keys_of_steps() for draw in draws]

    def step(carried: Any, rows: Any) -> tuple[Any, Any]:
        following, *stacked = body(carried, rows)
        return following, stacked

    carry, (stacked, flags) = jax.lax.scan(step, carry, (entering, keys), length=steps)
    words = fill_up(words, known + len(flags))
    return carry, stacked, pack(enumerate(flags, known), words)


class _Ahead:
    """A loop in parts."""

    def __init__(
        self, flat: FlatFunction, n_carry: int, n_keys: int, known: int, is_outermost: bool
    ) -> None:
        flat, self.sums = push_out_sums(flat, n_carry, n_keys)
        tree = jax.tree_util.tree_unflatten(flat.structure, flat.outputs)
        n_flags = len(tree[2])
        self.flat, self.n_keys, self.known = flat, n_keys, known
        self.is_outermost = is_outermost
        self.outputs, self.flags = tree[:2], tree[2]
        self.split = split_step(flat, n_carry, n_keys, n_flags)
        self.carried = flat.inputs[:n_carry]
        self.rows = flat.inputs[n_carry : len(flat.inputs) - n_keys]
        self.keys = flat.inputs[len(flat.inputs) - n_keys :]
        self.fixed: dict[Slot, Any] = {}
        carry_out(self.split.fixed, self.fixed)

    def run(
        self,
        carry: Any,
        entering: Any,
        draws: Sequence[Drawn | None],
        steps: int,
        words: Sequence[Any],
    ) -> tuple[Any, Any, list[Any]]:
        words = fill_up(words, self.known + len(self.flags))
        factors = _leaves(self.outputs[1][1])
        nbytes = self.split.nbytes + sum(factor.nbytes for factor in factors)
        at_once = max(1, MOST_BYTES // max(1, nbytes))
        at_once = min(at_once, self.split.lanes or at_once)
        rows = _leaves(entering)
        n_blocks = max(1, -(-steps // at_once))
        drawn = [draw for draw in draws if draw is not None]
        if not self.split.keys_are_fixed:
            rows += [draw.keys_of_steps() for draw in drawn]
        keys = [draw.keys_of_blocks(n_blocks) for draw in drawn]
        if n_blocks == 1:
            return self.block(carry, rows, [key[0] for key in keys], steps, words)
        return self.blocks(carry, rows, keys, steps, at_once, words)

    def blocks(
        self,
        carry: Any,
        rows: list[Any],
        keys: list[Any],
        steps: int,
        at_once: int,
        words: list[Any],
    ) -> tuple[Any, Any, list[Any]]:
        """Run blocks of `at_once` steps, and then what is left."""
        count, left = divmod(steps, at_once)
        whole = [row[: count * at_once].reshape(count, at_once, *row.shape[1:]) for row in rows]

        def run_block(carried: Any, block: Any) -> tuple[Any, Any]:
            state, words = carried
            state, stacked, words = self.block(state, block[0], block[1], at_once, words)
            return (state, words), stacked

        blocks = (whole, [key[:count] for key in keys])
        (carry, words), stacked = jax.lax.scan(run_block, (carry, words), blocks, length=count)
        join = jax.tree_util.tree_map
        stacked = join(lambda x: x.reshape(count * at_once, *x.shape[2:]), stacked)
        if left:
            rest = [row[count * at_once :] for row in rows]
            last_keys = [key[-1] for key in keys]
            carry, last, words = self.block(carry, rest, last_keys, left, words)
            stacked = join(lambda x, y: jnp.concatenate([x, y]), stacked, last)
        return carry, stacked, words

    def block(
        self, carry: Any, rows: list[Any], keys: list[Any], steps: int, words: list[Any]
    ) -> tuple[Any, Any, list[Any]]:
        """Run some steps, with one key for each draw in a step, or with keys among `rows`."""
        carry, (stacked, factors), words = self.without_sums(carry, rows, keys, steps, words)
        if self.sums:
            leaves, structure = jax.tree_util.tree_flatten(carry)
            leaves = add_products(self.sums, leaves, rows, factors)
            carry = jax.tree_util.tree_unflatten(structure, leaves)
        return carry, stacked, words

    def without_sums(
        self, carry: Any, rows: list[Any], keys: list[Any], steps: int, words: list[Any]
    ) -> tuple[Any, Any, list[Any]]:
        """Run some steps; the second result is a pair, with the factors of sums."""
        split, values = self.split, dict(self.fixed)
        slots = self.rows
        if split.keys_are_fixed:
            values.update(zip(self.keys, keys))
            carry_out(split.keys, values)
        else:
            slots = [*self.rows, *self.keys]
        bits = [operation.outputs[0] for operation in split.bits]
        rows = [*rows, *(_bits_of_steps(operation, values, steps) for operation in split.bits)]
        slots = [*slots, *bits]
        numbers = [self.known + index for index in range(len(self.flags))]
        if split.is_map:
            flags = self._flags_of_map(values, dict(zip(slots, rows)), steps)
            words = pack(zip(numbers, flags), words)

        def ahead(row: list[Any]) -> tuple[list[Any], Any]:
            found = {**values, **dict(zip(slots, row))}
            carry_out(split.ahead, found)
            known = [value_of(slot, found) for slot in split.taken]
            return known, _values(self.outputs[1], found) if split.is_map else (None, None)

        taken, stacked = jax.vmap(ahead, axis_size=steps)(rows)

        def body(carried: Any, row: Any) -> tuple[Any, Any]:
            state, words = carried
            found = {**values, **dict(zip(self.carried, _leaves(state)))}
            found.update(zip(slots, row[0]))
            found.update(zip(split.taken, row[1]))
            carry_out(split.rest, found)
            state, stacked = _values(self.outputs, found)
            flags = [value_of(flag, found) for flag in self.flags]
            return (state, pack(zip(numbers, flags), words)), stacked

        if not split.is_map:
            (carry, words), stacked = jax.lax.scan(body, (carry, words), (rows, taken), steps)
        return carry, stacked, words

    def _flags_of_map(
        self, values: dict[Slot, Any], rows: dict[Slot, Any], steps: int
    ) -> list[Any]:
        """Say which flags are true in any step of a map."""
        operations = operations_for(self.flags, self.split.ahead)
        taken = {atom for operation in operations for atom in operation.inputs}
        slots = [slot for slot in rows if slot in taken or slot in self.flags]

        def flags(row: Sequence[Any]) -> list[Any]:
            found = {**values, **dict(zip(slots, row))}
            carry_out(operations, found)
            return [jnp.any(value_of(flag, found)) for flag in self.flags]

        def test(part: Sequence[Any]) -> Sequence[Any]:
            return jax.vmap(flags, axis_size=len(part[0]) if part else steps)(list(part))

        arrays = [rows[slot] for slot in slots]
        if self.is_outermost and arrays and all(map(is_plain, operations)):
            return any_true(test, arrays, steps)
        return [flag.any() for flag in test(arrays)]


def _values(atoms: Any, values: dict[Slot, Any]) -> Any:
    return jax.tree_util.tree_map(lambda atom: value_of(atom, values), atoms)


def _bits_of_steps(operation: Any, values: dict[Slot, Any], steps: int) -> Any:
    params = {**operation.params, "shape": (steps, *operation.params["shape"])}
    return operation.primitive.bind(value_of(operation.inputs[0], values), **params)


def _row_shape(stacked: Any) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(np.shape(stacked)[1:], stacked.dtype)
