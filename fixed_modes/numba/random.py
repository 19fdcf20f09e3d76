"""Random draws as calls of Numba's `Generator` methods, in loops for arrays.

The expressions follow what `RandomVariable.rng_fn` calls: NumPy's method of the
generator, or SciPy's ``rvs``, which draws from the same methods or inverts the
distribution function at one uniform number.  So the draws are those of
FAST_RUN, wherever Numba implements NumPy's algorithm.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from copy import copy
from dataclasses import dataclass
from typing import Any, Callable

import aesara.tensor.random.basic as aer
import numba
import numpy as np
from aesara.graph.basic import Apply, Constant, Variable
from aesara.tensor.random.op import RandomVariable
from numba import types

from fixed_modes.numba.random_shapes import element, fixed_message, write_lengths, write_steps
from fixed_modes.numba.samplers import (
    draw_binomial,
    draw_hypergeometric,
    draw_integer,
    draw_von_mises,
)
from fixed_modes.numba.scipy_functions import gammainccinv
from fixed_modes.numba.vector_random import write_vector_draw
from fixed_modes.numba.writer import Writer, numpy_dtype


@numba.njit
def copy_of_generator(rng):  # type: ignore[no-untyped-def]
    """Copy a NumPy `Generator`; only Python can, so this leaves compiled code."""
    # The name is how Numba learns the type.
    with numba.objmode(result=types.npy_rng):
        result = copy(rng)
    return result  # noqa: RET504


@dataclass(frozen=True)
class Sampler:
    """How one distribution is drawn from.

    Attributes
    ----------
    draw
        The expression of one draw, with ``{rng}`` and the parameters ``{0}``, ...
    refused
        Conditions on the parameters under which NumPy raises `ValueError`, with
        its messages.
    integers
        The parameters that are integers; others are double-precision numbers.
    helper
        A function that `draw` calls as ``{helper}``.
    before
        The expression of a draw that comes before, and for arrays before the
        first `draw` of them all; `draw` has its value as ``{before}``.
    scaling
        The positions of the location (-1: it is 0) and the scale, where SciPy
        draws: it refuses a negative scale, and draws nothing if all are 0.
    shape_parameter
        The parameter that SciPy computes with in its own precision where there
        are arrays among the parameters: `draw` rounds by ``{single}`` there.
    """

    draw: str
    refused: tuple[tuple[str, str], ...] = ()
    integers: tuple[int, ...] = ()
    helper: Callable[..., Any] | None = None
    before: str = ""
    scaling: tuple[int, int] | None = None
    shape_parameter: int = -1


def _negative(position: int, name: str) -> tuple[str, str]:
    return (
        f"{{{position}}} < 0 or ({{{position}}} == 0 and math.copysign(1.0, {{{position}}}) < 0)",
        f"{name} < 0",
    )


def _not_positive(position: int, name: str) -> tuple[str, str]:
    return f"{{{position}}} <= 0", f"{name} <= 0"


def _no_probability(position: int) -> tuple[str, str]:
    return f"not 0 <= {{{position}}} <= 1", "p < 0, p > 1 or p is NaN"


def _outside(condition: str) -> tuple[str, str]:
    """Say that SciPy refuses all but `condition`."""
    return f"not ({condition})", "Domain error in arguments: a shape or scale is out of range"


_UNIFORM = "{rng}.random()"
# Beyond it the rates of the Poisson draws overflow (NumPy's bound for int64).
_MAX_RATE = float(np.iinfo(np.int64).max) - 10 * math.sqrt(np.iinfo(np.int64).max)
_HYPERGEOMETRIC_MAX = 10**9

SAMPLERS: dict[type, Sampler] = {
    aer.UniformRV: Sampler("{rng}.uniform({0}, {1})", (("{1} < {0}", "high - low < 0"),)),
    aer.TriangularRV: Sampler(
        "{rng}.triangular({0}, {1}, {2})",
        (
            ("{0} > {1}", "left > mode"),
            ("{1} > {2}", "mode > right"),
            ("{0} == {2}", "left == right"),
        ),
    ),
    aer.BetaRV: Sampler("{rng}.beta({0}, {1})", (_not_positive(0, "a"), _not_positive(1, "b"))),
    aer.RayleighRV: Sampler("{rng}.rayleigh({0})", (_negative(0, "scale"),)),
    aer.PowerRV: Sampler("{rng}.power({0})", (_not_positive(0, "a"),)),
    aer.ZipfRV: Sampler("{rng}.zipf({0})", (("not {0} > 1", "a <= 1 or a is NaN"),)),
    aer.NormalRV: Sampler("{rng}.normal({0}, {1})", (_negative(1, "scale"),)),
    aer.HalfNormalRV: Sampler("abs({rng}.standard_normal()) * {1} + {0}", scaling=(0, 1)),
    aer.LogNormalRV: Sampler("{rng}.lognormal({0}, {1})", (_negative(1, "sigma"),)),
    aer.GammaRV: Sampler(
        "{rng}.standard_gamma({0}) * {1}", (_outside("{0} > 0"),), scaling=(-1, 1)
    ),
    aer.GenGammaRV: Sampler(
        "{rng}.standard_gamma(np.float64({quotient}({0} / {1}))) "
        "** np.float64({single}(1.0 / {1})) * {2}",
        (_outside("{1} != 0 and {0} / {1} > 0"),),
        scaling=(-1, 2),
        shape_parameter=1,
    ),
    aer.ChiSquareRV: Sampler("{rng}.chisquare({0})", (_not_positive(0, "df"),)),
    aer.FRV: Sampler("{rng}.f({0}, {1})", (_not_positive(0, "dfnum"), _not_positive(1, "dfden"))),
    aer.ParetoRV: Sampler(
        f"(1.0 - {_UNIFORM}) ** np.float64({{single}}(-1.0 / {{0}})) * {{1}}",
        (_outside("{0} > 0"),),
        scaling=(-1, 1),
        shape_parameter=0,
    ),
    aer.GumbelRV: Sampler(f"-math.log(-math.log({_UNIFORM})) * {{1}} + {{0}}", scaling=(0, 1)),
    aer.ExponentialRV: Sampler("{rng}.exponential({0})", (_negative(0, "scale"),)),
    aer.WeibullRV: Sampler("{rng}.weibull({0})", (_negative(0, "a"),)),
    aer.LogisticRV: Sampler("{rng}.logistic({0}, {1})", (_negative(1, "scale"),)),
    aer.VonMisesRV: Sampler(
        "{helper}({rng}, {0}, {1})", (_negative(1, "kappa"),), helper=draw_von_mises
    ),
    aer.PoissonRV: Sampler(
        "{rng}.poisson({0})",
        (
            ("not {0} >= 0", "lam < 0 or lam is NaN"),
            (f"{{0}} > {_MAX_RATE!r}", "lam value too large"),
        ),
    ),
    aer.GeometricRV: Sampler(
        "{rng}.geometric({0})", (("not (0 < {0} <= 1)", "p <= 0, p > 1 or p contains NaNs"),)
    ),
    aer.HyperGeometricRV: Sampler(
        "{helper}({rng}, {0}, {1}, {2})",
        (
            (
                f"{{0}} >= {_HYPERGEOMETRIC_MAX} or {{1}} >= {_HYPERGEOMETRIC_MAX}",
                f"both ngood and nbad must be less than {_HYPERGEOMETRIC_MAX}",
            ),
            ("{0} + {1} < {2}", "ngood + nbad < nsample"),
            ("{2} < 0", "nsample < 0"),
            ("{0} < 0", "ngood < 0"),
            ("{1} < 0", "nbad < 0"),
        ),
        integers=(0, 1, 2),
        helper=draw_hypergeometric,
    ),
    aer.CauchyRV: Sampler(
        f"math.tan(np.pi * {_UNIFORM} - np.pi / 2.0) * {{1}} + {{0}}", scaling=(0, 1)
    ),
    aer.HalfCauchyRV: Sampler(
        f"math.tan(np.pi / 2.0 * {_UNIFORM}) * {{1}} + {{0}}", scaling=(0, 1)
    ),
    aer.InvGammaRV: Sampler(
        f"1.0 / {{helper}}({{0}}, {_UNIFORM}) * {{1}}",
        (_outside("{0} > 0"),),
        helper=gammainccinv,
        scaling=(-1, 1),
    ),
    aer.WaldRV: Sampler(
        "{rng}.wald({0}, {1})", (_not_positive(0, "mean"), _not_positive(1, "scale"))
    ),
    aer.LaplaceRV: Sampler("{rng}.laplace({0}, {1})", (_negative(1, "scale"),)),
    aer.StudentTRV: Sampler(
        "{rng}.standard_t({0}) * {2} + {1}", (_outside("{0} > 0"),), scaling=(1, 2)
    ),
    aer.TruncExponentialRV: Sampler(
        f"-math.log1p({_UNIFORM} * np.float64({{single}}(math.expm1(-{{0}})))) * {{2}} + {{1}}",
        (_outside("{0} > 0"),),
        scaling=(1, 2),
        shape_parameter=0,
    ),
    aer.BernoulliRV: Sampler(
        "{helper}({rng}, 1, {0})", (_outside("0 <= {0} <= 1"),), helper=draw_binomial
    ),
    aer.BinomialRV: Sampler(
        "{helper}({rng}, {0}, {1})",
        (_no_probability(1), ("{0} < 0", "n < 0")),
        integers=(0,),
        helper=draw_binomial,
    ),
    aer.NegBinomialRV: Sampler(
        "{rng}.poisson({rng}.standard_gamma({0}) * ((1 - {1}) / {1}))",
        (
            _outside("{0} > 0 and 0 < {1} <= 1"),
            (
                f"(1 - {{1}}) / {{1}} * ({{0}} + 10 * math.sqrt({{0}})) > {_MAX_RATE!r}",
                "n too large or p too small, see Generator.negative_binomial Notes",
            ),
        ),
    ),
    aer.BetaBinomialRV: Sampler(
        "{helper}({rng}, {0}, {before})",
        (_outside("{0} >= 0 and {1} > 0 and {2} > 0"),),
        integers=(0,),
        helper=draw_binomial,
        before="{rng}.beta({1}, {2})",
    ),
    aer.IntegersRV: Sampler(
        "{helper}({rng}, {0}, {1})",
        (("{0} >= {1}", "low >= high"),),
        integers=(0, 1),
        helper=draw_integer,
    ),
}


def write_draw(op: RandomVariable, node: Apply, writer: Writer) -> bool:
    """Write a draw; False for a variable, or parameters, that this module has no sampler for."""
    sampler = SAMPLERS.get(type(op))
    if sampler is None:
        return write_vector_draw(op, node, writer, write_generator)
    if not _fits(sampler, node):
        return False
    rng = write_generator(op, node, writer)
    writer.globals["math"] = math
    _Draw(sampler, node, rng, writer).write()
    return True


def _fits(sampler: Sampler, node: Apply) -> bool:
    """Say whether the parameters have the kinds that the sampler takes.

    NumPy refuses others, in words that are its own.
    """
    _, value = node.outputs
    parameters = node.inputs[3:]
    dtypes = [p.type.dtype for p in parameters]
    return (
        all(_is_integer(dtypes[n]) for n in sampler.integers)
        and all(np.dtype(dtype).kind in "biuf" for dtype in [*dtypes, value.type.dtype])
        and "float16" not in [*dtypes, value.type.dtype]
        and all(p.type.ndim <= value.type.ndim for p in parameters)
    )


def _is_integer(dtype: str) -> bool:
    return np.dtype(dtype).kind in "biu" and dtype != "uint64"


def write_generator(op: RandomVariable, node: Apply, writer: Writer) -> str:
    """Name the generator to draw from: that of the node, or a copy of it."""
    rng, new_rng = node.inputs[0], node.outputs[0]
    source = writer.name(rng)
    if op.inplace:
        writer.bind(new_rng, source)
    else:
        writer.globals["copy_of_generator"] = copy_of_generator
        writer.emit(f"{writer.define(new_rng, 'rng')} = copy_of_generator({source})")
    return writer.name(new_rng)


class _Draw:
    """Writes the draws of one univariate variable, a scalar or in loops."""

    def __init__(self, sampler: Sampler, node: Apply, rng: str, writer: Writer) -> None:
        self.sampler, self.writer = sampler, writer
        self.parameters = node.inputs[3:]
        self.value = node.outputs[1]
        self.hint = node.op.name
        self.dtype = numpy_dtype(self.value.type.dtype)
        refused = list(sampler.refused)
        if sampler.scaling is not None:
            refused.insert(0, _outside(f"{{{sampler.scaling[1]}}} >= 0"))
        self.checks = _checks_left(refused, sampler, self.parameters)
        self.words = {"rng": rng, "before": writer.fresh("before")}
        if sampler.shape_parameter >= 0:
            self.words.update(_roundings(sampler.shape_parameter, self.parameters))
        if sampler.helper is not None:
            self.words["helper"] = writer.use_global(sampler.helper.__name__, sampler.helper)
        self.lengths = write_lengths(node, (0,) * len(self.parameters), 0, writer)
        self.steps = [
            write_steps(p, 0, writer.name(p), self.lengths, writer) for p in self.parameters
        ]

    def write(self) -> None:
        writer = self.writer
        if self.lengths:
            result = writer.define(self.value, self.hint)
            shape = ", ".join(self.lengths)
            writer.emit(f"{result} = np.empty(({shape},), {self.dtype})")
        self._write_whether_scaled()
        before = self.words["before"]
        if self.sampler.before and self.lengths:
            writer.emit(f"{before} = np.empty(({', '.join(self.lengths)},), np.float64)")
            with self._loops() as indices:
                arguments = self._arguments(indices)
                self._write_refusals(arguments)
                text = self.sampler.before.format(*arguments, **self.words)
                writer.emit(f"{before}[{', '.join(indices)}] = {text}")
        with self._loops() as indices:
            arguments = self._arguments(indices)
            words = dict(self.words)
            if not self.sampler.before or not self.lengths:
                self._write_refusals(arguments)
            if self.sampler.before and self.lengths:
                words["before"] = f"{before}[{', '.join(indices)}]"
            elif self.sampler.before:
                writer.emit(f"{before} = {self.sampler.before.format(*arguments, **words)}")
            text = self._scaled(self.sampler.draw.format(*arguments, **words), arguments)
            if self.lengths:
                writer.emit(f"{result}[{', '.join(indices)}] = {self.dtype}({text})")
            else:
                writer.emit(f"{writer.define(self.value, self.hint)} = {self.dtype}({text})")

    @contextmanager
    def _loops(self) -> Iterator[list[str]]:
        indices = [self.writer.fresh("i") for _ in self.lengths]
        with ExitStack() as nest:
            for index, length in zip(indices, self.lengths):
                nest.enter_context(self.writer.block(f"for {index} in range({length}):"))
            yield indices

    def _arguments(self, indices: list[str]) -> list[str]:
        return [
            f"np.{'int64' if n in self.sampler.integers else 'float64'}"
            f"({element(self.writer.name(p), indices, step)})"
            for n, (p, step) in enumerate(zip(self.parameters, self.steps))
        ]

    def _write_refusals(self, arguments: list[str]) -> None:
        for condition, message in self.checks:
            with self.writer.block(f"if {condition.format(*arguments)}:"):
                self.writer.emit_failure(ValueError, fixed_message(message))

    def _write_whether_scaled(self) -> None:
        """Write whether any scale is not 0; nothing where that is known."""
        self.is_scaled = ""
        if self.sampler.scaling is None:
            return
        position = self.sampler.scaling[1]
        scale = self.parameters[position]
        if isinstance(scale, Constant) and np.any(scale.data != 0):
            return
        name = self.writer.name(scale)
        self.is_scaled = self.writer.fresh("is_scaled")
        if scale.type.ndim == 0:
            self.writer.emit(f"{self.is_scaled} = {name} != 0")
        else:
            self.writer.emit(f"{self.is_scaled} = np.any({name} != 0)")

    def _scaled(self, text: str, arguments: list[str]) -> str:
        if not self.is_scaled or self.sampler.scaling is None:
            return text
        location = self.sampler.scaling[0]
        return f"{text} if {self.is_scaled} else {arguments[location] if location >= 0 else '0.0'}"


def _roundings(position: int, parameters: list[Variable]) -> dict[str, str]:
    """Name the conversions that give SciPy's results for single-precision parameters."""
    arrays = [not all(p.type.broadcastable) for p in parameters]
    samples = [np.ones(2 if a else (), p.type.dtype) for a, p in zip(arrays, parameters)]
    inverse = 1.0 / np.ones(2 if any(arrays) else (), parameters[position].type.dtype)
    quotient = np.true_divide(samples[0], samples[1])
    return {
        word: "np.float32" if result.dtype == np.float32 else ""
        for word, result in (("single", inverse), ("quotient", quotient))
    }


def _checks_left(
    refused: list[tuple[str, str]], sampler: Sampler, parameters: list[Variable]
) -> list[tuple[str, str]]:
    """Give the checks that are left when those on constants are decided at once."""
    constants = [
        p.data if isinstance(p, Constant) and p.data.ndim == 0 else None for p in parameters
    ]
    left = []
    for condition, message in refused:
        used = [n for n in range(len(parameters)) if f"{{{n}}}" in condition]
        if all(constants[n] is not None for n in used):
            values = [
                None if c is None else (int(c) if n in sampler.integers else float(c))
                for n, c in enumerate(constants)
            ]
            text = condition.format(*(repr(v) for v in values))
            if not eval(text, {"math": math, "nan": math.nan, "inf": math.inf}):
                continue
        left.append((condition, message))
    return left
