"""SciPy's special functions for compiled code, by name.

SciPy hands out its functions for compiled callers in ``scipy.special.cython_special``.
Each one wanted here gets a symbol of its own in LLVM's table, and compiled code
refers to that symbol, never to an address: machine code that was stored by another
process finds the function as soon as this module has been imported.
"""

from __future__ import annotations

import ctypes
from typing import Any

import llvmlite.binding as llvm
import numba
import scipy.special.cython_special as cython_special
from numba import types

name_of_capsule = ctypes.pythonapi.PyCapsule_GetName
name_of_capsule.restype, name_of_capsule.argtypes = ctypes.c_char_p, [ctypes.py_object]
pointer_of_capsule = ctypes.pythonapi.PyCapsule_GetPointer
pointer_of_capsule.restype, pointer_of_capsule.argtypes = (
    ctypes.c_void_p,
    [ctypes.py_object, ctypes.c_char_p],
)


def _bind(function: str, count: int) -> types.ExternalFunction:
    """Give a function of `count` double-precision numbers and a 0 after them.

    Raises
    ------
    ImportError
        If SciPy has no such function.
    """
    signature = f"double ({'double, ' * count}int __pyx_skip_dispatch)".encode()
    # One name stands for several where a function takes several types.
    for name in (function, f"__pyx_fuse_0{function}", f"__pyx_fuse_1{function}"):
        capsule = cython_special.__pyx_capi__.get(name)
        if capsule is not None and name_of_capsule(capsule) == signature:
            symbol = f"fixed_modes_scipy_{function}"
            llvm.add_symbol(symbol, pointer_of_capsule(capsule, signature))
            arguments = [types.float64] * count
            return types.ExternalFunction(symbol, types.float64(*arguments, types.int32))
    raise ImportError(f"scipy.special.cython_special has no {function} of {count} doubles")


def _compiled(function: str, count: int) -> Any:
    """Give a compiled function of `count` double-precision numbers.

    It is known by its name in this module, by which stored code refers to it.
    """
    external = _bind(function, count)
    parameters = ", ".join("abcd"[:count])
    namespace: dict[str, Any] = {"external": external, "__name__": __name__}
    exec(f"def {function}({parameters}):\n    return external({parameters}, 0)", namespace)
    return numba.njit(namespace[function])


gammaln = _compiled("gammaln", 1)
psi = _compiled("psi", 1)
erfcx = _compiled("erfcx", 1)
erfinv = _compiled("erfinv", 1)
erfcinv = _compiled("erfcinv", 1)
owens_t = _compiled("owens_t", 2)
gamma = _compiled("gamma", 1)
gammainc = _compiled("gammainc", 2)
gammaincc = _compiled("gammaincc", 2)
gammainccinv = _compiled("gammainccinv", 2)
chdtrc = _compiled("chdtrc", 2)
j0 = _compiled("j0", 1)
j1 = _compiled("j1", 1)
jv = _compiled("jv", 2)
i0 = _compiled("i0", 1)
i1 = _compiled("i1", 1)
iv = _compiled("iv", 2)
betaln = _compiled("betaln", 2)
betainc = _compiled("betainc", 3)
hyp2f1 = _compiled("hyp2f1", 4)
