"""NumPy's random generators as JAX keys, and back.

A compiled function can't take a generator.  At every call the generator's
state is hashed to a key; if anything was drawn, a new generator is seeded from
the final key.  Nothing is remembered between calls, so a generator that the
user puts into a shared variable later counts at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Union

import jax
import numpy as np

NumPyRNG = Union[np.random.Generator, np.random.RandomState]

#: The key's implementation is fixed here, whatever ``jax_default_prng_impl`` says.
KEY_IMPL = "threefry2x32"


@jax.tree_util.register_pytree_node_class
@dataclass(frozen=True)
class RandomKey:
    """A random state while tracing.

    Attributes
    ----------
    data
        uint32, shape (2,): the key.
    bit_generator
        The class of NumPy's bit generator, e.g. `numpy.random.PCG64`.
    legacy
        Whether it stands for a `RandomState` instead of a `Generator`.
    """

    data: Any
    bit_generator: type
    legacy: bool

    def tree_flatten(self) -> tuple[tuple[Any], tuple[type, bool]]:
        return (self.data,), (self.bit_generator, self.legacy)

    @classmethod
    def tree_unflatten(cls, aux: tuple[type, bool], children: tuple[Any]) -> RandomKey:
        return cls(children[0], *aux)

    def split(self) -> tuple[RandomKey, Any]:
        """Give the next state, and a typed JAX key to draw with."""
        pair = jax.random.split(jax.random.wrap_key_data(self.data, impl=KEY_IMPL))
        following = jax.random.key_data(pair[0])
        return RandomKey(following, self.bit_generator, self.legacy), pair[1]


def key_from_rng(rng: NumPyRNG) -> RandomKey:
    """Hash the state of a generator to a key; the generator is not changed.

    Two generators with equal states give equal keys, in every process.
    """
    legacy = isinstance(rng, np.random.RandomState)
    bits = rng._bit_generator if isinstance(rng, np.random.RandomState) else rng.bit_generator
    state = rng.get_state(legacy=False) if isinstance(rng, np.random.RandomState) else bits.state
    words = np.concatenate(list(_words(state)))
    return RandomKey(np.random.SeedSequence(words).generate_state(2), type(bits), legacy)


def rng_from_key(key: RandomKey, origins: dict[bytes, NumPyRNG]) -> NumPyRNG:
    """Make the generator that stands for a key after a call.

    Parameters
    ----------
    key
        The final key; its data are NumPy's.
    origins
        The generators that went into the call, by the bytes of their keys: a
        key that is still among these was not drawn from.
    """
    data = np.asarray(key.data)
    origin = origins.get(data.tobytes())
    if origin is not None:
        return deepcopy(origin)
    bits = key.bit_generator(np.random.SeedSequence(data))
    return np.random.RandomState(bits) if key.legacy else np.random.Generator(bits)


def _words(state: Any) -> Iterator[np.ndarray[Any, Any]]:
    """Give all numbers of a bit generator's state as arrays of uint32."""
    if isinstance(state, dict):
        for name in sorted(state):
            yield from _words(state[name])
    elif isinstance(state, float):
        yield np.array([state]).view(np.uint32)
    elif isinstance(state, (int, np.integer)):
        # PCG64 has integers of 128 bits.
        yield np.frombuffer(int(state).to_bytes(16, "little"), dtype=np.uint32)
    elif isinstance(state, np.ndarray):
        yield np.ascontiguousarray(state).view(np.uint32)
