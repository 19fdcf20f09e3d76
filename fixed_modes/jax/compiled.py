"""A graph as a function that compiles itself: variants, conversions, errors."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from typing import Any, Callable

import jax
import jax.numpy as jnp
from aesara.graph.basic import Constant, Variable
from aesara.graph.fg import FunctionGraph
from aesara.scalar.basic import ScalarType
from aesara.tensor.random.type import RandomType
from aesara.tensor.type import TensorType
from jax.experimental import enable_x64

from fixed_modes.errors import FixedModesWarning
from fixed_modes.jax.compile_options import check_options
from fixed_modes.jax.graph_names import GraphNames
from fixed_modes.jax.kinds import is_array
from fixed_modes.jax.owned import owned_arrays
from fixed_modes.jax.padded import PaddedTrace
from fixed_modes.jax.rng import NumPyRNG, RandomKey, key_from_rng, rng_from_key
from fixed_modes.jax.segments import SegmentedGraph
from fixed_modes.jax.settings import Settings

#: Changes a value that the graph's function was called with; the generators
#: among the values are noted in the dict, by the bytes of their keys.
Conversion = Callable[[Any, "dict[bytes, NumPyRNG]"], Any]


class CompiledGraph:
    """A function of the values of a graph's inputs.

    It takes and gives what Aesara keeps in storage: NumPy arrays and generators.
    float64 and int64 are honoured whatever ``jax_enable_x64`` says; that setting
    is left as it is for everybody else.

    Parameters
    ----------
    fgraph
        The graph; it must not change any more.
    settings
        The flags; `Settings.max_variants` is the number of compiled variants
        that are kept, see `fixed_modes.jax.variants`.
    keep_on_device
        Give outputs as JAX arrays, other than new values of shared variables,
        which every mode must be able to read.
    identity
        Tells the graph from all that are not equal to it; empty where it is not known.

    Raises
    ------
    ValueError
        If XLA refuses the user's compile options.
    """

    def __init__(
        self,
        fgraph: FunctionGraph,
        settings: Settings,
        keep_on_device: bool = False,
        identity: str = "",
    ) -> None:
        check_options(settings.compile_options)
        _warn_of_switched_off_x64(fgraph)
        self.fgraph = fgraph
        updates = set(getattr(fgraph, "update_mapping", None) or ())
        outputs = list(enumerate(fgraph.outputs))
        arrays = [i for i, v in outputs if is_array(v.type) or isinstance(v.type, ScalarType)]
        self.kept = [index for index in arrays if keep_on_device and index not in updates]
        self.arrays = [index for index in arrays if index not in self.kept]
        self.scalars = [i for i in self.arrays if isinstance(fgraph.outputs[i].type, ScalarType)]
        self.generators = [i for i, v in outputs if isinstance(v.type, RandomType)]
        self.constant_origins = _constant_generators(fgraph) if self.generators else {}
        names = GraphNames(identity, fgraph.inputs, fgraph.outputs) if identity else None
        self.graph = SegmentedGraph(fgraph.inputs, fgraph.outputs, settings, names)
        # Most inputs are arrays, which JAX takes as they are.
        self.conversions: list[tuple[int, Conversion]] = [
            (index, _conversion(variable, fgraph))
            for index, variable in enumerate(fgraph.inputs)
            if not isinstance(variable.type, TensorType)
        ]
        self.needed = [
            index
            for index, variable in enumerate(fgraph.inputs)
            if isinstance(variable.type, TensorType) and fgraph.clients[variable]
        ]

    @property
    def variants(self) -> Any:
        """The variants of the graph's first segment, nearly always the whole graph."""
        return self.graph.steps[0].variants  # type: ignore[union-attr]

    def __call__(self, *values: Any) -> list[Any]:
        if jax.config.jax_enable_x64:
            return self._run(values)
        with enable_x64():
            return self._run(values)

    def _run(self, values: Sequence[Any]) -> list[Any]:
        origins = dict(self.constant_origins)
        args = list(values)
        for index in self.needed:
            # Aesara lets it pass, and JAX would take it for nan.
            if args[index] is None:
                raise TypeError(f"expected an array for {self.fgraph.inputs[index]}, not None")
        for index, convert in self.conversions:
            args[index] = convert(args[index], origins)
        results = list(self.graph.run(args))
        for index in self.generators:
            if isinstance(results[index], RandomKey):
                results[index] = rng_from_key(results[index], origins)
        for index in self.kept:
            value = _cut(results[index])
            # What a node has computed by itself is no JAX array yet.
            array = value if isinstance(value, jax.Array) else jnp.array(value)
            results[index] = array.block_until_ready()
        owned = owned_arrays([results[index] for index in self.arrays], values)
        for index, array in zip(self.arrays, owned):
            results[index] = array
        for index in self.scalars:
            results[index] = results[index][()]
        return results


def _cut(value: Any) -> Any:
    return value.cut(int(value.length)) if isinstance(value, PaddedTrace) else value


def _constant_generators(fgraph: FunctionGraph) -> dict[bytes, NumPyRNG]:
    """Give the generators that the graph holds, by the bytes of their keys."""
    read = [variable for node in fgraph.apply_nodes for variable in node.inputs]
    return {
        key_from_rng(variable.data).data.tobytes(): variable.data
        for variable in (*read, *fgraph.outputs)
        if isinstance(variable, Constant) and isinstance(variable.type, RandomType)
    }


def _conversion(variable: Variable, fgraph: FunctionGraph) -> Conversion:
    """Give what is done to the values of an input that is no tensor."""
    is_used = bool(fgraph.clients[variable])

    def convert(value: Any, origins: dict[bytes, NumPyRNG]) -> Any:
        if isinstance(variable.type, RandomType):
            key = key_from_rng(value)
            origins[key.data.tobytes()] = value
            return key
        # What is no array goes only to nodes that run by themselves.
        return value if is_used else None

    return convert


def _warn_of_switched_off_x64(fgraph: FunctionGraph) -> None:
    """Say that a graph in double precision stays so, to whom JAX was told otherwise."""
    if os.environ.get("JAX_ENABLE_X64", "").lower() not in ("0", "false", "off", "no", "n", "f"):
        return
    wide = [v for v in (*fgraph.inputs, *fgraph.outputs) if _is_wide(v)]
    if wide:
        warnings.warn(
            "JAX_ENABLE_X64 is off, but JAX_FIXED computes in the dtypes that the graph names, "
            f"such as {wide[0].type.dtype} for {wide[0]}. Your own JAX code is not affected; "
            "build the graph with floatX=float32 for single precision.",
            FixedModesWarning,
            stacklevel=2,
        )


def _is_wide(variable: Variable) -> bool:
    return getattr(variable.type, "dtype", "") in ("float64", "complex128")
