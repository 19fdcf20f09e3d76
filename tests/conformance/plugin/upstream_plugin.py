"""A pytest plugin for upstream's tests: notes each result, limits each test's time.

Loaded by name into processes that run upstream's tests, whose package is called
``tests`` too: so this module imports nothing from the package around it.

Environment variables: ``UPSTREAM_RESULTS`` names the file that takes one JSON object a
line, ``UPSTREAM_TIMEOUT`` gives a test's seconds of computing, ``UPSTREAM_LINKER`` the mode
whose linker stands in for Aesara's own of the same kind.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import pytest

_results = Path(os.environ["UPSTREAM_RESULTS"])
_timeout = float(os.environ["UPSTREAM_TIMEOUT"])
_linker = os.environ.get("UPSTREAM_LINKER", "")


class TestTimeout(BaseException):
    """A test took too long; not an `Exception`, which a test might expect."""

    __test__ = False


def _note(**entry: Any) -> None:
    with _results.open("a", encoding="utf-8") as file:
        file.write(json.dumps(entry) + "\n")


def pytest_configure(config: pytest.Config) -> None:
    warnings.simplefilter("ignore")
    import fixed_modes  # noqa: F401

    # With newer versions of Numba, Aesara's own conversions need it to be importable.
    from fixed_modes.numba.compat import ensure_stock_dispatch_imports

    ensure_stock_dispatch_imports()
    if _linker == "NUMBA_FIXED":
        import aesara.link.numba.linker as stock_numba

        from fixed_modes.numba.linker import FixedNumbaLinker

        stock_numba.NumbaLinker = FixedNumbaLinker
    elif _linker == "JAX_FIXED":
        import aesara.link.jax
        import aesara.link.jax.linker as stock_jax

        from fixed_modes.jax.linker import FixedJAXLinker

        class OnDevice(FixedJAXLinker):
            """Upstream's tests look whether results are JAX arrays."""

            def __init__(self, *args: Any, **kwargs: Any) -> None:
                super().__init__(*args, **{"keep_on_device": True, **kwargs})

        stock_jax.JAXLinker = aesara.link.jax.JAXLinker = OnDevice


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if _linker != "NUMBA_FIXED":
        return
    for name, module in list(sys.modules.items()):
        if name.startswith("tests.link.numba") and hasattr(module, "eval_python_only"):
            # It runs stock conversions uncompiled, for upstream's own coverage figures.
            module.eval_python_only = lambda *args, **kwargs: None


@pytest.fixture
def benchmark() -> Any:
    """Stand in for the fixture of pytest-benchmark: call the function once."""
    return lambda function, *args, **kwargs: function(*args, **kwargs)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Any:
    _note(id=item.nodeid, started=time.time())
    item.stash[_reports] = []
    result = yield
    reports = item.stash[_reports]
    _note(id=item.nodeid, **_summary(reports))
    return result


_reports = pytest.StashKey[list]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Any:
    report = yield
    item.stash[_reports].append(report)
    return report


def _summary(reports: list[pytest.TestReport]) -> dict[str, Any]:
    seconds = sum(report.duration for report in reports)
    worst = next((r for r in reports if r.failed), None)
    if worst is not None:
        text = str(worst.longrepr)
        kind = "timeout" if "TestTimeout" in text[-600:] else "failed"
        return {"outcome": kind, "seconds": seconds, "text": text[-6000:]}
    for report in reports:
        if report.skipped:
            kind = "xfailed" if hasattr(report, "wasxfail") else "skipped"
            return {"outcome": kind, "seconds": seconds, "text": str(report.longrepr)[-500:]}
    return {"outcome": "passed", "seconds": seconds, "text": ""}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Any:
    def stop(*_: Any) -> None:
        raise TestTimeout(f"more than {_timeout:g} s")

    from fixed_modes.errors import FixedModesWarning

    # Some files take warnings for errors; that an op runs in Python is none.
    warnings.filterwarnings("ignore", category=FixedModesWarning)
    # Seconds of computing: others may keep the machine busy.
    previous = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, _timeout)
    try:
        return (yield)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, previous)
