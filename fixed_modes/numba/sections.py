"""Cuts a generated function that is very long into several.

Numba's time grows faster than the length of a function: it has not compiled one of
3500 lines after minutes.  A section is a run of statements that control leaves by their
end, or by an exception; it becomes a function of the values that it reads, which returns
those that are read after it.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Set

from fixed_modes.numba.source import Line, Source
from fixed_modes.numba.statements import (
    Simple,
    Statement,
    loaded_in,
    size_of,
    statements_of,
    stored_in,
)

# A function of more lines is cut.
_LONGEST = 1000
# So many lines a section has at most, where the statements allow it, and at least.
_MOST, _LEAST = 300, 60


def cut(source: Source, longest: int = _LONGEST, most: int = _MOST, least: int = _LEAST) -> Source:
    """Give the text of a function, or of several of which the last one calls the others.

    Parameters
    ----------
    source
        The function.
    longest
        A function of more lines is cut.
    most, least
        How many lines a section has, where the statements allow it.
    """
    if len(source.lines) <= longest:
        return source
    return _Cutter(source.lines, most, least).result()


class _Cutter:
    def __init__(self, lines: list[Line], most: int, least: int) -> None:
        self._most, self._least = most, least
        (function,) = ast.parse("\n".join(line.text for line in lines)).body
        assert isinstance(function, ast.FunctionDef)
        self._header = lines[: function.lineno]
        self._body = statements_of(function, lines)
        self._parameters = frozenset(argument.arg for argument in function.args.args)
        self._local = stored_in(self._body) | self._parameters
        #: How often what is not in a section reads which name.
        self._loaded = loaded_in(self._body)
        self._names = {*self._local, *self._loaded}
        self._sections: list[Line] = []

    def result(self) -> Source:
        self._cut(self._body, self._parameters)
        source = Source()
        body = (line for statement in self._body for line in statement.written())
        for line in (*self._sections, *self._header, *body):
            source.add(line.text, line.origin)
        return source

    def _cut(self, block: list[Statement], known: Set[str]) -> None:
        """Cut what is long inside the statements of a block, and then the block.

        Parameters
        ----------
        block
            The block, which is changed.
        known
            The names that have a value where it begins.
        """
        before = set(known)
        for statement in block:
            if statement.size > self._most:
                for inner in statement.blocks:
                    self._cut(inner, before | statement.target)
            before |= statement.assigned or frozenset()
        size = size_of(block) + 1
        while self._most < size_of(block) < size:
            size = size_of(block)
            self._cut_runs(block, known)

    def _cut_runs(self, block: list[Statement], known: Set[str]) -> None:
        before = set(known)
        begin = 0
        while begin < len(block):
            end = self._end_of_section(block, begin, before)
            if end:
                block[begin:end] = [self._call(_Run(block[begin:end]))]
            before |= block[begin].assigned or frozenset()
            begin += 1

    def _end_of_section(self, block: list[Statement], begin: int, known: Set[str]) -> int:
        """Give where a section that begins at a statement ends; 0 if none can.

        Among the possible ends it is one where few values are passed for its length.
        """
        run = _Run([])
        ends = []
        for statement in block[begin:]:
            if statement.assigned is None or not statement.is_closed:
                break
            if run.size and run.size + statement.size > self._most:
                break
            run.append(statement)
            if run.size < self._least:
                continue
            arguments, results = self._interface(run)
            # What may have no value can't be passed.
            if arguments <= known:
                values = 5 + len(arguments) + len(results)
                ends.append((values / run.size, begin + len(run.statements)))
        return min(ends)[-1] if ends else 0

    def _interface(self, run: _Run) -> tuple[Set[str], Set[str]]:
        """Give the names that a section takes, and those that it returns."""
        # A name that it reads before it assigns it may come from its last call.
        results = {n for n in run.stored if n in run.reads or self._loaded[n] > run.loaded[n]}
        return (run.reads & self._local) | (results - run.assigned), results

    def _call(self, run: _Run) -> Statement:
        """Write a run of statements as a function, and give its call."""
        arguments, results = map(sorted, self._interface(run))
        name = self._fresh_name()
        lines = [line for statement in run.statements for line in statement.written()]
        depth = min(_depth(line.text) for line in lines if line.text)
        head = f"{name}({', '.join(arguments)})"
        self._sections.append(Line(f"def {head}:", None))
        for line in lines:
            self._sections.append(Line("    " + line.text[depth:], line.origin))
        values = ", ".join(results)
        returned = f"({values},)" if results else "None"
        self._sections += [Line(text, None) for text in (f"    return {returned}", "", "")]
        text = f"({values},) = {head}" if results else head
        call = Simple(ast.parse(text).body[0], [Line(" " * depth + text, None)])
        self._loaded += call.loaded
        self._loaded -= run.loaded
        return call

    def _fresh_name(self) -> str:
        number = 1
        while f"section_{number}" in self._names:
            number += 1
        self._names.add(f"section_{number}")
        return f"section_{number}"


class _Run:
    """Statements that follow each other, and what they do together; see `Statement`."""

    def __init__(self, statements: list[Statement]) -> None:
        self.statements: list[Statement] = []
        self.size = 0
        self.reads: set[str] = set()
        self.assigned: set[str] = set()
        self.stored: set[str] = set()
        self.loaded: Counter[str] = Counter()
        for statement in statements:
            self.append(statement)

    def append(self, statement: Statement) -> None:
        """Add the statement that comes next."""
        self.statements.append(statement)
        self.size += statement.size
        self.reads |= statement.reads - self.assigned
        self.assigned |= statement.assigned or frozenset()
        self.stored |= statement.stored
        self.loaded += statement.loaded


def _depth(text: str) -> int:
    return len(text) - len(text.lstrip(" "))
