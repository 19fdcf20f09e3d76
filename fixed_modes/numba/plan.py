"""What is known before the compiled code runs: lengths, and integers made from them.

Half of a graph with scans is arithmetic on lengths: where slices begin and end, how
long buffers are, whether they are used as rings.  None of it depends on data.  It is
worked out in plain Python at each call, and memorised by the lengths; the compiled
code gets the numbers that it needs and is written for the decisions that they led to.
A call whose lengths lead to other decisions gets a variant of its own.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Any, Callable

import numpy as np

# Results beyond this are left to the compiled code, where integers wrap around.
_LARGEST = 2**62
# So many sets of lengths are remembered for a variant.
_MOST_REMEMBERED = 256


class NotKnown(Exception):
    """A value can't be worked out before the compiled code runs."""


class Known:
    """An integer that is known before the code runs.

    Attributes
    ----------
    value
        What it is at the call for which the code is written.
    """

    __slots__ = ("arguments", "template", "value")

    def __init__(self, value: Any, template: str, arguments: tuple[Known, ...] = ()) -> None:
        self.value = value
        self.template = template
        self.arguments = arguments

    @property
    def is_constant(self) -> bool:
        """Whether it is the same at each call."""
        return not self.template

    def __repr__(self) -> str:
        return f"Known({self.value})"


@cache
def _function(template: str, count: int) -> Callable[..., Any]:
    names = [f"a{n}" for n in range(count)]
    return eval(f"lambda {', '.join(names)}: {template.format(*names)}")


class Plan:
    """What is known at one call, what was decided from it, and how to do both again.

    Parameters
    ----------
    inputs
        The inputs of the call for which the code is written; None for code that
        suits every call and knows nothing.
    """

    def __init__(self, inputs: Sequence[Any] | None = None) -> None:
        self.inputs = inputs
        self._expressions: dict[tuple[Any, ...], Known] = {}
        self._guards: list[tuple[Known, bool]] = []
        self._decided: dict[Known, bool] = {}
        self._parameters: dict[Known, int] = {}

    # -- values -----------------------------------------------------------

    def constant(self, value: int) -> Known:
        """Give a value that is the same at each call."""
        key = ("", value)
        if key not in self._expressions:
            self._expressions[key] = Known(value, "")
        return self._expressions[key]

    def length(self, position: int, axis: int) -> Known | None:
        """Give the length of an axis of an input; None where nothing is known."""
        return self._leaf(f"x{position}.shape[{axis}]", lambda x: x.shape[axis], position)

    def scalar(self, position: int) -> Known | None:
        """Give a 0-d input of an integer or bool type; None where nothing is known."""
        if self.inputs is None or not -_LARGEST < int(self.inputs[position]) < _LARGEST:
            return None
        return self._leaf(f"int(x{position})", int, position)

    def _leaf(self, text: str, read: Callable[[Any], int], position: int) -> Known | None:
        if self.inputs is None:
            return None
        key = (text,)
        if key not in self._expressions:
            self._expressions[key] = Known(read(self.inputs[position]), text)
        return self._expressions[key]

    def apply(self, template: str, *arguments: Known) -> Known:
        """Give the value of an expression.

        Parameters
        ----------
        template
            The expression in Python, with ``{}`` for each argument.

        Raises
        ------
        NotKnown
            If it has no value, or not one in the range of an int64.
        """
        key = (template, *arguments)
        if key in self._expressions:
            return self._expressions[key]
        simple = _simplified(template, arguments)
        if simple is not None:
            return simple
        try:
            value = _function(template, len(arguments))(*(a.value for a in arguments))
        except (ArithmeticError, ValueError) as exc:
            raise NotKnown(str(exc)) from exc
        if not -_LARGEST < value < _LARGEST:
            raise NotKnown("out of range")
        if all(a.is_constant for a in arguments):
            known = self.constant(value)
        else:
            known = Known(value, template, arguments)
        self._expressions[key] = known
        return known

    def decide(self, template: str, *arguments: Known) -> bool:
        """Give the truth of a condition; the code that follows from it is for it alone."""
        condition = self.apply(template, *arguments)
        truth = bool(condition.value)
        if not condition.is_constant and condition not in self._decided:
            self._decided[condition] = truth
            self._guards.append((condition, truth))
        return truth

    def equal(self, one: Known, other: Known) -> bool:
        """Decide whether two values are the same."""
        return one is other or self.decide("{} == {}", one, other)

    # -- what the compiled code gets ----------------------------------------

    def parameter(self, known: Known) -> int:
        """Give the place of a value among the parameters of the compiled code."""
        return self._parameters.setdefault(known, len(self._parameters))

    def known(self, place: int) -> Known:
        """Give the value at a place among the parameters of the compiled code."""
        return list(self._parameters)[place]

    def replay(self, n_inputs: int) -> Replay:
        """Give what does all this again for another call with so many inputs."""
        return Replay(list(self._parameters), self._guards, n_inputs)


def _simplified(template: str, arguments: tuple[Known, ...]) -> Known | None:
    """Give an argument that an expression is equal to in any case."""
    if len(arguments) != 2:
        return None
    a, b = arguments
    if template == "{} + {}":
        return b if _is(a, 0) else a if _is(b, 0) else None
    if template == "{} - {}":
        return a if _is(b, 0) else None
    if template == "{} * {}":
        return b if _is(a, 1) else a if _is(b, 1) else None
    return a if a is b and template in ("min({}, {})", "max({}, {})") else None


def _is(known: Known, value: int) -> bool:
    return known.is_constant and known.value == value


class Replay:
    """Works out the parameters of a variant of the compiled code for a call.

    Parameters
    ----------
    parameters
        The values that the code gets.
    guards
        Conditions, and what they have to be for this variant.
    n_inputs
        How many inputs the graph has.
    """

    def __init__(
        self, parameters: list[Known], guards: list[tuple[Known, bool]], n_inputs: int
    ) -> None:
        self._names: dict[Known, str] = {}
        self._lines: list[str] = []
        self._leaves: dict[str, str] = {}
        for condition, truth in guards:
            name = self._name(condition)
            self._lines.append(f"if {'not ' if truth else ''}{name}: return None")
        results = [self._name(p) for p in parameters]
        if results:
            self._lines.append(f"result = ({', '.join(results)},)")
            self._lines.append(f"return result if {-_LARGEST} < min(result) <= max(result)"
                               f" < {_LARGEST} else None")  # fmt: skip
        else:
            self._lines.append("return ()")
        arguments = ", ".join(f"x{n}" for n in range(n_inputs))
        self.source = _definition("replay", ", ".join(self._leaves.values()), self._lines)
        key = f"({', '.join(self._leaves)}{',' if self._leaves else ''})"
        namespace: dict[str, Any] = {}
        exec(self.source, namespace)
        exec(_definition("key", arguments, [f"return {key}"]), namespace)
        self._replay, self._key = namespace["replay"], namespace["key"]
        self._remembered: dict[tuple[int, ...], np.ndarray | None] = {}

    def _name(self, known: Known) -> str:
        if known.is_constant:
            return repr(known.value)
        if known not in self._names:
            arguments = [self._name(a) for a in known.arguments]
            if arguments:
                name = f"k{len(self._names)}"
                self._lines.append(f"{name} = {known.template.format(*arguments)}")
                if "*" in known.template:
                    self._lines.append(f"if not {-_LARGEST} < {name} < {_LARGEST}: return None")
            else:
                name = re.sub(r"\W+", "_", known.template).strip("_")
                self._leaves[known.template] = name
            self._names[known] = name
        return self._names[known]

    def parameters(self, inputs: Sequence[Any]) -> np.ndarray | None:
        """Give the parameters for a call; None where the call needs another variant."""
        key = self._key(*inputs)
        if key in self._remembered:
            return self._remembered[key]
        try:
            result = self._replay(*key)
        except (ArithmeticError, ValueError):
            result = None
        if len(self._remembered) >= _MOST_REMEMBERED:
            self._remembered.clear()
        values = None if result is None else np.array(result, np.int64)
        self._remembered[key] = values
        return values


def _definition(name: str, arguments: str, lines: list[str]) -> str:
    return "\n    ".join([f"def {name}({arguments}):", *lines]) + "\n"
