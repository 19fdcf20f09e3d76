"""Draws expressions of a given shape and dtype from the variables in scope."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

Shape = tuple[int, ...]

FLOATS = ("float32", "float64")
INTEGERS = ("int8", "uint8", "int64", "int32", "uint32", "int16", "uint16")
COMPLEX = ("complex64", "complex128")

# Sums, differences and products of these are exact, so that what jumps (a comparison, a
# floor) jumps for every order of evaluation.
NUMBERS = ("1.0", "-0.5", "0.0", "2.0", "-1.0", "0.25", "3.0", "-2.0")
SPECIAL = ("np.nan", "np.inf", "-np.inf", "-0.0")

SMOOTH = (
    "at.tanh({})",
    "at.sin({})",
    "at.exp(-abs({}))",
    "at.sqr({})",
    "at.sigmoid({})",
    "at.log1p(abs({}))",
    "at.sqrt(abs({}) + 1)",
    "at.erf({})",
    "at.expm1(-abs({}))",
    "at.softplus({})",
    "at.reciprocal({} + 4)",
)
EXACT = ("-{}", "abs({})", "at.clip({}, -1, 2)", "({} * 2)", "({} + 1)", "at.maximum({}, 0)")
# The quotient of infinity is infinity in C and NaN in Python.
HALF = "(at.clip({}, -9, 9) // 2)"
JUMPS = ("at.floor({})", "at.sgn({})", "at.ceil({})", "at.round({})", HALF, "({} % 3)")
PAIRS = ("({} + {})", "({} - {})", "({} * {})", "at.maximum({}, {})", "at.minimum({}, {})")


@dataclass(frozen=True)
class Variable:
    """A name in scope.

    Attributes
    ----------
    exact
        Whether its value is free of rounding errors.
    """

    name: str
    dtype: str
    shape: Shape
    exact: bool


class Expressions:
    """Draws expressions; statements that they need are added to `lines`."""

    def __init__(self, draw: Callable[[Any], Any]) -> None:
        self.draw = draw
        self.scope: list[Variable] = []
        self.lines: list[str] = []
        self.declarations: list[str] = []
        self.indent = ""
        self._count = 0

    def one_of(self, *choices: Any) -> Any:
        """Draw one; the first is the simplest."""
        return self.draw(st.sampled_from(choices))

    def chance(self, n: int) -> bool:
        """Draw True in about one of `n` cases."""
        return self.draw(st.integers(0, n - 1)) == n - 1

    def fresh(self, hint: str) -> str:
        self._count += 1
        return f"{hint}{self._count}"

    def emit(self, line: str) -> None:
        self.lines.append(self.indent[4:] + line)

    def name_of(self, expression: str) -> str:
        """Give an expression a name."""
        if expression.isidentifier():
            return expression
        name = self.fresh("t")
        self.emit(f"{name} = {expression}")
        return name

    def array(self, shape: Shape, dtype: str) -> str:
        """Draw the text of an array."""
        if dtype == "bool":
            pool = self.one_of("[True, False]", "[False]", "[True]")
        elif dtype in INTEGERS:
            pool = self.one_of("[1, 2, 0]", "[3, 1]", "[0]", "[1, 127, 5]")
        else:
            numbers = [self.one_of(*NUMBERS) for _ in range(3)]
            if self.chance(6):
                numbers.append(self.one_of(*SPECIAL))
            if dtype.startswith("complex"):
                numbers.append("1j")
            pool = f"[{', '.join(numbers)}]"
        if not shape:
            return f'np.array({pool}[0], "{dtype}")'
        return f'np.resize(np.array({pool}, "{dtype}"), {shape})'

    def expression(self, shape: Shape, dtype: str, depth: int, exact: bool = False) -> str:
        """Draw an expression for a tensor of that shape and dtype.

        Parameters
        ----------
        exact
            Whether the value has to be free of rounding errors.
        """
        if depth <= 0 or self.chance(4):
            return self.leaf(shape, dtype, exact)
        makers = [self.leaf, self.pair, self.unary, self.chosen, self.converted]
        if shape:
            makers += [self.spread, self.turned]
            if shape[0] > 0:
                makers += [self.picked, self.joined, self.written]
            if len(shape) == 1 and dtype in FLOATS and not exact:
                makers.append(self.vector_only)
        if len(shape) < 3:
            makers += [self.reduced, self.partly]
        if dtype in FLOATS and not exact:
            makers += [self.smooth, self.smooth, self.product]
        if dtype == "bool":
            makers.append(self.compared)
        maker = self.one_of(*makers)
        if maker == self.leaf:
            return self.leaf(shape, dtype, exact)
        return maker(shape, dtype, depth - 1, exact)

    def leaf(self, shape: Shape, dtype: str, exact: bool = False) -> str:
        fitting = [v for v in self.scope if v.shape == shape and (v.exact or not exact)]
        same = [v.name for v in fitting if v.dtype == dtype]
        if same:
            return self.one_of(*same)
        wider = [v.name for v in fitting if _widens(v.dtype, dtype)]
        if wider:
            return f'at.cast({self.one_of(*wider)}, "{dtype}")'
        if self.scope and shape and self.chance(2):
            # A value that is allocated when the function runs.
            return (
                f'at.alloc(at.cast({self.number(dtype)}, "{dtype}"), {", ".join(map(str, shape))})'
            )
        return f"at.constant({self.array(shape, dtype)})"

    def number(self, dtype: str) -> str:
        if dtype in (*FLOATS, *COMPLEX):
            return self.one_of(*NUMBERS)
        return self.one_of("1", "0", "2") if dtype != "bool" else self.one_of("1", "0")

    def cast(self, text: str, dtype: str) -> str:
        return f'at.cast({text}, "{dtype}")'

    def pair(self, shape: Shape, dtype: str, depth: int, exact: bool) -> str:
        a = self.expression(shape, dtype, depth, exact)
        b = self.expression(shape, dtype, depth, exact)
        if dtype == "bool":
            return self.one_of("({} & {})", "({} | {})", "at.xor({}, {})").format(a, b)
        form = self.one_of(*(PAIRS[:3] if dtype in COMPLEX else PAIRS))
        return self.cast(form.format(a, b), dtype)

    def unary(self, shape: Shape, dtype: str, depth: int, exact: bool) -> str:
        if dtype == "bool":
            return f"at.invert({self.expression(shape, dtype, depth, exact)})"
        if dtype in COMPLEX:
            form = self.one_of("-{}", "at.conj({})", "({} * 1j)")
        elif dtype in FLOATS and self.chance(3):
            form, exact = self.one_of(*JUMPS), True
        elif dtype.startswith("uint"):
            form = self.one_of("({} * 2)", "({} + 1)", "({} // 2)", "({} % 3)")
        else:
            form = self.one_of(*EXACT)
        return self.cast(form.format(self.expression(shape, dtype, depth, exact)), dtype)

    def smooth(self, shape: Shape, dtype: str, depth: int, exact: bool) -> str:
        form = self.one_of(*SMOOTH)
        return self.cast(form.format(self.expression(shape, dtype, depth)), dtype)

    def compared(self, shape: Shape, dtype: str, depth: int, exact: bool) -> str:
        kind = self.one_of("float64", "int64", "float32")
        a = self.expression(shape, kind, depth, exact=True)
        if kind != "int64" and self.chance(3):
            return self.one_of("at.isnan({})", "at.isinf({})").format(a)
        b = self.expression(shape, kind, depth, exact=True)
        form = self.one_of("at.lt({}, {})", "at.ge({}, {})", "at.eq({}, {})", "at.neq({}, {})")
        return form.format(a, b)

    def chosen(self, shape: Shape, dtype: str, depth: int, exact: bool) -> str:
        lazy = self.chance(3)
        condition = self.compared(() if lazy else shape, "bool", 0, True)
        a = self.expression(shape, dtype, depth, exact)
        b = self.expression(shape, dtype, depth, exact)
        # A cast to its own dtype is nothing; it drops what is known of the shape only here.
        return f"{'ifelse' if lazy else 'at.switch'}({condition}, {a}, {b})"

    def converted(self, shape: Shape, dtype: str, depth: int, exact: bool) -> str:
        narrower = [d for d in ("bool", *INTEGERS, *FLOATS) if d != dtype and _widens(d, dtype)]
        if dtype in FLOATS and self.chance(3):
            z = self.expression(shape, self.one_of(*COMPLEX[::-1]), depth, exact)
            form = self.one_of("at.real({})", "at.imag({})")
            return self.cast(form.format(z), dtype)
        if not narrower:
            return self.leaf(shape, dtype, exact)
        return self.cast(self.expression(shape, self.one_of(*narrower), depth, exact), dtype)

    # Shapes

    def spread(self, shape: Shape, dtype: str, depth: int, exact: bool) -> str:
        """Broadcast: a tensor with fewer dimensions, or with one that is repeated."""
        a = self.expression(shape, dtype, depth, exact)
        if self.chance(2):
            b = self.expression(shape[1:], dtype, depth, exact)
        else:
            order = ["'x'", *map(str, range(len(shape) - 1))][: len(shape)]
            if self.chance(2) and len(shape) > 1:
                order = ["0", "'x'", *map(str, range(1, len(shape) - 1))]
                inner = (shape[0], *shape[2:])
            else:
                inner = shape[1:]
            b = f"{self.expression(inner, dtype, depth, exact)}.dimshuffle({', '.join(order)})"
        form = "({} ^ {})" if dtype == "bool" else self.one_of("({} + {})", "({} * {})")
        return self.cast(form.format(a, b), dtype)

    def turned(self, shape: Shape, dtype: str, depth: int, exact: bool) -> str:
        if len(shape) > 1 and self.chance(2):
            return f"{self.expression(shape[::-1], dtype, depth, exact)}.T"
        if len(shape) == 2 and self.chance(3):
            flat = self.expression((shape[0] * shape[1],), dtype, depth, exact)
            return f"at.reshape({flat}, {shape})"
        return f"{self.expression(shape, dtype, depth, exact)}[::-1]"

    def picked(self, shape: Shape, dtype: str, depth: int, exact: bool) -> str:
        rows, rest = shape[0], shape[1:]
        form = self.one_of("slice", "indices", "cut", "column")
        if form == "slice":
            return f"{self.expression((rows + 1, *rest), dtype, depth, exact)}[1:]"
        if form == "cut":
            return f"{self.expression((2 * rows, *rest), dtype, depth, exact)}[::2]"
        if form == "column" and len(shape) < 3:
            return f"{self.expression((*shape, 2), dtype, depth, exact)}[..., -1]"
        indices = [self.one_of(0, 1, -1) for _ in range(rows)]
        return f"{self.expression((2, *rest), dtype, depth, exact)}[np.array({indices})]"

    def joined(self, shape: Shape, dtype: str, depth: int, exact: bool) -> str:
        rows, rest = shape[0], shape[1:]
        if rows <= 3 and self.chance(2):
            parts = [self.expression(rest, dtype, depth - 1, exact) for _ in range(rows)]
            return f"at.stack([{', '.join(parts)}])"
        a = self.expression((1, *rest), dtype, depth, exact)
        b = self.expression((rows - 1, *rest), dtype, depth, exact)
        return f"at.concatenate([{a}, {b}])"

    def written(self, shape: Shape, dtype: str, depth: int, exact: bool) -> str:
        target = self.name_of(self.expression(shape, dtype, depth, exact))
        change = "set" if dtype == "bool" else self.one_of("set", "inc")
        if self.chance(3):
            value = self.expression((2, *shape[1:]), dtype, depth, exact)
            where = (
                f"[np.array([0, {self.one_of(-1, 0) if change == 'inc' or shape[0] > 1 else 0}])]"
            )
            if change == "set" and shape[0] == 1:
                where, value = "[0]", self.expression(shape[1:], dtype, depth, exact)
        elif self.chance(2):
            where = "[1:]"
            value = self.expression((shape[0] - 1, *shape[1:]), dtype, depth, exact)
        else:
            where, value = "[-1]", self.expression(shape[1:], dtype, depth, exact)
        return f"at.{change}_subtensor({target}{where}, {value})"

    def reduced(self, shape: Shape, dtype: str, depth: int, exact: bool) -> str:
        axis = self.draw(st.integers(0, len(shape)))
        whole = (*shape[:axis], self.one_of(2, 3, 1), *shape[axis:])
        a = self.expression(whole, dtype, depth, exact)
        if dtype == "bool":
            return f"{a}.{self.one_of('any', 'all')}(axis={axis})"
        forms = ["sum", "prod"] if dtype in COMPLEX else ["sum", "max", "min", "prod"]
        text = f"{a}.{self.one_of(*forms)}(axis={axis})"
        if dtype in FLOATS and not exact and self.chance(3):
            text = f"{a}.mean(axis={axis})"
        if dtype == "int64" and self.chance(3):
            b = self.expression(whole, "float64", depth, exact=True)
            text = f"at.{self.one_of('argmax', 'argmin')}({b}, axis={axis})"
        return self.cast(text, dtype)

    def partly(self, shape: Shape, dtype: str, depth: int, exact: bool) -> str:
        """Reduce rows of which the number is data, and in a loop may change with the step."""
        rows = self.one_of(3, 1, 4)
        whole = (rows, *shape)
        a = self.name_of(self.expression(whole, dtype, depth, exact))
        count = self.name_of(f"at.cast({self.leaf((), 'int64')}, 'int64') % {rows + 1}")
        mask = self.compared((rows,), "bool", depth, True)
        part = self.one_of("[:{0}]", "[{0}:]", "[{0}::-1]", "[::-1][:{0}]", "[{0} - 2:]", "[{1}]")
        part = part.format(count, mask)
        if self.chance(3):
            # Some rows change, and all are reduced.
            value = self.expression(shape, dtype, depth, exact)
            a, part = f"at.set_subtensor({a}{part}, {value})", ""
        if dtype == "bool":
            return f"{a}{part}.{self.one_of('any', 'all')}(axis=0)"
        return self.cast(f"{a}{part}.{self.one_of('sum', 'prod')}(axis=0)", dtype)

    def product(self, shape: Shape, dtype: str, depth: int, exact: bool) -> str:
        if len(shape) > 2:
            return self.smooth(shape, dtype, depth, exact)
        k = self.one_of(2, 3)
        left, right = {0: ((k,), (k,)), 1: ((*shape, k), (k,))}.get(
            len(shape), ((*shape[:1], k), (k, *shape[1:]))
        )
        a, b = self.expression(left, dtype, depth), self.expression(right, dtype, depth)
        return f"at.dot({a}, {b})"

    def vector_only(self, shape: Shape, dtype: str, depth: int, exact: bool) -> str:
        if self.chance(4):
            return f"at.sort({self.expression(shape, dtype, depth)})"
        if not shape[0]:
            return f"at.cumsum({self.expression(shape, dtype, depth)})"
        form = self.one_of("at.cumsum({})", "at.special.softmax({})", "at.cumprod({})")
        return self.cast(form.format(self.expression(shape, dtype, depth)), dtype)


def _widens(source: str, target: str) -> bool:
    """Say whether a cast from `source` to `target` is defined for every value."""
    if source in COMPLEX:
        return target in COMPLEX
    if target in COMPLEX or (source == "float64" and target == "float32"):
        return True
    order = ("bool", *INTEGERS, *FLOATS)
    if target == "bool":
        return source == "bool"
    if source in INTEGERS and target in INTEGERS:
        return True
    return order.index(source) <= order.index(target)
