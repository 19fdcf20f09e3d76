"""Views of arrays that Numba makes, but takes long to compile."""

from __future__ import annotations

from typing import Any

from aesara.graph.basic import Constant, Variable
from aesara.tensor.subtensor import Subtensor, get_idx_list
from numba.core import cgutils, types
from numba.core.imputils import impl_ret_borrowed
from numba.extending import intrinsic
from numba.np.arrayobj import make_array, populate_array

from fixed_modes.numba.writer import Writer


@intrinsic(prefer_literal=True)
def permuted(typing_context: Any, array: Any, *order: Any) -> Any:
    """Give ``array.transpose(*order)``, a view, for an order of literal axes.

    Numba's own method checks the axes when it runs, and compiles code for the error
    message: 2.3 s of CPU, against 0.04 s, with Numba 0.68.
    """
    axes = [axis.literal_value for axis in order]
    result = array.copy(layout="A")
    signature = result(array, types.StarArgTuple.from_types(order))

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        source = make_array(signature.args[0])(context, builder, arguments[0])
        view = make_array(signature.return_type)(context, builder)
        shape = cgutils.unpack_tuple(builder, source.shape)
        strides = cgutils.unpack_tuple(builder, source.strides)
        populate_array(
            view,
            data=source.data,
            shape=[shape[axis] for axis in axes],
            strides=[strides[axis] for axis in axes],
            itemsize=source.itemsize,
            meminfo=source.meminfo,
            parent=source.parent,
        )
        return impl_ret_borrowed(context, builder, signature.return_type, view._getvalue())

    return signature, generate


@intrinsic
def row_of(typing_context: Any, view: Any, index: Any, whole: Any) -> Any:
    """Give ``view[index]``, for a view of some rows of the array `whole`, in any order.

    The elements of a row of `view` are contiguous if those of `whole` are; Numba does
    not know that of a view that takes the rows backwards.  The index counts from the
    front and is not checked.
    """
    layout = "C" if whole.layout == "C" else "A"
    result = view.copy(ndim=view.ndim - 1, layout=layout)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        source = make_array(signature.args[0])(context, builder, arguments[0])
        row = make_array(signature.return_type)(context, builder)
        shape = cgutils.unpack_tuple(builder, source.shape)
        strides = cgutils.unpack_tuple(builder, source.strides)
        offset = builder.mul(strides[0], arguments[1])
        populate_array(
            row,
            data=cgutils.pointer_add(builder, source.data, offset, source.data.type),
            shape=shape[1:],
            strides=strides[1:],
            itemsize=source.itemsize,
            meminfo=None,
        )
        return row._getvalue()

    return result(view, types.int64, whole), generate


@intrinsic
def borrowed(typing_context: Any, array: Any) -> Any:
    """Give `array` itself, for views of it; it must live longer than they do.

    Numba counts the references to the owner of an array, with two atomic instructions
    for each view; here the result has no owner, and nothing is counted.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        source = make_array(signature.args[0])(context, builder, arguments[0])
        result = make_array(signature.return_type)(context, builder)
        populate_array(
            result,
            data=source.data,
            shape=source.shape,
            strides=source.strides,
            itemsize=source.itemsize,
            meminfo=None,
        )
        return result._getvalue()

    return array(array), generate


def name_of_whole(variable: Variable, writer: Writer) -> str:
    """Give the name of the array whose rows a variable has, not one by one from the front.

    Returns
    -------
    Nothing for other variables, of which Numba itself knows whether rows are contiguous.
    """
    source, is_reordered = variable, False
    while source.owner is not None and isinstance(source.owner.op, Subtensor):
        (*others, rows) = get_idx_list(source.owner.inputs, source.owner.op.idx_list)
        if others or not isinstance(rows, slice):
            break
        is_reordered = is_reordered or getattr(rows.step, "data", rows.step) not in (None, 1)
        source = source.owner.inputs[0]
    if not is_reordered or variable.type.ndim < 2 or isinstance(source, Constant):
        return ""
    return writer.facts(source).name or ""


def lasting(variable: Variable, writer: Writer) -> str:
    """Give an expression for an array in a loop that views can be made of without counting."""
    name = writer.name(variable)
    if isinstance(variable, Constant) or not writer.is_in_loop:
        return name
    facts = writer.facts(variable)
    if not (facts.is_fixed or facts.is_lasting):
        return name
    writer.globals["borrowed"] = borrowed
    return f"borrowed({name})"


def note_view(view: Variable, source: Variable, writer: Writer) -> None:
    """Note of a view, which has been written, what is known of the memory of its source."""
    if not isinstance(source, Constant):
        facts = writer.facts(source)
        writer.facts(view).is_lasting = facts.is_fixed or facts.is_lasting


def row_text(name: str, row: str, whole: str, writer: Writer) -> str:
    """Give an expression for a row, itself an array, of an array that lives on.

    Parameters
    ----------
    row
        An expression for which row it is, counted from the front.
    whole
        What `name_of_whole` gives.
    """
    if not whole:
        writer.globals["borrowed"] = borrowed
        return f"borrowed({name})[{row}]"
    writer.globals["row_of"] = row_of
    return f"row_of({name}, {row}, {whole})"
