"""Unknown is not zero: what is not measured, or too young to be, does not move."""

from __future__ import annotations

import numpy as np
import pytest

from rebalancer.guard.gate import Booked, Scene
from rebalancer.policy.model import Pool, SignalQueries, Threshold, Victims, built_in_policy
from rebalancer.policy.quantities import LabelSelector
from rebalancer.state.history import NOTHING_HAPPENED
from tests.guard.scenes import USES, ask, measured, reason, scene_of, state_with
from tests.support.builder import CPU, node

MARKS = Threshold(low=10, target=50, high=80)


@pytest.mark.parametrize(
    ("uses", "words"),
    [
        ({}, "its cpu and memory usage is unknown"),
        ({"cpu": 1.0}, "its memory usage is unknown"),
        ({"cpu": np.nan, "memory": 1.0}, "its cpu usage is unknown"),
        ({"cpu": np.inf, "memory": 1.0}, "its cpu usage is unknown"),
    ],
)
def test_v4_a_pod_of_unknown_usage_is_refused(uses: dict[str, float], words: str) -> None:
    """One unknown judged signal is enough, and the sentence names it."""
    refusal = ask("unknown-usage", scene_of(state_with(measured("web-0", uses=uses))))
    assert refusal is not None
    assert refusal.reason == words
    assert refusal.retryable


def test_a_pod_that_is_only_estimated_is_refused_with_its_age() -> None:
    """An estimate keeps a node cool; it evicts nobody."""
    state = state_with(measured("web-0", estimated=["cpu"], age_s=90))
    assert reason("unknown-usage", scene_of(state)) == "its cpu usage is an estimate: it is 1m30s old and not measured yet"


def test_a_measured_pod_passes_and_zero_is_a_measurement() -> None:
    """An idle pod is known to be idle."""
    assert ask("unknown-usage", scene_of(state_with(measured("web-0")))) is None
    assert ask("unknown-usage", scene_of(state_with(measured("web-0", uses={"cpu": 0.0, "memory": 0.0})))) is None


def test_a_signal_that_the_pool_does_not_judge_may_be_unknown() -> None:
    """A pod in a pool that is judged by cpu alone needs no memory sample; one in the other pool does."""
    pools = (
        Pool(name="cpu-only", node_selector=LabelSelector(match_labels={"pool": "a"}), signals={"cpu": MARKS}),
        Pool(name="rest", signals={"cpu": MARKS, "memory": MARKS}),
    )
    state = state_with(
        measured("a", on="hot", uses={"cpu": 1.0}),
        measured("b", on="cool", uses={"cpu": 1.0}),
        nodes=(node("hot", labels={"pool": "a"}), node("cool")),
    )
    scene = scene_of(state, pools=pools)
    assert ask("unknown-usage", scene, 0) is None
    assert reason("unknown-usage", scene, 1) == "its memory usage is unknown"


def test_on_a_node_that_no_pool_claims_every_judged_signal_is_asked_for() -> None:
    """No pool is no excuse for not knowing."""
    pools = (Pool(name="a", node_selector=LabelSelector(match_labels={"pool": "a"}), signals={"cpu": MARKS, "memory": MARKS}),)
    scene = scene_of(state_with(measured("web-0", uses={"cpu": 1.0})), pools=pools)
    assert reason("unknown-usage", scene) == "its memory usage is unknown"


def test_what_detection_judged_is_taken_over_when_it_is_given() -> None:
    """The findings' table of judged signals replaces the one that the scene would work out."""
    state = state_with(measured("web-0", uses={"cpu": 1.0}))
    judged = np.array([[True, False], [True, True]])
    scene = Scene(state=state, spec=built_in_policy().spec, history=NOTHING_HAPPENED, booked=Booked(), judged=judged)
    assert ask("unknown-usage", scene) is None


def test_a_judged_signal_that_was_not_read_at_all_refuses_everybody() -> None:
    """A column that is missing from the state is as unknown as a NaN in it."""
    own = SignalQueries(name="network", unit="B/s", node_query="n", pod_query="p", capacity={"value": 1e9})
    pools = (Pool(name="all", signals={"cpu": MARKS, "network": MARKS}),)
    state = state_with(measured("web-0", uses={"cpu": 1.0}), signals=(CPU,))
    scene = scene_of(state, pools=pools, signals=(own,))
    assert reason("unknown-usage", scene) == "signal network is judged by the policy and was not read at all"


@pytest.mark.parametrize(("age", "words"), [(599.0, "it started 9m59s ago, less than 10m (policy victims.minAge)"), (600.0, None)])
def test_a_pod_younger_than_the_minimum_age_is_refused(age: float, words: str | None) -> None:
    """The minimum itself is old enough."""
    refusal = ask("minimum-age", scene_of(state_with(measured("web-0", age_s=age))))
    assert (refusal.reason if refusal else None) == words


def test_a_pod_whose_start_is_unknown_is_refused() -> None:
    """An unknown age is not an old age, even when no age is asked for."""
    state = state_with(measured("web-0"))
    state.pods.started_at[0] = np.nan
    scene = scene_of(state, victims=Victims(min_age=0))
    assert reason("minimum-age", scene) == "when it started is not known"


def test_a_pod_that_starts_in_the_future_is_young() -> None:
    """Clocks that disagree do not make a pod old."""
    assert reason("minimum-age", scene_of(state_with(measured("web-0", age_s=-30, uses=USES)))).startswith("it started 0s ago")
