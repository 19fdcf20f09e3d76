"""Imports for ``JAX_FIXED``."""

import aesara.link.jax.dispatch  # noqa: F401
import jax  # noqa: F401

import fixed_modes.jax.compiled  # noqa: F401
