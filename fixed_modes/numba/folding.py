"""Works out integers, and vectors of them, before the compiled code runs.

The values are those of the ops: integers are int64 or bool here, whose arithmetic in
Python is the same as long as it stays in range (`Plan.apply` sees to that).
"""

from __future__ import annotations

import aesara.scalar.basic as aes
import numpy as np
from aesara.graph.basic import Apply, Constant, Variable
from aesara.graph.op import Op
from aesara.scalar.basic import ScalarOp
from aesara.tensor.basic import MakeVector, ScalarFromTensor, TensorFromScalar
from aesara.tensor.elemwise import Elemwise
from aesara.tensor.shape import Shape, Shape_i
from aesara.tensor.subtensor import Subtensor

from fixed_modes.numba.plan import Known, NotKnown, Plan
from fixed_modes.numba.writer import Writer

_TEMPLATES: dict[type, str] = {
    aes.Add: "{} + {}",
    aes.Mul: "{} * {}",
    aes.ScalarMaximum: "max({}, {})",
    aes.ScalarMinimum: "min({}, {})",
    aes.AND: "{} & {}",
    aes.OR: "{} | {}",
    aes.XOR: "{} ^ {}",
}
_FIXED_TEMPLATES: dict[type, str] = {
    aes.Sub: "{} - {}",
    aes.FloorDivide: "{} // {}",
    aes.Mod: "{} % {}",
    aes.LT: "int({} < {})",
    aes.GT: "int({} > {})",
    aes.LE: "int({} <= {})",
    aes.GE: "int({} >= {})",
    aes.EQ: "int({} == {})",
    aes.NEQ: "int({} != {})",
    aes.Switch: "({1} if {0} else {2})",
    aes.Neg: "-{}",
    aes.Abs: "abs({})",
    aes.Sgn: "(({0} > 0) - ({0} < 0))",
    aes.Identity: "{}",
    aes.Second: "{1}",
}
# Ops whose result is one of their operands, so that it can't leave the range of its dtype.
_CHOICES = (aes.Switch, aes.ScalarMaximum, aes.ScalarMinimum, aes.Identity, aes.Second)


def fold(op: Op, node: Apply, writer: Writer) -> bool:
    """Note the values of the outputs of `node`, if they are known; no code is needed then."""
    try:
        return _fold(op, node, writer)
    except NotKnown:
        return False


def _fold(op: Op, node: Apply, writer: Writer) -> bool:
    plan = writer.plan
    if isinstance(op, Shape_i):
        return _note(node, writer.shape(node.inputs[0])[op.i], writer)
    if isinstance(op, Shape):
        return _note_entries(node, list(writer.shape(node.inputs[0])), writer)
    if isinstance(op, MakeVector):
        if np.dtype(op.dtype).kind == "i":
            _note_entries(node, [writer.known(i) for i in node.inputs], writer)
        return False
    if isinstance(op, Subtensor):
        return _fold_entry(op, node, writer)
    if isinstance(op, (TensorFromScalar, ScalarFromTensor)):
        return _note(node, writer.known(node.inputs[0]), writer)
    scalar_op = op.scalar_op if isinstance(op, Elemwise) else op
    if not isinstance(scalar_op, ScalarOp) or len(node.outputs) != 1:
        return False
    if getattr(node.outputs[0].type, "ndim", 0) != 0:
        return False
    values = [writer.known(i) for i in node.inputs]
    if not values or any(v is None for v in values):
        return False
    known = [v for v in values if v is not None]
    return _note(node, _value(scalar_op, node, known, plan), writer)


def _note(node: Apply, known: Known | None, writer: Writer) -> bool:
    if known is None:
        return False
    writer.facts(node.outputs[0]).known = known
    return True


def _note_entries(node: Apply, entries: list[Known | None], writer: Writer) -> bool:
    if any(e is None for e in entries):
        return False
    writer.facts(node.outputs[0]).entries = tuple(e for e in entries if e is not None)
    return False


def entries_of(variable: Variable, writer: Writer) -> tuple[Known, ...] | None:
    """Give the values in a vector of integers, where they are known."""
    if isinstance(variable, Constant):
        if variable.type.ndim != 1 or np.dtype(variable.type.dtype).kind not in "iu":
            return None
        return tuple(writer.plan.constant(int(n)) for n in variable.data)
    return writer.facts(variable).entries


def _fold_entry(op: Subtensor, node: Apply, writer: Writer) -> bool:
    """Fold a shape, or another known vector, at a constant index."""
    entries = entries_of(node.inputs[0], writer)
    if entries is None or len(op.idx_list) != 1 or isinstance(op.idx_list[0], slice):
        return False
    (index,) = op.idx_list if len(node.inputs) == 1 else node.inputs[1:]
    place = writer.known(index) if isinstance(index, Variable) else None
    if place is None or not place.is_constant:
        return False
    if not -len(entries) <= place.value < len(entries):
        return False
    return _note(node, entries[place.value], writer)


def _value(op: ScalarOp, node: Apply, x: list[Known], plan: Plan) -> Known | None:
    """Give the value of a scalar op of integers; None where it has none here."""
    dtype = node.outputs[0].type.dtype
    if isinstance(op, aes.Composite):
        return _composite(op, x, plan)
    if np.dtype(dtype).kind not in "bi":
        return None
    if dtype not in ("int64", "bool") and not isinstance(op, _CHOICES):
        return None
    if isinstance(op, aes.Cast):
        return x[0] if dtype == "int64" else plan.apply("int({} != 0)", x[0])
    if isinstance(op, aes.Invert):
        return plan.apply("1 - {}" if dtype == "bool" else "~{}", x[0])
    template = _TEMPLATES.get(type(op))
    if template is not None:
        if dtype == "bool" and type(op) in (aes.Add, aes.Mul):
            template = "{} | {}" if isinstance(op, aes.Add) else "{} & {}"
        result = x[0]
        for other in x[1:]:
            result = plan.apply(template, result, other)
        return result
    template = _FIXED_TEMPLATES.get(type(op))
    if template is None:
        return None
    if isinstance(op, aes.Switch):
        condition, yes, no = x
        if condition.is_constant:
            return yes if condition.value else no
        return yes if yes is no else plan.apply(template, condition, yes, no)
    if isinstance(op, (aes.Identity, aes.Second)):
        return x[-1]
    return plan.apply(template, *x)


def _composite(op: aes.Composite, x: list[Known], plan: Plan) -> Known | None:
    values: dict[Variable, Known] = dict(zip(op.fgraph.inputs, x))

    def known(variable: Variable) -> Known | None:
        if isinstance(variable, Constant):
            data = np.asarray(variable.data)
            return plan.constant(int(data)) if data.dtype.kind in "iub" else None
        return values.get(variable)

    for node in op.fgraph.toposort():
        arguments = [known(i) for i in node.inputs]
        if any(a is None for a in arguments) or len(node.outputs) != 1:
            return None
        result = _value(node.op, node, [a for a in arguments if a is not None], plan)
        if result is None:
            return None
        values[node.outputs[0]] = result
    return known(op.fgraph.outputs[0]) if len(op.fgraph.outputs) == 1 else None


def known_slice(part: slice, values: list[Known | None], length: Known, plan: Plan) -> Known | None:
    """Give how many elements a slice of an axis takes.

    Parameters
    ----------
    part
        The slice in the index list of the op: None where an end is left out.
    values
        The ends and the step; None where they are left out or not known.
    length
        The length of the axis.
    """
    texts, arguments = [], []
    for end, value in zip((part.start, part.stop, part.step), values):
        if end is None:
            texts.append("None")
        elif value is None:
            return None
        else:
            texts.append("{}")
            arguments.append(value)
    if texts == ["None", "None", "None"]:
        return length
    try:
        template = f"len(range(*slice({', '.join(texts)}).indices({{}})))"
        return plan.apply(template, *arguments, length)
    except NotKnown:
        return None


def known_arange(node: Apply, writer: Writer) -> Known | None:
    """Give the length of an `ARange` of integers, where it is known."""
    values = [writer.known(i) for i in node.inputs]
    known = [v for v in values if v is not None]
    if len(known) < 3:
        return None
    try:
        return writer.plan.apply("len(range({}, {}, {}))", *known)
    except NotKnown:
        return None
