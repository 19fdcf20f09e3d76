"""The library that a graph is written in, as a value: Aesara or PyTensor."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Namespace:
    """What a graph builder may use of a library.

    Attributes
    ----------
    aesara
        The root module, `aesara` or `pytensor`.
    at
        Its ``tensor`` module.
    until
        The class of a scan's stop condition.
    """

    aesara: Any
    at: Any
    until: Any

    def scan(self, *args: Any, **kwargs: Any) -> Any:
        """Make a loop; gives the outputs and the updates."""
        return self.aesara.scan(*args, **kwargs)

    def grad(self, *args: Any, **kwargs: Any) -> Any:
        """Differentiate a scalar."""
        return self.aesara.grad(*args, **kwargs)

    def shared(self, *args: Any, **kwargs: Any) -> Any:
        """Make a shared variable."""
        return self.aesara.shared(*args, **kwargs)

    def draw(self, distribution: str, *parameters: Any, rng: Any) -> tuple[Any, Any]:
        """Draw from a distribution; gives the generator afterwards and the value."""
        value = getattr(self.at.random, distribution)(*parameters, rng=rng)
        after, value = value.owner.outputs
        return after, value


def load_namespace(library: str = "aesara") -> Namespace:
    """Import a library, ``"aesara"`` or ``"pytensor"``."""
    return Namespace(
        aesara=importlib.import_module(library),
        at=importlib.import_module(f"{library}.tensor"),
        until=importlib.import_module(f"{library}.scan.utils").until,
    )
