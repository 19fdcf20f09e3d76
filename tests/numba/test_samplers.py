"""Draws that Numba has no method for: all regimes of the parameters, sizes and dtypes.

Every expected value comes from a NumPy or SciPy generator with the same seed.
"""

from __future__ import annotations

import aesara
import aesara.tensor as at
import aesara.tensor.random.basic as aer
import numpy as np
import pytest
from aesara.compile.sharedvalue import SharedVariable
from scipy import stats

from fixed_modes.numba import vector_samplers as samplers

SEED = 7


def generator() -> np.random.Generator:
    return np.random.default_rng(SEED)


def shared() -> SharedVariable:
    return aesara.shared(generator())


N = np.array([5, 0, 40, 500, 500, 10**6, 30, 70])
P = np.array([0.3, 0.5, 1.0, 0.3, 0.9, 0.5, 0.0, 0.5])
GOOD, BAD, TAKEN = np.array([[5, 500, 500, 7, 90000], [6, 600, 60, 0, 70], [4, 40, 340, 3, 60000]])
LOW = np.array([0, -(2**62), 0, -5, -(2**63), 3])
HIGH = np.array([50, 2**62 + 5, 2**32, 2**40, 2**63 - 1, 4])
MU = np.array([0.5, 0.5, 0.5, 3.0, -3.1, 0.0])
KAPPA = np.array([2.0, 1e-9, 5e-6, 1e7, 0.1, 40.0])
A, B = np.array([2.0, 0.5, 3.0]), np.array([3.0, 0.7, 1.5])
RATE = np.array([0.0, 0.5, 9.0, 10.0, 1000.0])

# The variable, its parameters, and the reference; rows of draws where the
# parameters are arrays.
UNIVARIATE = [
    (aer.binomial, (N, P), lambda r, n: r.binomial(N, P, n)),
    (aer.bernoulli, (P,), lambda r, n: stats.bernoulli.rvs(P, size=n, random_state=r)),
    (aer.nbinom, (A, P[:1]), lambda r, n: r.negative_binomial(A, P[:1], n)),
    (aer.betabinom, (N[:1], A, B), lambda r, n: r.binomial(N[:1], r.beta(A, B, n), n)),
    (aer.hypergeometric, (GOOD, BAD, TAKEN), lambda r, n: r.hypergeometric(GOOD, BAD, TAKEN, n)),
    (aer.integers, (LOW, HIGH), lambda r, n: r.integers(LOW, HIGH, n)),
    (aer.vonmises, (MU, KAPPA), lambda r, n: r.vonmises(MU, KAPPA, n)),
    (aer.zipf, (A + 1.0,), lambda r, n: r.zipf(A + 1.0, n)),
    (aer.f, (A, B), lambda r, n: r.f(A, B, n)),
    (
        aer.gengamma,
        (A, B, 1.5),
        lambda r, n: stats.gengamma.rvs(A / B, B, scale=1.5, size=n, random_state=r),
    ),
    (
        aer.invgamma,
        (A, B),
        lambda r, n: stats.invgamma.rvs(A, scale=B, size=n, random_state=r),
    ),
    (aer.beta, (A, B), lambda r, n: r.beta(A, B, n)),
    (aer.poisson, (RATE,), lambda r, n: r.poisson(RATE, n)),
    (aer.geometric, (P[[0, 1, 4]],), lambda r, n: r.geometric(P[[0, 1, 4]], n)),
    (aer.gamma, (A, B), lambda r, n: r.gamma(A, 1 / B, n)),
]


@pytest.mark.parametrize(
    ("variable", "parameters", "reference"), UNIVARIATE, ids=[v.name for v, _, _ in UNIVARIATE]
)
def test_univariate_draws(variable, parameters, reference):
    inputs = [at.as_tensor_variable(p).type() for p in parameters]
    values = [i.type.filter(p) for i, p in zip(inputs, parameters)]
    size = (20, *np.broadcast_shapes(*map(np.shape, parameters)))
    out = variable(*inputs, size=size, rng=shared())
    draws = aesara.function(inputs, out, mode="NUMBA_FIXED")(*values)
    np.testing.assert_allclose(draws, reference(generator(), size), rtol=1e-12)


def test_draws_take_the_dtype_of_the_variable():
    counts = aer.BinomialRV(dtype="int8")(500, 0.5, size=(9,), rng=shared())
    rates = aer.PoissonRV(dtype="float32")(3.5, size=(9,), rng=shared())
    angles = aer.VonMisesRV(dtype="float32")(0.5, 2.0, size=(9,), rng=shared())
    flags = aer.BernoulliRV(dtype="bool")(0.5, size=(9,), rng=shared())
    single = aer.pareto(at.fvector("b"), rng=shared())
    b = np.array([0.3, 3.0], "float32")
    f = aesara.function(
        [single.owner.inputs[3]], [counts, rates, angles, flags, single], mode="NUMBA_FIXED"
    )
    expected = [
        generator().binomial(500, 0.5, 9).astype("int8"),
        generator().poisson(3.5, 9).astype("float32"),
        generator().vonmises(0.5, 2.0, 9).astype("float32"),
        generator().binomial(1, 0.5, 9).astype(bool),
        stats.pareto.rvs(b, random_state=generator()),
    ]
    for drawn, value in zip(f(b), expected):
        assert drawn.dtype == value.dtype
        np.testing.assert_array_equal(drawn, value)


def test_a_scale_of_zero_draws_nothing():
    scale = at.dvector("scale")
    rng = shared()
    new_rng, draws = aer.gumbel(2.0, scale, rng=rng).owner.outputs
    f = aesara.function([scale], [draws], updates={rng: new_rng}, mode="NUMBA_FIXED")
    np.testing.assert_array_equal(f(np.zeros(3)), [[2.0, 2.0, 2.0]])
    first = generator().uniform(size=2)
    np.testing.assert_allclose(f([0.0, 3.0]), [[2.0, 2.0 - 3.0 * np.log(-np.log(first[1]))]])


WEIGHTS = np.array([[0.2, 0.5, 0.3], [0.0, 0.1, 0.9]])
ALPHAS = np.array([[0.2, 0.5, 3.0], [0.02, 0.05, 0.01]])
MEANS = np.array([[1.0, 2.0, 3.0], [0.0, -1.0, 0.5]])
# Equal eigenvalues: their vectors are LAPACK's choice.
COVARIANCES = np.stack([np.eye(3) + 0.5, np.diag([1.0, 0.0, 2.0])])


def test_draws_of_vectors():
    p, n = at.dmatrix("p"), at.lvector("n")
    outputs = [
        aer.multinomial(40, p[0], size=(2, 4), rng=shared()),
        aer.multinomial(n, p, rng=shared()),
        aer.categorical(p, size=(4, 2), rng=shared()),
    ]
    counts = np.array([3, 1000])
    draws = aesara.function([p, n], outputs, mode="NUMBA_FIXED")(WEIGHTS, counts)
    r = [generator() for _ in outputs]
    uniform = r[2].random((4, 2))
    expected = [
        r[0].multinomial(40, WEIGHTS[0], (2, 4)),
        [r[1].multinomial(m, w) for m, w in zip(counts, WEIGHTS)],
        [[np.searchsorted(w.cumsum(), u) for w, u in zip(WEIGHTS, us)] for us in uniform],
    ]
    for drawn, value in zip(draws, expected):
        np.testing.assert_array_equal(drawn, value)


def test_draws_of_proportions():
    alpha = at.dmatrix("alpha")
    outputs = [
        aer.dirichlet(alpha[1], rng=shared()),
        aer.dirichlet(alpha, size=(4, 2), rng=shared()),
    ]
    draws = aesara.function([alpha], outputs, mode="NUMBA_FIXED")(ALPHAS)
    r = [generator() for _ in outputs]
    expected = [r[0].dirichlet(ALPHAS[1]), [[r[1].dirichlet(a) for a in ALPHAS] for _ in range(4)]]
    for drawn, value in zip(draws, expected):
        np.testing.assert_allclose(drawn, value, rtol=1e-12)


def test_draws_of_normal_vectors():
    mean, cov = at.dmatrix("mean"), at.dtensor3("cov")
    outputs = [
        aer.multivariate_normal(mean[0], cov[0], size=(2, 4), rng=shared()),
        aer.multivariate_normal(mean, cov, rng=shared()),
    ]
    draws = aesara.function([mean, cov], outputs, mode="NUMBA_FIXED")(MEANS, COVARIANCES)
    r = [generator() for _ in outputs]
    normal = [stats.multivariate_normal(m, c, True).rvs for m, c in zip(MEANS, COVARIANCES)]
    expected = [
        normal[0]((2, 4), random_state=r[0]),
        [draw(random_state=r[1]) for draw in normal],
    ]
    for drawn, value in zip(draws, expected):
        np.testing.assert_allclose(drawn, value, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    ("count", "size"), [(40, 30), (40, 40), (20000, 1000), (20000, 9), (1, 1), (5, 0)]
)
def test_positions_without_replacement(count, size):
    drawn = np.empty(size, np.int64)
    r, reference = generator(), generator()
    assert samplers.choose_positions(r, count, size, False, drawn) == 0
    np.testing.assert_array_equal(drawn, reference.choice(count, size, replace=False))
    weights = np.arange(1.0, count + 1)
    weights /= weights.sum()
    for replace in (True, False):
        fault = samplers.choose_positions_by(r, count, size, replace, drawn, weights, 1e-8)
        assert fault == 0
        np.testing.assert_array_equal(drawn, reference.choice(count, size, replace, weights))


def test_choices_and_permutations():
    a, weights = np.arange(40) * 1.5, np.arange(40.0) / np.arange(40).sum()
    x, p, m = at.dvector("x"), at.dvector("p"), at.fmatrix("m")
    rows = np.arange(12, dtype="float32").reshape(4, 3)
    outputs = [
        aer.choice(x, rng=shared()),
        aer.choice(x, (2, 5), p=p, rng=shared()),
        aer.choice(17, (9,), rng=shared()),
        aer.permutation(11, rng=shared()),
        aer.permutation(m, rng=shared()),
    ]
    draws = aesara.function([x, p, m], outputs, mode="NUMBA_FIXED")(a, weights, rows)
    r = [generator() for _ in outputs]
    expected = [
        r[0].choice(a),
        r[1].choice(a, (2, 5), p=weights),
        r[2].choice(17, 9),
        r[3].permutation(11),
        r[4].permutation(rows),
    ]
    for drawn, value in zip(draws, expected):
        np.testing.assert_array_equal(drawn, value)


def test_draws_in_a_loop_continue_one_stream():
    stream = at.random.RandomStream(SEED)
    p = at.dvector("p")

    def step(w):
        state = stream.categorical(w)
        return state, stream.binomial(10 + state, 0.4), stream.multinomial(5, w)

    outputs, updates = aesara.scan(step, non_sequences=p, n_steps=30)
    rngs = [rng.get_value() for rng in updates]
    f = aesara.function([p], outputs, updates=updates, mode="NUMBA_FIXED")
    for _ in range(2):
        states, counts, parts = f(WEIGHTS[0])
        uniform = rngs[0].random(30)
        expected = np.searchsorted(WEIGHTS[0].cumsum(), uniform)
        np.testing.assert_array_equal(states, expected)
        np.testing.assert_array_equal(counts, [rngs[1].binomial(10 + s, 0.4) for s in expected])
        np.testing.assert_array_equal(parts, rngs[2].multinomial(5, WEIGHTS[0], 30))


X, Y, K = at.dvector("x"), at.dvector("y"), at.lscalar("k")
REFUSED = [
    (aer.binomial(K, X.sum(), rng=shared()), (5, [1.5], [0.0]), "p > 1"),
    (aer.binomial(K, X.sum(), rng=shared()), (-5, [0.5], [0.0]), "n < 0"),
    (aer.hypergeometric(K, 2, 4, rng=shared()), (1, [0.0], [0.0]), "nbad < nsample"),
    (aer.integers(K, 2, rng=shared()), (2, [0.0], [0.0]), "low >= high"),
    (aer.vonmises(0.0, X.sum(), rng=shared()), (0, [-1.0], [0.0]), "kappa < 0"),
    (aer.gumbel(0.0, X.sum(), rng=shared()), (0, [-1.0], [0.0]), "Domain error"),
    (aer.multinomial(K, X, rng=shared()), (3, [0.7, 0.7, 0.1], [0.0]), "sum.pvals"),
    (aer.dirichlet(X, rng=shared()), (3, [-0.7, 0.7], [0.0]), "alpha <"),
    (aer.choice(X, (K,), False, rng=shared()), (3, [0.7, 0.7], [0.0]), "larger sample"),
    (aer.choice(X, (K,), True, Y, rng=shared()), (3, [0.7, 0.7], [0.5, 0.4]), "sum to 1"),
    (aer.choice(X, (K,), True, Y, rng=shared()), (3, [0.7], [0.5, 0.5]), "same size"),
    (aer.choice(X, (K,), True, Y, rng=shared()), (3, [], []), "cannot be empty"),
    (aer.normal(X, 1.0, size=(K,), rng=shared()), (3, [0.0, 0.0], [0.0]), "shape mismatch"),
    (aer.normal(0.0, X.sum(), size=(K,), rng=shared()), (-3, [1.0], [0.0]), "negative dim"),
    (
        aer.multivariate_normal(X, [[1.0, 0.0], [0.0, -1.0]], rng=shared()),
        (0, [0.0, 0.0], [0.0]),
        "positive semidefinite",
    ),
    (
        aer.multivariate_normal(X, [[1.0, 0.0], [0.0, 1.0]], rng=shared()),
        (0, [0.0], [0.0]),
        "mismatch",
    ),
]


def test_what_numpy_refuses_is_refused():
    choose = at.lscalar("choose")
    branches = at.zeros(())
    for number, (draw, _, _) in enumerate(REFUSED):
        branches = aesara.ifelse.ifelse(at.eq(choose, number), draw.sum() * 1.0, branches)
    f = aesara.function([choose, K, X, Y], branches, mode="NUMBA_FIXED", on_unused_input="ignore")
    for number, (_, values, message) in enumerate(REFUSED):
        with pytest.raises(ValueError, match=message):
            f(number, *values)
