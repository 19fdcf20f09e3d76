"""Which function lowers which op: the table, and the way to Aesara's own.

``jax_lower(op, node, values, frame)`` gives the values of the node's outputs,
as a list.  `values` are the inputs' values; at least one is traced.  A
conversion registered for a class of ops holds for its subclasses.
"""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import jax.numpy as jnp
import numpy as np
from aesara.graph.basic import Apply
from aesara.graph.op import Op

from fixed_modes.jax.frame import Frame, is_concrete
from fixed_modes.jax.late import load_conversions_for


@singledispatch
def jax_lower(op: Op, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    """Evaluate a node while JAX traces.

    This function is for ops without an entry here: they go to Aesara's own
    table.

    Raises
    ------
    NotImplementedError
        If Aesara has no conversion either.
    NeedsConcrete
        If a traced value stands where a number is needed.
    """
    if load_conversions_for(op):
        return jax_lower(op, node, values, frame)
    # Importing it sets ``jax_enable_x64``, so not before it is needed.
    from aesara.link.jax.dispatch import jax_funcify

    result = jax_funcify(op, node=node)(*values)
    if len(node.outputs) > 1:
        return list(result)
    if isinstance(result, tuple):  # of `JAXShapeTuple`, the lengths of a shape
        return [np.array(result) if all(map(is_concrete, result)) else jnp.stack(result)]
    return [result]
