"""Hypothesis strategies that write programs: graphs with loops in all their forms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from tests.conformance.expressions import Expressions, Shape, Variable
from tests.conformance.program import Program

STATE_DTYPES = ("float64", "float32", "int64", "int8", "uint8", "bool", "complex128", "int32")
RARE_DTYPES = ("uint32", "int16", "complex64", "uint16")
SHAPES: tuple[Shape, ...] = (
    (),
    (2,),
    (1,),
    (3,),
    (2, 3),
    (0,),
    (2, 1, 2),
    (9,),
    (3, 11),
    (5,),
    (0, 3),
)
STEPS = (3, 1, 2, 5, 0, 20)
SEQUENCE_TAPS = ((0,), (0, 1), (-1, 0), (0, 2), (-2,))
STATE_TAPS = ((-1,), (-1, -2), (-2,), (-1, -3))
READS = ("{}", "{}[-1]", "{}[2:]", "{}[::-2]", "{}[-2:]", "{}[:-1]", "{}.sum(axis=0)", "{}[::-1]")


@dataclass
class State:
    """A state of a loop, or one of its results without a tap (`taps` is empty)."""

    taps: tuple[int, ...]
    shape: Shape
    dtype: str
    initial: str


class Writer(Expressions):
    """Draws the statements of one program."""

    def __init__(self, draw: Callable[[Any], Any], with_random: bool) -> None:
        super().__init__(draw)
        self.with_random = with_random
        self.arguments: list[str] = []
        self.others: list[str] = []
        self.inputs: list[Variable] = []
        self.updates: list[str] = []
        self.shared: list[str] = []
        self.outputs: list[str] = []
        self.differentiable: list[str] = []
        self.has_until = False

    def program(self) -> Program:
        """Draw a whole program."""
        self.lines = ["updates = {}"]
        self.indent = "    "
        self.scope = [self.input_of(self.shape(), self.dtype()) for _ in range(self.one_of(1, 2))]
        for _ in range(self.one_of(1, 1, 1, 2)):
            self.write_scan(depth=0)
        if self.chance(3):
            self.outputs.append(self.name_of(self.expression(self.shape(), self.dtype(), 2)))
        self.write_gradients()
        body = "\n".join(f"    {line}" if line else "" for line in self.lines)
        names = ", ".join(v.name for v in self.inputs)
        return Program(
            f"def build(scan_mode):\n{body}\n"
            f"    return [{names}], [{', '.join(self.outputs)}], updates, "
            f"[{', '.join(self.shared)}]\n\n\n"
            f"{_function('arguments', self.arguments)}\n\n{_function('others', self.others)}"
        )

    def shape(self) -> Shape:
        return self.one_of(*SHAPES)

    def dtype(self) -> str:
        # Mostly floats: they have the gradients.
        if self.chance(12):
            return self.one_of(*RARE_DTYPES)
        return self.one_of("float64", "float64", "float64", *STATE_DTYPES)

    def input_of(self, shape: Shape, dtype: str, values: tuple[str, str] | None = None) -> Variable:
        """Declare an input; a length of 1 is part of its type now and then."""
        name = self.fresh("x")
        lengths = tuple(n if n == 1 and self.chance(2) else None for n in shape)
        declared = f'{name} = at.TensorType("{dtype}", {lengths})("{name}")'
        self.declarations.append(declared)
        self.lines.insert(len(self.declarations), declared)
        first, other = values or (self.array(shape, dtype), self.array(shape, dtype))
        self.arguments.append(first)
        self.others.append(other)
        variable = Variable(name, dtype, shape, exact=True)
        self.inputs.append(variable)
        return variable

    # Loops

    def write_scan(self, depth: int) -> None:
        """Draw a scan, the reads of its results, and add them to the scope or the outputs."""
        steps = self.one_of(*STEPS) if depth == 0 else self.one_of(2, 1, 3, 0)
        n_steps = self.draw_n_steps(steps, depth)
        sequences = self.draw_sequences(steps, n_steps is not None, depth)
        n_steps = n_steps or (None if sequences else str(steps))
        states = [self.draw_state(steps, depth) for _ in range(self.one_of(1, 2, 3))]
        until = depth == 0 and self.chance(5)
        self.has_until = self.has_until or until
        step, shared = self.fresh("step"), self.draw_shared() if depth == 0 else None
        fixed = [v for v in self.scope if self.chance(2)]
        self.write_step(step, sequences, states, fixed, until, shared, depth)
        results = [self.fresh("y") for _ in states]
        updates = self.fresh("u")
        self.emit(
            f"{', '.join(results)}, {updates} = aesara.scan("
            if len(results) == 1
            else f"({', '.join(results)}), {updates} = aesara.scan("
        )
        for argument in (
            step,
            f"sequences=[{', '.join(s for s, *_ in sequences)}]",
            f"outputs_info=[{', '.join(map(self.outputs_info, states))}]",
            f"non_sequences=[{', '.join(v.name for v in fixed)}]",
            f"n_steps={n_steps}",
            f"go_backwards={self.chance(4)}",
            "mode=scan_mode",
        ):
            self.emit(f"    {argument},")
        self.emit(")")
        if depth == 0:
            self.emit(f"updates.update({updates})")
        for name, state in zip(results, states):
            self.read(name, state, None if until else steps, depth)

    def draw_n_steps(self, steps: int, depth: int) -> str | None:
        form = self.one_of("sequences", "constant", "symbolic")
        if form == "constant":
            return str(steps)
        if form == "symbolic" and depth == 0:
            numbers = (steps, self.one_of(steps, max(steps - 1, 1), 1) if steps else 0)
            texts = [f'np.array({n}, "int64")' for n in numbers]
            return self.input_of((), "int64", (texts[0], texts[1])).name
        return None

    def draw_sequences(
        self, steps: int, is_bounded: bool, depth: int
    ) -> list[tuple[str, tuple[int, ...], Shape, str]]:
        """Draw sequences: for each what `aesara.scan` takes, the taps, the shape of a row."""
        found = []
        for _ in range(self.one_of(1, 0, 2)):
            taps, row, dtype = self.one_of(*SEQUENCE_TAPS), self.shape(), self.dtype()
            spare = self.one_of(0, 1) if is_bounded else 0
            if row and len(row) > 2:
                row = row[:2]
            length = steps + max(0, *taps) - min(0, *taps) + spare
            if depth:
                name = self.name_of(self.expression((length, *row), dtype, 1))
            else:
                name = self.input_of((length, *row), dtype).name
            text = name if taps == (0,) else f"dict(input={name}, taps={list(taps)})"
            found.append((text, taps, row, dtype))
        if not is_bounded and len({len(t) for _, t, _, _ in found}) > 1:
            # Without a number of steps all sequences have to have the same length.
            found = found[:1]
        return found

    def draw_state(self, steps: int, depth: int) -> State:
        shape, dtype = self.shape(), self.dtype()
        if self.chance(3):
            # FAST_RUN does not know the shape of rows that no step made.
            return State((), shape if steps else (), dtype, "")
        taps = self.one_of(*STATE_TAPS)
        rows = -min(taps)
        whole = shape if taps == (-1,) else (rows, *shape)
        if depth == 0 and self.chance(2):
            initial = self.input_of(whole, dtype).name
        else:
            initial = self.name_of(self.expression(whole, dtype, 1))
        return State(taps, shape, dtype, initial)

    def outputs_info(self, state: State) -> str:
        if not state.taps:
            return "None"
        if state.taps == (-1,):
            return state.initial
        return f"dict(initial={state.initial}, taps={list(state.taps)})"

    def draw_shared(self) -> tuple[Variable, str] | None:
        """Declare a shared variable that the step updates, or a random stream."""
        if not self.chance(4):
            return None
        name = self.fresh("shared")
        if self.with_random and self.chance(2):
            self.emit(f"{name} = RandomStream({self.one_of(1, 2)})")
            return Variable(name, "float64", (), exact=False), "draw"
        shape = self.shape()
        self.emit(f'{name} = aesara.shared({self.array(shape, "float64")}, name="{name}")')
        self.shared.append(name)
        return Variable(name, "float64", shape, exact=False), "update"

    def write_step(
        self,
        name: str,
        sequences: Sequence[Any],
        states: Sequence[State],
        fixed: Sequence[Variable],
        until: bool,
        shared: tuple[Variable, str] | None,
        depth: int,
    ) -> None:
        """Write the function that a scan calls once, to get its inner graph."""
        outer_scope, outer_indent = self.scope, self.indent
        arguments = [
            Variable(self.fresh("r"), dtype, row, exact=True)
            for _, taps, row, dtype in sequences
            for _ in taps
        ]
        before = [
            Variable(self.fresh("s"), s.dtype, s.shape, exact=False) for s in states for _ in s.taps
        ]
        inner = [Variable(self.fresh("c"), v.dtype, v.shape, v.exact) for v in fixed]
        taken = [*arguments, *before, *inner]
        self.emit(f"def {name}({', '.join(v.name for v in taken)}):")
        self.scope, self.indent = [*taken], outer_indent + "    "
        if self.chance(4):
            # What a step reads without being given it.
            self.scope += outer_scope
        new_state = ""
        if shared is not None:
            variable, kind = shared
            if kind == "draw":
                drawn = self.name_of(f"{variable.name}.normal(0.5, 2.0, size=(2,))")
                self.scope.append(Variable(drawn, "float64", (2,), exact=False))
            else:
                self.scope.append(variable)
                value = self.name_of(self.expression(variable.shape, "float64", 1))
                new_state = f", {{{variable.name}: {variable.name} * 0.5 + at.tanh({value})}}"
        if depth == 0 and self.chance(4):
            self.write_scan(depth=1)
        values = [self.new_value(state, before) for state in states]
        condition = ""
        if until:
            number = self.expression((), "float64", 1)
            condition = f", until({number} > 1.7182)"
        self.emit(f"return [{', '.join(values)}]{new_state}{condition}")
        self.scope, self.indent = outer_scope, outer_indent

    def new_value(self, state: State, before: Sequence[Variable]) -> str:
        """Draw what a step returns: often something that only has another name."""
        same = [v.name for v in before if (v.shape, v.dtype) == (state.shape, state.dtype)]
        if same and self.chance(3):
            name = self.one_of(*same)
            return f"{name}[::-1]" if state.shape and self.chance(3) else name
        if same and state.shape and state.shape[0] and self.chance(4):
            return self.changed(self.one_of(*same), state)
        value = self.expression(state.shape, state.dtype, 2)
        return self.name_of(value) if self.chance(2) else value

    def changed(self, name: str, state: State) -> str:
        """Draw a change of some elements of a state, which a step may do where they are."""
        rows, rest = state.shape[0], state.shape[1:]
        places = [self.place(rows), self.place(rows)]
        read = [self.name_of(f"{name}[{place}]") for place in places]
        self.scope += [Variable(v, state.dtype, rest, exact=False) for v in read]
        value = self.expression(rest, state.dtype, 1)
        form = self.one_of(
            "at.set_subtensor({s}[{i}], {value})",
            "at.set_subtensor({s}[{i}], {at_j})",
            "at.set_subtensor(at.set_subtensor({s}[{i}], {at_j})[{j}], {at_i})",
            "at.set_subtensor({s}[at.stack([{i}, {i}])], {at_j})",
            "at.set_subtensor(at.set_subtensor({s}[{j}], {value})[{i}], {at_i})",
        )
        if state.dtype != "bool" and self.chance(3):
            form = form.replace("set_", "inc_")
        text = form.format(
            s=name, i=places[0], j=places[1], at_i=read[0], at_j=read[1], value=value
        )
        if self.chance(2):
            condition = self.compared((), "bool", 0, True)
            branches = (text, name) if self.chance(2) else (name, text)
            return f"at.switch({condition}, {', '.join(branches)})"
        return text

    def place(self, rows: int) -> str:
        """Draw the place of a row, known or not."""
        if self.chance(2):
            return self.one_of("0", "-1")
        return self.name_of(f'(at.cast({self.leaf((), "int64", True)}, "int64") % {rows})')

    def read(self, name: str, state: State, steps: int | None, depth: int) -> None:
        """Draw which part of a trace is used."""
        # Of a loop without a step FAST_RUN gives as a last row what the memory held.
        read = self.one_of(*(r for r in READS if steps != 0 or r != "{}[-1]"))
        if depth == 0:
            out = self.name_of(read.format(name))
            self.outputs.append(out)
            if state.dtype in ("float32", "float64"):
                self.differentiable.append(out)
            return
        if steps:
            # The last row: its shape is known to the generator.
            self.scope.append(
                Variable(self.name_of(f"{name}[-1]"), state.dtype, state.shape, exact=False)
            )

    # Gradients

    def write_gradients(self) -> None:
        """Draw gradients of the results by the inputs.

        None of `until` loops: Aesara builds wrong graphs for them.  None by sequences without
        rows: in Python their gradient is an error, since rows that no step made have no length.
        """
        sources = [
            v.name
            for v in self.inputs
            if v.dtype in ("float32", "float64") and 0 not in v.shape[:1]
        ]
        if not self.differentiable or not sources or self.has_until or not self.chance(2):
            return
        cost = " + ".join(f"{name}.sum()" for name in self.differentiable)
        chosen = sources if self.chance(2) else [self.one_of(*sources)]
        self.emit(f"cost = {cost}")
        self.emit(
            f'gradients = aesara.grad(cost, [{", ".join(chosen)}], disconnected_inputs="ignore")'
        )
        self.outputs += [f"gradients[{n}]" for n in range(len(chosen))]


def _function(name: str, values: Sequence[str]) -> str:
    lines = "".join(f"        {value},\n" for value in values)
    return f"def {name}():\n    return [\n{lines}    ]\n"


@st.composite
def programs(draw: Any, with_random: bool = False) -> Program:
    """Draw a graph.

    Parameters
    ----------
    with_random
        Whether loops draw random numbers: those of FAST_RUN are expected.
    """
    return Writer(draw, with_random).program()
