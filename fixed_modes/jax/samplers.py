"""One sampler for each distribution, parametrised as its ``rng_fn`` is.

The names follow ``aesara.tensor.random.basic``; there an op's parameters are
those of NumPy or SciPy, e.g. a gamma variable has a shape and a *scale*.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable

import jax
import jax.numpy as jnp
import numpy as np
from aesara.graph.basic import Apply
from aesara.tensor.random import basic as aer
from aesara.tensor.random.op import RandomVariable

from fixed_modes.jax.fallback import draw_in_python
from fixed_modes.jax.frame import Frame


@dataclass
class Draw:
    """One draw to be made.

    Attributes
    ----------
    key
        A typed JAX key, to be used once; see `keys`.
    shape
        Of the batch: without the axes of a single draw.
    dtype
        Of the result.
    """

    op: RandomVariable
    node: Apply
    key: Any
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    frame: Frame

    @property
    def real(self) -> np.dtype[Any]:
        """The dtype to compute in: the result's, or float64 for a discrete result."""
        return self.dtype if self.dtype.kind == "f" else np.dtype("float64")

    def keys(self, count: int) -> Any:
        return jax.random.split(self.key, count)

    def uniform(self, key: Any = None) -> Any:
        """Draw from [0, 1)."""
        return jax.random.uniform(self.key if key is None else key, self.shape, self.real)

    def exponential(self, key: Any = None) -> Any:
        """Draw from the exponential distribution of mean 1."""
        return -jnp.log1p(-self.uniform(key))

    def normal(self, key: Any = None) -> Any:
        return jax.random.normal(self.key if key is None else key, self.shape, self.real)

    def gamma(self, shape: Any, key: Any = None) -> Any:
        """Draw from the gamma distribution of scale 1."""
        key = self.key if key is None else key
        return jax.random.gamma(key, self.spread(shape), self.shape, self.real)

    def spread(self, parameter: Any) -> Any:
        """Broadcast a parameter without axes of its own to the batch."""
        return jnp.broadcast_to(self.cast(parameter), self.shape)

    def cast(self, parameter: Any) -> Any:
        return jnp.asarray(parameter).astype(self.real)


Sampler = Callable[..., Any]
_SAMPLERS: dict[type, Sampler] = {}


def _samples(op_class: type) -> Callable[[Sampler], Sampler]:
    def register(sampler: Sampler) -> Sampler:
        _SAMPLERS[op_class] = sampler
        return sampler

    return register


def sample(op: RandomVariable, draw: Draw, parameters: list[Any]) -> Any:
    """Draw a batch; without a sampler, in Python."""
    for op_class in type(op).__mro__:
        if op_class in _SAMPLERS:
            return _SAMPLERS[op_class](draw, *parameters)
    # A user's sampler may be registered with Aesara's own table.
    from aesara.link.jax.dispatch.random import jax_sample_fn

    try:
        sampler = jax_sample_fn(op)
    except NotImplementedError:
        values = [draw.frame.value(variable) for variable in draw.node.inputs]
        return draw_in_python(draw.node, draw.key, values, draw.frame)
    key_data = jax.random.key_data(draw.key)
    return sampler({"jax_state": key_data}, draw.shape, str(draw.dtype), *parameters)[1]


# Location and scale


def _location_scale(standard: Callable[[Draw], Any]) -> Sampler:
    def sampler(draw: Draw, location: Any, scale: Any) -> Any:
        return draw.spread(location) + draw.spread(scale) * standard(draw)

    return sampler


def _cauchy(draw: Draw) -> Any:
    return jnp.tan(np.pi * (draw.uniform() - 0.5))


def _laplace(draw: Draw) -> Any:
    magnitude, sign = draw.keys(2)
    return jnp.where(draw.uniform(sign) < 0.5, -1, 1) * draw.exponential(magnitude)


def _logistic(draw: Draw) -> Any:
    first, second = draw.keys(2)
    # The ratio of two exponential draws is u / (1 - u), free of u = 0.
    return jnp.log(draw.exponential(first)) - jnp.log(draw.exponential(second))


_SAMPLERS.update(
    {
        aer.NormalRV: _location_scale(Draw.normal),
        aer.HalfNormalRV: _location_scale(lambda draw: jnp.abs(draw.normal())),
        aer.CauchyRV: _location_scale(_cauchy),
        aer.HalfCauchyRV: _location_scale(lambda draw: jnp.abs(_cauchy(draw))),
        aer.LaplaceRV: _location_scale(_laplace),
        aer.LogisticRV: _location_scale(_logistic),
        aer.GumbelRV: _location_scale(lambda draw: -jnp.log(draw.exponential())),
    }
)


@_samples(aer.UniformRV)
def _uniform(draw: Draw, low: Any, high: Any) -> Any:
    low, high = draw.spread(low), draw.spread(high)
    return low + (high - low) * draw.uniform()


@_samples(aer.LogNormalRV)
def _lognormal(draw: Draw, mean: Any, sigma: Any) -> Any:
    return jnp.exp(draw.spread(mean) + draw.spread(sigma) * draw.normal())


@_samples(aer.StudentTRV)
def _student_t(draw: Draw, df: Any, location: Any, scale: Any) -> Any:
    first, second = draw.keys(2)
    half = draw.spread(df) / 2
    ratio = draw.normal(first) * jnp.sqrt(half / draw.gamma(half, second))
    return draw.spread(location) + draw.spread(scale) * ratio


@_samples(aer.TriangularRV)
def _triangular(draw: Draw, left: Any, mode: Any, right: Any) -> Any:
    left, mode, right = draw.spread(left), draw.spread(mode), draw.spread(right)
    u, width = draw.uniform(), right - left
    rising = left + jnp.sqrt(u * width * (mode - left))
    falling = right - jnp.sqrt((1 - u) * width * (right - mode))
    return jnp.where(u * width < mode - left, rising, falling)


# Powers and quotients of exponential and gamma draws


@_samples(aer.ExponentialRV)
def _exponential(draw: Draw, scale: Any) -> Any:
    return draw.spread(scale) * draw.exponential()


@_samples(aer.TruncExponentialRV)
def _truncexpon(draw: Draw, b: Any, location: Any, scale: Any) -> Any:
    standard = -jnp.log1p(draw.uniform() * jnp.expm1(-draw.spread(b)))
    return draw.spread(location) + draw.spread(scale) * standard


@_samples(aer.WeibullRV)
def _weibull(draw: Draw, shape: Any) -> Any:
    return draw.exponential() ** (1 / draw.spread(shape))


@_samples(aer.RayleighRV)
def _rayleigh(draw: Draw, scale: Any) -> Any:
    return draw.spread(scale) * jnp.sqrt(2 * draw.exponential())


@_samples(aer.PowerRV)
def _power(draw: Draw, a: Any) -> Any:
    return jnp.exp(-draw.exponential() / draw.spread(a))


@_samples(aer.ParetoRV)
def _pareto(draw: Draw, b: Any, scale: Any) -> Any:
    return draw.spread(scale) * jnp.exp(draw.exponential() / draw.spread(b))


@_samples(aer.GammaRV)
def _gamma(draw: Draw, shape: Any, scale: Any) -> Any:
    return draw.gamma(shape) * draw.spread(scale)


@_samples(aer.InvGammaRV)
def _invgamma(draw: Draw, shape: Any, scale: Any) -> Any:
    return draw.spread(scale) / draw.gamma(shape)


@_samples(aer.GenGammaRV)
def _gengamma(draw: Draw, alpha: Any, p: Any, lambd: Any) -> Any:
    p = draw.spread(p)
    return draw.spread(lambd) * draw.gamma(draw.spread(alpha) / p) ** (1 / p)


@_samples(aer.ChiSquareRV)
def _chisquare(draw: Draw, df: Any) -> Any:
    return 2 * draw.gamma(draw.spread(df) / 2)


@_samples(aer.FRV)
def _f(draw: Draw, dfn: Any, dfd: Any) -> Any:
    above, below = draw.keys(2)
    dfn, dfd = draw.spread(dfn), draw.spread(dfd)
    return (draw.gamma(dfn / 2, above) / dfn) / (draw.gamma(dfd / 2, below) / dfd)


@_samples(aer.BetaRV)
def _beta(draw: Draw, a: Any, b: Any) -> Any:
    return jax.nn.sigmoid(_beta_logit(draw, a, b))


def _beta_logit(draw: Draw, a: Any, b: Any) -> Any:
    # In logarithms: with small parameters the gamma draws themselves are zero.
    first, second = draw.keys(2)
    log_a = jax.random.loggamma(first, draw.spread(a), draw.shape, draw.real)
    log_b = jax.random.loggamma(second, draw.spread(b), draw.shape, draw.real)
    return log_a - log_b


@_samples(aer.WaldRV)
def _wald(draw: Draw, mean: Any, scale: Any) -> Any:
    # Michael, Schucany and Haas (1976): the smaller root of a quadratic, or its mirror.
    first, second = draw.keys(2)
    mean, scale = draw.spread(mean), draw.spread(scale)
    w = mean * draw.normal(first) ** 2
    root = mean + mean / (2 * scale) * (w - jnp.sqrt(w * (4 * scale + w)))
    return jnp.where(draw.uniform(second) <= mean / (mean + root), root, mean * mean / root)


@_samples(aer.VonMisesRV)
def _vonmises(draw: Draw, mu: Any, kappa: Any) -> Any:
    # Best and Fisher (1979): rejection from a wrapped Cauchy distribution.
    mu, kappa = draw.spread(mu), draw.spread(kappa)
    safe = jnp.maximum(kappa, 1e-6)
    tau = 1 + jnp.sqrt(1 + 4 * safe * safe)
    rho = (tau - jnp.sqrt(2 * tau)) / (2 * safe)
    r = (1 + rho * rho) / (2 * rho)

    def attempt(state: Any) -> Any:
        key, angle, accepted = state
        key, *parts = jax.random.split(key, 4)
        z = jnp.cos(np.pi * draw.uniform(parts[0]))
        f = (1 + r * z) / (r + z)
        c = safe * (r - f)
        u = draw.uniform(parts[1])
        good = (c * (2 - c) - u > 0) | (jnp.log(c / u) + 1 - c >= 0)
        sign = jnp.where(draw.uniform(parts[2]) < 0.5, -1, 1)
        proposal = sign * jnp.arccos(jnp.clip(f, -1, 1))
        return key, jnp.where(good & ~accepted, proposal, angle), accepted | good

    # What is nan comes to nothing, which NumPy doesn't refuse.
    start = (draw.key, jnp.full(draw.shape, jnp.nan, draw.real), jnp.isnan(kappa))
    _, angle, _ = jax.lax.while_loop(lambda state: ~state[2].all(), attempt, start)
    flat = np.pi * (2 * draw.uniform() - 1)
    angle = jnp.where(kappa < 1e-6, flat, angle)
    return jnp.mod(angle + mu + np.pi, 2 * np.pi) - np.pi


# More than one number a draw


@_samples(aer.MvNormalRV)
def _multivariate_normal(draw: Draw, mean: Any, cov: Any) -> Any:
    mean, cov = draw.cast(mean), draw.cast(cov)
    size = mean.shape[-1]
    # Not by Cholesky: the covariance may be singular.
    spread, axes = jnp.linalg.eigh(cov)
    z = jax.random.normal(draw.key, (*draw.shape, size), draw.real)
    z = z * jnp.sqrt(jnp.maximum(spread, 0))
    return mean + jnp.einsum("...ij,...j->...i", axes, z)


@_samples(aer.DirichletRV)
def _dirichlet(draw: Draw, alphas: Any) -> Any:
    alphas = draw.cast(alphas)
    shape = (*draw.shape, alphas.shape[-1])
    logs = jax.random.loggamma(draw.key, jnp.broadcast_to(alphas, shape), shape, draw.real)
    return jax.nn.softmax(logs, axis=-1)


@_samples(aer.PermutationRV)
def _permutation(draw: Draw, x: Any) -> Any:
    if np.ndim(x) == 0:
        count = draw.frame.concrete(draw.node.inputs[3], "the length of a permutation")
        return jax.random.permutation(draw.key, int(count))
    return jax.random.permutation(draw.key, jnp.asarray(x))


@_samples(aer.ChoiceRV)
def _choice(draw: Draw, a: Any, p: Any, replace: Any) -> Any:
    replace = bool(draw.frame.concrete(draw.node.inputs[5], "whether draws are put back"))
    a = jnp.asarray(a)
    weights = None if p is None else jnp.asarray(p)
    count = int(np.prod(draw.shape))
    if not replace and count > a.shape[0]:
        raise ValueError("Cannot take a larger sample than population when replace is False")
    return jax.random.choice(draw.key, a, draw.shape, replace, weights)
