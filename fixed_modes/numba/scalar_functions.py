"""Mathematical functions as expressions."""

from __future__ import annotations

import math

import aesara.scalar.basic as aes
import aesara.scalar.math as aes_math
import numpy as np
from aesara.scalar.basic import ScalarOp

from fixed_modes.numba import elementary
from fixed_modes.numba.scalar_base import (
    NoExpression,
    Operand,
    closed,
    literal,
    refuse_complex,
    register,
)
from fixed_modes.numba.writer import Writer

# The function of `math`, and NumPy's for complex values where there is one.
_FUNCTIONS: dict[type, tuple[str, str]] = {
    aes.Exp: ("math.exp", "np.exp"),
    aes.Expm1: ("math.expm1", ""),
    aes.Log: ("math.log", "np.log"),
    aes.Log2: ("np.log2", ""),
    aes.Log10: ("math.log10", "np.log10"),
    aes.Log1p: ("math.log1p", ""),
    aes.Sqrt: ("math.sqrt", "np.sqrt"),
    aes.Sin: ("math.sin", "np.sin"),
    aes.Cos: ("math.cos", "np.cos"),
    aes.Tan: ("math.tan", "np.tan"),
    aes.ArcSin: ("math.asin", "np.arcsin"),
    aes.ArcCos: ("math.acos", "np.arccos"),
    aes.ArcTan: ("math.atan", "np.arctan"),
    aes.Sinh: ("math.sinh", "np.sinh"),
    aes.Cosh: ("math.cosh", "np.cosh"),
    aes.Tanh: ("math.tanh", "np.tanh"),
    aes.ArcSinh: ("math.asinh", "np.arcsinh"),
    aes.ArcCosh: ("math.acosh", "np.arccosh"),
    aes.ArcTanh: ("math.atanh", "np.arctanh"),
    aes.Ceil: ("np.ceil", ""),
    aes.Floor: ("np.floor", ""),
    aes.Trunc: ("np.trunc", ""),
    aes.RoundHalfToEven: ("np.rint", ""),
    aes_math.Erf: ("math.erf", ""),
    aes_math.Erfc: ("math.erfc", ""),
    aes_math.Gamma: ("math.gamma", ""),
    aes_math.GammaLn: ("math.lgamma", ""),
}

# The names in `elementary` of those that loops over vectors compute faster.
_IN_VECTORS: dict[type, str] = {
    aes.Exp: "exp",
    aes.Expm1: "expm1",
    aes.Log: "log",
    aes.Log1p: "log1p",
    aes.Tanh: "tanh",
    aes_math.Sigmoid: "sigmoid",
}


def has_vector_function(op: ScalarOp) -> bool:
    """Say whether `op` computes functions that loops over vectors compute faster."""
    if isinstance(op, aes.Composite):
        return any(has_vector_function(inner.op) for inner in op.fgraph.apply_nodes)
    return bool(vector_function(op))


def vector_function(op: ScalarOp) -> str:
    """Give the name that `op` has in `elementary`, or an empty one."""
    return _IN_VECTORS.get(type(op), "")


def _name_of(function: str, writer: Writer) -> str:
    """Give the name of a function of floats: C's, or one of `elementary` in a loop over vectors.

    That of `tanh` is faster anywhere.
    """
    if writer.is_vectorised or function == "tanh":
        name = f"vector_{function}"
        writer.globals[name] = getattr(elementary, function)
        return name
    writer.globals["math"] = math
    return f"math.{function}"


@register(*_FUNCTIONS)
def _function(op: ScalarOp, x: list[Operand], dtype: str, writer: Writer) -> str:
    real, of_complex = _FUNCTIONS[type(op)]
    kind = np.dtype(dtype).kind
    function = real if kind == "f" else of_complex
    if not function or kind not in "fc":
        raise NoExpression(f"{op} of {dtype}")
    if isinstance(op, aes_math.Gamma) and x[0].kind in "biu":
        # C's gamma function is for floats; SciPy's differs at negative integers.
        return _special(op, x, dtype, writer)
    if kind == "f" and type(op) in _IN_VECTORS:
        function = _name_of(_IN_VECTORS[type(op)], writer)
    writer.globals["math"] = math
    return closed(f"{function}({x[0].to(dtype)})", dtype)


@register(aes.ArcTan2)
def _arctan2(op: ScalarOp, x: list[Operand], dtype: str, writer: Writer) -> str:
    refuse_complex(op, x)
    writer.globals["math"] = math
    return closed(f"math.atan2({x[0].to(dtype)}, {x[1].to(dtype)})", dtype)


@register(aes.Exp2)
def _exp2(op: ScalarOp, x: list[Operand], dtype: str, writer: Writer) -> str:
    refuse_complex(op, x)
    return closed(f"{literal(2.0, dtype)} ** {x[0].to(dtype)}", dtype)


@register(aes.Deg2Rad, aes.Rad2Deg)
def _degrees(op: ScalarOp, x: list[Operand], dtype: str, writer: Writer) -> str:
    refuse_complex(op, x)
    factor = np.pi / 180 if isinstance(op, aes.Deg2Rad) else 180 / np.pi
    return closed(f"{x[0].to(dtype)} * {literal(float(factor), dtype)}", dtype)


@register(aes.RoundHalfAwayFromZero)
def _round_away(op: ScalarOp, x: list[Operand], dtype: str, writer: Writer) -> str:
    refuse_complex(op, x)
    writer.globals["math"] = math
    a = x[0].to(dtype)
    whole = f"np.trunc({a})"
    text = f"({whole} + math.copysign(1.0, {a}) if abs({a} - {whole}) >= 0.5 else {whole})"
    return closed(text, dtype)


@register(aes_math.Sigmoid)
def _sigmoid(op: ScalarOp, x: list[Operand], dtype: str, writer: Writer) -> str:
    refuse_complex(op, x)
    if writer.is_vectorised:
        return closed(f"{_name_of('sigmoid', writer)}({x[0].to(dtype)})", dtype)
    writer.globals["math"] = math
    one = literal(1.0, dtype)
    return closed(f"{one} / ({one} + math.exp(-{x[0].to(dtype)}))", dtype)


# The limits between the forms of the next two are those of M. Maechler (2012),
# "Accurately computing log(1 - exp(-|a|))", as in Aesara's C code.


@register(aes_math.Softplus)
def _softplus(op: ScalarOp, x: list[Operand], dtype: str, writer: Writer) -> str:
    refuse_complex(op, x)
    writer.globals["math"] = math
    a = x[0].to(dtype)
    if writer.is_vectorised:
        exp, log1p = _name_of("exp", writer), _name_of("log1p", writer)
        return closed(f"(({a} if {a} > 0 else 0.0) + {log1p}({exp}(-abs({a}))))", dtype)
    return closed(
        f"(math.exp({a}) if {a} < -37.0 else (math.log1p(math.exp({a})) if {a} < 18.0 "
        f"else ({a} + math.exp(-{a}) if {a} < 33.3 else {a})))",
        dtype,
    )


@register(aes_math.Log1mexp)
def _log1mexp(op: ScalarOp, x: list[Operand], dtype: str, writer: Writer) -> str:
    refuse_complex(op, x)
    exp, log, expm1, log1p = (_name_of(f, writer) for f in ("exp", "log", "expm1", "log1p"))
    a = x[0].to(dtype)
    limit = repr(math.log(0.5))
    return closed(f"({log1p}(-{exp}({a})) if {a} < {limit} else {log}(-{expm1}({a})))", dtype)


# -- special functions ------------------------------------------------------

# Names in `special_functions` or `scipy_functions`.
_SPECIAL: dict[type, str] = {
    aes_math.Psi: "psi",
    aes_math.TriGamma: "trigamma",
    aes_math.Erfcx: "erfcx",
    aes_math.Erfinv: "erfinv",
    aes_math.Erfcinv: "erfcinv",
    aes_math.Owens_t: "owens_t",
    aes_math.Chi2SF: "chi2sf",
    aes_math.GammaInc: "gammainc",
    aes_math.GammaIncC: "gammaincc",
    aes_math.GammaU: "upper_gamma",
    aes_math.GammaL: "lower_gamma",
    aes_math.GammaIncDer: "gammainc_der",
    aes_math.GammaIncCDer: "gammaincc_der",
    aes_math.J0: "j0",
    aes_math.J1: "j1",
    aes_math.Jv: "jv",
    aes_math.I0: "i0",
    aes_math.I1: "i1",
    aes_math.Iv: "iv",
    aes_math.BetaInc: "betainc",
    aes_math.BetaIncDer: "betainc_der",
    aes_math.Hyp2F1: "hyp2f1",
    aes_math.Hyp2F1Der: "hyp2f1_der",
}


@register(*_SPECIAL)
def _special(op: ScalarOp, x: list[Operand], dtype: str, writer: Writer) -> str:
    if np.dtype(dtype).kind != "f" or any(v.kind == "c" for v in x):
        raise NoExpression(f"{op} of {dtype}")
    if isinstance(op, aes_math.Hyp2F1Der) and x[4].value not in (0, 1, 2):
        raise NoExpression("which derivative is not known")
    # Not before it is needed: SciPy's module takes a while.
    from fixed_modes.numba import scipy_functions, special_functions

    name = _SPECIAL.get(type(op), "gamma")
    home = special_functions if hasattr(special_functions, name) else scipy_functions
    function = writer.use_global(name, getattr(home, name))
    return closed(f"{function}({', '.join(v.to('float64') for v in x)})", dtype)
