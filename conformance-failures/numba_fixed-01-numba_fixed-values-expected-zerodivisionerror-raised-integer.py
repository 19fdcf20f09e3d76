"""NUMBA_FIXED: values expected, ZeroDivisionError raised: integer modulo by zero Apply node that caused the error: for

Traceback (most recent call last):
  File "/tmp/w/lead/fixed_modes/numba/module.py", line 78, in __call__
    outputs = variant.function(error, parameters, *inputs, *variant.constants)
              ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  File "<fixed_modes graph 2f2dd4edb18493cb>", line 21, in graph
    raise ZeroDivisionError
ZeroDivisionError

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "/tmp/w/lead/tests/conformance/check.py", line 78, in run
    calls = [f(*values), f(*values)]
             ^^^^^^^^^^
  File "/tmp/w/lead/fixed_modes/function.py", line 75, in __call__
    self.vm()
  File "/tmp/w/lead/fixed_modes/linker.py", line 90, in run
    raise explained(exc, node).with_traceback(exc.__traceback__) from exc.__cause__
  File "/tmp/w/lead/fixed_modes/linker.py", line 86, in run
    thunk()
  File "/tmp/v/3.11/lib/python3.11/site-packages/aesara/link/basic.py", line 669, in thunk
    outputs = fgraph_jit(*[x[0] for x in thunk_inputs])
              ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  File "/tmp/w/lead/fixed_modes/numba/module.py", line 90, in __call__
    raise variant.error_at_site(error) from exc
ZeroDivisionError: integer modulo by zero
Apply node that caused the error: forall_inplace,cpu,scan_fn}(Elemwise{Composite{minimum(Switch(LT((i0 - i1), i2), i2, (i0 - i1)), (i0 - Switch(LT(i3, i0), i3, i0)))}}[(0, 0)].0, IncSubtensor{InplaceSet;:int64:}.0, Elemwise{Composite{minimum(Switch(LT((i0 - i1), i2), i2, (i0 - i1)), (i0 - Switch(LT(i3, i0), i3, i0)))}}[(0, 0)].0, Elemwise{Composite{maximum((i0 - Switch(LT(i1, i0), i2, i0)), i3)}}.0)
Inputs types: [TensorType(int64, ()), TensorType(complex128, (?,)), TensorType(int64, ()), TensorType(int64, ())]

"""

import warnings

import aesara
import aesara.tensor as at
import numpy as np
from aesara.compile.mode import Mode
from aesara.ifelse import ifelse
from aesara.scan.utils import until
from aesara.tensor.random.utils import RandomStream

import fixed_modes

warnings.simplefilter("ignore")


def build(scan_mode):
    updates = {}
    x1 = at.TensorType("float64", ())("x1")
    x2 = at.TensorType("int64", ())("x2")
    x3 = at.TensorType("float64", (None,))("x3")
    x4 = at.TensorType("complex128", ())("x4")
    def step5(r6, r7, s8):
        return [at.constant(np.resize(np.array([1, 2, 0], "int8"), (2, 3))), s8, at.constant(np.resize(np.array([1, 2, 0], "int64"), (2,)))]
    (y9, y10, y11), u12 = aesara.scan(
        step5,
        sequences=[dict(input=x3, taps=[0, 1])],
        outputs_info=[None, x4, None],
        non_sequences=[],
        n_steps=None,
        go_backwards=False,
        mode=scan_mode,
    )
    updates.update(u12)
    t13 = y11[2:]
    return [x1, x2, x3, x4], [y9, y10, t13], updates, []


def arguments():
    return [
        np.array([1.0, 1.0, 1.0][0], "float64"),
        np.array([1, 2, 0][0], "int64"),
        np.resize(np.array([1.0, 1.0, 1.0], "float64"), (2,)),
        np.array([1.0, 1.0, 1.0, 1j][0], "complex128"),
    ]


def run(mode):
    """Call the function twice; give both results, and the shared variables after that."""
    is_reference = isinstance(mode, Mode)
    try:
        with aesara.config.change_flags(cxx="" if is_reference else aesara.config.cxx):
            inputs, outputs, updates, shared = build(mode if is_reference else None)
            f = aesara.function(
                inputs, outputs, updates=updates, mode=mode, on_unused_input="ignore"
            )
            values = arguments()
            results = [f(*values), f(*values)]
    except Exception as error:
        return [f"{type(error).__name__}: {str(error).strip().splitlines()[:1]}"]
    for value, original in zip(values, arguments()):
        np.testing.assert_array_equal(value, original, err_msg="an argument was changed")
    kept = [v.get_value(borrow=True) for v in shared if not hasattr(v.type, "is_valid_rng")]
    return [*results[0], *results[1], *kept]


# The graph as it stands, without a rewrite, in Python: what it means.
expected = run(Mode("vm", None))
got = run("NUMBA_FIXED")
for position, pair in enumerate(zip(expected, got)):
    for name, value in zip(("expected", "NUMBA_FIXED"), pair):
        kind = (getattr(value, "dtype", ""), getattr(value, "shape", ""))
        print(f"--- result {position}, {name}", *kind, value, sep="\n")
