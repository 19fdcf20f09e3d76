"""What counts as the same result."""

from __future__ import annotations

import numpy as np

from benchmarks.agreement import difference, difference_of_moments


def test_a_difference_is_measured_by_the_largest_number():
    expected = [np.array([1e-9, 1.0])]
    assert difference([np.array([2e-9, 1.0])], expected, 1e-8) == ""
    assert (
        difference([np.array([1e-9, 1.1])], expected, 1e-8) == "output 0 is off by 0.1 at a scale 1"
    )
    assert difference([np.array([np.nan, 1.0])], expected, 1e-8) != ""


def test_number_shape_and_dtype_of_outputs_count():
    expected = [np.zeros(2)]
    assert difference([], expected, 1.0) == "0 outputs instead of 1"
    assert "shape" in difference([np.zeros((2, 1))], expected, 1.0)
    assert "dtype" in difference([np.zeros(2, "float32")], expected, 1.0)


def test_other_draws_of_a_distribution_agree_by_their_moments():
    one, two = (np.random.default_rng(seed).normal(size=(10_000, 2)) for seed in (1, 2))
    assert difference([one], [two], 1e-9) != ""
    assert difference_of_moments([one], [two], 0.1) == ""
    assert "mean of output 0" in difference_of_moments([one + np.array([0.0, 0.5])], [two], 0.1)
    assert "standard deviation of output 0" in difference_of_moments([2.0 * one], [two], 0.1)
    assert "mean" in difference_of_moments([one * np.nan], [two], 0.1)
    assert "shape" in difference_of_moments([one[1:]], [two], 0.1)
