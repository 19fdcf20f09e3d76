"""Lets the tests import `benchmarks`, which is not part of the distribution."""

import sys
from pathlib import Path

_ROOT = str(Path(__file__).resolve().parents[2])
if _ROOT not in sys.path:
    # At the end: the package under test must stay the one that is installed.
    sys.path.append(_ROOT)
