"""Makes the functions of our modes, one at a time in a process."""

from __future__ import annotations

import threading
from typing import Any

from aesara.compile.function.types import FunctionMaker

from fixed_modes.function import FixedFunction

#: Held while a graph is rewritten and converted.  Both change flags of Aesara's for a
#: while, and flags belong to the process: with two threads at it, each would put back
#: what the other has set.
compiling = threading.RLock()


class FixedFunctionMaker(FunctionMaker):
    """A `FunctionMaker` that threads can use at once."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        with compiling:
            super().__init__(*args, **{"function_builder": FixedFunction, **kwargs})

    def create(self, *args: Any, **kwargs: Any) -> Any:
        """Make the function, as `FunctionMaker` does."""
        with compiling:
            return super().create(*args, **kwargs)
