"""What was made of a compiled function."""

from __future__ import annotations

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
    def graph(error, x):
    """
    compiled = getattr(getattr(f, "vm", None), "jit_fn", None)
    source = getattr(compiled, "source", None)
    if not isinstance(source, str):
        raise TypeError(f"{f} was not compiled with the mode NUMBA_FIXED, so there is no source")
    return source
