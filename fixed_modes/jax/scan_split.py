"""Which operations of a loop's step are done ahead of the loop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from fixed_modes.jax.flat_jaxpr import FlatFunction, Operation, Slot

#: A step with these is no matter of vector code.
LOOPS = ("while", "scan", "cond", "pure_callback", "custom_call")

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
        Once: they depend on nothing that a step reads.
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
    keys_are_fixed: bool = False

    @property
    def nbytes(self) -> int:
        """Of all that is computed ahead for one step."""
        return sum(slot.nbytes for op in (*self.bits, *self.ahead) for slot in op.outputs)

    def settle(self, flat: FlatFunction) -> Split:
        """Find out what is taken over."""
        made = {slot for operation in self.ahead for slot in operation.outputs}
        used = [atom for operation in self.rest for atom in operation.inputs]
        wanted = [a for a in (*used, *flat.outputs) if isinstance(a, Slot) and a in made]
        self.taken = list(dict.fromkeys(wanted))
        return self


def split_map(flat: FlatFunction, n_carry: int, n_keys: int) -> Split | None:
    """Do everything ahead; None if a step has loops of its own."""
    del n_carry
    split, others = _split_keys(flat, n_keys)
    if any(operation.primitive.name in LOOPS for operation in others):
        return None
    split.ahead = others
    return split.settle(flat)


def split_draws(flat: FlatFunction, n_carry: int, n_keys: int) -> Split | None:
    """Do ahead what comes from keys, and from nothing that the loop computes."""
    split, others = _split_keys(flat, n_keys)
    known = set(flat.inputs[n_carry:])
    known.update(slot for op in (*split.fixed, *split.keys, *split.bits) for slot in op.outputs)
    drawn = {operation.outputs[0] for operation in split.bits}
    if not split.keys_are_fixed:
        drawn.update(flat.inputs[len(flat.inputs) - n_keys :])
    makers: dict[Slot, Operation] = {}
    wanted: list[Operation] = []
    for operation in others:
        slots = _slots(operation)
        if operation.primitive.name.endswith("callback") or not known.issuperset(slots):
            continue
        known.update(operation.outputs)
        makers.update((slot, operation) for slot in operation.outputs)
        if not drawn.isdisjoint(slots):
            drawn.update(operation.outputs)
            wanted.append(operation)
    chosen = _with_ancestors(wanted, makers)
    split.ahead = [operation for operation in others if id(operation) in chosen]
    split.rest = [operation for operation in others if id(operation) not in chosen]
    return split.settle(flat) if split.ahead or split.bits else None


def _split_keys(flat: FlatFunction, n_keys: int) -> tuple[Split, list[Operation]]:
    """Set apart what depends on no step, what makes keys, and what makes bits of them."""
    split = Split()
    fixed: set[Slot] = set()
    keys = set(flat.inputs[len(flat.inputs) - n_keys :]) if n_keys else set()
    others: list[Operation] = []
    for operation in flat.operations:
        slots, name = _slots(operation), operation.primitive.name
        if fixed.issuperset(slots):
            split.fixed.append(operation)
            fixed.update(operation.outputs)
        elif keys.isdisjoint(slots):
            others.append(operation)
        elif name in KEY_OPERATIONS and keys.union(fixed).issuperset(slots):
            split.keys.append(operation)
            keys.update(operation.outputs)
        elif name == "random_bits" and not getattr(slots[0].aval, "ndim", 1):
            split.bits.append(operation)
        else:
            return _without_fixed_keys(flat)
    split.keys_are_fixed = bool(n_keys)
    return split, others


def _without_fixed_keys(flat: FlatFunction) -> tuple[Split, list[Operation]]:
    """Let every step have its own keys: some are used for more than random bits."""
    split, fixed = Split(), set[Slot]()
    others = []
    for operation in flat.operations:
        if fixed.issuperset(_slots(operation)):
            split.fixed.append(operation)
            fixed.update(operation.outputs)
        else:
            others.append(operation)
    return split, others


def _with_ancestors(wanted: Sequence[Operation], makers: dict[Slot, Operation]) -> set[int]:
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
