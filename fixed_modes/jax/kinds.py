"""Which types of variables compiled code can hold."""

from __future__ import annotations

from typing import Any

from aesara.scalar.basic import ScalarType
from aesara.sparse.type import SparseTensorType
from aesara.tensor.random.type import RandomType
from aesara.tensor.type import TensorType
from aesara.tensor.type_other import NoneTypeT, SliceType


def is_array(kind: Any) -> bool:
    """Say whether the values of a type are dense arrays."""
    return isinstance(kind, TensorType) and not isinstance(kind, SparseTensorType)


def is_traceable(kind: Any) -> bool:
    """Say whether JAX can trace the values of a type."""
    return is_array(kind) or isinstance(kind, (ScalarType, RandomType))


def is_foreign(kind: Any) -> bool:
    """Say whether values of a type can't even be known while tracing: sparse ones, for example."""
    return not is_traceable(kind) and not isinstance(kind, (SliceType, NoneTypeT))
