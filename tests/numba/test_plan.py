"""What is worked out before the compiled code runs."""

from __future__ import annotations

import numpy as np
import pytest

from fixed_modes.numba.plan import NotKnown, Plan


def test_a_replay_gives_the_parameters_of_another_call() -> None:
    plan = Plan([np.ones((3, 4)), np.array(5)])
    rows, steps = plan.length(0, 0), plan.scalar(1)
    assert rows is not None
    assert steps is not None
    last = plan.apply("{} - {}", plan.apply("{} * {}", rows, steps), plan.constant(1))
    assert last.value == 14
    assert plan.parameter(last) == 0
    assert plan.parameter(steps) == 1
    assert plan.parameter(last) == 0
    replay = plan.replay(2)
    assert list(replay.parameters([np.ones((2, 9)), np.array(7)])) == [13, 7]
    assert list(replay.parameters([np.ones((3, 4)), np.array(5)])) == [14, 5]


def test_another_decision_needs_another_variant() -> None:
    plan = Plan([np.ones(3), np.ones(3)])
    one, other = plan.length(0, 0), plan.length(1, 0)
    assert one is not None
    assert other is not None
    assert plan.equal(one, other)
    assert not plan.decide("{} == 1", one)
    plan.parameter(one)
    replay = plan.replay(2)
    assert list(replay.parameters([np.ones(6), np.ones(6)])) == [6]
    assert replay.parameters([np.ones(6), np.ones(5)]) is None
    assert replay.parameters([np.ones(1), np.ones(1)]) is None


def test_decisions_on_constants_hold_for_every_call() -> None:
    plan = Plan()
    assert plan.length(0, 0) is None
    assert plan.decide("{} < {}", plan.constant(2), plan.constant(3))
    assert list(plan.replay(1).parameters([np.ones(9)])) == []


def test_what_has_no_value_is_not_known() -> None:
    plan = Plan([np.array(0), np.array(2**61), np.array(2**63 - 1)])
    zero, large = plan.scalar(0), plan.scalar(1)
    assert zero is not None
    assert large is not None
    assert plan.scalar(2) is None
    with pytest.raises(NotKnown):
        plan.apply("{} // {}", large, zero)
    with pytest.raises(NotKnown):
        plan.apply("{} * {}", large, plan.constant(4))


def test_a_value_that_leaves_the_range_at_a_later_call_needs_another_variant() -> None:
    plan = Plan([np.array(3)])
    n = plan.scalar(0)
    assert n is not None
    plan.parameter(plan.apply("{} - {}", plan.apply("{} * {}", n, n), n))
    replay = plan.replay(1)
    assert list(replay.parameters([np.array(4)])) == [12]
    assert replay.parameters([np.array(2**40)]) is None


def test_equal_expressions_are_worked_out_once() -> None:
    plan = Plan([np.ones(4)])
    n = plan.length(0, 0)
    assert n is not None
    assert plan.apply("{} + {}", n, plan.constant(1)) is plan.apply("{} + {}", n, plan.constant(1))
    assert plan.apply("{} + {}", n, plan.constant(0)) is n
    assert plan.apply("{} * {}", plan.constant(1), n) is n
    assert plan.apply("max({}, {})", n, n) is n
