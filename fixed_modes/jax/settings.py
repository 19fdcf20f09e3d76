"""What the configuration flags say, as it stands when a function is built."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from aesara import config

from fixed_modes.config import OptionValue, compile_options


@dataclass(frozen=True)
class Settings:
    """The flags ``fixed_modes__...`` that a compiled function depends on.

    A function is traced at its first call and again for arguments of another
    shape; the flags count as they were when it was built.

    Attributes
    ----------
    index_checks
        Whether traced indices out of bounds raise.
    strict
        Whether what would run in Python raises instead.
    compile_options
        XLA options besides those chosen for the JAX version.
    max_variants
        How many compiled variants are kept, see `fixed_modes.jax.variants`.
    windows
        Whether ``x[i:i+3]`` in a loop is taken to be within `x`, until it is not.
    """

    index_checks: bool = True
    strict: bool = False
    compile_options: Mapping[str, OptionValue] = field(default_factory=dict)
    max_variants: int = 64
    windows: bool = True

    @classmethod
    def from_flags(cls) -> Settings:
        """Read Aesara's configuration."""
        return cls(
            index_checks=config.fixed_modes__index_checks,
            strict=config.fixed_modes__strict,
            compile_options=compile_options(config.fixed_modes__jax_compile_options),
            max_variants=config.fixed_modes__jax_variants,
        )
