"""A graph as a function that compiles itself: variants, conversions, errors."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
from aesara.graph.basic import Variable
from aesara.graph.fg import FunctionGraph
from aesara.scalar.basic import ScalarType
from aesara.tensor.random.type import RandomType
from jax.experimental import enable_x64

from fixed_modes.errors import UnsupportedOpError
from fixed_modes.jax.padded import PaddedTrace
from fixed_modes.jax.rng import NumPyRNG, RandomKey, key_from_rng, rng_from_key
from fixed_modes.jax.variants import Variant, run_variant


class CompiledGraph:
    """A function of the values of a graph's inputs.

    It takes and gives what Aesara keeps in storage: NumPy arrays and generators.
    float64 and int64 are honoured whatever ``jax_enable_x64`` says; that setting
    is left as it is for everybody else.

    Parameters
    ----------
    fgraph
        The graph; it must not change any more.
    keep_on_device
        Give outputs as JAX arrays, other than new values of shared variables,
        which every mode must be able to read.
    max_variants
        How many compiled variants are kept for values that must be known to
        compile, see `fixed_modes.jax.variants`.
    """

    def __init__(
        self, fgraph: FunctionGraph, keep_on_device: bool = False, max_variants: int = 64
    ) -> None:
        self.fgraph = fgraph
        updates = set(getattr(fgraph, "update_mapping", None) or ())
        self.on_device = [
            keep_on_device and index not in updates for index in range(len(fgraph.outputs))
        ]
        self.max_variants = max_variants
        self.variants = Variant(fgraph, {})

    def __call__(self, *values: Any) -> list[Any]:
        origins: dict[bytes, NumPyRNG] = {}
        args = [self._argument(*pair, origins) for pair in zip(self.fgraph.inputs, values)]
        with enable_x64():
            outputs = run_variant(self.variants, args, self.max_variants)
            return [
                self._result(variable, value, keep, origins)
                for variable, value, keep in zip(self.fgraph.outputs, outputs, self.on_device)
            ]

    def _argument(self, variable: Variable, value: Any, origins: dict[bytes, NumPyRNG]) -> Any:
        if isinstance(variable.type, RandomType):
            key = key_from_rng(value)
            origins[key.data.tobytes()] = value
            return key
        if not isinstance(value, (np.ndarray, np.generic, jax.Array)):
            if self.fgraph.clients[variable]:
                raise UnsupportedOpError(
                    f"JAX_FIXED takes arrays and random generators: the input {variable} "
                    f"of type {variable.type} can't be passed to a compiled function."
                )
            return None
        return value

    def _result(
        self, variable: Variable, value: Any, keep: bool, origins: dict[bytes, NumPyRNG]
    ) -> Any:
        if isinstance(value, RandomKey):
            return rng_from_key(value, origins)
        if isinstance(value, PaddedTrace):
            value = value.cut(int(value.length))
        if keep:
            return value.block_until_ready()
        if isinstance(variable.type, ScalarType):
            return np.asarray(value)[()]
        # `np.asarray` would give a view that can't be written to.
        return np.array(value) if isinstance(value, jax.Array) else value
