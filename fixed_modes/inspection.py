"""What was made of a compiled function."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from aesara.compile.function.types import Function


def numba_source(f: Function) -> str:
    """Give the Python module that NUMBA_FIXED generated for a function.

    It is the text that tracebacks and Numba's messages refer to.

    Parameters
    ----------
    f
        A function compiled with ``mode="NUMBA_FIXED"``.

    Raises
    ------
    TypeError
        If `f` is not such a function.

    Examples
    --------
    >>> import aesara, aesara.tensor as at
    >>> import fixed_modes
    >>> x = at.dscalar("x")
    >>> f = aesara.function([x], x * 2.0 + 1.0, mode="NUMBA_FIXED")
    >>> print(fixed_modes.numba_source(f).splitlines()[0])
    def graph(error, plan, x):
    """
    compiled = getattr(getattr(f, "vm", None), "jit_fn", None)
    source = getattr(compiled, "source", None)
    if not isinstance(source, str):
        raise TypeError(f"{f} was not compiled with the mode NUMBA_FIXED, so there is no source")
    return source


def cache_report(f: Function) -> list[str]:
    """Say what the compile cache did for a function.

    Parameters
    ----------
    f
        A function compiled with one of the modes.

    Returns
    -------
    First a line for the graph: ``graph loaded`` or ``graph rewritten``, with a reason
    where it has not been stored; ``graph refused`` with a reason where there is nothing
    to be loaded ever; ``graph off``.  A copy of a function has none.

    Then a line for each piece of compiled code: ``loaded`` or ``compiled``, with a
    reason where it has not been stored; ``refused`` with a reason where there is
    nothing to be loaded ever; ``waiting`` before the first call of `NUMBA_FIXED`;
    ``off``.  `JAX_FIXED` has a line for each shape and each value that a shape
    depends on, and none before the first call.

    Raises
    ------
    TypeError
        If `f` is not such a function.

    Examples
    --------
    >>> import aesara, aesara.tensor as at
    >>> import fixed_modes
    >>> x = at.dscalar("x")
    >>> with aesara.config.change_flags(fixed_modes__cache=False):
    ...     f = aesara.function([x], x + 1.0, mode="NUMBA_FIXED")
    ...     fixed_modes.cache_report(f)
    ['graph off', 'off']
    """
    rewritten = getattr(f.maker, "rewritten", None)
    graph = [] if rewritten is None else [f"graph {rewritten.outcome}"]
    return graph + _compiled_code(f)


def _compiled_code(f: Function) -> list[str]:
    """Say what became of the code of a function."""
    compiled: Any = getattr(getattr(f, "vm", None), "jit_fn", None)
    if hasattr(compiled, "cache"):
        return [repr(compiled.cache)]
    graph: Any = getattr(compiled, "graph", None)
    if not hasattr(graph, "steps"):
        raise TypeError(f"{f} was not compiled with NUMBA_FIXED or JAX_FIXED")
    variants = (step.variants for step in graph.steps if hasattr(step, "variants"))
    return [line for variant in variants for line in _lines_of(variant)]


def _lines_of(variant: Any) -> Iterator[str]:
    """Yield what became of a variant of JAX_FIXED, and of those for known values."""
    if hasattr(variant.run, "outcomes"):
        yield from map(repr, variant.run.outcomes)
    else:
        yield "refused (it calls Python back)" if variant.calls_python else "off"
    for child in list(variant.children.values()):
        yield from _lines_of(child)
