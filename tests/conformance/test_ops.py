"""Every op that a mode runs in Python, or by Aesara's conversion: alone, and in a loop."""

from __future__ import annotations

import warnings
from typing import Any

import aesara
import aesara.tensor as at
import numpy as np
import pytest
from aesara.compile.mode import Mode
from aesara.graph.basic import applys_between

from fixed_modes.cli.ops import list_ops
from fixed_modes.errors import FixedModesWarning

with warnings.catch_warnings():  # Aesara's `nnet` says that it is deprecated
    warnings.simplefilter("ignore", DeprecationWarning)
    from tests.conformance import catalogue

MODES = ("NUMBA_FIXED", "JAX_FIXED")

#: What has no code in Python that works: C code only, or a peer in a network.
_NOT_IN_PYTHON = {
    *("AddSD_ccode", "CSMGradC", "MulSDCSC", "MulSDCSR", "MulSVCSR", "SamplingDotCSR"),
    *("StructuredAddSVCSR", "StructuredDotCSC", "StructuredDotCSR", "UsmmCscDense"),
    *("CorrMM", "CorrMM_gradInputs", "CorrMM_gradWeights"),
    *("Corr3dMM", "Corr3dMMGradInputs", "Corr3dMMGradWeights", "CGemv", "CGer", "MaxPoolRop"),
    *("MPIRecv", "MPIRecvWait", "MPISend", "MPISendWait"),
}
#: Bases of other ops, what Aesara takes out of every graph, and what other tests have.
_ELSEWHERE = {
    *("RandomVariable", "RandIntRV", "SolveBase", "UpdatePlaceholder"),
    *("FromFunctionOp", "LoadFromDisk"),
}


def ops_of(out: Any) -> set[type]:
    """Give the classes of the ops in a graph, scalar ones included."""
    ops = [node.op for node in applys_between([], [out])]
    return {type(op) for op in (*ops, *(op.scalar_op for op in ops if hasattr(op, "scalar_op")))}


def how_ops_run(mode: str) -> dict[str, str]:
    """Give how each op runs, by its name with its module."""
    return {f"{row.module}.{row.name}": row.how[mode] for row in list_ops([mode])}


@pytest.fixture(scope="module")
def how() -> dict[str, dict[str, str]]:
    return {mode: how_ops_run(mode) for mode in MODES}


def rows_of_inputs(values: list[np.ndarray]) -> list[np.ndarray]:
    """Give each input in two steps of a loop: as it is, and nearer to 0 if it is no integer."""
    return [
        np.stack([v, (v * 0.75).astype(v.dtype) if v.dtype.kind in "fc" else v]) for v in values
    ]


@pytest.mark.parametrize("group", list(catalogue.GROUPS))
@pytest.mark.parametrize("mode", MODES)
def test_ops_that_are_not_native_alone_and_in_a_loop(mode, group, how):
    symbols, values = catalogue.inputs()
    inputs = list(vars(symbols).values())
    graphs = [
        (name, out)
        for name, out in catalogue.GROUPS[group](symbols)
        if any(how[mode].get(f"{op.__module__}.{op.__name__}") != "native" for op in ops_of(out))
    ]
    # Compiling takes longer than in proportion to the size of a graph.
    for first in range(0, len(graphs), 8):
        assert_as_by_perform(graphs[first : first + 8], inputs, values, mode)


def assert_as_by_perform(
    graphs: list[tuple[str, Any]], inputs: list[Any], values: list[np.ndarray], mode: str
) -> None:
    """Compare a mode with the ops' own `perform`, alone and in a loop of two steps."""
    outputs = [out for _, out in graphs]
    rows = rows_of_inputs(values)
    with aesara.config.change_flags(cxx=""):
        reference = aesara.function(
            inputs, outputs, mode=Mode("vm", None), on_unused_input="ignore"
        )
    wants = [reference(*(row[step] for row in rows)) for step in (0, 1)]

    sequences = [at.TensorType(i.dtype, (None,) * (i.ndim + 1))() for i in inputs]
    looped, _ = aesara.scan(
        lambda *step: aesara.clone_replace(outputs, dict(zip(inputs, step))),
        sequences=sequences,
        return_list=True,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FixedModesWarning)
        # NumPy's, of what the ops' own `perform` does.
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.filterwarnings("ignore", "Casting complex")
        alone = aesara.function(inputs, outputs, mode=mode, on_unused_input="ignore")(*values)
        traces = aesara.function(sequences, looped, mode=mode, on_unused_input="ignore")(*rows)
    for k, (name, out) in enumerate(graphs):
        for got, want in ((alone[k], wants[0][k]), (traces[k], [w[k] for w in wants])):
            # What `perform` of some ops gives is not of the type that the op declares.
            assert got.dtype in (out.type.dtype, np.asarray(want).dtype), name
            assert got.shape == np.shape(want), name
            np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-12, err_msg=name)


@pytest.mark.parametrize("mode", MODES)
def test_the_catalogue_has_every_op_that_is_not_native(mode, how):
    symbols, _ = catalogue.inputs()
    tested = {
        f"{base.__module__}.{base.__name__}"
        for function in catalogue.GROUPS.values()
        for _, out in function(symbols)
        for op in ops_of(out)
        for base in op.__mro__
    }
    missing = {
        name.rpartition(".")[2]
        for name, what in how[mode].items()
        if what != "native" and name not in tested
    }
    assert missing <= _NOT_IN_PYTHON | _ELSEWHERE
