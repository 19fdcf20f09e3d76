"""Parameters that NumPy refuses raise its errors, when the function runs."""

from __future__ import annotations

from itertools import chain

import aesara
import aesara.tensor as at
import numpy as np
import pytest
from aesara.ifelse import ifelse
from aesara.tensor.random import basic as aer
from aesara.tensor.type import TensorType

from fixed_modes.jax.frame import Frame
from fixed_modes.jax.refusals import refuse_parameters

# For each variable, parameters that are right, and sets of parameters of which each is wrong.
CASES = {
    "poisson": ([3.0], [[-1.0], [np.nan], [1e20]]),
    "gamma": ([1.5, 2.5], [[-1.0, 1.0], [1.0, -0.5]]),
    "beta": ([1.5, 2.5], [[0.0, 1.0], [1.0, -1.0]]),
    "binomial": ([5, 0.5], [[5, 1.5], [5, -0.1], [5, np.nan], [-1, 0.5]]),
    "multinomial": (
        [5, [0.5, 0.5]],
        [[5, [0.9, 0.7, -0.6]], [5, [0.6, 0.6, 0.6]], [-1, [0.5, 0.5]]],
    ),
    "nbinom": ([4, 0.5], [[0, 0.5], [4, 0.0], [4, 1.5]]),
    "geometric": ([0.5], [[0.0], [1.5], [np.nan]]),
    "hypergeometric": ([5, 7, 4], [[1, 2, 4], [-1, 9, 2]]),
    "zipf": ([3.0], [[1.0], [np.nan]]),
    "power": ([3.0], [[0.0]]),
    "wald": ([1.0, 1.0], [[0.0, 1.0], [1.0, 0.0]]),
    "triangular": ([0.0, 1.0, 2.0], [[0.0, 2.0, 1.0], [1.0, 1.0, 1.0], [2.0, 1.0, 3.0]]),
    "uniform": ([0.0, 1.0], [[0.0, np.inf], [0.0, np.nan]]),
    "chisquare": ([3.0], [[0.0]]),
    "t": ([3.0, 0.0, 1.0], [[0.0, 0.0, 1.0], [3.0, 0.0, -1.0]]),
    "f": ([3.0, 4.0], [[0.0, 1.0], [1.0, 0.0]]),
    "dirichlet": ([[1.0, 2.0]], [[[-1.0, 2.0]]]),
    "integers": ([0, 5], [[5, 5], [5, 3]]),
    "vonmises": ([0.0, 1.0], [[0.0, -1.0]]),
    "weibull": ([1.5], [[-1.0]]),
    "rayleigh": ([1.5], [[-1.0]]),
    "normal": ([0.0, 1.0], [[0.0, -1.0]]),
    "halfnormal": ([0.0, 1.0], [[0.0, -1.0]]),
    "cauchy": ([0.0, 1.0], [[0.0, -1.0]]),
    "gumbel": ([0.0, 1.0], [[0.0, -1.0]]),
    "pareto": ([3.0, 1.0], [[0.0, 1.0], [3.0, -1.0]]),
    "invgamma": ([2.5, 1.5], [[0.0, 1.0], [1.0, -1.0]]),
    "truncexpon": ([2.0, 0.0, 1.0], [[0.0, 0.0, 1.0]]),
    "gengamma": ([1.0, 2.0, 3.0], [[-1.0, 2.0, 3.0], [1.0, 2.0, -3.0]]),
    "bernoulli": ([0.3], [[1.5], [np.nan]]),
    "betabinom": ([5, 1.5, 2.5], [[5, 0.0, 1.0], [-1, 1.5, 2.5]]),
    "choice": ([[1.0, 2.0], [0.5, 0.5]], [[[1.0, 2.0], [0.5, 0.6]], [[1.0, 2.0], [-0.5, 1.5]]]),
}


def symbol(value, position):
    array = np.asarray(value)
    dtype = "int64" if array.dtype.kind == "i" else "float64"
    return TensorType(dtype, shape=(None,) * array.ndim)(f"p{position}")


def refused(rv, values):
    """Give the error that is raised after a run with these parameters; None: there is none."""
    frame = Frame([], {})
    refuse_parameters(rv, [np.asarray(value) for value in values], frame)
    for failed, error in zip(frame.checks.failed, frame.checks.errors):
        if failed:
            return type(error())
    return None


def refused_by_numpy(rv, values):
    rng = np.random.default_rng(1)
    try:
        if rv is aer.choice:
            rng.choice(values[0], size=3, p=values[1])
        else:
            rv.rng_fn(rng, *map(np.asarray, values), None)
    except (ValueError, OverflowError) as exc:
        return type(exc)
    return None


@pytest.mark.parametrize("name", list(CASES))
def test_what_numpy_refuses_is_refused(name):
    good, bad = CASES[name]
    rv = getattr(aer, name)
    assert refused(rv, good) is None
    assert refused_by_numpy(rv, good) is None
    for case in bad:
        assert refused_by_numpy(rv, case) is not None, case
        assert refused(rv, case) is refused_by_numpy(rv, case), case


def test_draws_that_are_refused_at_run_time_come_to_an_end():
    rng = aesara.shared(np.random.default_rng(1))
    names = ("poisson", "gamma", "binomial", "zipf")
    inputs, draws = [], []
    for name in names:
        symbols = [symbol(value, len(inputs) + i) for i, value in enumerate(CASES[name][0])]
        draws.append(getattr(aer, name)(*symbols, rng=rng))
        inputs += symbols
    f = aesara.function(inputs, draws, mode="JAX_FIXED")
    good = {name: CASES[name][0] for name in names}
    assert all(np.isfinite(draw) for draw in f(*chain(*good.values())))
    for name in names:
        for bad in CASES[name][1]:
            with pytest.raises(ValueError, match=r"<|too large"):
                f(*chain(*{**good, name: bad}.values()))


def test_a_draw_that_is_refused_in_a_loop_or_in_a_branch():
    rate, taken = at.dvector("rate"), at.lscalar("taken")
    rng = aesara.shared(np.random.default_rng(1))
    looped, _ = aesara.scan(lambda r: aer.poisson(r, rng=rng), sequences=[rate])
    # A constant that is wrong does no harm where it isn't used.
    chosen = ifelse(taken, aer.poisson(-1.0, rng=rng), at.constant(np.int64(7)))
    f = aesara.function([rate, taken], [looped, chosen], mode="JAX_FIXED")
    assert f(np.ones(3), 0)[1] == 7
    with pytest.raises(ValueError, match="lam < 0"):
        f(np.array([1.0, -1.0]), 0)
    with pytest.raises(ValueError, match="lam < 0"):
        f(np.ones(3), 1)
