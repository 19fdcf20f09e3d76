"""Parameters of random variables that NumPy and SciPy refuse."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Callable, NamedTuple

import jax.numpy as jnp
import numpy as np
from aesara.tensor.random import basic as aer
from aesara.tensor.random.op import RandomVariable

from fixed_modes.jax.frame import Frame, is_concrete

#: Beyond, NumPy can't give the numbers as int64.
LARGEST_RATE = float(np.iinfo("int64").max - np.sqrt(float(np.iinfo("int64").max)) * 10)

#: The tolerance of `numpy.random.Generator.choice` for probabilities that sum to 1.
SUM_TOLERANCE = float(np.sqrt(np.finfo("float64").eps))


class Rule(NamedTuple):
    """What parameters must not be.

    Attributes
    ----------
    is_broken
        Takes the parameters at `positions` as float64, NumPy's or JAX's, and gives
        booleans; so it is made of operators and methods only.
    text
        NumPy's message.
    """

    positions: tuple[int, ...]
    is_broken: Callable[..., Any]
    text: str
    error: type[Exception] = ValueError


def _not_negative(position: int, name: str) -> Rule:
    # Like NumPy, which also refuses -0.0 but not nan.
    return Rule((position,), lambda x: (x < 0) | ((x == 0) & (1 / x < 0)), f"{name} < 0")


def _positive(position: int, name: str) -> Rule:
    return Rule((position,), lambda x: x <= 0, f"{name} <= 0")


def _share(position: int, name: str = "p") -> Rule:
    text = f"{name} < 0, {name} > 1 or {name} is NaN"
    return Rule((position,), lambda x: ~((x >= 0) & (x <= 1)), text)


def _positive_share(position: int, name: str = "p") -> Rule:
    text = f"{name} <= 0, {name} > 1 or {name} contains NaNs"
    return Rule((position,), lambda x: ~((x > 0) & (x <= 1)), text)


def _domain(is_valid: Callable[..., Any], *positions: int) -> Rule:
    """SciPy's own check: everything that is not known to be right is wrong."""
    return Rule(positions, lambda *x: ~is_valid(*x), "Domain error in arguments.")


def _is_positive(x: Any) -> Any:
    return x > 0


def _is_not_negative(x: Any) -> Any:
    return x >= 0


RULES: dict[type, tuple[Rule, ...]] = {
    aer.NormalRV: (_not_negative(1, "scale"),),
    aer.LogNormalRV: (_not_negative(1, "sigma"),),
    aer.LaplaceRV: (_not_negative(1, "scale"),),
    aer.LogisticRV: (_not_negative(1, "scale"),),
    aer.ExponentialRV: (_not_negative(0, "scale"),),
    aer.RayleighRV: (_not_negative(0, "scale"),),
    aer.WeibullRV: (_not_negative(0, "a"),),
    aer.VonMisesRV: (_not_negative(1, "kappa"),),
    aer.GammaRV: (_not_negative(0, "shape"), _not_negative(1, "scale")),
    aer.BetaRV: (_positive(0, "a"), _positive(1, "b")),
    aer.ChiSquareRV: (_positive(0, "df"),),
    aer.PowerRV: (_positive(0, "a"),),
    aer.WaldRV: (_positive(0, "mean"), _positive(1, "scale")),
    aer.FRV: (_positive(0, "dfnum"), _positive(1, "dfden")),
    aer.DirichletRV: (Rule((0,), lambda x: x < 0, "alpha < 0"),),
    aer.UniformRV: (
        Rule(
            (0, 1),
            lambda low, high: ~(abs(high - low) < np.inf),
            "high - low range exceeds valid bounds",
            OverflowError,
        ),
    ),
    aer.TriangularRV: (
        Rule((0, 1), lambda left, mode: left > mode, "left > mode"),
        Rule((1, 2), lambda mode, right: mode > right, "mode > right"),
        Rule((0, 2), lambda left, right: left == right, "left == right"),
    ),
    aer.PoissonRV: (
        Rule((0,), lambda x: ~(x >= 0), "lam < 0 or lam is NaN"),
        Rule((0,), lambda x: x > LARGEST_RATE, "lam value too large"),
    ),
    aer.BinomialRV: (Rule((0,), lambda n: n < 0, "n < 0"), _share(1)),
    aer.NegBinomialRV: (_positive(0, "n"), _positive_share(1)),
    aer.GeometricRV: (_positive_share(0),),
    aer.ZipfRV: (Rule((0,), lambda a: ~(a > 1), "a <= 1 or a is NaN"),),
    aer.HyperGeometricRV: (
        Rule((0,), lambda x: x < 0, "ngood < 0"),
        Rule((1,), lambda x: x < 0, "nbad < 0"),
        Rule((2,), lambda x: x < 0, "nsample < 0"),
        Rule((0, 1, 2), lambda good, bad, n: good + bad < n, "ngood + nbad < nsample"),
    ),
    aer.MultinomialRV: (
        Rule((0,), lambda n: n < 0, "n < 0"),
        _share(1, "pvals"),
        Rule((1,), lambda p: p[..., :-1].sum(-1) > 1 + 1e-12, "sum(pvals[:-1]) > 1.0"),
    ),
    aer.IntegersRV: (Rule((0, 1), lambda low, high: low >= high, "low >= high"),),
    aer.RandIntRV: (Rule((0, 1), lambda low, high: low >= high, "low >= high"),),
    aer.BernoulliRV: (_domain(lambda p: (p >= 0) & (p <= 1), 0),),
    aer.BetaBinomialRV: (
        _domain(lambda n: (n >= 0) & (n % 1 == 0), 0),
        _domain(_is_positive, 1),
        _domain(_is_positive, 2),
    ),
    aer.HalfNormalRV: (_domain(_is_not_negative, 1),),
    aer.CauchyRV: (_domain(_is_not_negative, 1),),
    aer.HalfCauchyRV: (_domain(_is_not_negative, 1),),
    aer.GumbelRV: (_domain(_is_not_negative, 1),),
    aer.StudentTRV: (_domain(_is_positive, 0), _domain(_is_not_negative, 2)),
    aer.ParetoRV: (_domain(_is_positive, 0), _domain(_is_not_negative, 1)),
    aer.InvGammaRV: (_domain(_is_positive, 0), _domain(_is_not_negative, 1)),
    aer.TruncExponentialRV: (_domain(_is_positive, 0), _domain(_is_not_negative, 2)),
    aer.GenGammaRV: (
        _domain(lambda alpha, p: (alpha / p > 0) & (p != 0), 0, 1),
        _domain(_is_not_negative, 2),
    ),
    aer.ChoiceRV: (
        Rule((1,), lambda p: p != p, "probabilities contain NaN"),
        Rule((1,), lambda p: p < 0, "probabilities are not non-negative"),
        Rule((1,), lambda p: abs(p.sum() - 1) > SUM_TOLERANCE, "probabilities do not sum to 1"),
    ),
}


#: What takes the place of parameters that are refused, so that the draw comes to an end.
HARMLESS = {aer.ZipfRV: 2.0}


def refuse_parameters(op: RandomVariable, parameters: Sequence[Any], frame: Frame) -> list[Any]:
    """See to it that a draw that NumPy refuses raises after the run.

    Known parameters too: the draw may stand in a branch that isn't taken.

    Returns
    -------
    The parameters to draw with.
    """
    allowed = list(parameters)
    rules = next((RULES[cls] for cls in type(op).__mro__ if cls in RULES), ())
    for rule in rules:
        values = [parameters[position] for position in rule.positions]
        if any(value is None for value in values):
            continue
        is_known = all(is_concrete(value) for value in values)
        array = np.asarray if is_known else jnp.asarray
        with np.errstate(all="ignore"):
            broken = rule.is_broken(*(array(value).astype("float64") for value in values))
        if is_known and not np.any(broken):
            continue
        failed = jnp.any(broken)
        frame.checks.add(failed, partial(rule.error, rule.text))
        harmless = HARMLESS.get(type(op), 1.0)
        for position in rule.positions:
            value = jnp.asarray(allowed[position])
            allowed[position] = jnp.where(failed, jnp.asarray(harmless, value.dtype), value)
    return allowed
