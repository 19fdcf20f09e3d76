"""The variable ``AESARA_FLAGS``: its mode replaced, its other flags kept."""

from __future__ import annotations

import re

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


def _is_mode(flag: str) -> bool:
    return flag.strip().lstrip("\"'").startswith("mode=")
