"""Upstream tests that say nothing about a mode, each with the reason."""

from __future__ import annotations

from fnmatch import fnmatchcase

BOTH = ("NUMBA_FIXED", "JAX_FIXED")
NUMBA, JAX = BOTH[:1], BOTH[1:]

#: For patterns of test ids (the brackets of parameters are ordinary characters in them),
#: the modes that they hold for and the reason.
REASONS: tuple[tuple[str, tuple[str, ...], str], ...] = (
    (
        "tests/scan/test_basic.py::TestScan::test_monitor_mode",
        BOTH,
        "MonitorMode watches the thunk of each node; a compiled loop has none",
    ),
    (
        "tests/scan/test_basic.py::TestScan::test_simple_shared_random",
        JAX,
        "JAX has generators of its own: the draws are not NumPy's",
    ),
    (
        "tests/scan/test_basic.py::TestExamples::test_gibbs_chain",
        JAX,
        "JAX has generators of its own: the draws are not NumPy's",
    ),
    (
        "tests/scan/test_rewriting.py::test_inner_replace_dot",
        BOTH,
        "expects that products became ops that call a BLAS; Numba's own products call it, "
        "and XLA compiles products itself",
    ),
    (
        "tests/tensor/test_basic.py::test_join_inplace",
        BOTH,
        "expects that a result is the argument itself; results share no memory with arguments",
    ),
    (
        "tests/tensor/test_basic.py::TestAlloc::test_alloc_constant_folding",
        BOTH,
        "counts the nodes that FAST_RUN's rewrites leave; there is one less here",
    ),
    *(
        (f"tests/link/numba/{name}", NUMBA, reason)
        for names, reason in (
            (
                (
                    "test_basic.py::test_perform_params",
                    "test_basic.py::test_perform_type_convert",
                    "test_nlinalg.py::test_Cholesky[x2-False-UserWarning]",
                ),
                "expects a warning of object mode; the op is compiled here",
            ),
            (
                (
                    "test_basic.py::test_config_options_fastmath",
                    "test_basic.py::test_config_options_cached",
                ),
                "looks into the functions that Aesara's linker makes, one for each op",
            ),
            (
                (
                    "test_elemwise.py::test_Elemwise[inputs9-*-NotImplementedError]",
                    "test_extra_ops.py::test_RavelMultiIndex[*-NotImplementedError]",
                    "test_extra_ops.py::test_UnravelIndex[*-NotImplementedError]",
                    "test_random.py::test_RandomState_error",
                ),
                "expects a refusal; it works here",
            ),
        )
        for name in names
    ),
    (
        "tests/link/numba/test_random.py::test_unaligned_RandomVariable[rv_op0-*-lomax-*]",
        NUMBA,
        "expects the draws of Numba's Pareto distribution, another one than FAST_RUN's",
    ),
    (
        "tests/link/numba/test_tensor_basic.py::test_Join_view",
        NUMBA,
        "expects a refusal; NUMBA_FIXED joins such parts too",
    ),
    (
        "tests/link/numba/test_random.py::test_DirichletRV[a2-size2-cm2]",
        NUMBA,
        "expects the words of an error; it is the same error",
    ),
    *(
        (f"tests/link/jax/test_random.py::{name}", JAX, reason)
        for names, reason in (
            (
                ("test_random_RandomStream", "test_random_updates[*]"),
                "expects a warning that generators set later are ignored; they are used here",
            ),
            (
                ("test_random_unimplemented", "test_random_concrete_shape_graph_input"),
                "expects a refusal; it works here",
            ),
            (
                ("test_random_RandomVariable[rv_op19-*-gengamma-*]",),
                "expects the draws of Aesara's JAX sampler, which takes one parameter for another; "
                "FAST_RUN's distribution is drawn here",
            ),
            (
                (
                    "test_random_RandomVariable[rv_op4-*-gamma-*]",
                    "test_random_RandomVariable[rv_op16-*-halfnorm-*]",
                    "test_random_RandomVariable[rv_op17-*-halfcauchy-*]",
                    "test_random_geometric[0.2-size1]",
                    "test_random_permutation",
                ),
                "holds for Aesara's draws with one seed only, by its narrow margin",
            ),
        )
        for name in names
    ),
    (
        "tests/link/jax/test_basic.py::test_jax_checkandraise",
        JAX,
        "expects a warning that assertions are ignored; they are checked here",
    ),
    *(
        (f"tests/link/jax/{name}", JAX, "expects refusals; all of it works here")
        for name in (
            "test_extra_ops.py::test_extra_ops",
            "test_tensor_basic.py::test_arange_nonconcrete",
        )
    ),
    (
        "tests/link/jax/test_subtensor.py::test_jax_Subtensor_boolean_mask",
        JAX,
        "expects that masks are refused; they work here",
    ),
    (
        "tests/tensor/test_extra_ops.py::TestSearchsortedOp::test_searchsortedOp_on_right_side",
        JAX,
        "searches in an array that is not sorted, where the result is arbitrary",
    ),
)


def reason_for(test: str, mode: str) -> str:
    """Give the reason why a test is not applicable in a mode; empty if it is."""
    escaped = test.replace("[", "(").replace("]", ")")
    for pattern, modes, reason in REASONS:
        if mode in modes and fnmatchcase(escaped, pattern.replace("[", "(").replace("]", ")")):
            return reason
    return ""
