"""Imports for ``NUMBA_FIXED``."""

from fixed_modes.numba.compat import ensure_stock_dispatch_imports

ensure_stock_dispatch_imports()

import fixed_modes.numba.module  # noqa: E402, F401
