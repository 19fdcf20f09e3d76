"""NUMBA_FIXED: values expected, ValueError raised: Sequence 0 has shape (0, 3, 11) but the Scan's required numb

Traceback (most recent call last):
  File "/tmp/w/lead/fixed_modes/numba/module.py", line 78, in __call__
    outputs = variant.function(error, parameters, *inputs, *variant.constants)
              ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  File "<fixed_modes graph 89db196064486f8b>", line 112, in graph
    raise ValueError
ValueError

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
ValueError: Sequence 0 has shape (0, 3, 11) but the Scan's required number of steps is 1
Apply node that caused the error: forall_inplace,cpu,grad_of_scan_fn}(Elemwise{Composite{maximum(minimum((i0 - i1), i2), i3)}}.0, Alloc.0, Subtensor{int64:int64:int64}.0, Subtensor{::int64}.0, Alloc.0, Alloc.0)
Inputs types: [TensorType(int64, ()), TensorType(float64, (?, 3, 11)), TensorType(int64, (?, ?)), TensorType(float64, (?, ?)), TensorType(float64, (?, 3, 11)), TensorType(int64, (?, ?, ?))]

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
    x2 = at.TensorType("int64", (None, None, None))("x2")
    x3 = at.TensorType("int64", (None, None))("x3")
    x4 = at.TensorType("float64", (None, None))("x4")
    t5 = at.invert(at.constant(np.resize(np.array([False], "bool"), (2, 3, 11))))
    def step6(r7, s8, s9, c10, c11):
        return [s8, s9]
    (y12, y13), u14 = aesara.scan(
        step6,
        sequences=[x3],
        outputs_info=[dict(initial=x4, taps=[-2]), dict(initial=t5, taps=[-2])],
        non_sequences=[x1, x2],
        n_steps=None,
        go_backwards=False,
        mode=scan_mode,
    )
    updates.update(u14)
    cost = y12.sum()
    gradients = aesara.grad(cost, [x1, x4], disconnected_inputs="ignore")
    return [x1, x2, x3, x4], [y12, y13, gradients[0], gradients[1]], updates, []


def arguments():
    return [
        np.array([1.0, 1.0, 1.0][0], "float64"),
        np.resize(np.array([1, 2, 0], "int64"), (2, 1, 2)),
        np.resize(np.array([1, 2, 0], "int64"), (0, 1)),
        np.resize(np.array([1.0, 1.0, 1.0], "float64"), (2, 3)),
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
