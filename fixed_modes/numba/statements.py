"""The statements of a generated function, and what they do with its local names."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Sequence
from typing import Protocol

from fixed_modes.numba.source import Line

Names = frozenset

_STARTS_BRANCH = re.compile(r"\s*(elif\b|else:)")


class Statement(Protocol):
    """A statement, with the comments before it."""

    @property
    def size(self) -> int:
        """How many lines it has."""

    @property
    def blocks(self) -> list[list[Statement]]:
        """The statements inside it."""

    @property
    def loaded(self) -> Counter[str]:
        """How often it reads which name."""

    @property
    def stored(self) -> Names[str]:
        """Names that it may assign."""

    @property
    def target(self) -> Names[str]:
        """Names that have a value at the beginning of its blocks, but not before it."""

    @property
    def reads(self) -> Names[str]:
        """Names whose values from before it may be read."""

    @property
    def assigned(self) -> Names[str] | None:
        """Names that have a value after it; None if nothing comes after it."""

    @property
    def is_closed(self) -> bool:
        """Whether control leaves it by its end, or by an exception."""

    def written(self) -> list[Line]:
        """Give its lines."""


class Simple:
    """A statement that is not looked into."""

    def __init__(self, node: ast.stmt, lines: list[Line]) -> None:
        self._lines = lines
        self.blocks: list[list[Statement]] = []
        self.loaded = _names(node, ast.Load)
        self.stored = Names(_names(node, ast.Store))
        self.target: Names[str] = Names()
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            self.loaded[node.target.id] += 1
        self.reads = Names(self.loaded)
        is_plain = isinstance(node, (ast.Assign, ast.AugAssign, ast.Expr, ast.Pass))
        self.is_closed = is_plain or isinstance(node, ast.Raise)
        self.assigned: Names[str] | None = self.stored if is_plain else Names()
        if isinstance(node, (ast.Raise, ast.Return, ast.Break, ast.Continue)):
            self.assigned = None

    @property
    def size(self) -> int:
        return len(self._lines)

    def written(self) -> list[Line]:
        return self._lines


class Compound:
    """A `for` loop, or an `if` with what belongs to it.

    Parameters
    ----------
    heads
        What it evaluates: the iterable, or the conditions.
    headers
        The lines before each block.
    blocks
        The blocks.
    target
        The variable of a loop.
    is_complete
        Whether one of the blocks runs in any case.
    """

    def __init__(
        self,
        heads: list[ast.expr],
        headers: list[list[Line]],
        blocks: list[list[Statement]],
        target: ast.expr | None = None,
        is_complete: bool = False,
    ) -> None:
        self._heads = sum((_names(head, ast.Load) for head in heads), Counter[str]())
        self._headers = headers
        self.blocks = blocks
        self.target = Names(_names(target, ast.Store) if target else ())
        self._is_complete = is_complete
        # What leaves the block of a loop, other than a return, leaves only the loop.
        self.is_closed = target is not None or all(s.is_closed for b in blocks for s in b)

    @property
    def size(self) -> int:
        return sum(map(len, self._headers)) + sum(map(size_of, self.blocks))

    @property
    def loaded(self) -> Counter[str]:
        return sum(map(loaded_in, self.blocks), self._heads)

    @property
    def stored(self) -> Names[str]:
        return self.target.union(*map(stored_in, self.blocks))

    @property
    def reads(self) -> Names[str]:
        return Names(self._heads) | (Names().union(*map(reads_of, self.blocks)) - self.target)

    @property
    def assigned(self) -> Names[str] | None:
        if not self._is_complete:
            return Names()
        ways = [names for names in map(assigned_by, self.blocks) if names is not None]
        return Names.intersection(*ways) if ways else None

    def written(self) -> list[Line]:
        lines = []
        for header, block in zip(self._headers, self.blocks):
            lines += header
            for statement in block:
                lines += statement.written()
        return lines


def statements_of(function: ast.FunctionDef, lines: list[Line]) -> list[Statement]:
    """Give the statements of the body of a function, one a line or more, with their lines."""

    def block(nodes: list[ast.stmt], begin: int) -> list[Statement]:
        found = []
        for node in nodes:
            found.append(statement(node, begin))
            begin = _end(node)
        return found

    def statement(node: ast.stmt, begin: int) -> Statement:
        if isinstance(node, ast.For) and not node.orelse:
            body = block(node.body, node.lineno)
            return Compound([node.iter], [lines[begin : node.lineno]], [body], node.target)
        if isinstance(node, ast.If):
            return branches(node, begin)
        return Simple(node, lines[begin : _end(node)])

    def branches(node: ast.If, begin: int) -> Statement:
        tests = [node.test]
        headers = [lines[begin : node.lineno]]
        blocks = [block(node.body, node.lineno)]
        while node.orelse:
            end = _end(node.body[-1])
            # Comments may stand before it.
            other = next(n for n in range(end, len(lines)) if _STARTS_BRANCH.match(lines[n].text))
            headers.append(lines[end : other + 1])
            first = node.orelse[0]
            if not isinstance(first, ast.If) or first.lineno != other + 1:
                blocks.append(block(node.orelse, other + 1))
                return Compound(tests, headers, blocks, is_complete=True)
            node = first
            tests.append(node.test)
            blocks.append(block(node.body, other + 1))
        return Compound(tests, headers, blocks)

    return block(function.body, function.lineno)


def size_of(block: Sequence[Statement]) -> int:
    """Count the lines of a block."""
    return sum(statement.size for statement in block)


def loaded_in(block: Sequence[Statement]) -> Counter[str]:
    """Count how often a block reads which name."""
    return sum((statement.loaded for statement in block), Counter())


def stored_in(block: Sequence[Statement]) -> Names[str]:
    """Give the names that a block may assign."""
    return Names().union(*(statement.stored for statement in block))


def reads_of(block: Sequence[Statement]) -> Names[str]:
    """Give the names whose values from before a block it may read."""
    reads: set[str] = set()
    known: set[str] = set()
    for statement in block:
        reads |= statement.reads - known
        known |= statement.assigned or Names()
    return Names(reads)


def assigned_by(block: Sequence[Statement]) -> Names[str] | None:
    """Give the names that have a value after a block; None if nothing comes after it."""
    known: set[str] = set()
    for statement in block:
        if statement.assigned is None:
            return None
        known |= statement.assigned
    return Names(known)


def _end(node: ast.stmt) -> int:
    assert node.end_lineno is not None
    return node.end_lineno


def _names(node: ast.AST, context: type) -> Counter[str]:
    names = (inner for inner in ast.walk(node) if isinstance(inner, ast.Name))
    return Counter(name.id for name in names if isinstance(name.ctx, context))
