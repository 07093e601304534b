"""crane-scheduler's policy file, as it is and as it is miswritten."""

from __future__ import annotations

import pytest

from rebalancer.errors import PolicyError
from rebalancer.steer.crane_policy import DEFAULT, go_duration, parse_crane_policy
from rebalancer.steer.load_annotations import SERIES

HEAD = "apiVersion: scheduler.policy.crane.io/v1alpha1\nkind: DynamicSchedulerPolicy\n"
SHIPPED = (
    HEAD
    + """spec:
  syncPolicy:
    - {name: cpu_usage_avg_5m, period: 3m}
    - {name: cpu_usage_max_avg_1h, period: 15m}
    - {name: cpu_usage_max_avg_1d, period: 3h}
    - {name: mem_usage_avg_5m, period: 3m}
    - {name: mem_usage_max_avg_1h, period: 15m}
    - {name: mem_usage_max_avg_1d, period: 3h}
  predicate:
    - {name: cpu_usage_avg_5m, maxLimitPecent: 0.65}
    - {name: cpu_usage_max_avg_1h, maxLimitPecent: 0.75}
    - {name: mem_usage_avg_5m, maxLimitPecent: 0.65}
    - {name: mem_usage_max_avg_1h, maxLimitPecent: 0.75}
  priority:
    - {name: cpu_usage_avg_5m, weight: 0.2}
    - {name: cpu_usage_max_avg_1h, weight: 0.3}
    - {name: cpu_usage_max_avg_1d, weight: 0.5}
    - {name: mem_usage_avg_5m, weight: 0.2}
    - {name: mem_usage_max_avg_1h, weight: 0.3}
    - {name: mem_usage_max_avg_1d, weight: 0.5}
  hotValue:
    - {timeRange: 5m, count: 5}
    - {timeRange: 1m, count: 2}
"""
)


def read(text: str):  # type: ignore[no-untyped-def]
    return parse_crane_policy(text, origin="policy.yaml")


def test_the_shipped_file_is_the_default_and_there_is_nothing_to_say() -> None:
    """What crane-scheduler ships is read as it is."""
    assert read(SHIPPED) == DEFAULT


def test_values_are_fresh_for_their_period_and_five_minutes() -> None:
    """8 minutes, 20 minutes, 3 hours and 5 minutes; a series without a period is never fresh."""
    assert [DEFAULT.fresh_for_s(name) for name in SERIES[:3]] == [480, 1200, 11100]
    assert DEFAULT.fresh_for_s("other") == 0


def test_the_limit_spelt_right_is_read_and_said() -> None:
    """The format's own key is misspelt; who writes it right means the same."""
    policy = read(SHIPPED.replace("maxLimitPecent: 0.65", "maxLimitPercent: 0.65"))
    assert policy.spec == DEFAULT.spec
    assert len(policy.notes) == 1
    assert "maxLimitPercent is read as maxLimitPecent" in policy.notes[0]


def test_both_spellings_at_once_are_a_mistake_with_its_line() -> None:
    """Nobody can know which was meant."""
    with pytest.raises(PolicyError, match=r"line 12, spec\.predicate\[0\]\.maxLimitPercent: the limit is written twice"):
        read(SHIPPED.replace("maxLimitPecent: 0.65}", "maxLimitPecent: 0.65, maxLimitPercent: 0.7}", 1))


def test_a_series_of_another_name_is_read_and_said_once() -> None:
    """Somebody else may write it; the nearest known one is named."""
    policy = read(SHIPPED.replace("cpu_usage_avg_5m", "cpu_usage_avg_5min"))
    assert policy.spec.predicate[0].name == "cpu_usage_avg_5min"
    assert [note for note in policy.notes if "did you mean cpu_usage_avg_5m?" in note] == list(policy.notes)
    assert len(policy.notes) == 1


def test_a_series_without_a_period_is_ignored_and_said() -> None:
    """As crane-scheduler does, which says nothing."""
    policy = read(SHIPPED.replace("    - {name: mem_usage_max_avg_1d, period: 3h}\n", ""))
    assert any("mem_usage_max_avg_1d is ignored" in note for note in policy.notes)


def test_a_limit_in_percent_is_said() -> None:
    """65 would never be reached."""
    assert any("0.65 is 65 %" in note for note in read(SHIPPED.replace("0.65", "65", 1)).notes)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("hotValue:", "hotValues:", "did you mean hotValue?"),
        ("weight: 0.2", "wieght: 0.2", "did you mean weight?"),
        ("count: 5", "count: 0", "at least 1"),
        ("weight: 0.2", "weight: -1", "at least 0"),
        ("period: 3m", "period: 3", "is not a duration"),
        ("DynamicSchedulerPolicy", "RebalancePolicy", "must be DynamicSchedulerPolicy"),
    ],
)
def test_what_the_format_does_not_have_is_refused_with_a_sentence(old: str, new: str, told: str) -> None:
    """Decoding is strict, as in crane-scheduler."""
    with pytest.raises(PolicyError) as caught:
        read(SHIPPED.replace(old, new, 1))
    assert told in " ".join((str(caught.value), *caught.value.mistakes))


def test_durations_are_gos() -> None:
    """Fractions and several units; no days, no bare number."""
    assert [go_duration(text) for text in ("3m", "1h30m", "1.5h", "0", "250ms")] == [180, 5400, 5400, 0, 0.25]
    for text in ("1d", "5", "", "-3m", "m", None, 3):
        with pytest.raises(ValueError, match="is not a duration"):
            go_duration(text)
