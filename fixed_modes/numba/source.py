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
    """The text of a function, or of several.

    Attributes
    ----------
    lines
        Its lines.
    origins
        For each line, counted from 1, the node it was written for and the scans around it.
    """

    def __init__(self) -> None:
        self.lines: list[Line] = []

    def add(self, line: str, origin: Origin | None = None) -> None:
        self.lines.append(Line(line, origin))

    @property
    def origins(self) -> dict[int, Origin]:
        return {n: line.origin for n, line in enumerate(self.lines, 1) if line.origin is not None}

    @property
    def text(self) -> str:
        return "\n".join(line.text for line in self.lines) + "\n"


class Hoisted(list[str]):
    """Lines that are written where a loop begins while its body is being written."""

    def __init__(self, indent: int) -> None:
        super().__init__()
        self.indent = indent
