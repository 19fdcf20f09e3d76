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

#: Columns that LAPACK works on at once: its memory is that many rows.
_BLOCK = 32


def _bind(routine: str, counts: int) -> types.ExternalFunction:
    """Give ``routine(*counts, matrix, rows, factors, work, size of work, status)``."""
    capsule = cython_lapack.__pyx_capi__[routine]
    number, numbers = types.CPointer(types.int32), types.CPointer(types.float64)
    arguments = [*[number] * counts, numbers, number, numbers, numbers, number, number]
    name = name_of_capsule(capsule)
    assert name.count(b"*") == len(arguments), name
    symbol = f"fixed_modes_lapack_{routine}"
    llvm.add_symbol(symbol, pointer_of_capsule(capsule, name))
    return types.ExternalFunction(symbol, types.void(*arguments))


_factorise = _bind("dgeqrf", 2)
_write_out = _bind("dorgqr", 3)


@numba.njit
def reduced_qr(a: Any) -> Any:
    """Give Q, with as many columns as A has rows or columns, and R; float64 alone."""
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
        _factorise(
            *(m.ctypes, n.ctypes, q.ctypes, m.ctypes),
            *(factors.ctypes, work.ctypes, size.ctypes, status.ctypes),
        )
        for i in range(rank):
            for j in range(i, columns):
                r[i, j] = q[j, i]
        _write_out(
            *(m.ctypes, k.ctypes, k.ctypes, q.ctypes, m.ctypes),
            *(factors.ctypes, work.ctypes, size.ctypes, status.ctypes),
        )
    return q[:rank].T.copy(), r
