from __future__ import annotations

import pytest
from aesara.configparser import parse_config_string

from fixed_modes.cli.flags import with_mode


@pytest.mark.parametrize(
    ("flags", "others"),
    [
        ("", {}),
        ("mode=FAST_RUN", {}),
        ("floatX=float32", {"floatX": "float32"}),
        ("mode=JAX,floatX=float32,mode=NUMBA", {"floatX": "float32"}),
        (" mode=JAX , floatX=float32,", {"floatX": "float32"}),
        ("linker=vm,mode=JAX", {"linker": "vm"}),
        ("mode__x=1,blas__ldflags=-lmode=2", {"mode__x": "1", "blas__ldflags": "-lmode=2"}),
        ("gcc__cxxflags='-a,mode=b',mode=JAX", {"gcc__cxxflags": "-a,mode=b"}),
        ('"mode=JAX",compiledir="a,b"', {"compiledir": "a,b"}),
        ("a=1\\,mode=2", {"a": "1,mode=2"}),
    ],
)
def test_aesara_reads_the_mode_and_every_other_flag(flags: str, others: dict[str, str]) -> None:
    read = parse_config_string(with_mode(flags, "JAX_FIXED"))
    assert read == {**others, "mode": "JAX_FIXED"}


def test_a_quote_that_is_not_closed_is_left_for_aesara_to_complain_about() -> None:
    with pytest.raises(ValueError, match="No closing quotation"):
        parse_config_string(with_mode('compiledir="a,b', "JAX_FIXED"))
