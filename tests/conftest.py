"""What all tests share."""

from __future__ import annotations

import os
from collections.abc import Iterator

from fixed_modes.cli.flags import without_c_scans

# Before Aesara is imported, and for the processes that tests start.  Nothing of the
# user's cache of compiled code is used or changed.
os.environ["AESARA_FLAGS"] = ",".join(
    [without_c_scans(os.environ.get("AESARA_FLAGS", "")), "fixed_modes__cache=False"]
)

import aesara
import pytest
from aesara.compile.builders import OpFromGraph
from aesara.graph.basic import Apply
from aesara.graph.fg import FunctionGraph
from aesara.scan.op import Scan

import fixed_modes  # noqa: F401
from fixed_modes.numba.cache import names_are_unique

# The cache refuses code that refers to functions which Numba compiled before it numbered
# them; the hand-written kernels of other tests would be some.
names_are_unique()


@pytest.fixture(params=["NUMBA_FIXED", "JAX_FIXED"])
def mode(request: pytest.FixtureRequest) -> str:
    """Each of the two modes."""
    return request.param


def all_nodes(fgraph: FunctionGraph) -> Iterator[Apply]:
    """Yield the nodes of a graph and of every inner graph in it."""
    for node in fgraph.toposort():
        yield node
        if isinstance(node.op, (Scan, OpFromGraph)):
            yield from all_nodes(node.op.fgraph)


@pytest.fixture
def inner_nodes():
    """List the nodes that stand in inner graphs of a compiled function."""

    def listed(f: aesara.compile.function.types.Function) -> list[Apply]:
        outer = set(f.maker.fgraph.toposort())
        return [node for node in all_nodes(f.maker.fgraph) if node not in outer]

    return listed
