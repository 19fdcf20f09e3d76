"""The lines of a generated function."""

from __future__ import annotations

from dataclasses import dataclass

from aesara.graph.basic import Apply

Origin = tuple[Apply, tuple[str, ...]]


@dataclass
class Line:
    text: str
    origin: Origin | None


class Source:
    """The text of a function.

    Attributes
    ----------
    origins
        For each line, counted from 1, the node it was written for and the scans around it.
    """

    def __init__(self) -> None:
        self._lines: list[str] = []
        self.origins: dict[int, Origin] = {}

    def add(self, line: str, origin: Origin | None = None) -> None:
        self._lines.append(line)
        if origin is not None:
            self.origins[len(self._lines)] = origin

    @property
    def text(self) -> str:
        return "\n".join(self._lines) + "\n"


class Hoisted(list[str]):
    """Lines that are written where a loop begins while its body is being written."""

    def __init__(self, indent: int) -> None:
        super().__init__()
        self.indent = indent
