"""Which run-time checks of compiled code failed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable

import jax
import numpy as np

from fixed_modes.jax.flag_words import first_of

#: What makes the error of each check.
Errors = tuple[Callable[[], Exception], ...]


class NotTraced(Exception):
    """A check failed in code that was loaded; what its error is, only tracing says."""


@jax.tree_util.register_pytree_node_class
@dataclass
class Flags:
    """Which run-time checks failed.

    The errors are part of the structure of a compiled function's result, so
    each compilation keeps its own.

    Attributes
    ----------
    failed
        Booleans, shape (..., checks): more axes come from `jax.vmap`.
    errors
        For each check, what makes its error.
    """

    failed: Any
    errors: Errors

    def tree_flatten(self) -> tuple[tuple[Any], Errors]:
        return (self.failed,), self.errors

    @classmethod
    def tree_unflatten(cls, aux: Any, children: tuple[Any]) -> Flags:
        return cls(children[0], aux)

    def raise_first(self) -> None:
        """Raise the error of the first check that failed."""
        failed = np.asarray(self.failed)
        failed = failed.any(axis=tuple(range(failed.ndim - 1)))
        if failed.any():
            raise self.errors[int(failed.argmax())]()


@jax.tree_util.register_pytree_node_class
@dataclass
class PackedFlags:
    """Which run-time checks failed, as bits of `words`; else as `Flags`.

    Without errors where the code was loaded and nothing was traced.
    """

    words: tuple[Any, ...]
    errors: Errors | None

    def tree_flatten(self) -> tuple[tuple[Any, ...], Errors | None]:
        return self.words, self.errors

    @classmethod
    def tree_unflatten(cls, aux: Any, children: tuple[Any, ...]) -> PackedFlags:
        return cls(tuple(children), aux)

    def raise_first(self) -> None:
        """Raise the error of the first check that failed.

        Raises
        ------
        NotTraced
            If one has failed, and its error is not known.
        """
        first = first_of(self.words)
        if first is not None:
            if self.errors is None:
                raise NotTraced
            raise self.errors[first]()
