"""The state of one evaluation: where it stands, what is known, what is to be checked."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Callable

import numpy as np
from aesara.graph.basic import Apply, Constant, Variable
from aesara.tensor.random.type import RandomType

from fixed_modes.errors import describe_node, with_origin
from fixed_modes.jax.flag_words import fill_up, pack, unpack
from fixed_modes.jax.lazy_rows import LazyRows
from fixed_modes.jax.ragged import Ragged
from fixed_modes.jax.rng import key_from_rng
from fixed_modes.jax.settings import Settings


class NeedsConcrete(Exception):
    """A traced value stands where tracing needs a number.

    Attributes
    ----------
    variables
        Variables of the graph that was being evaluated: were their values
        known, tracing could go on.
    reason
        What the number is needed for, for the error message.
    where
        The description of the node that needs it; the evaluation adds it.
    node
        The node of that graph that can't go on; the evaluation adds it.
    """

    def __init__(self, variables: Sequence[Variable], reason: str, where: str = "") -> None:
        super().__init__(reason)
        self.variables = tuple(variables)
        self.reason = reason
        self.where = where
        self.node: Apply | None = None


class NeedsEager(Exception):
    """A node can't be traced at all, or not with what is known: it must run by itself.

    Attributes
    ----------
    reason
        Why, for the warning.
    where
        The description of the innermost node; the evaluation adds it.
    node
        The node of the graph that was being evaluated; the evaluation adds it.
    variables
        If these were computed before, it might be traced after all.
    is_padded
        Whether one of these is a `PaddedTrace`, of which only the length is missing.
    is_window
        Whether a window was taken to be within an array, and is not.
    """

    def __init__(
        self,
        reason: str,
        where: str = "",
        variables: Sequence[Variable] = (),
        is_padded: bool = False,
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.where = where
        self.node: Apply | None = None
        self.variables = tuple(variables)
        self.is_padded = is_padded
        self.is_window = False


@dataclass
class Checks:
    """Conditions that only the run can decide, and the errors they stand for.

    Attributes
    ----------
    failed
        Traced booleans; None where the flag is a bit of `words`.
    errors
        For each flag, what makes its error.
    words
        Flags that loops carry, see `fixed_modes.jax.flag_words`.
    """

    failed: list[Any] = field(default_factory=list)
    errors: list[Callable[[], Exception]] = field(default_factory=list)
    words: list[Any] = field(default_factory=list)

    def add(self, failed: Any, error: Callable[[], Exception]) -> None:
        """Raise ``error()`` after the run if the traced boolean `failed` is true."""
        self.failed.append(failed)
        self.errors.append(error)

    def pack(self) -> list[Any]:
        """Turn all flags into bits of words, and give the words."""
        flags = [(i, flag) for i, flag in enumerate(self.failed) if flag is not None]
        self.words = pack(flags, fill_up(self.words, len(self.failed)))
        self.failed = [None] * len(self.failed)
        return self.words

    def unpack(self) -> list[Any]:
        """Turn all flags into booleans, and give these."""
        self.failed = [
            unpack(self.words, i) if flag is None else flag for i, flag in enumerate(self.failed)
        ]
        self.words = []
        return self.failed

    def extend(self, words: list[Any], errors: Sequence[Callable[[], Exception]]) -> None:
        """Take over words from a loop that carried on those of `pack`, with more flags in them."""
        self.words = words
        self.failed.extend(None for _ in errors)
        self.errors.extend(errors)

    def cut(self, count: int) -> None:
        """Forget all checks but the first."""
        if any(flag is None for flag in self.failed[count:]):
            self.unpack()
        del self.failed[count:], self.errors[count:]

    def locate(self, first: int, node: Apply, scans: tuple[str, ...]) -> None:
        """Say where the errors from number `first` on come from, unless that is known."""
        for index in range(first, len(self.errors)):
            error = self.errors[index]
            if isinstance(error, RunByItself):
                error.where = error.where or describe_node(node, scans)
                error.node = node
            elif not isinstance(error, Located):
                self.errors[index] = Located(error, node, scans)


@dataclass(eq=False)
class RunByItself:
    """Stands for a check that finds out that what was compiled doesn't hold.

    The node, the outermost one that holds the check, then runs by itself, in this
    call and in all later ones.
    """

    reason: str
    where: str = ""
    node: Apply | None = None
    is_window: bool = False

    def __call__(self) -> Exception:
        error = NeedsEager(self.reason, self.where)
        error.node, error.is_window = self.node, self.is_window
        return error


@dataclass(frozen=True, eq=False)
class Located:
    """Makes the error of a check, with the description of the node that checks."""

    error: Callable[[], Exception]
    node: Apply
    scans: tuple[str, ...]

    def __call__(self) -> Exception:
        return described(self.error(), self.node, self.scans)


def described(exc: Exception, node: Apply, scans: tuple[str, ...]) -> Exception:
    """Give an error of the same type that says at which node it happened, if it can be made."""
    # A type that takes other arguments stays without a description.
    with suppress(Exception):
        exc = type(exc)(f"{exc}\n{describe_node(node, scans)}")
    return with_origin(exc, node)


@dataclass
class Frame:
    """One graph under evaluation.

    Attributes
    ----------
    inputs
        The inputs of the graph; `values` has a value for each.
    values
        What the variables evaluated so far stand for: *concrete* values (NumPy
        arrays and scalars, ``None``, slices) or traced ones.
    known
        Values of inputs that tracing needs as numbers.  Only the outermost graph
        has any.
    scans
        Names of the loops around this graph, outermost first.
    checks
        Collects the run-time checks of this graph.
    last_call
        The flag of the last call to Python that compiled code makes.
    failures
        Errors that calls to Python have raised, by node; for all graphs together.
    outer, origins
        For an inner graph: the frame around it, and which of that graph's
        variables an inner input is, or is a row of.
    fixed
        For an inner graph: the inputs that are the same in every step.
    settings
        The flags that the function was built with.
    """

    inputs: Sequence[Variable]
    values: dict[Variable, Any]
    known: Mapping[Variable, Any] = field(default_factory=dict)
    scans: tuple[str, ...] = ()
    checks: Checks = field(default_factory=Checks)
    last_call: Any = None
    failures: dict[Apply, deque[Exception]] = field(default_factory=dict)
    outer: Frame | None = None
    origins: Mapping[Variable, Variable] = field(default_factory=dict)
    fixed: frozenset[Variable] = frozenset()
    settings: Settings = field(default_factory=Settings)

    def inner(
        self,
        inputs: Sequence[Variable],
        values: Iterable[Any],
        origins: Mapping[Variable, Variable],
        scan: str | None = None,
        fixed: Iterable[Variable] | None = None,
    ) -> Frame:
        """Make the frame of an inner graph, with checks of its own.

        Without `fixed`, all that has an origin is the same in every step.
        """
        scans = self.scans if scan is None else (*self.scans, scan)
        return Frame(
            inputs,
            dict(zip(inputs, values)),
            scans=scans,
            outer=self,
            origins=origins,
            fixed=frozenset(origins if fixed is None else fixed),
            failures=self.failures,
            settings=self.settings,
        )

    def branch(self) -> Frame:
        """Make a frame for a part of this graph that is traced apart."""
        return replace(self, values=dict(self.values), checks=Checks(), last_call=None)

    def value(self, variable: Variable) -> Any:
        """Give the value of a variable that was evaluated, or of a constant.

        Raises
        ------
        NeedsConcrete
            If it is a `LazyRows` or a `Ragged`, which are no arrays.
        """
        if variable in self.values:
            value = self.values[variable]
            if isinstance(value, LazyRows):
                raise NeedsConcrete([variable], "the bounds of an arange")
            if isinstance(value, Ragged):
                raise NeedsConcrete([variable], value.reason)
            return value
        if isinstance(variable, Constant):
            if isinstance(variable.type, RandomType):
                return key_from_rng(variable.data)
            return variable.data
        raise KeyError(variable)

    def concrete(self, variable: Variable, reason: str) -> Any:
        """Give the concrete value of a variable.

        Raises
        ------
        NeedsConcrete
            If it depends on what is traced.
        """
        value = self.value(variable)
        if is_concrete(value):
            return value
        raise NeedsConcrete([variable], reason)

    def is_fixed(self, variable: Variable) -> bool:
        """Say whether a variable is the same in every step of all loops around it."""
        if self.outer is None:
            return True
        return all(
            source in self.fixed and self.outer.is_fixed(self.origins[source])
            for source in self.traced_sources([variable])
        )

    def traced_sources(self, variables: Sequence[Variable]) -> list[Variable]:
        """Find the graph's inputs that make these variables traced."""
        found: dict[Variable, None] = {}
        pending, seen = list(variables), set()
        while pending:
            variable = pending.pop()
            if variable in seen or self._is_settled(variable):
                continue
            seen.add(variable)
            if variable.owner is None or variable in self.inputs:
                found[variable] = None
            else:
                pending.extend(variable.owner.inputs)
        return list(found)

    def _is_settled(self, variable: Variable) -> bool:
        if isinstance(variable, Constant):
            return True
        return variable in self.values and is_concrete(self.values[variable])


def is_concrete(value: Any) -> bool:
    """Say whether a value is known while tracing."""
    if isinstance(value, slice):
        return all(is_concrete(part) for part in (value.start, value.stop, value.step))
    return value is None or isinstance(value, (np.ndarray, np.generic, int, float, complex))
