"""Which nodes are evaluated with NumPy while JAX traces: those whose inputs are known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from aesara.graph.basic import Apply
from aesara.graph.op import HasInnerGraph
from aesara.printing import Print
from aesara.scalar.basic import Composite
from aesara.tensor.basic import Alloc, AllocEmpty
from aesara.tensor.random.op import RandomVariable

from fixed_modes.jax.frame import is_concrete

#: An allocation with more elements is traced: it would end up as a literal in
#: the compiled program.
LARGEST_LITERAL = 1024


def can_perform(node: Apply, values: Sequence[Any]) -> bool:
    """Say whether a node is to be evaluated at once by its op's ``perform``."""
    op = node.op
    if not all(is_concrete(value) for value in values):
        return False
    if isinstance(op, HasInnerGraph) and not isinstance(op, Composite):
        return False  # scans and the like would compile their inner graph
    if isinstance(op, (RandomVariable, AllocEmpty, Print)):
        return False  # not a function of the inputs alone
    if type(op).__name__ == "JAXShapeTuple":
        return False  # Aesara's stand-in for a tuple, without a usable `perform`
    if isinstance(op, Alloc):
        return bool(np.prod([int(size) for size in values[1:]]) <= LARGEST_LITERAL)
    return True
