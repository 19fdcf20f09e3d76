"""Views of arrays that Numba makes, but takes long to compile."""

from __future__ import annotations

from typing import Any

from numba.core import cgutils, types
from numba.core.imputils import impl_ret_borrowed
from numba.extending import intrinsic
from numba.np.arrayobj import make_array, populate_array


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
