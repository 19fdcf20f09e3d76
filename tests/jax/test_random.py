"""Random variables: the state that is handed on, and the distributions."""

from __future__ import annotations

import subprocess
import sys

import aesara
import aesara.tensor as at
import numpy as np
import pytest
import scipy.stats as st
from aesara.tensor.random import basic as aer
from aesara.tensor.random import op as random_ops
from aesara.tensor.random.utils import RandomStream

from fixed_modes.jax.rng import key_from_rng, rng_from_key

BIT_GENERATORS = ["MT19937", "PCG64", "Philox", "SFC64"]


def generator(name, seed=5):
    return np.random.Generator(getattr(np.random, name)(seed))


def draws_of(rv, count=20_000, seed=11):
    """Compile ``rv(size, rng)`` and give one large draw."""
    rng = aesara.shared(np.random.default_rng(seed))
    return aesara.function([], rv(size=count, rng=rng), mode="JAX_FIXED")()


# The state


@pytest.mark.parametrize("name", BIT_GENERATORS)
def test_generator_becomes_a_key_and_a_generator_of_its_kind(name):
    rng = generator(name)
    before = str(rng.bit_generator.state)
    key = key_from_rng(rng)
    assert str(rng.bit_generator.state) == before
    assert key.data.dtype == np.uint32
    assert key.data.shape == (2,)
    assert np.array_equal(key.data, key_from_rng(generator(name)).data)
    rng.normal()
    assert not np.array_equal(key.data, key_from_rng(rng).data)
    assert type(rng_from_key(key, {}).bit_generator).__name__ == name


@pytest.mark.parametrize("name", BIT_GENERATORS)
def test_updates_advance_a_shared_generator_that_fast_run_can_use(name):
    shared = aesara.shared(generator(name))
    following, draw = aer.normal(rng=shared).owner.outputs
    f = aesara.function([], draw, updates={shared: following}, mode="JAX_FIXED")
    first, second = f(), f()
    assert first != second
    assert type(shared.get_value().bit_generator).__name__ == name
    g = aesara.function([], draw, mode="FAST_COMPILE")
    assert g() == shared.get_value().normal()
    shared.set_value(generator(name))
    assert f() == first
    assert f() == second


def test_legacy_random_state():
    shared = aesara.shared(np.random.RandomState(3))
    following, draw = aer.normal(rng=shared).owner.outputs
    f = aesara.function([], draw, updates={shared: following}, mode="JAX_FIXED")
    assert f() != f()
    assert isinstance(shared.get_value(), np.random.RandomState)
    assert np.isfinite(shared.get_value().normal())


def test_without_updates_the_draws_are_equal_and_the_generator_unchanged():
    shared = aesara.shared(np.random.default_rng(1))
    before = str(shared.get_value().bit_generator.state)
    f = aesara.function([], aer.normal(rng=shared, size=3), mode="JAX_FIXED")
    np.testing.assert_array_equal(f(), f())
    assert str(shared.get_value().bit_generator.state) == before


def test_seed_after_compilation_takes_effect():
    stream = RandomStream(7)
    f = aesara.function([], stream.normal(), mode="JAX_FIXED")
    first = f()
    assert f() != first
    stream.seed(7)
    assert f() == first


def test_generator_without_a_draw_comes_back_as_it_was():
    shared, n = aesara.shared(np.random.default_rng(1)), at.lscalar("n")
    out, updates = aesara.scan(lambda: shared_draw(shared), n_steps=n)
    f = aesara.function([n], out, updates=updates, mode="JAX_FIXED")
    before = str(shared.get_value().bit_generator.state)
    assert f(0).shape == (0,)
    assert str(shared.get_value().bit_generator.state) == before
    assert f(2).shape == (2,)
    assert str(shared.get_value().bit_generator.state) != before


@pytest.mark.parametrize("make", ["default_rng", "RandomState"])
def test_generator_that_the_graph_makes_and_does_not_draw_from_is_numpys(make):
    maker, numpy_maker = getattr(random_ops, make), getattr(np.random, make)
    shared = aesara.shared(numpy_maker(1))
    made = maker(7)
    f = aesara.function([], made, updates={shared: made}, mode="JAX_FIXED")
    want = numpy_maker(7).normal(size=3)
    for _ in range(2):
        np.testing.assert_array_equal(f().normal(size=3), want)
        np.testing.assert_array_equal(shared.get_value().normal(size=3), want)


def shared_draw(shared):
    following, draw = aer.normal(rng=shared).owner.outputs
    return draw, {shared: following}


def test_draws_of_a_loop_are_independent_and_the_caller_keeps_the_generator():
    rng_in = at.random.type.random_generator_type("rng")
    following, draw = aer.normal(rng=rng_in, size=4).owner.outputs
    f = aesara.function([rng_in], [following, draw], mode="JAX_FIXED")
    mine = np.random.default_rng(2)
    before = str(mine.bit_generator.state)
    new, _ = f(mine)
    assert str(mine.bit_generator.state) == before
    assert isinstance(new, np.random.Generator)

    stream = RandomStream(23)
    out, updates = aesara.scan(
        lambda: [stream.normal(), stream.uniform(size=2), stream.normal()], n_steps=2000
    )
    f = aesara.function([], out, updates=updates, mode="JAX_FIXED")
    a, b, c = f()
    columns = np.column_stack([a, b, c])
    assert len(np.unique(columns)) == columns.size
    correlations = np.corrcoef(np.column_stack([columns[:-1], columns[1:]]), rowvar=False)
    assert np.abs(correlations - np.eye(8)).max() < 0.1
    assert st.kstest(a, "norm").pvalue > 1e-4
    assert not np.array_equal(f()[0], a)


def test_chain_of_draws_that_the_step_hands_on():
    shared = aesara.shared(np.random.default_rng(4))

    def step():
        first = aer.normal(rng=shared)
        second = aer.normal(rng=first.owner.outputs[0])
        return [first, second], {shared: second.owner.outputs[0]}

    (a, b), updates = aesara.scan(step, n_steps=50)
    f = aesara.function([], [a, b], updates=updates, mode="JAX_FIXED")
    draws = np.concatenate([*f(), *f()])
    assert len(np.unique(draws)) == 200


@pytest.mark.parametrize("second", ["replaced", "replaced unused", "drawn from and replaced"])
def test_one_draw_in_a_loop_updates_two_generators(second):
    a = aesara.shared(np.random.default_rng(1))
    b = aesara.shared(np.random.default_rng(2))

    def step():
        following, draw = aer.normal(rng=a).owner.outputs
        other = aer.uniform(rng=b)
        third = aer.gumbel(0.0, 1.0, rng=following)
        results = {
            "replaced": ([draw, other], following),
            "replaced unused": ([draw], following),
            "drawn from and replaced": ([draw, other, third], third.owner.outputs[0]),
        }
        outputs, new = results[second]
        return outputs, {a: following, b: new}

    outputs, updates = aesara.scan(step, n_steps=30)
    f = aesara.function([], outputs, updates=updates, mode="JAX_FIXED")
    draws = np.concatenate([np.ravel(f()), np.ravel(f())])
    assert len(np.unique(draws)) == draws.size
    # The last update says whether the two end in the same state.
    same = str(a.get_value().bit_generator.state) == str(b.get_value().bit_generator.state)
    assert same == (second != "drawn from and replaced")


def test_generator_that_an_inner_loop_only_reads():
    shared = aesara.shared(np.random.default_rng(4))

    def step():
        following, draw = aer.normal(rng=shared).owner.outputs
        inner, _ = aesara.scan(
            lambda v, rng: aer.normal(v, rng=rng), at.arange(2.0), non_sequences=[following]
        )
        return [draw, inner], {shared: following}

    (draws, inner), updates = aesara.scan(step, n_steps=5)
    draws, inner = aesara.function([], [draws, inner], updates=updates, mode="JAX_FIXED")()
    # The inner loop draws what the next step draws.
    np.testing.assert_allclose(inner[:-1], draws[1:, None] + np.arange(2.0))


def test_same_seed_gives_the_same_draws_in_another_process():
    script = (
        "import fixed_modes, aesara; from aesara.tensor.random.utils import RandomStream;"
        "print(repr(float(aesara.function([], RandomStream(9).normal(), mode='JAX_FIXED')())))"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env={**__import__("os").environ, "JAX_DEFAULT_PRNG_IMPL": "rbg"},
    )
    here = aesara.function([], RandomStream(9).normal(), mode="JAX_FIXED")()
    assert float(done.stdout.split()[-1]) == float(here)


# Distributions: SciPy's distribution functions, or moments by hand

CONTINUOUS = {
    "uniform": (aer.uniform, (-1.0, 3.0), st.uniform(-1, 4)),
    "normal": (aer.normal, (1.0, 2.0), st.norm(1, 2)),
    "halfnormal": (aer.halfnormal, (1.0, 2.0), st.halfnorm(1, 2)),
    "lognormal": (aer.lognormal, (0.3, 0.5), st.lognorm(0.5, scale=np.exp(0.3))),
    "gamma": (aer.gamma, (0.7, 2.0), st.gamma(0.7, scale=0.5)),
    "chisquare": (aer.chisquare, (3.0,), st.chi2(3)),
    "exponential": (aer.exponential, (2.0,), st.expon(scale=2)),
    "laplace": (aer.laplace, (1.0, 2.0), st.laplace(1, 2)),
    "logistic": (aer.logistic, (1.0, 2.0), st.logistic(1, 2)),
    "gumbel": (aer.gumbel, (1.0, 2.0), st.gumbel_r(1, 2)),
    "cauchy": (aer.cauchy, (1.0, 2.0), st.cauchy(1, 2)),
    "halfcauchy": (aer.halfcauchy, (1.0, 2.0), st.halfcauchy(1, 2)),
    "pareto": (aer.pareto, (3.0, 2.0), st.pareto(3, scale=2)),
    "weibull": (aer.weibull, (1.5,), st.weibull_min(1.5)),
    "rayleigh": (aer.rayleigh, (2.0,), st.rayleigh(scale=2)),
    "power": (aer.power, (3.0,), st.powerlaw(3)),
    "beta": (aer.beta, (0.5, 2.0), st.beta(0.5, 2)),
    "t": (aer.t, (4.0, 1.0, 2.0), st.t(4, 1, 2)),
    "f": (aer.f, (5.0, 8.0), st.f(5, 8)),
    "wald": (aer.wald, (2.0, 3.0), st.invgauss(2 / 3, scale=3)),
    "invgamma": (aer.invgamma, (3.0, 2.0), st.invgamma(3, scale=2)),
    "truncexpon": (aer.truncexpon, (2.0, 1.0, 3.0), st.truncexpon(2, 1, 3)),
    "vonmises": (aer.vonmises, (0.5, 2.0), st.vonmises(2, loc=0.5)),
    "triangular": (aer.triangular, (-1.0, 0.5, 2.0), st.triang(0.5, -1, 3)),
    "gengamma": (aer.gengamma, (2.0, 3.0, 1.5), st.gengamma(2 / 3, 3, scale=1.5)),
}


@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous_distribution(name):
    rv, parameters, law = CONTINUOUS[name]
    draws = draws_of(lambda **kw: rv(*parameters, **kw))
    assert draws.dtype == "float64"
    assert st.kstest(draws, law.cdf).pvalue > 1e-4


DISCRETE = {
    "bernoulli": (aer.bernoulli, (0.3,), st.bernoulli(0.3)),
    "binomial": (aer.binomial, (12, 0.3), st.binom(12, 0.3)),
    "binomial of many": (aer.binomial, (1_000_000, 0.5), st.binom(1_000_000, 0.5)),
    "binomial of a likely event": (aer.binomial, (60, 0.7), st.binom(60, 0.7)),
    "binomial of a rare event": (aer.binomial, (100_000, 1e-5), st.binom(100_000, 1e-5)),
    "poisson": (aer.poisson, (3.5,), st.poisson(3.5)),
    "poisson of a large rate": (aer.poisson, (1e6,), st.poisson(1e6)),
    "geometric": (aer.geometric, (0.25,), st.geom(0.25)),
    "negative_binomial": (aer.negative_binomial, (3, 0.4), st.nbinom(3, 0.4)),
    "beta_binomial": (aer.betabinom, (10, 2.0, 3.0), st.betabinom(10, 2, 3)),
    "hypergeometric": (aer.hypergeometric, (7, 9, 6), st.hypergeom(16, 7, 6)),
    "zipf": (aer.zipf, (2.5,), st.zipf(2.5)),
    "integers": (aer.integers, (-2, 5), st.randint(-2, 5)),
    "categorical": (aer.categorical, (np.array([0.2, 0.0, 0.5, 0.3]),), None),
}


@pytest.mark.parametrize("name", DISCRETE)
def test_discrete_distribution(name):
    rv, parameters, law = DISCRETE[name]
    draws = draws_of(lambda **kw: rv(*parameters, **kw))
    assert draws.dtype == "int64"
    values, counts = np.unique(draws, return_counts=True)
    p = parameters[0][values] if law is None else law.pmf(values)
    assert (p > 0).all()
    if len(values) > 100:
        assert abs(draws.mean() - law.mean()) < 5 * law.std() / np.sqrt(draws.size)
        assert abs(draws.std() / law.std() - 1) < 5 / np.sqrt(2 * draws.size)
        assert st.kstest(draws + 0.5, law.cdf).pvalue > 1e-4
        return
    common = p * draws.size > 10
    rest = (~common).any()
    observed = np.append(counts[common], counts[~common].sum() if rest else [])
    wanted = np.append(p[common], 1 - p[common].sum() if rest else []) * draws.size
    wanted *= observed.sum() / wanted.sum()
    assert st.chisquare(observed, wanted).pvalue > 1e-4


def test_dirichlet_of_a_batch():
    alphas = np.array([[1.0, 2.0, 3.0], [0.01, 0.01, 0.01]])
    draws = draws_of(lambda size, rng: aer.dirichlet(alphas, size=(size, 2), rng=rng), 4000)
    assert draws.shape == (4000, 2, 3)
    np.testing.assert_allclose(draws.sum(-1), 1.0)
    np.testing.assert_allclose(draws[:, 0].mean(0), alphas[0] / 6, atol=0.02)
    np.testing.assert_allclose(draws[:, 1].mean(0), [1 / 3] * 3, atol=0.05)


def test_multivariate_normal_with_a_singular_covariance():
    cov = np.array([[2.0, 1.0, 0.0], [1.0, 0.5, 0.0], [0.0, 0.0, 3.0]])
    mean = np.array([1.0, -1.0, 0.0])
    draws = draws_of(lambda **kw: aer.multivariate_normal(mean, cov, **kw))
    assert draws.shape == (20_000, 3)
    np.testing.assert_allclose(draws.mean(0), mean, atol=0.08)
    np.testing.assert_allclose(np.cov(draws, rowvar=False), cov, atol=0.15)
    np.testing.assert_allclose(draws[:, 0] - 1, 2 * (draws[:, 1] + 1), atol=1e-6)


def test_multinomial():
    p = np.array([0.2, 0.5, 0.3])
    draws = draws_of(lambda **kw: aer.multinomial(8, p, **kw), 5000)
    assert draws.shape == (5000, 3)
    assert (draws.sum(-1) == 8).all()
    np.testing.assert_allclose(draws.mean(0), 8 * p, atol=0.1)
    np.testing.assert_allclose(draws.var(0), 8 * p * (1 - p), rtol=0.1)


def test_parameters_on_the_rim(evaluate):
    rng = aesara.shared(np.random.default_rng(3))
    outputs = [
        aer.binomial([0, 5, 5, 500, 500], [0.5, 0.0, 1.0, 0.0, 1.0], rng=rng),
        aer.poisson([0.0, 0.0], rng=rng),
        aer.geometric([1.0], rng=rng),
        aer.bernoulli([0.0, 1.0], rng=rng),
    ]
    wants = [[0, 0, 5, 0, 500], [0, 0], [1], [0, 1]]
    for result, want in zip(evaluate([], outputs), wants):
        np.testing.assert_array_equal(result, want)


def test_choice_and_permutation(evaluate):
    rng = aesara.shared(np.random.default_rng(3))
    items = np.array([3.0, 5.0, 7.0, 9.0])
    weights = np.array([0.0, 0.5, 0.25, 0.25])
    shuffled, subset, weighted, order = evaluate(
        [],
        [
            aer.permutation(items, rng=rng),
            aer.choice(items, size=3, replace=False, rng=rng),
            aer.choice(items, size=4000, p=weights, rng=rng),
            aer.permutation(5, rng=rng),
        ],
    )
    np.testing.assert_array_equal(np.sort(shuffled), items)
    assert len(set(subset)) == 3
    assert set(subset) <= set(items)
    np.testing.assert_allclose([(weighted == v).mean() for v in items], weights, atol=0.04)
    np.testing.assert_array_equal(np.sort(order), np.arange(5))
    with pytest.raises(ValueError, match="larger sample"):
        evaluate([], aer.choice(items, size=5, replace=False, rng=rng))


def test_shapes_and_dtypes(evaluate):
    rng, n = aesara.shared(np.random.default_rng(3)), at.lscalar("n")
    x = at.dmatrix("x")
    outputs = [
        aer.normal(x, at.ones((4, 1, 1)), rng=rng),
        aer.normal(x, size=(n, 2, 3), rng=rng),
        aer.normal(0.0, 1.0, size=x.shape, rng=rng),
        aer.NormalRV(dtype="float32")(rng=rng, size=(2,)),
        aer.bernoulli(x * 0, rng=rng),
    ]
    results = evaluate([n, x], outputs, 5, np.zeros((2, 3)))
    assert [r.shape for r in results] == [(4, 2, 3), (5, 2, 3), (2, 3), (2,), (2, 3)]
    assert [str(r.dtype) for r in results] == ["float64"] * 3 + ["float32", "int64"]


def test_sampler_registered_with_aesara_is_used(evaluate):
    import jax
    from aesara.link.jax.dispatch.random import jax_sample_fn

    class Shifted(aer.RandomVariable):
        name, ndim_supp, ndims_params, dtype = "shifted", 0, (0,), "floatX"

    @jax_sample_fn.register(Shifted)
    def shifted(op):
        def sample(rng, size, dtype, shift):
            key, now = jax.random.split(rng["jax_state"])
            return {"jax_state": key}, shift + jax.random.uniform(now, size, dtype)

        return sample

    draw = Shifted()(10.0, size=(3,), rng=aesara.shared(np.random.default_rng(0)))
    result = evaluate([], draw)
    assert result.shape == (3,)
    assert ((result > 10) & (result < 11)).all()


def test_distribution_without_a_sampler_is_refused_by_name_with_the_strict_flag():
    class Odd(aer.RandomVariable):
        name, ndim_supp, ndims_params, dtype = "odd", 0, (0,), "floatX"

    draw = Odd()(1.0, rng=aesara.shared(np.random.default_rng(0)))
    with aesara.config.change_flags(fixed_modes__strict=True):
        f = aesara.function([], draw, mode="JAX_FIXED")
    with pytest.raises(NotImplementedError, match=r"no conversion for this op(.|\n)*Op: odd_rv"):
        f()


REFUSED = ["normal", "lognormal", "laplace", "logistic", "exponential", "rayleigh", "weibull"]


@pytest.mark.parametrize("name", [*REFUSED, "vonmises"])
@pytest.mark.parametrize("place", ["outside", "in a loop"])
def test_negative_scale_is_refused_as_in_numpy(name, place):
    op, v = getattr(aer, name), at.dvector("v")
    location = [0.0] * (len(op.ndims_params) - 1)
    with pytest.raises(ValueError, match="< 0") as refused:
        getattr(np.random.default_rng(0), name)(*location, -1.0)
    rng = aesara.shared(np.random.default_rng(0))

    def step(scale):
        following, draw = op(*location, scale, rng=rng).owner.outputs
        return draw, {rng: following}

    out, updates = aesara.scan(step, [v]) if place == "in a loop" else step(v)
    f = aesara.function([v], out, updates=updates, mode="JAX_FIXED")
    assert np.isfinite(f(np.ones(3))).all()
    with pytest.raises(ValueError, match=str(refused.value)):
        f(np.array([1.0, -1.0, 1.0]))
