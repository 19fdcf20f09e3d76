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

#: What takes long for a single number, by the names of JAX's primitives and our own.
DEAR = {
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "bessel_i0e", "bessel_i1e",
    "cbrt", "cos", "cosh", "digamma", "erf", "erf_inv", "erfc", "exp", "exp2", "expm1",
    "igamma", "igammac", "lgamma", "log", "log1p", "logistic", "pow", "sin", "sinh", "tan",
    "tanh", "fixed_modes_cos", "fixed_modes_exp", "fixed_modes_expm1", "fixed_modes_log",
    "fixed_modes_log1p", "fixed_modes_sigmoid", "fixed_modes_sin", "fixed_modes_tanh",
}  # fmt: skip

#: What is sooner computed again than stored and read.
CHEAP = {
    "abs", "add", "add_any", "and", "broadcast_in_dim", "convert_element_type", "copy",
    "device_put", "eq", "expand_dims", "ge", "gt", "le", "lt", "max", "min", "mul", "ne", "neg",
    "not", "or", "reshape", "rev", "select_n", "sign", "slice", "squeeze", "stop_gradient",
    "sub", "transpose", "xor",
}  # fmt: skip

#: Of so many entries of a map the loops run side by side: those that end by a condition
#: wait for the last one, and all share a step among threads if there are too many.
LANES_OF_WHILE, LANES_OF_SCAN = 32, 128

#: A loop with these, and with what is cheap or dear, gains from lanes.
LIGHT = {
    "bitcast_convert_type", "ceil", "clamp", "custom_jvp_call", "div", "floor", "integer_pow",
    "is_finite", "jit", "pjit", "rem", "round", "rsqrt", "scan", "sqrt", "while",
}  # fmt: skip

#: A matrix with as many elements is worth one product for all steps.
LARGE_MATRIX = 128

#: Rows with as many elements are vector code in the loop too.
LONG_ROW = 2048

#: Sums along rows with as many elements are several times slower for all steps of a loop
#: at once (JAX 0.6.2: 11 times with 256, the same with 112).
LONG_REDUCTION = 160

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
    is_map
        Whether nothing is left for a loop.
    keys_are_fixed
        Whether one key serves a draw of all steps.  Else each step has its own,
        among what it reads.
    lanes
        So many steps at most are computed at one time; None: no limit.
    """

    fixed: list[Operation] = field(default_factory=list)
    keys: list[Operation] = field(default_factory=list)
    bits: list[Operation] = field(default_factory=list)
    ahead: list[Operation] = field(default_factory=list)
    rest: list[Operation] = field(default_factory=list)
    taken: list[Slot] = field(default_factory=list)
    is_map: bool = False
    keys_are_fixed: bool = False
    lanes: int | None = None

    @property
    def nbytes(self) -> int:
        """Of all that is computed ahead for one step."""
        return sum(slot.nbytes for op in (*self.bits, *self.ahead) for slot in op.outputs)


def split_step(flat: FlatFunction, n_carry: int, n_keys: int, n_flags: int) -> Split:
    """Choose what is done ahead of a loop.

    That is everything if the steps depend on nothing but what they read, and
    contain no loops and no sums along long rows; else what comes from the keys, and what
    is dear, where it depends on nothing that the loop computes.  Checks of indices and the
    like stay in the loop: there they cost less, since the words of flags are then in use
    all the time, see `fixed_modes.jax.flag_words`.

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
    given = set(known)
    candidates = _independent(others, known)
    known.update(slot for operation in candidates for slot in operation.outputs)
    makers = {slot: op for op in (*fixed, *candidates) for slot in op.outputs}

    loops = [op for op in others if op.primitive.name in LOOPS]
    lanes = [_lanes(op) for op in loops]
    is_light = not loops or (not n_keys and all(lanes))
    split.is_map = not n_carry and is_light and not any(map(_reduces_long_rows, others))
    split.lanes = min(lanes, default=None) if split.is_map else None
    outputs = flat.outputs[: len(flat.outputs) - n_flags]
    flags = flat.outputs[len(flat.outputs) - n_flags :]
    if split.is_map:
        wanted = [makers[atom] for atom in (*outputs, *flags) if atom in makers]
    else:
        drawn = {operation.outputs[0] for operation in split.bits}
        if not split.keys_are_fixed:
            drawn.update(flat.inputs[len(flat.inputs) - n_keys :])
        wanted = _descendants(candidates, drawn)
        wanted += _dear(fixed, [op for op in others if op.primitive.name not in LOOPS], given)
    wanted += [makers[slot] for op in split.keys for slot in _slots(op) if slot in makers]

    chosen = _with_ancestors(wanted, makers)
    split.fixed = [operation for operation in fixed if id(operation) in chosen]
    split.ahead = [operation for operation in candidates if id(operation) in chosen]
    if not split.is_map:
        done = {id(op) for op in (*split.fixed, *split.keys, *split.bits, *split.ahead)}
        done -= _again(flat, done, flat.outputs, split.ahead, {id(op) for op in wanted})
        split.rest = [operation for operation in flat.operations if id(operation) not in done]
    made = {slot for operation in split.ahead for slot in operation.outputs}
    made -= {slot for operation in split.rest for slot in operation.outputs}
    used = [
        *(atom for operation in split.rest for atom in operation.inputs),
        *(outputs if split.is_map else flat.outputs),
    ]
    split.taken = [a for a in dict.fromkeys(used) if isinstance(a, Slot) and a in made]
    return split


def operations_for(wanted: Sequence[Any], operations: Sequence[Operation]) -> list[Operation]:
    """Find those operations, in order, that make what is wanted."""
    makers = {slot: operation for operation in operations for slot in operation.outputs}
    chosen = _with_ancestors([makers[atom] for atom in wanted if atom in makers], makers)
    return [operation for operation in operations if id(operation) in chosen]


def is_plain(operation: Operation) -> bool:
    """Say whether an operation on single numbers is cheap to do again."""
    sizes = [
        int(getattr(slot.aval, "size", 1)) for slot in (*_slots(operation), *operation.outputs)
    ]
    return operation.primitive.name in CHEAP and max(sizes, default=1) == 1


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


def _lanes(loop: Operation) -> int:
    """Say of how many entries of a map a loop is run side by side; 0: it had better not."""
    names: set[str] = set()
    pending = [(loop.primitive.name, loop.params, [slot.aval for slot in loop.outputs])]
    while pending:
        name, params, results = pending.pop()
        if name not in LIGHT | CHEAP | DEAR or any(getattr(a, "size", 1) > 8 for a in results):
            return 0
        names.add(name)
        inner = [value.jaxpr for value in params.values() if hasattr(value, "jaxpr")]
        eqns = [eqn for jaxpr in inner for eqn in jaxpr.eqns]
        pending += [(e.primitive.name, e.params, [v.aval for v in e.outvars]) for e in eqns]
    return LANES_OF_WHILE if "while" in names else LANES_OF_SCAN


def _reduces_long_rows(operation: Operation) -> bool:
    """Say whether an operation is a reduction that is slower for all steps at once."""
    name, params = operation.primitive.name, operation.params
    shape = next((getattr(slot.aval, "shape", ()) for slot in _slots(operation)), ())
    if not shape or shape[-1] < LONG_REDUCTION:
        return False
    if name.startswith("cum"):
        return bool(params["axis"] == len(shape) - 1)
    is_reduction = name.startswith("reduce_") and "axes" in params
    return is_reduction and len(shape) - 1 in params["axes"]


def _dear(
    fixed: Sequence[Operation], operations: Sequence[Operation], known: set[Slot]
) -> list[Operation]:
    """Find what is worth computing ahead among the operations that depend on `known` only."""
    settled = {slot for operation in fixed for slot in operation.outputs}
    return [op for op in _independent(operations, known) if _is_dear(op, settled)]


def _is_dear(operation: Operation, settled: set[Slot]) -> bool:
    slots = _slots(operation)
    largest = max((int(getattr(slot.aval, "size", 1)) for slot in slots), default=0)
    if operation.primitive.name == "dot_general" and largest >= LARGE_MATRIX:
        # By a matrix that stays the same: one product for all steps.
        varying = [slot for slot in slots if slot not in settled]
        return len(varying) == 1 and not any(operation.params["dimension_numbers"][1])
    return operation.primitive.name in DEAR and largest < LONG_ROW


def _again(
    flat: FlatFunction,
    done: set[int],
    results: Sequence[Any],
    ahead: Sequence[Operation],
    wanted: set[int],
) -> set[int]:
    """Choose what is computed ahead and once more in the loop, where it is cheap."""
    makers = {slot: op for op in ahead for slot in op.outputs}
    pending: list[Any] = [a for op in flat.operations if id(op) not in done for a in op.inputs]
    pending += results
    again: set[int] = set()
    while pending:
        op = makers.get(pending.pop())
        if op is None or id(op) in again or id(op) in wanted or op.primitive.name not in CHEAP:
            continue
        again.add(id(op))
        pending.extend(op.inputs)
    return again


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
