"""``ops``: how each mode computes each op of Aesara."""

from __future__ import annotations

import inspect
import json
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib import import_module
from typing import Any

import click

from fixed_modes.cli.console import make_console, new_table
from fixed_modes.cli.flags import MODES

#: By a lowering of this package; by Aesara's own conversion; in Python, which is slow.
HOW = ("native", "conversion", "Python")

#: The modules of Aesara that define ops, apart from those that are made for the C code.
_MODULES = (
    "aesara.breakpoint",
    "aesara.compile.builders",
    "aesara.compile.ops",
    "aesara.gradient",
    "aesara.ifelse",
    "aesara.printing",
    "aesara.raise_op",
    "aesara.scalar.basic",
    "aesara.scalar.math",
    "aesara.scan.op",
    "aesara.sparse",
    "aesara.tensor.basic",
    "aesara.tensor.blas",
    "aesara.tensor.elemwise",
    "aesara.tensor.extra_ops",
    "aesara.tensor.fft",
    "aesara.tensor.fourier",
    "aesara.tensor.io",
    "aesara.tensor.math",
    "aesara.tensor.nlinalg",
    "aesara.tensor.nnet",
    "aesara.tensor.random.basic",
    "aesara.tensor.shape",
    "aesara.tensor.signal.pool",
    "aesara.tensor.slinalg",
    "aesara.tensor.sort",
    "aesara.tensor.special",
    "aesara.tensor.subtensor",
    "aesara.tensor.type_other",
    "aesara.typed_list.basic",
)


@dataclass(frozen=True)
class OpRow:
    """An op class and how each mode computes it.

    A native lowering may leave some forms of its op, such as unusual dtypes, to Python.
    """

    name: str
    module: str
    how: dict[str, str]


@click.command("ops")
@click.option("--mode", type=click.Choice(MODES), help="One mode only.")
@click.option("--how", type=click.Choice(HOW), help="Only what a mode computes in this way.")
@click.option("--json", "as_json", is_flag=True, help="Print the list as JSON.")
@click.argument("word", default="")
def ops(mode: str | None, how: str | None, as_json: bool, word: str) -> None:
    """List Aesara's ops, and how each mode computes them.

    Either by a lowering of this package ("native"), or by Aesara's own conversion,
    or in Python, which is slow. WORD picks the ops that have it in their name or
    module.
    """
    modes = [mode] if mode else list(MODES)
    rows = [
        row
        for row in list_ops(modes)
        if word.lower() in f"{row.module}.{row.name}".lower()
        and (how is None or how in row.how.values())
    ]
    if as_json:
        click.echo(json.dumps([asdict(row) for row in rows], indent=2))
        return
    console = make_console()
    table = new_table("Op", "Module", *modes)
    for row in rows:
        table.add_row(row.name, row.module, *(row.how[m] for m in modes))
    console.print(table)
    for name in modes:
        counts = Counter(row.how[name] for row in rows)
        console.print(f"{name}: " + ", ".join(f"{counts[h]} {h}" for h in HOW if counts[h]))


def list_ops(modes: list[str]) -> list[OpRow]:
    """List every op class of Aesara that can stand in a graph."""
    with warnings.catch_warnings():
        # Some of the modules warn that they are deprecated.
        warnings.simplefilter("ignore")
        for module in _MODULES:
            import_module(module)
        tell = {"NUMBA_FIXED": _how_in_numba, "JAX_FIXED": _how_in_jax}
        tellers = {mode: tell[mode]() for mode in modes}
        return sorted(
            (
                OpRow(op.__name__, op.__module__, {m: how(op) for m, how in tellers.items()})
                for op in set(_concrete_ops())
            ),
            key=lambda row: (row.module, row.name),
        )


def _concrete_ops() -> Iterator[type]:
    from aesara.graph.op import Op

    pending: list[type] = [Op]
    while pending:
        op = pending.pop()
        pending += op.__subclasses__()
        if op.__module__.startswith("aesara.") and _can_compute(op):
            yield op


def _can_compute(op: type) -> bool:
    """Say whether a class is an op, not only a base of others or a part of the C code."""
    from aesara.scalar.basic import Composite, ScalarOp

    if inspect.isabstract(op) or op.__name__.startswith(("_", "Base", "Abstract")):
        return False
    if op.__module__.startswith(("aesara.link", "aesara.compile.debugmode")):
        return False
    if issubclass(op, ScalarOp):
        return issubclass(op, Composite) or op.impl is not ScalarOp.impl  # type: ignore[attr-defined]
    return True


def _how_in_numba() -> Any:
    from aesara.graph.op import Op
    from aesara.ifelse import IfElse
    from aesara.scalar.basic import Composite, ScalarOp
    from aesara.tensor.random.op import RandomVariable

    from fixed_modes.numba.compat import ensure_stock_dispatch_imports

    ensure_stock_dispatch_imports()
    from aesara.link.numba.dispatch.basic import _numba_funcify

    from fixed_modes.numba.lowering import lower
    from fixed_modes.numba.random import SAMPLERS
    from fixed_modes.numba.scalar_base import expression
    from fixed_modes.numba.vector_random import _WRITERS

    samplers = {*SAMPLERS, *_WRITERS}

    def how(op: type) -> str:
        if issubclass(op, (Composite, IfElse)):
            return "native"
        if issubclass(op, ScalarOp):
            return "native" if _has(expression, op, object) else "Python"
        if issubclass(op, RandomVariable):
            return "native" if op in samplers else "Python"
        if _has(lower, op, object):
            return "native"
        return "conversion" if _has(_numba_funcify, op, Op) else "Python"

    return how


def _how_in_jax() -> Any:
    from aesara.graph.op import Op
    from aesara.ifelse import IfElse
    from aesara.link.jax.dispatch import jax_funcify
    from aesara.scalar.basic import Composite, ScalarOp
    from aesara.tensor.random.op import RandomVariable

    from fixed_modes.jax import lowerings  # noqa: F401  (fills the tables)
    from fixed_modes.jax.dispatch import jax_lower
    from fixed_modes.jax.late import LATE
    from fixed_modes.jax.samplers import _SAMPLERS
    from fixed_modes.jax.scalar import scalar_lower

    for modules in LATE.values():
        for module in modules:
            import_module(module)

    def how(op: type) -> str:
        if issubclass(op, (Composite, IfElse)):
            return "native"
        if issubclass(op, ScalarOp):
            return "native" if _has(scalar_lower, op, object) else "Python"
        if issubclass(op, RandomVariable):
            return "native" if any(base in _SAMPLERS for base in op.__mro__) else "Python"
        if _has(jax_lower, op, object):
            return "native"
        return "conversion" if _has(jax_funcify, op, Op) else "Python"

    return how


def _has(table: Any, op: type, base: type) -> bool:
    """Say whether a table has more for `op` than what it does for any `base`."""
    return table.dispatch(op) is not table.dispatch(base)
