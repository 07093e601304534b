"""The policy of crane-scheduler while a service runs: read again, never lost to a broken edit, and told once."""

from __future__ import annotations

from pathlib import Path

import pytest

from rebalancer.errors import PolicyError
from rebalancer.runtime.crane_source import CranePolicySource
from rebalancer.steer.crane_policy import DEFAULT

HEAD = "apiVersion: scheduler.policy.crane.io/v1alpha1\nkind: DynamicSchedulerPolicy\nspec:\n"
ONE = HEAD + "  syncPolicy: [{name: cpu_usage_avg_5m, period: 1m}]\n"
TWO = HEAD + "  syncPolicy: [{name: cpu_usage_avg_5m, period: 2m}]\n"
ODD = HEAD + "  predicate: [{name: cpu_usage_avg_5m, maxLimitPercent: 0.5}]\n  syncPolicy: [{name: cpu_usage_avg_5m, period: 2m}]\n"


def test_without_a_file_it_is_what_crane_scheduler_is_shipped_with() -> None:
    """And there is nothing to say of it."""
    source = CranePolicySource()
    assert (source.refresh(), source.current()) == ((), DEFAULT)


def test_a_file_that_is_not_valid_at_the_start_is_an_error(tmp_path: Path) -> None:
    """As our own policy is."""
    path = tmp_path / "crane.yaml"
    path.write_text(HEAD + "  hotValue: 3\n")
    with pytest.raises(PolicyError):
        CranePolicySource(path)


def test_an_edit_is_in_force_at_the_next_look_and_told_once(tmp_path: Path) -> None:
    """With what is odd in it."""
    path = tmp_path / "crane.yaml"
    path.write_text(ONE)
    source = CranePolicySource(path)
    assert source.refresh() == ()
    path.write_text(ODD)
    told = source.refresh()
    assert any("maxLimitPercent is read as maxLimitPecent" in words for words in told)
    assert f"{path} was read again" in told
    assert source.current().fresh_for_s("cpu_usage_avg_5m") == 420
    assert source.refresh() == ()


def test_a_broken_edit_keeps_the_last_good_one_and_is_told_once(tmp_path: Path) -> None:
    """Until it is mended, or broken in another way."""
    path = tmp_path / "crane.yaml"
    path.write_text(ONE)
    source = CranePolicySource(path)
    path.write_text(HEAD + "  syncPolicy: [{name: cpu_usage_avg_5m, period: soon}]\n")
    (told,) = source.refresh()
    assert told.startswith("the last good policy of crane-scheduler stays in force: ")
    assert source.refresh() == ()
    path.unlink()
    assert len(source.refresh()) == 1
    assert source.refresh() == ()
    assert source.current().fresh_for_s("cpu_usage_avg_5m") == 360
    path.write_text(TWO)
    assert source.refresh() == (f"{path} was read again",)
    assert source.current().fresh_for_s("cpu_usage_avg_5m") == 420
