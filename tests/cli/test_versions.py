from __future__ import annotations

import pytest

from fixed_modes.cli.versions import REQUIREMENTS, find_versions, judge, release

NEEDS = {need.name: need for need in REQUIREMENTS}


@pytest.mark.parametrize(
    ("name", "version", "status"),
    [
        ("Python", "3.8.20", "unsupported"),
        ("Python", "3.9.0", "ok"),
        ("Python", "3.12.11+", "ok"),
        ("Python", "3.13.0rc1", "unsupported"),
        ("aesara", "2.9.2", "unsupported"),
        ("aesara", "2.9.3", "ok"),
        ("aesara", "2.10", "ok"),
        ("aesara", "3.0.0", "unsupported"),
        ("numpy", "1.26.4", "ok"),
        ("numpy", "2.0.0", "unsupported"),
        ("scipy", "1.12.0", "ok"),
        ("scipy", "1.13.0", "unsupported"),
        ("numba", "0.57.0", "unsupported"),
        ("numba", "0.57.1", "ok"),
        ("numba", "0.100", "ok"),
        ("jax", "0.4.9", "unsupported"),
        ("jax", "0.4.20", "ok"),
        ("jax", "0.6.2", "ok"),
        ("jax", "0.7.0", "slow"),
        ("jaxlib", "0.7.1", "slow"),
        ("jax", "0.7.2", "unsupported"),
        ("jaxlib", None, "missing"),
        ("llvmlite", "0.1", "ok"),
    ],
)
def test_versions_are_judged(name, version, status) -> None:
    assert judge(NEEDS[name], version) == status


@pytest.mark.parametrize(
    ("version", "numbers"),
    [("2", (2, 0, 0)), ("0.4.20.dev3", (0, 4, 20)), ("1.2.3.4", (1, 2, 3, 4)), ("?", (0, 0, 0))],
)
def test_release_numbers_are_read_from_a_version(version, numbers) -> None:
    assert release(version) == numbers


def test_what_is_installed_is_found_without_importing_it() -> None:
    import numba
    import numpy

    found = {each.name: each.version for each in find_versions()}
    assert list(found) == list(NEEDS)
    assert found["numba"] == numba.__version__
    assert found["numpy"] == numpy.__version__
