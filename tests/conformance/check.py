"""Runs a program in a mode and says how it differs from the graph's mathematics."""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import aesara
import numpy as np
from aesara.compile.mode import Mode

from tests.conformance.program import Program

#: The graph as it stands.  The Python VM: the linker "py" is wrong for scans with
#: states, and some of the scan rewrites of FAST_RUN are wrong.
UNREWRITTEN = Mode("vm", None)
#: What the rewrites of FAST_RUN make of a NaN is right too.
REWRITTEN = Mode("vm", "fast_run")

_TOLERANCE = {"float32": 2e-4, "complex64": 2e-4, "float64": 1e-7, "complex128": 1e-7}


class Mismatch(AssertionError):
    """A mode does not do what the graph says.

    Attributes
    ----------
    signature
        The same for mismatches that probably have one cause.
    """

    def __init__(self, signature: str, details: str) -> None:
        super().__init__(f"{signature}\n{details}")
        self.signature, self.details = signature, details


class NotAGraph(Exception):
    """The program builds no graph that Aesara can run."""


@dataclass
class Outcome:
    """What calls of a function give.

    Attributes
    ----------
    results
        The outputs of each call, and the shared variables after all of them.
    shared
        How many of them, at the end, are of shared variables.
    error
        What was raised instead, and `trace` says where.
    """

    results: list[Any] = field(default_factory=list)
    shared: int = 0
    error: Exception | None = None
    trace: str = ""
    complaints: list[str] = field(default_factory=list)


def run(program: Program, mode: str | Mode) -> Outcome:
    """Compile a new copy of the graph; call it twice, and with other values if there are some."""
    build, makers = program.functions()
    is_reference = isinstance(mode, Mode)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with aesara.config.change_flags(cxx="" if is_reference else aesara.config.cxx):
            try:
                inputs, outputs, updates, shared = build(mode if is_reference else None)
            except Exception as exc:
                raise NotAGraph(str(exc)) from exc
            arguments = [make() for make in makers]
            try:
                f = aesara.function(
                    inputs, outputs, updates=updates, mode=mode, on_unused_input="ignore"
                )
                calls = [f(*values) for values in (arguments[0], *arguments)]
            except Exception as exc:
                return Outcome(error=exc, trace=traceback.format_exc()[-2500:])
    holders = [v for v in shared if hasattr(v.type, "dtype")]
    results = [result for call in calls for result in call]
    outcome = Outcome([*results, *(v.get_value() for v in holders)], len(holders))
    given = [value for values in arguments for value in values]
    originals = [value for make in makers for value in make()]
    if not all(map(_identical, given, originals)):
        outcome.complaints.append("an argument was changed")
    owners = [*given, *(v.get_value(borrow=True) for v in holders), *results]
    outcome.complaints += _shared_memory(owners)
    return outcome


def _shared_memory(owners: Sequence[Any]) -> list[str]:
    arrays = [a for a in owners if isinstance(a, np.ndarray)]
    for n, a in enumerate(arrays):
        if any(np.may_share_memory(a, b) for b in arrays[n + 1 :]):
            return ["results, arguments or shared variables share memory"]
    return []


def check(program: Program, mode: str) -> str:
    """Compare a mode with the graph's mathematics.

    Returns
    -------
    What was seen: ``"values"``, an error's name, or ``"rewritten"`` where only the
    rewritten graph has these values.

    Raises
    ------
    Mismatch
        If the mode gives something else.
    NotAGraph
        If there is no graph.
    """
    expected = run(program, UNREWRITTEN)
    got = run(program, mode)
    if got.complaints:
        raise Mismatch(got.complaints[0], "")
    try:
        _compare(expected, got, mode)
    except Mismatch as mismatch:
        if not _may_be_rewritten(expected, got):
            raise
        if got.error is None and _is_about_rows_of_no_step(expected.error):
            return "rows that no step has made"
        if got.shared and got.error is None and _is_about_last_row_of_no_step(expected.error):
            return "a shared variable after no step"
        rewritten = run(program, REWRITTEN)
        if _errors_depend_on_rewrites(expected, rewritten, got):
            return "one of several errors"
        try:
            _compare(_nearer_results(expected, rewritten, got), got, mode)
        except Mismatch:
            raise mismatch from None
        return "rewritten"
    return "values" if expected.error is None else type(expected.error).__name__


def _may_be_rewritten(expected: Outcome, got: Outcome) -> bool:
    """Say whether a rewrite may account for the difference.

    It may remove what raises, and a NaN; it may not change a number.
    """
    if expected.error is not None:
        return True
    if got.error is not None or not _same_types(expected.results, got.results):
        return False
    return all(
        _close(np.where(np.isfinite(a), a, 0), np.where(np.isfinite(a), b, 0), str(a.dtype))
        for a, b in zip(map(np.asarray, expected.results), map(np.asarray, got.results))
        if a.dtype.kind in "fc"
    )


def _nearer_results(expected: Outcome, rewritten: Outcome, got: Outcome) -> Outcome:
    """Choose for each result: a rewrite that is right for one may be wrong for another."""
    if expected.error is not None or rewritten.error is not None:
        return rewritten
    results = [
        a if _same_types([a], [c]) and _close(*map(np.asarray, (a, c)), str(a.dtype)) else b
        for a, b, c in zip(expected.results, rewritten.results, got.results)
    ]
    return replace(rewritten, results=results)


def _is_about_rows_of_no_step(error: Exception | None) -> bool:
    """Say whether the graph as it stands fails for the shape of rows that no step has made.

    The Python code can't know it and takes 0 for all lengths; other code may.
    """
    text = str(error).split("\n")[0]
    kinds = ("broadcast together with shapes", "doesn't match the broadcast shape")
    if not isinstance(error, ValueError) or not any(kind in text for kind in kinds):
        return False
    return any(not shape.strip("(0,)") and shape.count("0") > 1 for shape in text.split())


def _is_about_last_row_of_no_step(error: Exception | None) -> bool:
    """Say whether a loop without a step has no last row, which a shared variable becomes.

    That is an error in Python, garbage or the old value in C, and the old value in our modes.
    """
    text = str(error).split("\n")[0]
    is_last = "index -1 is out of bounds for axis 0 with size 0" in text
    return isinstance(error, IndexError) and is_last


def _errors_depend_on_rewrites(expected: Outcome, rewritten: Outcome, got: Outcome) -> bool:
    """Say whether several places raise, and rewrites decide which comes first."""
    if expected.error is None or rewritten.error is None or got.error is None:
        return False
    first = [str(o.error).split("\n")[0] for o in (expected, rewritten)]
    return first[0] != first[1] and isinstance(got.error, (IndexError, ValueError))


def _compare(expected: Outcome, got: Outcome, mode: str) -> None:
    if got.error is not None:
        wanted = "values" if expected.error is None else type(expected.error).__name__
        raised = type(got.error).__name__
        if wanted != raised:
            first = " ".join(str(got.error).split())[:60]
            raise Mismatch(f"{mode}: {wanted} expected, {raised} raised: {first}", got.trace)
        return
    if expected.error is not None:
        text = str(expected.error)[:300]
        raise Mismatch(f"{mode}: {type(expected.error).__name__} expected, no error", text)
    for position, (a, b) in enumerate(zip(expected.results, got.results)):
        a = np.asarray(a)
        what = f"result {position} of {len(expected.results)}"
        if not isinstance(b, np.ndarray):
            raise Mismatch(f"{mode}: a result is a {type(b).__name__}", what)
        if a.dtype != b.dtype:
            raise Mismatch(f"{mode}: dtype {a.dtype} expected, {b.dtype} given", what)
        if a.size == 0 and not any(a.shape) and b.size == 0 and a.ndim == b.ndim:
            # A loop without a step: the Python code can't know the shape of its rows.
            continue
        if a.shape != b.shape:
            raise Mismatch(f"{mode}: shape differs", f"{what}: {a.shape} expected, {b.shape} given")
        if not _close(a, b, str(a.dtype)):
            raise Mismatch(f"{mode}: values differ", f"{what}:\n{a!r} expected,\n{b!r} given")


def _same_types(expected: Sequence[Any], got: Sequence[Any]) -> bool:
    pairs = [(np.asarray(a), np.asarray(b)) for a, b in zip(expected, got)]
    return all(a.dtype == b.dtype and a.shape == b.shape for a, b in pairs)


def _close(a: Any, b: Any, dtype: str) -> bool:
    if dtype not in _TOLERANCE:
        return bool(np.array_equal(a, b))
    tolerance = _TOLERANCE[dtype]
    finite = np.abs(a[np.isfinite(a)])
    # A sum of large terms is as inexact as its terms.
    scale = max(1.0, float(finite.max())) if finite.size else 1.0
    with np.errstate(all="ignore"):
        return bool(np.allclose(b, a, rtol=tolerance, atol=tolerance * scale, equal_nan=True))


def _identical(a: Any, b: Any) -> bool:
    return np.array_equal(a, b, equal_nan=np.asarray(a).dtype.kind in "fc")
