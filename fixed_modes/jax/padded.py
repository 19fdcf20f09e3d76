"""A trace whose length is known only when the function runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax


@jax.tree_util.register_pytree_node_class
@dataclass(frozen=True)
class PaddedTrace:
    """The rows that an ``until`` loop has written, in a buffer with room for all steps.

    Attributes
    ----------
    buffer
        Shape (rows, ...): only the first `length` rows belong to the value.
    length
        int64 scalar, traced.
    tail
        The last rows, of which there are `least` at least.  XLA throws the buffer
        away where only these are used.
    least
        The length is known to be no less.

    Both are forgotten where a compiled function returns the trace.
    """

    buffer: Any
    length: Any
    tail: tuple[Any, ...] = ()
    least: int = 0

    def tree_flatten(self) -> tuple[tuple[Any, Any], None]:
        return (self.buffer, self.length), None

    @classmethod
    def tree_unflatten(cls, aux: None, children: tuple[Any, Any]) -> PaddedTrace:
        return cls(*children)

    def cut(self, length: int) -> Any:
        """Give the rows as an array, now that their number is known."""
        return self.buffer[:length]
