"""Random draws as calls of Numba's `Generator` methods, in loops for arrays.

The expressions follow what `RandomVariable.rng_fn` calls: NumPy's method of the
generator, or SciPy's ``rvs``, which draws from the same methods or inverts the
distribution function at one uniform number.  So the draws are those of
FAST_RUN, wherever Numba implements NumPy's algorithm.
"""

from __future__ import annotations

import math
from contextlib import ExitStack
from copy import copy
from dataclasses import dataclass
from typing import Any, Callable

import aesara.tensor.random.basic as aer
import numba
from aesara.graph.basic import Apply, Constant
from aesara.tensor.random.op import RandomVariable
from numba import types

from fixed_modes.numba.broadcasting import write_common_length, write_step
from fixed_modes.numba.elemwise import numpy_dtype
from fixed_modes.numba.writer import Writer


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
        The expression of one draw, with ``rng`` and the parameters ``{0}``, ...
    refused
        Conditions on the parameters under which NumPy raises `ValueError`, with
        its messages.
    """

    draw: str
    refused: tuple[tuple[str, str], ...] = ()


def _negative(position: int, name: str) -> tuple[str, str]:
    return (
        f"{{{position}}} < 0 or ({{{position}}} == 0 and math.copysign(1.0, {{{position}}}) < 0)",
        f"{name} < 0",
    )


def _not_positive(position: int, name: str) -> tuple[str, str]:
    return f"not {{{position}}} > 0", f"{name} <= 0"


_UNIFORM = "{rng}.random()"

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
    aer.NormalRV: Sampler("{rng}.normal({0}, {1})", (_negative(1, "scale"),)),
    aer.HalfNormalRV: Sampler("abs({rng}.standard_normal()) * {1} + {0}"),
    aer.LogNormalRV: Sampler("{rng}.lognormal({0}, {1})", (_negative(1, "sigma"),)),
    aer.GammaRV: Sampler("{rng}.standard_gamma({0}) * {1}", (_negative(0, "shape"),)),
    aer.ChiSquareRV: Sampler("{rng}.chisquare({0})", (_not_positive(0, "df"),)),
    aer.ParetoRV: Sampler(f"(1.0 - {_UNIFORM}) ** (-1.0 / {{0}}) * {{1}}"),
    aer.GumbelRV: Sampler(f"-math.log(-math.log({_UNIFORM})) * {{1}} + {{0}}"),
    aer.ExponentialRV: Sampler("{rng}.exponential({0})", (_negative(0, "scale"),)),
    aer.WeibullRV: Sampler("{rng}.weibull({0})", (_negative(0, "a"),)),
    aer.LogisticRV: Sampler("{rng}.logistic({0}, {1})", (_negative(1, "scale"),)),
    aer.PoissonRV: Sampler("{rng}.poisson({0})", (("not {0} >= 0", "lam < 0 or lam is NaN"),)),
    aer.GeometricRV: Sampler(
        "{rng}.geometric({0})", (("not (0 < {0} <= 1)", "p <= 0, p > 1 or p contains NaNs"),)
    ),
    aer.CauchyRV: Sampler(f"math.tan(np.pi * {_UNIFORM} - np.pi / 2.0) * {{1}} + {{0}}"),
    aer.HalfCauchyRV: Sampler(f"math.tan(np.pi / 2.0 * {_UNIFORM}) * {{1}} + {{0}}"),
    aer.WaldRV: Sampler(
        "{rng}.wald({0}, {1})", (_not_positive(0, "mean"), _not_positive(1, "scale"))
    ),
    aer.LaplaceRV: Sampler("{rng}.laplace({0}, {1})", (_negative(1, "scale"),)),
    aer.StudentTRV: Sampler("{rng}.standard_t({0}) * {2} + {1}", (_not_positive(0, "df"),)),
    aer.TruncExponentialRV: Sampler(
        f"-math.log1p({_UNIFORM} * math.expm1(-{{0}})) * {{2}} + {{1}}"
    ),
}


def write_draw(op: RandomVariable, node: Apply, writer: Writer) -> bool:
    """Write the draw of a univariate variable; False where this module has no sampler for it."""
    sampler = SAMPLERS.get(type(op))
    if sampler is None:
        return False
    rng = node.inputs[0]
    parameters = node.inputs[3:]
    new_rng, value = node.outputs
    source = writer.name(rng)
    if op.inplace:
        writer.bind(new_rng, source)
    else:
        writer.globals["copy_of_generator"] = copy_of_generator
        writer.emit(f"{writer.define(new_rng, 'rng')} = copy_of_generator({source})")
    writer.globals["math"] = math
    rng_name = writer.name(new_rng)
    checked = _write_checks(sampler, node, writer)
    dtype = value.type.dtype
    if value.type.ndim == 0:
        arguments = [f"np.float64({writer.name(p)})" for p in parameters]
        _write_refusals(checked, arguments, writer)
        text = sampler.draw.format(*arguments, rng=rng_name)
        writer.emit(f"{writer.define(value, op.name)} = {numpy_dtype(dtype)}({text})")
        return True
    lengths = _write_shape(node, writer)
    result = writer.define(value, op.name)
    writer.emit(f"{result} = np.empty(({', '.join(lengths)},), {numpy_dtype(dtype)})")
    steps = [_write_steps(p, writer.name(p), lengths, writer) for p in parameters]
    indices = [writer.fresh("i") for _ in lengths]
    with ExitStack() as nest:
        for index, length in zip(indices, lengths):
            nest.enter_context(writer.block(f"for {index} in range({length}):"))
        arguments = [
            f"np.float64({_element(writer.name(p), indices, step)})"
            for p, step in zip(parameters, steps)
        ]
        _write_refusals(checked, arguments, writer)
        text = sampler.draw.format(*arguments, rng=rng_name)
        writer.emit(f"{result}[{', '.join(indices)}] = {numpy_dtype(dtype)}({text})")
    return True


def _write_checks(sampler: Sampler, node: Apply, writer: Writer) -> list[tuple[str, str]]:
    """Give the checks that are left when those on constants are decided at once."""
    parameters = node.inputs[3:]
    constants = [
        p.data if isinstance(p, Constant) and p.data.ndim == 0 else None for p in parameters
    ]
    left = []
    for condition, message in sampler.refused:
        used = [n for n in range(len(parameters)) if f"{{{n}}}" in condition]
        if all(constants[n] is not None for n in used):
            values = [None if c is None else float(c) for c in constants]
            text = condition.format(*(repr(v) for v in values))
            if not eval(text, {"math": math, "nan": math.nan, "inf": math.inf}):
                continue
        left.append((condition, message))
    return left


def _write_refusals(checks: list[tuple[str, str]], arguments: list[str], writer: Writer) -> None:
    for condition, message in checks:
        with writer.block(f"if {condition.format(*arguments)}:"):
            writer.emit_failure(ValueError, _fixed(message))


def _fixed(message: str) -> Callable[..., str]:
    return lambda: message


def _write_shape(node: Apply, writer: Writer) -> list[str]:
    """Name the lengths of the result: those of ``size``, or what the parameters broadcast to."""
    _, size, _, *parameters = node.inputs
    ndim = node.outputs[1].type.ndim
    if size.type.shape != (0,):
        name = writer.name(size)
        lengths = [writer.fresh("n") for _ in range(ndim)]
        for axis, length in enumerate(lengths):
            writer.emit(f"{length} = np.int64({name}[{axis}])")
        return lengths

    def own_lengths(axis: int) -> list[str]:
        own = [(p, axis - (ndim - p.type.ndim)) for p in parameters]
        return [
            f"{writer.name(p)}.shape[{n}]" for p, n in own if n >= 0 and not p.type.broadcastable[n]
        ]

    return [
        write_common_length(writer, own_lengths(axis), ValueError, _mismatch)
        for axis in range(ndim)
    ]


def _mismatch(one: int, other: int) -> str:
    return (
        "shape mismatch: the parameters of a random variable have lengths "
        f"{one} and {other} along one axis"
    )


def _write_steps(parameter: Any, name: str, lengths: list[str], writer: Writer) -> list[str]:
    """Say for each axis of a parameter how far it moves for one step of the loop."""
    lead = len(lengths) - parameter.type.ndim
    return [
        ""
        if parameter.type.broadcastable[own]
        else write_step(writer, f"{name}.shape[{own}]", lengths[own + lead], _mismatch)
        for own in range(parameter.type.ndim)
    ]


def _element(name: str, indices: list[str], steps: list[str]) -> str:
    if not steps:
        return name
    own = indices[len(indices) - len(steps) :]
    position = (f"{index} * {step}" if step else "0" for index, step in zip(own, steps))
    return f"{name}[{', '.join(position)}]"
