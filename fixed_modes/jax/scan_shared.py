"""Shared states of a `Scan`: values that a step replaces, random ones above all.

A chain of splits, one after another, is slow in a loop.  Where a step only
draws from a random state, the keys for all draws of all steps are therefore
split off the state at once, before the loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Union

import jax
import jax.numpy as jnp
from aesara.graph.basic import Variable
from aesara.graph.fg import FunctionGraph
from aesara.tensor.random.op import RandomVariable

from fixed_modes.jax.rng import KEY_IMPL, RandomKey


@dataclass
class Carried:
    """A state that is handed from step to step."""

    value: Any

    def start(self) -> Any:
        return jax.tree_util.tree_map(jnp.asarray, self.value)

    def read(self, carried: Any, entering: Any) -> Any:
        return carried

    def write(self, value: Any) -> Any:
        return jax.tree_util.tree_map(jnp.asarray, value)

    def finish(self, carried: Any) -> Any:
        return carried


@dataclass(frozen=True)
class KeySupply:
    """A random state inside a step: the keys for the draws that are still to come."""

    keys: Any

    def split(self) -> tuple[KeySupply, Any]:
        """Give the state after a draw, and the key to draw with."""
        key = jax.random.wrap_key_data(self.keys[0], impl=KEY_IMPL)
        if self.keys.shape[0] > 1:
            return KeySupply(self.keys[1:]), key
        # What follows the last draw is used only if a second chain of draws is longer.
        return KeySupply(jax.random.key_data(jax.random.fold_in(key, 1))[None]), key


class Drawn:
    """A random state from which each step makes the same number of draws.

    Parameters
    ----------
    state
        The state before the loop.
    draws, steps
        The numbers of draws in a step, and of steps.
    """

    def __init__(self, state: RandomKey, draws: int, steps: int) -> None:
        self.draws, self.steps = draws, steps
        key = jax.random.wrap_key_data(state.data, impl=KEY_IMPL)
        self.base, final = jax.random.split(key)
        self.final = RandomKey(jax.random.key_data(final), state.bit_generator, state.legacy)

    def shape_of_keys(self) -> jax.ShapeDtypeStruct:
        """Give the shape of the keys of one step."""
        return jax.ShapeDtypeStruct((self.draws, 2), "uint32")

    def keys_of_blocks(self, blocks: int) -> Any:
        """Give for each block of steps one key for each draw in a step."""
        keys = jax.random.split(self.base, blocks * self.draws)
        return jax.random.key_data(keys).reshape(blocks, self.draws, 2)

    def keys_of_steps(self) -> Any:
        """Give each step its own keys."""
        keys = jax.random.split(self.base, self.steps * self.draws)
        return jax.random.key_data(keys).reshape(self.steps, self.draws, 2)

    def start(self) -> Any:
        return None

    def read(self, carried: Any, entering: Any) -> KeySupply:
        return KeySupply(entering)

    def write(self, value: Any) -> Any:
        return None

    def finish(self, carried: Any) -> RandomKey:
        return self.final


SharedState = Union[Carried, Drawn]


def shared_states(
    fgraph: FunctionGraph,
    inner_inputs: Sequence[Variable],
    inner_outputs: Sequence[Variable],
    values: Sequence[Any],
    steps: int,
) -> list[SharedState]:
    """Choose how each shared state of a loop of so many steps is handed on.

    `inner_inputs` and `inner_outputs` are the variables of `fgraph`, the inner
    graph, for the shared states, in the same order as their outer `values`.
    """
    states: list[SharedState] = []
    for index, (before, after, value) in enumerate(zip(inner_inputs, inner_outputs, values)):
        others = [*inner_outputs[:index], *inner_outputs[index + 1 :]]
        if (
            isinstance(value, RandomKey)
            and (draws := count_draws(before, after))
            and is_only_drawn_from(fgraph, before, others)
        ):
            states.append(Drawn(value, draws, steps))
        else:
            states.append(Carried(value))
    return states


def is_only_drawn_from(fgraph: FunctionGraph, state: Variable, others: Sequence[Variable]) -> bool:
    """Say whether all that becomes of a random state within a step is draws.

    A `KeySupply` serves no other purpose: it can't become the value of another
    shared state (one of `others`), nor go into an inner loop or a branch.
    """
    pending = [state]
    while pending:
        variable = pending.pop()
        if variable in others:
            return False
        for client, _ in fgraph.clients[variable]:
            if client == "output":
                continue
            if not isinstance(client.op, RandomVariable):
                return False
            pending.append(client.outputs[0])
    return True


def count_draws(before: Variable, after: Variable) -> int:
    """Count the draws that lead from one random state to another; 0: not by draws alone."""
    count = 0
    while after is not before:
        if after.owner is None or not isinstance(after.owner.op, RandomVariable):
            return 0
        after = after.owner.inputs[0]
        count += 1
    return count
