"""`Print`: compiled code calls back to Python for it, in the order of the graph."""

from __future__ import annotations

from typing import Any

from aesara.graph.basic import Apply
from aesara.printing import Print

from fixed_modes.jax.dispatch import jax_lower
from fixed_modes.jax.fallback import call_back
from fixed_modes.jax.frame import Frame
from fixed_modes.jax.perform import perform


@jax_lower.register(Print)
def _print(op: Print, node: Apply, values: list[Any], frame: Frame) -> list[Any]:
    def show(inputs: list[Any]) -> list[Any]:
        perform(node, inputs)
        return []

    # Nothing comes back: what is known while tracing stays known.
    call_back(node, show, [], values, frame, outputs=[])
    return [values[0]]
