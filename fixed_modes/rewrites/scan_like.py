"""A scan made anew with another step."""

from __future__ import annotations

from collections.abc import Sequence

from aesara.graph.basic import Variable
from aesara.scan.op import Scan, ScanInfo


def scan_like(
    op: Scan, inner_inputs: Sequence[Variable], inner_outputs: Sequence[Variable], info: ScanInfo
) -> Scan:
    """Make a scan of another step and other taps, with the options of `op`."""
    return Scan(
        inner_inputs,
        inner_outputs,
        info,
        mode=op.mode,
        profile=op.profile,
        truncate_gradient=op.truncate_gradient,
        name=op.name,
        allow_gc=op.allow_gc,
        strict=op.strict,
    )
