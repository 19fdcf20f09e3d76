"""No op of Aesara is refused: each is converted, or runs in Python and says so."""

from __future__ import annotations

import importlib
import inspect
import re
import warnings
from collections.abc import Iterator
from typing import Any

import aesara
import aesara.tensor as at
import numpy as np
import pytest
from aesara.compile.mode import Mode
from aesara.graph.basic import applys_between
from aesara.graph.op import Op
from aesara.tensor import nlinalg, slinalg
from aesara.tensor.random import basic as aer
from aesara.tensor.random.op import RandomVariable
from aesara.tensor.random.utils import RandomStream

from fixed_modes.errors import FixedModesWarning
from fixed_modes.jax import lowerings  # noqa: F401  (registers the samplers)
from fixed_modes.jax.samplers import _SAMPLERS

with warnings.catch_warnings():  # Aesara's `nnet` says that it is deprecated
    warnings.simplefilter("ignore", DeprecationWarning)
    from tests.conformance import catalogue

#: Ops that JAX has nothing for, or nothing exact.
IN_PYTHON = {
    "BetaInc_Der",
    "CAReduce",  # of an op that has no order-free result
    "GammaIncC_Der",  # Aesara's own has four digits: not the same as the exact one
    "Hyp2F1",
    "Hyp2F1_Der",
    "Iv",  # of other orders than small, known, whole ones
    "Jv",
    "Lstsq",  # with a vector
}


def by_perform(inputs: list[Any], outputs: Any) -> Any:
    """Compile a graph without rewrites and without C code."""
    with aesara.config.change_flags(cxx=""):
        return aesara.function(inputs, outputs, mode=Mode("vm", None), on_unused_input="ignore")


@pytest.mark.parametrize("group", list(catalogue.COMMON_GROUPS))
def test_group_of_ops_gives_what_perform_gives(group):
    symbols, values = catalogue.inputs()
    inputs = list(vars(symbols).values())
    names, outputs = zip(*catalogue.COMMON_GROUPS[group](symbols))
    # Without rewrites, and with the ops' own `perform`.
    wants = by_perform(inputs, outputs)
    f = aesara.function(inputs, outputs, mode="JAX_FIXED", on_unused_input="ignore")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", FixedModesWarning)
        got = f(*values)
    for name, out, result, want in zip(names, outputs, got, wants(*values)):
        assert result.dtype == out.type.dtype, name
        assert result.shape == np.shape(want), name
        np.testing.assert_allclose(result, want, rtol=1e-9, atol=1e-12, err_msg=name)
    texts = [str(w.message) for w in caught if issubclass(w.category, FixedModesWarning)]
    for text in texts:
        words = re.findall(r"\w+", text.splitlines()[1].lower())
        assert any(name.lower() in words for name in IN_PYTHON), text


def catalogue_graphs() -> list[Any]:
    symbols, _ = catalogue.inputs()
    return [out for group in catalogue.COMMON_GROUPS.values() for _, out in group(symbols)]


def ops_in(outputs: list[Any]) -> set[type]:
    """Give the classes of all ops in graphs, scalar ones and what they derive from included."""
    ops = [node.op for node in applys_between([], outputs)]
    ops += [op.scalar_op for op in ops if hasattr(op, "scalar_op")]
    return {cls for op in ops for cls in type(op).__mro__}


MODULES = [
    *("basic", "elemwise", "extra_ops", "fft", "math", "nlinalg", "shape", "slinalg"),
    *("sort", "special", "subtensor", "nnet.basic"),
]

#: Bases of ops and stand-ins for them, and what has tests elsewhere.
NOT_TESTED_HERE = {
    "AllocEmpty",  # its values are arbitrary
    "Composite",
    "CumprodOp",
    "CumsumOp",
    "ScalarOp",
}


def op_classes() -> Iterator[type]:
    modules = [f"aesara.tensor.{name}" for name in MODULES]
    for name in (*modules, "aesara.scalar.basic", "aesara.scalar.math"):
        module = importlib.import_module(name)
        for cls in vars(module).values():
            if inspect.isclass(cls) and issubclass(cls, Op) and cls.__module__ == name:
                yield cls


def test_the_catalogue_is_complete():
    missing = {cls.__name__ for cls in set(op_classes()) - ops_in(catalogue_graphs())}
    assert missing - NOT_TESTED_HERE == set()


def test_every_random_variable_of_aesara_has_a_sampler():
    classes = {type(rv) for rv in vars(aer).values() if isinstance(rv, RandomVariable)}
    assert len(classes) > 35
    assert {cls for cls in classes if not set(cls.__mro__) & set(_SAMPLERS)} == set()


def test_random_variable_without_a_sampler_is_drawn_in_python():
    class Steps(RandomVariable):
        """Whole numbers with a step of two."""

        name, ndim_supp, ndims_params, dtype = "steps", 0, [0], "int64"
        _print_name = ("Steps", "")

        @classmethod
        def rng_fn(cls, rng, high, size):
            return 2 * rng.integers(high, size=size)

    high, stream = at.lscalar("high"), RandomStream(3)
    draw = stream.gen(Steps(), high, size=(400,))
    looped, updates = aesara.scan(lambda: stream.gen(Steps(), high), n_steps=50)
    f = aesara.function([high], [draw, looped], updates=updates, mode="JAX_FIXED")
    with pytest.warns(FixedModesWarning, match="steps_rv"):
        first, second = f(5)
    assert set(first) == set(range(0, 10, 2))
    assert set(second) <= set(range(0, 10, 2))
    assert len(set(second)) > 1
    assert (f(5)[1] != second).any()


@pytest.mark.parametrize("in_loop", [False, True])
def test_matrices_that_scipy_refuses_raise(in_loop):
    a, b = at.dmatrix("a"), at.dvector("b")
    graphs = {
        "inverse": nlinalg.matrix_inverse(a),
        "solve": slinalg.solve(a, b),
        "positive": slinalg.solve(a, b, assume_a="pos"),
        "triangular": slinalg.solve_triangular(a, b),
        "cholesky": slinalg.cholesky(a),
        "nan or matrix": slinalg.Cholesky(on_error="nan")(a),
        "svd": nlinalg.svd(a, compute_uv=False),
    }
    if in_loop:
        rows = at.stack([a, a])
        graphs = {
            name: aesara.scan(
                lambda m, b, name=name: aesara.clone_replace(graphs[name], {a: m}),
                sequences=[rows],
                non_sequences=[b],
            )[0]
            for name in ("solve", "cholesky")
        }
    singular, unknown = np.array([[1.0, 2.0], [0.0, 0.0]]), np.array([[1.0, np.nan], [np.nan, 1.0]])
    refused = {
        "svd": (unknown, np.linalg.LinAlgError),
        "nan or matrix": (unknown, ValueError),
    }
    for name, out in graphs.items():
        f = aesara.function([a, b], out, mode="JAX_FIXED", on_unused_input="ignore")
        reference = by_perform([a, b], out)
        good = np.array([[4.0, 0.5], [0.5, 3.0]]), np.array([1.0, 2.0])
        np.testing.assert_allclose(f(*good), reference(*good), rtol=1e-12)
        value, error = refused.get(name, (singular, np.linalg.LinAlgError))
        for function in (reference, f):
            with pytest.raises(error):
                function(value, good[1])
        if name in ("solve", "cholesky"):
            for function in (reference, f):
                with pytest.raises(ValueError, match="infs or NaNs"):
                    function(unknown, good[1])
        if name == "nan or matrix":
            assert np.isnan(f(-good[0], good[1])).all()


def test_out_of_bounds_choices_and_indices_raise():
    k = at.lvector("k")
    graphs = [
        at.choose(k, at.constant([[1.0, 2.0], [3.0, 4.0]])),
        at.unravel_index(k, (1, 2))[0],
        at.ravel_multi_index((k, k), (2, 2)),
        at.searchsorted(at.constant([1.0, 2.0]), at.constant([0.5, 2.5]), sorter=k),
    ]
    for out in graphs:
        f = aesara.function([k], out, mode="JAX_FIXED")
        reference = by_perform([k], out)
        np.testing.assert_array_equal(f(np.array([0, 1])), reference(np.array([0, 1])))
        for bad in (np.array([0, 2]), np.array([-1, 0])):
            for function in (reference, f):
                with pytest.raises(ValueError, match=r"invalid entry|out of bounds|out of range"):
                    function(bad)


def test_convolution_with_every_option_and_its_gradients():
    from aesara.tensor.nnet import conv2d

    image, kernel = at.dtensor4("image"), at.dtensor4("kernel")
    out = conv2d(
        image,
        kernel,
        border_mode=(1, 2),
        subsample=(2, 1),
        filter_flip=False,
        filter_dilation=(1, 2),
        num_groups=2,
    )
    weights = at.arange(out.size).reshape(out.shape)
    total = (out * weights).sum()
    outputs = [out, *aesara.grad(total, [image, kernel])]
    rng = np.random.default_rng(1)
    values = rng.normal(size=(2, 4, 6, 5)), rng.normal(size=(6, 2, 3, 2))
    got = aesara.function([image, kernel], outputs, mode="JAX_FIXED")(*values)
    wants = by_perform([image, kernel], outputs)(*values)
    for result, want in zip(got, wants):
        np.testing.assert_allclose(result, want, rtol=1e-10, atol=1e-10)
