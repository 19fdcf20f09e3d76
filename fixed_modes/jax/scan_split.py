"""Which operations of a loop's step are done ahead of the loop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fixed_modes.jax.flat_jaxpr import FlatFunction, Operation, Slot

#: Calls of Python and of foreign code.
CALLS = ("pure_callback", "io_callback", "custom_call", "ffi_call")

#: A step with these is no matter of vector code.
LOOPS = ("while", "scan", "cond", *CALLS)

#: What makes keys of keys, by the names of JAX's primitives.
KEY_OPERATIONS = (
    "random_wrap",
    "random_unwrap",
    "random_split",
    "random_fold_in",
    "slice",
    "squeeze",
    "reshape",
    "broadcast_in_dim",
)


@dataclass
class Split:
    """The operations of a step, by when they are done.

    Attributes
    ----------
    fixed
        Once: they depend on nothing that a step reads, and what is ahead needs them.
    keys
        Once too, where `keys_are_fixed`: they make the keys for the draws.
    bits
        At once for all steps: they make the random bits.
    ahead
        For all steps, by vector code.
    rest
        In the loop.
    taken
        What the loop takes over from `ahead`.
    early
        The positions of the flags, among the flags, that are known ahead.
    is_map
        Whether nothing is left for a loop.
    keys_are_fixed
        Whether one key serves a draw of all steps.  Else each step has its own,
        among what it reads.
    """

    fixed: list[Operation] = field(default_factory=list)
    keys: list[Operation] = field(default_factory=list)
    bits: list[Operation] = field(default_factory=list)
    ahead: list[Operation] = field(default_factory=list)
    rest: list[Operation] = field(default_factory=list)
    taken: list[Slot] = field(default_factory=list)
    early: list[int] = field(default_factory=list)
    is_map: bool = False
    keys_are_fixed: bool = False

    @property
    def nbytes(self) -> int:
        """Of all that is computed ahead for one step."""
        return sum(slot.nbytes for op in (*self.bits, *self.ahead) for slot in op.outputs)


def split_step(flat: FlatFunction, n_carry: int, n_keys: int, n_flags: int) -> Split:
    """Choose what is done ahead of a loop.

    That is everything if the steps depend on nothing but what they read, and
    contain no loops; else what comes from the keys, and the flags of checks,
    where they depend on nothing that the loop computes.

    Parameters
    ----------
    flat
        A step.  Its inputs are the carry, what the step reads, and keys; its last
        outputs are flags.
    n_carry, n_keys, n_flags
        The numbers of these inputs and outputs.
    """
    split, fixed = _split_keys(flat, n_keys)
    settled = {id(operation) for operation in (*fixed, *split.keys, *split.bits)}
    others = [operation for operation in flat.operations if id(operation) not in settled]
    known = set(flat.inputs[n_carry:])
    known.update(slot for op in (*fixed, *split.keys, *split.bits) for slot in op.outputs)
    candidates = _independent(others, known)
    known.update(slot for operation in candidates for slot in operation.outputs)
    makers = {slot: op for op in (*fixed, *candidates) for slot in op.outputs}

    split.is_map = not n_carry and not any(op.primitive.name in LOOPS for op in others)
    outputs = flat.outputs[: len(flat.outputs) - n_flags]
    flags = flat.outputs[len(flat.outputs) - n_flags :]
    split.early = [i for i, a in enumerate(flags) if not isinstance(a, Slot) or a in known]
    wanted = [makers[a] for i, a in enumerate(flags) if i in split.early and a in makers]
    if split.is_map:
        wanted += [makers[atom] for atom in outputs if atom in makers]
    else:
        drawn = {operation.outputs[0] for operation in split.bits}
        if not split.keys_are_fixed:
            drawn.update(flat.inputs[len(flat.inputs) - n_keys :])
        wanted += _descendants(candidates, drawn)
    wanted += [makers[slot] for op in split.keys for slot in _slots(op) if slot in makers]

    chosen = _with_ancestors(wanted, makers)
    split.fixed = [operation for operation in fixed if id(operation) in chosen]
    split.ahead = [operation for operation in candidates if id(operation) in chosen]
    if not split.is_map:
        done = {id(op) for op in (*split.fixed, *split.keys, *split.bits, *split.ahead)}
        split.rest = [operation for operation in flat.operations if id(operation) not in done]
    made = {slot for operation in split.ahead for slot in operation.outputs}
    late = [atom for index, atom in enumerate(flags) if index not in split.early]
    used = [*(atom for operation in split.rest for atom in operation.inputs), *outputs, *late]
    split.taken = [a for a in dict.fromkeys(used) if isinstance(a, Slot) and a in made]
    return split


def _split_keys(flat: FlatFunction, n_keys: int) -> tuple[Split, list[Operation]]:
    """Set apart what makes keys and what makes bits of them, and what depends on no step."""
    split = Split(keys_are_fixed=True)
    fixed: list[Operation] = []
    settled: set[Slot] = set()
    keys = set(flat.inputs[len(flat.inputs) - n_keys :]) if n_keys else set()
    for operation in flat.operations:
        slots, name = _slots(operation), operation.primitive.name
        if settled.issuperset(slots) and name not in CALLS:
            fixed.append(operation)
            settled.update(operation.outputs)
        elif not split.keys_are_fixed or keys.isdisjoint(slots):
            continue
        elif name in KEY_OPERATIONS and keys.union(settled).issuperset(slots):
            split.keys.append(operation)
            keys.update(operation.outputs)
        elif name == "random_bits" and not getattr(slots[0].aval, "ndim", 1):
            split.bits.append(operation)
        else:
            # A key is used for more than random bits: every step gets keys of its own.
            split.keys_are_fixed = False
    return (split if split.keys_are_fixed else Split()), fixed


def _independent(operations: Sequence[Operation], known: set[Slot]) -> list[Operation]:
    """Find the operations that depend on `known` only."""
    known, found = set(known), []
    for operation in operations:
        if operation.primitive.name not in CALLS and known.issuperset(_slots(operation)):
            known.update(operation.outputs)
            found.append(operation)
    return found


def _descendants(operations: Sequence[Operation], sources: set[Slot]) -> list[Operation]:
    sources, found = set(sources), []
    for operation in operations:
        if not sources.isdisjoint(_slots(operation)):
            sources.update(operation.outputs)
            found.append(operation)
    return found


def _with_ancestors(wanted: Sequence[Operation], makers: Mapping[Any, Operation]) -> set[int]:
    pending = list(wanted)
    chosen = {id(operation) for operation in wanted}
    while pending:
        for slot in _slots(pending.pop()):
            maker = makers.get(slot)
            if maker is not None and id(maker) not in chosen:
                chosen.add(id(maker))
                pending.append(maker)
    return chosen


def _slots(operation: Operation) -> list[Slot]:
    return [atom for atom in operation.inputs if isinstance(atom, Slot)]
