"""What is known of a variable while code is written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional

from aesara.graph.basic import Apply, Variable

from fixed_modes.numba.plan import Known

Shape = tuple[Optional[Known], ...]


@dataclass
class Facts:
    """What the writer knows of a variable.

    Attributes
    ----------
    name
        The local variable that holds it; None where no code has been needed yet.
    known
        The value of a 0-d integer, known before the code runs.
    shape
        The lengths of an array, as far as they are known.
    entries
        The values in a vector of integers, known before the code runs.
    elements
        The expressions for the elements, in C order, of an array so small that
        each lives in a local variable.
    is_fixed
        Whether the value is the same in every step of the innermost loop.
    product
        The column and the row of an outer product that loops compute as they go.
    put_off
        The `Elemwise` whose elements the loop that reads them computes.
    is_transposed
        Whether a matrix is a view of another one with its axes exchanged.
    is_lasting
        Whether an array is made in a loop, but its memory lives as long as the loop runs.
    """

    name: str | None = None
    known: Known | None = None
    shape: Shape | None = None
    entries: tuple[Known, ...] | None = None
    elements: tuple[str, ...] | None = None
    is_fixed: bool = False
    product: tuple[Variable, Variable] | None = None
    put_off: Apply | None = None
    is_transposed: bool = False
    is_lasting: bool = False
