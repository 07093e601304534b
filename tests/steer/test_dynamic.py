"""The worked vectors of the Dynamic-Scheduler, where its text and its code differ, and what holds for every input."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from rebalancer.steer.crane_policy import DEFAULT, parse_crane_policy
from rebalancer.steer.dynamic import (
    HotReading,
    Missing,
    binding_counts,
    dynamic_scores,
    hot_in_force,
    hot_values,
    over_limit,
    usage_in_force,
)
from rebalancer.steer.load_annotations import SERIES, format_load, read_nodes
from tests.steer.kit import NOW, REAL_NODE, SHANGHAI, crane

RULES = DEFAULT.spec.hot_value


def judged(annotations: dict[str, str], *, missing: Missing = Missing.LOW) -> tuple[list[str], int]:
    """(series over their limit, score) of one node."""
    loads = read_nodes([annotations], zone=SHANGHAI)
    usage = usage_in_force(DEFAULT, loads, now=NOW)
    over = over_limit(DEFAULT, usage, loads.names)[0]
    names = [rule.name for rule, hit in zip(DEFAULT.spec.predicate, over, strict=True) if hit]
    return names, int(dynamic_scores(DEFAULT, usage, loads.names, hot=hot_in_force(loads, now=NOW), missing=missing)[0])


@pytest.mark.parametrize(
    ("annotations", "over", "score"),
    [
        pytest.param(crane(*[0.0] * 6), [], 100, id="idle"),
        pytest.param(crane(*[0.5] * 6, hot=1), [], 40, id="half, hot 1"),
        pytest.param(crane(*REAL_NODE), ["cpu_usage_max_avg_1h", "mem_usage_avg_5m"], 27, id="real node"),
        pytest.param(crane(*REAL_NODE, hot=3), ["cpu_usage_max_avg_1h", "mem_usage_avg_5m"], 0, id="real node, hot 3"),
        pytest.param(crane(0.65, 0, 0, 0, 0, 0), [], 93, id="at the limit"),
        pytest.param(crane(0.65001, 0, 0, 0, 0, 0), ["cpu_usage_avg_5m"], 93, id="over the limit"),
        pytest.param(crane(*[0.25] * 6), [], 75, id="all present"),
        pytest.param({**crane(*[0.25] * 6), SERIES[2]: str(format_load(0.25, at=NOW - 11100, zone=SHANGHAI))}, [], 56, id="one stale"),
        pytest.param({**crane(*[0.0] * 6), SERIES[0]: "0.5, 2026-01-02T11:04:05Z"}, [], 90, id="a space"),
        pytest.param({**crane(*[0.0] * 6), SERIES[0]: "0.5"}, [], 90, id="one part"),
        pytest.param({**crane(*[0.0] * 6), SERIES[0]: "-0.10000,2026-01-02T11:04:05Z"}, [], 90, id="negative"),
        pytest.param({}, [], 0, id="nothing known passes the filter and fails low"),
    ],
)
def test_worked_vectors(annotations: dict[str, str], over: list[str], score: int) -> None:
    """Filter and score of the contract."""
    assert judged(annotations) == (over, score)


def test_missing_weights_can_be_left_out() -> None:
    """A node is then judged by what is known of it, and scores half when nothing is."""
    stale = {**crane(*[0.25] * 6), SERIES[2]: "x"}
    assert judged(stale, missing=Missing.NEUTRAL) == ([], 75)
    assert judged({}, missing=Missing.NEUTRAL) == ([], 50)


def counts(*ages_s: float) -> np.ndarray:
    at = NOW - np.array(ages_s, dtype=np.float64)
    return binding_counts(RULES, node=np.zeros(len(at), dtype=np.int64), bound_at=at, nodes=2, now=NOW)


def test_five_bindings_in_the_last_minute_make_three() -> None:
    """5 // 5 + 5 // 2, on that node alone."""
    assert hot_values(RULES, counts(1, 2, 3, 4, 5)).tolist() == [3, 0]


@pytest.mark.parametrize(
    ("bindings", "by_code", "by_text"),
    [(1, 0, 0), (2, 1, 0), (3, 1, 1), (4, 2, 1), (5, 3, 1), (6, 4, 2), (30, 21, 2)],
)
def test_text_and_code_of_the_original_differ_and_a_parameter_chooses(bindings: int, by_code: int, by_text: int) -> None:
    """The code counts at each multiple, the text once there are more."""
    found = counts(*range(1, bindings + 1))
    assert hot_values(RULES, found).tolist()[0] == by_code
    assert hot_values(RULES, found, reading=HotReading.PRODUCT_TEXT).tolist()[0] == by_text


def test_bindings_leave_their_time_range() -> None:
    """Those of exactly its age no longer count."""
    assert counts(59, 60, 299, 300).tolist() == [[3, 1], [0, 0]]


def test_only_the_latest_bindings_of_the_cluster_are_remembered() -> None:
    """As the heap of the original, which drops the oldest."""
    node = np.array([0, 0, 1, 1])
    at = NOW - np.array([4.0, 3.0, 2.0, 1.0])
    assert binding_counts(RULES, node=node, bound_at=at, nodes=2, now=NOW, remembered=3)[:, 0].tolist() == [1, 2]


USAGE = arrays(np.float64, (4, 6), elements=st.floats(0, 1e300) | st.just(math.nan) | st.just(math.inf))
HOT = arrays(np.float64, 4, elements=st.floats(0, 1e300))


@given(USAGE, HOT, st.sampled_from(Missing))
def test_scores_are_in_range_for_every_input(usage: np.ndarray, hot: np.ndarray, missing: Missing) -> None:
    """0 to 100, whatever the annotations say."""
    found = dynamic_scores(DEFAULT, usage, SERIES, hot=hot, missing=missing)
    assert found.dtype == np.int64
    assert ((found >= 0) & (found <= 100)).all()


@given(USAGE)
def test_the_unknown_is_never_over_a_limit(usage: np.ndarray) -> None:
    """The filter fails open, series by series."""
    over = over_limit(DEFAULT, usage, SERIES)
    for column, rule in enumerate(DEFAULT.spec.predicate):
        assert not over[np.isnan(usage[:, SERIES.index(rule.name)]), column].any()


def test_an_empty_policy_refuses_and_prefers_nobody() -> None:
    """No division by a weight of nothing."""
    text = "apiVersion: scheduler.policy.crane.io/v1alpha1\nkind: DynamicSchedulerPolicy\nspec: {}\n"
    policy = parse_crane_policy(text, origin="p")
    usage = np.full((3, 6), 0.9)
    assert dynamic_scores(policy, usage, SERIES, hot=np.zeros(3)).tolist() == [0, 0, 0]
    assert not over_limit(policy, usage, SERIES).any()
    assert hot_values(policy.spec.hot_value, np.zeros((3, 0), dtype=np.int64)).tolist() == [0, 0, 0]
