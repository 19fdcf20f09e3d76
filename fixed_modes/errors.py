"""Errors that say which op, in which scan, made where."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    # Not at run time: with Aesara come the modes, and these import this module.
    from aesara.graph.basic import Apply


class UnsupportedOpError(NotImplementedError):
    """An op, or a type, that a back end has no conversion for."""


_ORIGIN = "_fixed_modes_origin"


def with_origin(exc: Exception, node: Apply) -> Exception:
    """Note on `exc` that `node` is to blame, also where `node` is in an inner graph."""
    setattr(exc, _ORIGIN, node)
    return exc


def origin_of(exc: Exception) -> Apply | None:
    """Give the node that `with_origin` noted on `exc`."""
    return getattr(exc, _ORIGIN, None)


def explained(exc: Exception, node: Apply) -> Exception:
    """Make an exception of the type of `exc` whose message says what `node` is and who made it."""
    lines = [
        str(exc),
        f"Apply node that caused the error: {node}",
        f"Inputs types: {[i.type for i in node.inputs]}",
    ]
    trace = _trace_of(node)
    if trace:
        lines.append(trace.strip())
    try:
        return type(exc)("\n".join(lines))
    except TypeError:  # an exception that takes other arguments
        return exc


def describe_node(node: Apply, scans: tuple[str, ...] = ()) -> str:
    """Say what a node is, which scans it stands in, and where the user made it.

    Parameters
    ----------
    node
        The node.
    scans
        Names of the scans around it, outermost first.
    """
    lines = [f"Op: {node.op} ({type(node.op).__module__}.{type(node.op).__name__})"]
    lines.append("Inputs: " + ", ".join(f"{i} {i.type}" for i in node.inputs))
    if scans:
        lines.append("Inside: " + " > ".join(scans))
    trace = _trace_of(node)
    if trace:
        lines.append(trace.strip())
    return "\n".join(lines)


def _trace_of(node: Apply) -> str:
    from aesara.graph.utils import get_variable_trace_string

    return str(get_variable_trace_string(node.outputs[0])) if node.outputs else ""


class FixedModesWarning(UserWarning):
    """Something works, but not as a user of these modes would expect."""
