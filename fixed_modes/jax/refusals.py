"""Parameters of random variables that NumPy refuses."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np
from aesara.tensor.random import basic as aer
from aesara.tensor.random.op import RandomVariable

from fixed_modes.jax.frame import Frame, is_concrete

#: For each distribution the position and NumPy's name of what must not be negative.
NOT_NEGATIVE: dict[type, tuple[int, str]] = {
    aer.NormalRV: (1, "scale"),
    aer.LogNormalRV: (1, "sigma"),
    aer.LaplaceRV: (1, "scale"),
    aer.LogisticRV: (1, "scale"),
    aer.ExponentialRV: (0, "scale"),
    aer.RayleighRV: (0, "scale"),
    aer.WeibullRV: (0, "a"),
    aer.VonMisesRV: (1, "kappa"),
}


def refuse_parameters(op: RandomVariable, parameters: list[Any], frame: Frame) -> None:
    """See to it that a draw with a negative scale raises `ValueError` after the run.

    Known parameters too: the draw may stand in a branch that isn't taken.
    """
    if type(op) in NOT_NEGATIVE:
        position, name = NOT_NEGATIVE[type(op)]
        value = parameters[position]
        if is_concrete(value) and not np.any(np.signbit(np.asarray(value, "float64"))):
            return
        value = jnp.asarray(value).astype("float64")
        # Like NumPy, which also refuses -0.0 but not nan.
        failed = (jnp.signbit(value) & ~jnp.isnan(value)).any()
        frame.checks.add(failed, partial(ValueError, f"{name} < 0"))
