"""The draws of NUMBA_FIXED are those of NumPy and SciPy for the same generator."""

from __future__ import annotations

import aesara
import aesara.tensor as at
import aesara.tensor.random.basic as aer
import numpy as np
import pytest
from aesara.tensor.random.op import RandomVariable, default_rng
from scipy import stats

from fixed_modes.errors import FixedModesWarning, UnsupportedOpError

SEED = 20


def generator() -> np.random.Generator:
    return np.random.default_rng(SEED)


# The variable, its parameters, and the reference with NumPy or SciPy alone.
UNIVARIATE = [
    (aer.uniform, (-1.0, 2.0), lambda r, n: r.uniform(-1.0, 2.0, n)),
    (aer.triangular, (-1.0, 0.5, 2.0), lambda r, n: r.triangular(-1.0, 0.5, 2.0, n)),
    (aer.beta, (2.0, 3.0), lambda r, n: r.beta(2.0, 3.0, n)),
    (aer.rayleigh, (1.5,), lambda r, n: r.rayleigh(1.5, n)),
    (aer.power, (2.5,), lambda r, n: r.power(2.5, n)),
    (aer.normal, (1.0, 2.0), lambda r, n: r.normal(1.0, 2.0, n)),
    (aer.halfnormal, (1.0, 2.0), lambda r, n: stats.halfnorm.rvs(1.0, 2.0, n, random_state=r)),
    (aer.lognormal, (0.1, 0.5), lambda r, n: r.lognormal(0.1, 0.5, n)),
    (aer.gamma, (2.5, 4.0), lambda r, n: r.gamma(2.5, 1 / 4.0, n)),
    (aer.chisquare, (3.0,), lambda r, n: r.chisquare(3.0, n)),
    (aer.pareto, (3.0, 2.0), lambda r, n: stats.pareto.rvs(3.0, 0, 2.0, n, random_state=r)),
    (aer.gumbel, (0.5, 2.0), lambda r, n: stats.gumbel_r.rvs(0.5, 2.0, n, random_state=r)),
    (aer.exponential, (2.0,), lambda r, n: r.exponential(2.0, n)),
    (aer.weibull, (1.5,), lambda r, n: r.weibull(1.5, n)),
    (aer.logistic, (0.5, 2.0), lambda r, n: r.logistic(0.5, 2.0, n)),
    (aer.poisson, (3.5,), lambda r, n: r.poisson(3.5, n)),
    (aer.poisson, (25.0,), lambda r, n: r.poisson(25.0, n)),
    (aer.geometric, (0.2,), lambda r, n: r.geometric(0.2, n)),
    (aer.cauchy, (0.5, 2.0), lambda r, n: stats.cauchy.rvs(0.5, 2.0, n, random_state=r)),
    (aer.halfcauchy, (0.5, 2.0), lambda r, n: stats.halfcauchy.rvs(0.5, 2.0, n, random_state=r)),
    (aer.wald, (1.0, 2.0), lambda r, n: r.wald(1.0, 2.0, n)),
    (aer.laplace, (0.5, 2.0), lambda r, n: r.laplace(0.5, 2.0, n)),
    (aer.t, (5.0, 0.5, 2.0), lambda r, n: stats.t.rvs(5.0, 0.5, 2.0, n, random_state=r)),
    (
        aer.truncexpon,
        (3.0, 0.5, 2.0),
        lambda r, n: stats.truncexpon.rvs(3.0, 0.5, 2.0, n, random_state=r),
    ),
]


@pytest.mark.parametrize(
    ("variable", "parameters", "reference"),
    UNIVARIATE,
    ids=[f"{getattr(v, 'name', v)}{p}" for v, p, _ in UNIVARIATE],
)
def test_draws_of_an_array(variable, parameters, reference):
    rng = aesara.shared(generator())
    f = aesara.function([], variable(*parameters, size=(40,), rng=rng), mode="NUMBA_FIXED")
    draws = f()
    expected = reference(generator(), 40)
    assert draws.dtype == variable(*parameters).dtype
    np.testing.assert_allclose(draws, expected, rtol=1e-12)


def test_draws_of_scalars_in_a_loop():
    stream = at.random.RandomStream(SEED)
    loc = at.dscalar("loc")
    draws, updates = aesara.scan(lambda m: stream.normal(m, 2.0), non_sequences=loc, n_steps=50)
    (rng,) = updates
    start = rng.get_value()
    f = aesara.function([loc], draws, updates=updates, mode="NUMBA_FIXED")
    np.testing.assert_array_equal(f(1.5), start.normal(1.5, 2.0, 50))
    np.testing.assert_array_equal(f(-1.0), start.normal(-1.0, 2.0, 50))


def test_parameters_are_broadcast():
    rng = aesara.shared(generator())
    loc, scale = at.dmatrix("loc"), at.dvector("scale")
    f = aesara.function([loc, scale], at.random.normal(loc, scale, rng=rng), mode="NUMBA_FIXED")
    g = aesara.function(
        [loc, scale], at.random.normal(loc, scale, size=(2, 4, 3), rng=rng), mode="NUMBA_FIXED"
    )
    loc_value, scale_value = np.arange(4.0).reshape(4, 1), np.array([1.0, 2.0, 3.0])
    expected = generator().normal(loc_value, scale_value)
    np.testing.assert_array_equal(f(loc_value, scale_value), expected)
    expected = generator().normal(loc_value, scale_value, size=(2, 4, 3))
    np.testing.assert_array_equal(g(loc_value, scale_value), expected)
    with pytest.raises(ValueError, match="shape mismatch"):
        f(np.zeros((4, 2)), scale_value)


@pytest.mark.parametrize(
    ("variable", "parameters", "message"),
    [
        (aer.normal, (0.0, -1.0), "scale < 0"),
        (aer.exponential, (-1.0,), "scale < 0"),
        (aer.poisson, (-1.0,), "lam < 0"),
        (aer.geometric, (1.5,), "p > 1"),
        (aer.beta, (0.0, 1.0), "a <= 0"),
        (aer.uniform, (1.0, 0.0), "high - low < 0"),
    ],
)
def test_a_parameter_that_numpy_refuses_is_refused(variable, parameters, message):
    inputs = [at.dscalar() for _ in parameters]
    f = aesara.function(
        inputs, variable(*inputs, rng=aesara.shared(generator())), mode="NUMBA_FIXED"
    )
    with pytest.raises(ValueError, match=message):
        f(*parameters)
    constant = aesara.function(
        [], variable(*parameters, rng=aesara.shared(generator())), mode="NUMBA_FIXED"
    )
    with pytest.raises(ValueError, match=message):
        constant()


def test_legacy_random_state_runs_in_python_with_advice():
    stream = at.random.RandomStream(SEED, rng_ctor=np.random.RandomState)
    draws, updates = aesara.scan(
        lambda s: s + stream.normal(), outputs_info=[at.zeros(())], n_steps=3
    )
    with pytest.warns(FixedModesWarning, match=r"RandomState[\s\S]*Generator[\s\S]*normal_rv"):
        f = aesara.function([], draws, updates=updates, mode="NUMBA_FIXED")
    # What Aesara makes the first generator of a stream from.
    (seed,) = np.random.SeedSequence(SEED).spawn(1)
    expected = np.random.RandomState(np.random.MT19937(seed)).normal(size=6)
    np.testing.assert_allclose(f(), np.cumsum(expected[:3]))
    np.testing.assert_allclose(f(), np.cumsum(expected[3:]))
    with (
        aesara.config.change_flags(fixed_modes__strict=True),
        pytest.raises(UnsupportedOpError, match="RandomState"),
    ):
        aesara.function([], draws, updates=updates, mode="NUMBA_FIXED")


class TwiceUniform(RandomVariable):
    """A variable that NUMBA_FIXED knows nothing of."""

    name = "twice_uniform"
    ndim_supp = 0
    ndims_params = (0,)
    dtype = "float64"

    @classmethod
    def rng_fn(cls, rng, high, size):
        return rng.uniform(0, 2 * high, size)


# Those without a native sampler run in Python, and say so once.
IN_PYTHON = [
    (TwiceUniform(), (1.5,), lambda r: r.uniform(0, 3.0)),
    (aer.integers, (0, np.uint64(2**63)), lambda r: r.integers(0, np.uint64(2**63))),
]


@pytest.mark.parametrize(
    ("variable", "parameters", "reference"), IN_PYTHON, ids=[str(v) for v, _, _ in IN_PYTHON]
)
def test_variables_without_a_sampler_run_in_python_and_say_so(variable, parameters, reference):
    rng = aesara.shared(generator())

    def step():
        new_rng, value = variable(*parameters, rng=rng).owner.outputs
        return value, {rng: new_rng}

    draws, updates = aesara.scan(step, n_steps=3)
    with pytest.warns(FixedModesWarning, match=r"in Python at every call[\s\S]*Inside: .*scan_fn"):
        f = aesara.function([], draws, updates=updates, mode="NUMBA_FIXED")
    r = generator()
    np.testing.assert_array_equal(f(), [reference(r) for _ in range(3)])


def test_a_generator_that_the_graph_makes_is_the_same_at_each_call():
    rng = default_rng(SEED)
    draw = aer.normal(0.0, 1.0, size=3, rng=rng)
    shared = aesara.shared(np.random.default_rng(1))
    f = aesara.function([], [rng, draw], updates={shared: rng}, mode="NUMBA_FIXED")
    for _ in range(2):
        made, drawn = f()
        np.testing.assert_array_equal(drawn, generator().normal(size=3))
        assert made.normal() == generator().normal()
        assert shared.get_value().normal() == generator().normal()


def test_a_generator_that_each_step_makes_starts_anew():
    x = at.dvector("x")
    draws, _ = aesara.scan(lambda v: aer.normal(v, 1.0, rng=default_rng(SEED)), sequences=[x])
    f = aesara.function([x], draws, mode="NUMBA_FIXED")
    np.testing.assert_array_equal(f([0.0, 1.0]), [generator().normal(v) for v in (0.0, 1.0)])
