"""The field types of policy files."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalancer.policy.model import RebalancePolicy, built_in_policy
from rebalancer.policy.quantities import limit_of, write_duration
from rebalancer.units import parse_duration


@given(st.integers(min_value=0, max_value=10**12))
def test_a_written_duration_is_read_back_exactly(microseconds: int) -> None:
    """What is written into a file means what it meant in memory."""
    seconds = microseconds / 1_000_000
    assert parse_duration(write_duration(seconds)) == pytest.approx(seconds, abs=1e-6)


@pytest.mark.parametrize(("seconds", "text"), [(0, "0s"), (90, "1m30s"), (0.25, "0.25s"), (21600, "6h"), (90061.5, "1d1h1m1.5s")])
def test_durations_are_written_in_the_shortest_form(seconds: float, text: str) -> None:
    """One form for each duration."""
    assert write_duration(seconds) == text


@pytest.mark.parametrize(
    ("limit", "of", "allowed"), [(5, 3, 5), ("10%", 3, 1), ("0%", 100, 0), ("50%", 5, 2), ("100%", 7, 7), ("10%", 0, 1), ("29%", 100, 29)]
)
def test_a_percentage_is_rounded_down_but_never_to_nothing(limit: int | str, of: int, allowed: int) -> None:
    """A small share of few pods is still one pod; no share is none."""
    assert limit_of(limit, of) == allowed


def test_a_policy_survives_writing_and_reading() -> None:
    """The JSON of a policy is the policy."""
    policy = built_in_policy(interval=61.5)
    assert RebalancePolicy.model_validate_json(policy.model_dump_json(by_alias=True)) == policy
