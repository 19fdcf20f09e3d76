"""A graph as the text of a Python program, which can be run here and on its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

IMPORTS = """\
import warnings

import aesara
import aesara.tensor as at
import numpy as np
from aesara.compile.mode import Mode
from aesara.ifelse import ifelse
from aesara.scan.utils import until
from aesara.tensor.random.utils import RandomStream

import fixed_modes
"""

_ALONE = '''\
"""{title}

{details}
"""

{imports}
warnings.simplefilter("ignore")


{body}

def run(mode):
    """Call the function; give all results, and the shared variables after that."""
    is_reference = isinstance(mode, Mode)
    try:
        with aesara.config.change_flags(cxx="" if is_reference else aesara.config.cxx):
            inputs, outputs, updates, shared = build(mode if is_reference else None)
            f = aesara.function(
                inputs, outputs, updates=updates, mode=mode, on_unused_input="ignore"
            )
            values = arguments()
            results = [f(*values), f(*values)]
            if "others" in globals():
                results.append(f(*others()))
    except Exception as error:
        return [f"{{type(error).__name__}}: {{str(error).strip().splitlines()[:1]}}"]
    for value, original in zip(values, arguments()):
        np.testing.assert_array_equal(value, original, err_msg="an argument was changed")
    kept = [v.get_value(borrow=True) for v in shared if not hasattr(v.type, "is_valid_rng")]
    return [value for result in results for value in result] + kept


# The graph as it stands, without a rewrite, in Python: what it means.
expected = run(Mode("vm", None))
got = run("{mode}")
for position, pair in enumerate(zip(expected, got)):
    for name, value in zip(("expected", "{mode}"), pair):
        kind = (getattr(value, "dtype", ""), getattr(value, "shape", ""))
        print(f"--- result {{position}}, {{name}}", *kind, value, sep="\\n")
'''


@dataclass(frozen=True)
class Program:
    """A graph with values for its inputs.

    Attributes
    ----------
    body
        Source of functions.  ``build(scan_mode)`` makes a new graph, in which each
        scan has that mode, and gives its inputs, outputs, updates and shared
        variables; ``arguments()`` gives new values for the inputs, and ``others()``,
        if it is there, gives further ones of the same shapes.
    """

    body: str

    def functions(self) -> tuple[Callable[[Any], Any], list[Callable[[], list[Any]]]]:
        """Give ``build``, and the functions that give values for the inputs."""
        namespace: dict[str, Any] = {}
        exec(compile(IMPORTS + self.body, "<program>", "exec"), namespace)
        makers = [namespace[n] for n in ("arguments", "others") if n in namespace]
        return namespace["build"], makers

    def alone(self, mode: str, title: str, details: str) -> str:
        """Give a script that runs this program in `mode` and shows what comes out."""
        details = details.replace("\\", "/").replace('"""', "'''")
        return _ALONE.format(
            title=title, details=details, imports=IMPORTS, body=self.body, mode=mode
        )

    def __repr__(self) -> str:
        return self.body
