"""QR decompositions by LAPACK, which Numba's own functions keep NaN and empty matrices from.

SciPy hands out LAPACK for compiled callers in ``scipy.linalg.cython_lapack``. As in
`fixed_modes.numba.scipy_functions`, compiled code refers to symbols, never to addresses.
"""

from __future__ import annotations

from typing import Any

import llvmlite.binding as llvm
import numba
import numpy as np
import scipy.linalg.cython_lapack as cython_lapack
from numba import types

from fixed_modes.numba.scipy_functions import name_of_capsule, pointer_of_capsule

#: For each dtype the routines that factorise, and that write out the orthogonal matrix.
_ROUTINES = {"float32": ("sgeqrf", "sorgqr"), "float64": ("dgeqrf", "dorgqr")}

#: Columns that LAPACK works on at once: its memory is that many rows.
_BLOCK = 32


def _bind(routine: str, dtype: str, counts: int) -> types.ExternalFunction:
    """Give ``routine(*counts, matrix, rows, factors, work, size of work, status)``."""
    capsule = cython_lapack.__pyx_capi__[routine]
    number, numbers = types.CPointer(types.int32), types.CPointer(getattr(types, dtype))
    arguments = [*[number] * counts, numbers, number, numbers, numbers, number, number]
    name = name_of_capsule(capsule)
    assert name.count(b"*") == len(arguments), name
    symbol = f"fixed_modes_lapack_{routine}"
    llvm.add_symbol(symbol, pointer_of_capsule(capsule, name))
    return types.ExternalFunction(symbol, types.void(*arguments))


def _decomposition(dtype: str) -> Any:
    factorise = _bind(_ROUTINES[dtype][0], dtype, 2)
    write_out = _bind(_ROUTINES[dtype][1], dtype, 3)

    def reduced_qr(a):  # type: ignore[no-untyped-def]
        """Give Q, with as many columns as A has rows or columns, and R."""
        rows, columns = a.shape
        rank = min(rows, columns)
        # LAPACK wants one column after the other: these are transposes.
        q = np.zeros((columns, rows), a.dtype)
        q[:] = a.T
        r = np.zeros((rank, columns), a.dtype)
        if rank:
            factors = np.zeros(rank, a.dtype)
            work = np.zeros(_BLOCK * max(rows, columns), a.dtype)
            m, n = np.array([rows], np.int32), np.array([columns], np.int32)
            k, size = np.array([rank], np.int32), np.array([len(work)], np.int32)
            status = np.zeros(1, np.int32)
            factorise(
                *(m.ctypes, n.ctypes, q.ctypes, m.ctypes),
                *(factors.ctypes, work.ctypes, size.ctypes, status.ctypes),
            )
            for i in range(rank):
                for j in range(i, columns):
                    r[i, j] = q[j, i]
            write_out(
                *(m.ctypes, k.ctypes, k.ctypes, q.ctypes, m.ctypes),
                *(factors.ctypes, work.ctypes, size.ctypes, status.ctypes),
            )
        return q[:rank].T.copy(), r

    # Stored code refers to it by its name in this module.
    reduced_qr.__name__ = reduced_qr.__qualname__ = f"qr_{dtype}"
    return numba.njit(reduced_qr)


qr_float32 = _decomposition("float32")
qr_float64 = _decomposition("float64")

#: Aesara has no other dtypes for it.
QR = {"float32": qr_float32, "float64": qr_float64}
