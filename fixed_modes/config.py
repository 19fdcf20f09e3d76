"""The configuration variables of this package: Aesara config flags ``fixed_modes__...``.

`fixed_modes.startup` adds them while Aesara reads its configuration, so that
``AESARA_FLAGS`` and the section ``[fixed_modes]`` of ``.aesararc`` can set them
for a program that imports only Aesara.  ``aesara.config.change_flags`` and plain
assignment to ``aesara.config.fixed_modes__...`` work as for Aesara's own flags.
A value that a flag can't take is a `ValueError` that names the flag.
"""

from __future__ import annotations

import os
import re
from types import ModuleType
from typing import Any, Callable, NamedTuple, Union

PREFIX = "fixed_modes__"

_UNITS = {"": 1, "B": 1}
_UNITS.update({f"{letter}B": 1000**n for n, letter in enumerate("KMGT", 1)})
_UNITS.update({f"{letter}IB": 1024**n for n, letter in enumerate("KMGT", 1)})

OptionValue = Union[bool, int, float, str]


def as_bool(value: Any) -> bool:
    """Read a truth value as Aesara does.

    >>> as_bool("False"), as_bool(1)
    (False, True)
    """
    if isinstance(value, (bool, int, str)):
        if value in (False, 0, "false", "False", "0"):
            return False
        if value in (True, 1, "true", "True", "1"):
            return True
    raise ValueError("expected True or False")


def as_path(value: Any) -> str:
    """Make a path absolute; the empty string stays empty.

    >>> as_path("")
    ''
    """
    text = os.fspath(value)
    if not isinstance(text, str):
        raise ValueError("expected a path")
    return os.path.abspath(os.path.expanduser(text)) if text else ""


def as_size(value: Any) -> int:
    """Read a number of bytes, given as a number or with a unit.

    >>> as_size("1.5 GiB"), as_size("20MB"), as_size(4096)
    (1610612736, 20000000, 4096)
    """
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    found = re.fullmatch(r"\s*(\d+(?:\.\d*)?)\s*([a-zA-Z]*)\s*", str(value))
    if isinstance(value, bool) or found is None or found[2].upper() not in _UNITS:
        raise ValueError("expected a number of bytes, or one with a unit, such as 500MiB or 2GiB")
    if not found[2] and "." not in found[1]:
        return int(found[1])
    return int(float(found[1]) * _UNITS[found[2].upper()])


def as_count(value: Any) -> int:
    """Read a number that is at least one.

    >>> as_count("64")
    64
    """
    if isinstance(value, (int, str)) and not isinstance(value, bool):
        try:
            number = int(value)
        except ValueError:
            number = 0
        if number >= 1:
            return number
    raise ValueError("expected an integer of at least 1")


def as_options(value: Any) -> str:
    """Check compile options given as text; `compile_options` reads them."""
    if not isinstance(value, str):
        raise ValueError("expected text such as name=value,other=value")
    compile_options(value)
    return value


def compile_options(text: str) -> dict[str, OptionValue]:
    """Read compile options from ``name=value`` pairs with commas or blanks between them.

    Raises
    ------
    ValueError
        If a part of the text is no such pair.

    Examples
    --------
    >>> compile_options("xla_cpu_use_thunk_runtime=False, xla_backend_optimization_level=1")
    {'xla_cpu_use_thunk_runtime': False, 'xla_backend_optimization_level': 1}
    """
    options: dict[str, OptionValue] = {}
    for pair in re.split(r"[,;\s]+", text.strip()):
        if not pair:
            continue
        name, equals, value = pair.partition("=")
        if not (name.isidentifier() and equals and value):
            raise ValueError(f"expected name=value, with commas between several, not {pair!r}")
        options[name] = _option_value(value)
    return options


def _option_value(text: str) -> OptionValue:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


class Flag(NamedTuple):
    """A configuration variable.

    Attributes
    ----------
    name
        The name without the prefix.
    default
        The value if nobody sets it.
    read
        Makes the value from what the user gives, text or a Python object.
    kind
        What `aesara.config` shows as the kind of value.
    doc
        The text for `aesara.config`.
    """

    name: str
    default: Any
    read: Callable[[Any], Any]
    kind: str
    doc: str


FLAGS = (
    Flag(
        "cache",
        True,
        as_bool,
        "bool",
        "Keep compiled code on disk, for the next process that compiles the same graph.",
    ),
    Flag(
        "cache_dir",
        "",
        as_path,
        "path",
        "Directory of the compiled code. Empty: a directory in the user's cache directory.",
    ),
    Flag(
        "cache_size",
        2**30,
        as_size,
        "bytes, or a number with a unit such as GiB",
        "How large the directory of compiled code may become; what was used least recently goes.",
    ),
    Flag(
        "index_checks",
        True,
        as_bool,
        "bool",
        "Raise IndexError for indices out of bounds. False: such an index is undefined behaviour.",
    ),
    Flag(
        "jax_compile_options",
        "",
        as_options,
        "name=value, with commas between several",
        "XLA options for JAX_FIXED, besides those chosen for the JAX version. In AESARA_FLAGS "
        "put several in quotes, since commas separate flags there.",
    ),
    Flag(
        "strict",
        False,
        as_bool,
        "bool",
        "Raise an error where an op would otherwise run in Python with a warning.",
    ),
    Flag(
        "jax_variants",
        64,
        as_count,
        "int",
        "How many compiled variants of a function JAX_FIXED keeps where shapes depend on values.",
    ),
)


class _Reader:
    """Reads the values of one flag; its text is the kind of value, as `aesara.config` prints it."""

    def __init__(self, flag: Flag) -> None:
        self._flag = flag

    def __call__(self, value: Any) -> Any:
        try:
            return self._flag.read(value)
        except (TypeError, ValueError) as exc:
            raise ValueError(
                f"Invalid value ({value!r}) for configuration variable "
                f"'{PREFIX}{self._flag.name}': {exc}."
            ) from None

    def __repr__(self) -> str:
        return self._flag.kind


def add_flags(parser: Any, configparser: ModuleType, add: Callable[..., Any]) -> None:
    """Add the variables to Aesara's configuration, where it has not got them.

    Parameters
    ----------
    parser
        The `AesaraConfigParser` that is `aesara.config`.
    configparser
        The module ``aesara.configparser``.
    add
        `AesaraConfigParser.add`.

    Raises
    ------
    ValueError
        If ``AESARA_FLAGS`` or ``.aesararc`` gives one of them a bad value.
    """
    for flag in FLAGS:
        name = PREFIX + flag.name
        if not hasattr(type(parser), name):
            param = configparser.TypedParam(default=flag.default, apply=_Reader(flag))
            # No C code depends on them.
            add(parser, name, flag.doc, param, in_c_key=False)
