"""Lets Aesara's Numba dispatch be imported with a Numba newer than it knows.

`aesara.link.numba.dispatch.basic` makes one function at import with
``numba.core.decorators._jit(..., impl_kind="generated")``.  Numba 0.59 removed
that kind, so the import fails there.  For the time of the import alone `_jit`
also understands it, with an equivalent built on `numba.extending.overload`.
The dispatch also swaps LLVM pass managers that newer Numbas do not have, to
optimise reductions harder; there it goes without.  Numba itself is the same
before and after.
"""

from __future__ import annotations

import functools
import importlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, Callable

_DISPATCH = "aesara.link.numba.dispatch"
_import_lock = threading.RLock()


def ensure_stock_dispatch_imports() -> None:
    """Import `aesara.link.numba.dispatch`, whatever the Numba version is.

    Raises
    ------
    ImportError
        If Numba is missing.
    """
    with _import_lock:
        if _has_generated_jit():
            importlib.import_module(_DISPATCH)
        else:
            with _jit_that_knows_generated():
                importlib.import_module(_DISPATCH)
        if not _has_cheap_pass_manager():
            for name in ("basic", "elemwise"):
                module = importlib.import_module(f"{_DISPATCH}.{name}")
                module.use_optimized_cheap_pass = nullcontext  # type: ignore[attr-defined]


def _has_generated_jit() -> bool:
    import inspect

    from numba.core import decorators

    return "impl_kind" in inspect.signature(decorators._jit).parameters


def _has_cheap_pass_manager() -> bool:
    from numba.core.registry import cpu_target

    return hasattr(cpu_target.target_context._internal_codegen, "_mpm_cheap")


@contextmanager
def _jit_that_knows_generated() -> Iterator[None]:
    from numba.core import decorators

    original = decorators._jit

    def jit(*args: Any, impl_kind: str = "direct", **kwargs: Any) -> Any:
        return generated_jit if impl_kind == "generated" else original(*args, **kwargs)

    decorators._jit = jit
    try:
        yield
    finally:
        decorators._jit = original


def generated_jit(choose: Callable[..., Callable[..., Any]]) -> Callable[..., Any]:
    """Make a function whose implementation is chosen by the types of its arguments.

    Parameters
    ----------
    choose
        Takes the Numba types of the arguments and returns the Python function
        to compile for them.

    Returns
    -------
    A function that compiled code and Python code can call.
    """
    import numba
    from numba.extending import overload

    @functools.cache
    def dispatcher() -> Any:
        return numba.njit(lambda *args: stub(*args))

    @functools.wraps(choose)
    def stub(*args: Any) -> Any:
        return dispatcher()(*args)

    overload(stub, strict=False)(choose)
    return stub
