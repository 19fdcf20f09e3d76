"""The variable ``AESARA_FLAGS``: its mode replaced, its other flags kept."""

from __future__ import annotations

import re
import sys

#: The modes of this package, the default first.
MODES = ("NUMBA_FIXED", "JAX_FIXED")

# One flag: Aesara splits at commas, except inside quotes and after a backslash.
# A quote that is never closed is kept, so that Aesara complains about it.
_FLAG = re.compile(r"""(?:[^,"'\\]|"[^"]*"|'[^']*'|\\.|["'\\])+""")


def with_mode(flags: str, mode: str) -> str:
    """Return `flags` with `mode` as the mode.

    Parameters
    ----------
    flags
        The value of ``AESARA_FLAGS``: comma-separated ``key=value`` pairs.
    mode
        The name of a mode.

    Examples
    --------
    >>> with_mode("floatX=float32,mode=FAST_RUN", "JAX_FIXED")
    'floatX=float32,mode=JAX_FIXED'
    """
    kept = [flag for flag in _FLAG.findall(flags) if not _is_mode(flag)]
    return ",".join([*kept, f"mode={mode}"])


def without_c_scans(flags: str) -> str:
    """Return `flags` so that Aesara runs scans where its C code for them can't be compiled.

    That is on Python 3.12 and newer.  There FAST_RUN has to do without a
    compiler, unless `flags` names one.

    Examples
    --------
    >>> without_c_scans("cxx=clang++")
    'cxx=clang++'
    """
    given = _FLAG.findall(flags)
    runs_c_scans = sys.hexversion < 0x030C0000
    if runs_c_scans or any(_is_flag(flag, "cxx") for flag in given):
        return flags
    return ",".join([*given, "cxx="])


def _is_mode(flag: str) -> bool:
    return _is_flag(flag, "mode")


def _is_flag(flag: str, name: str) -> bool:
    return flag.strip().lstrip("\"'").startswith(f"{name}=")
