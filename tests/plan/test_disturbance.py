"""What an eviction disturbs: more for work that is lost, for small workloads, for high priorities."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalancer.plan.disturbance import Disturbance
from rebalancer.policy.model import ClassRules, Gain, Spec, Victims
from rebalancer.state.cluster import ClusterState
from rebalancer.state.history import NOTHING_HAPPENED, History
from rebalancer.state.tables import PodClass, WorkloadRef
from tests.plan.deciding import moved, planned, why
from tests.support.builder import PodSpec, cluster, node, pod, workload

GIB = 2.0**30


def hot(*pods: PodSpec, replicas: dict[str, int] | None = None) -> ClusterState:
    """A node at 80 % with the pods, a cool one beside it."""
    names = dict.fromkeys(str(p.workload) for p in pods)
    return cluster(
        nodes=[node("hot", cpu=10, load={"cpu": 0.8, "memory": 0.2}), node("cool", cpu=10, load={"cpu": 0.1, "memory": 0.1})],
        pods=pods,
        workloads=[workload(name, replicas=(replicas or {}).get(name, 10)) for name in names],
    )


def busy(
    name: str, *, of: str = "", cpu: float = 2.6, priority: int = 0, pod_class: PodClass = PodClass.SERVING, start_s: float = math.nan
) -> PodSpec:
    uses = {"cpu": cpu, "memory": GIB}
    return pod(name, on="hot", workload=of or name, cpu=0.5, uses=uses, priority=priority, pod_class=pod_class, ready_after_s=start_s)


def weights(state: ClusterState, history: History = NOTHING_HAPPENED, gain: Gain | None = None) -> list[float]:
    return Disturbance(state, history, gain or Gain()).weights(np.arange(len(state.pods.names))).tolist()


def test_the_weight_grows_with_the_share_of_the_workload_that_is_away() -> None:
    """One of twenty, one of two, the only one."""
    state = hot(busy("a"), busy("b"), busy("c"), replicas={"a": 20, "b": 2, "c": 1})
    assert weights(state) == pytest.approx([1.1, 2.0, 3.0])


def test_the_weight_grows_with_what_is_lost_and_with_the_priority() -> None:
    """A training run four times, the highest priority twice."""
    state = hot(busy("a"), busy("b", pod_class=PodClass.TRAINING), busy("c", priority=1_000_000_000))
    assert weights(state) == pytest.approx([1.2, 4.8, 2.4])


@pytest.mark.parametrize("first", ["big", "small"])
def test_of_two_pods_alike_in_size_the_one_that_disturbs_less_goes(first: str) -> None:
    """One of twelve replicas before one of two, whatever they are called."""
    other = {"big": "small", "small": "big"}[first]
    state = hot(busy("big"), busy("small"), replicas={first: 12, other: 2})
    assert moved(planned(state)) == [first]


def test_a_move_has_to_win_more_where_it_disturbs_more() -> None:
    """The same gain is enough for a batch pod and too little for a training run that may move."""
    spec = Spec(gain=Gain(disruption_cost=0.03), victims=Victims(classes=ClassRules(training="allow")))
    assert moved(planned(hot(busy("a", pod_class=PodClass.BATCH)), spec)) == ["a"]
    plan = planned(hot(busy("a", pod_class=PodClass.TRAINING)), spec)
    assert moved(plan) == []
    assert "gain.disruptionCost 0.03 times 4.8 for what its eviction disturbs is 0.1440" in why(plan, "a")


def landed(name: str, seconds: float) -> History:
    return History(start_up={WorkloadRef("Deployment", "default", name): seconds})


def test_the_weight_grows_with_how_long_the_share_is_away() -> None:
    """One of two: a minute, five of them, an hour, which counts as ten; and nothing known."""
    state = hot(busy("a", start_s=60), busy("b", start_s=300), busy("c", start_s=3600), busy("d"), replicas=dict.fromkeys("abcd", 2))
    assert weights(state) == pytest.approx([2.0, 6.0, 11.0, 2.0])


def test_a_start_that_is_shorter_than_the_ordinary_one_counts_as_that() -> None:
    """An eviction disturbs, however quick the start."""
    state = hot(busy("a", start_s=2), replicas={"a": 1})
    assert weights(state) == pytest.approx([3.0])
    assert weights(state, gain=Gain(start_up=1)) == pytest.approx([5.0])


def test_no_time_is_looked_at_where_the_policy_says_so() -> None:
    """gain.startUp 0s."""
    assert weights(hot(busy("a", start_s=3600), replicas={"a": 1}), gain=Gain(start_up=0)) == pytest.approx([3.0])


def test_the_time_of_a_workload_is_the_median_of_its_pods() -> None:
    """One that was unready for an hour for another reason does not count for the others, nor one of which nothing is known."""
    times = [math.nan, 120.0, 130.0, 3600.0]
    state = hot(*(busy(f"p{row}", of="web", start_s=time) for row, time in enumerate(times)), replicas={"web": 4})
    assert Disturbance(state, NOTHING_HAPPENED, Gain()).start_up_s.tolist() == [130.0]


def test_what_replacements_took_says_more_than_what_pods_took() -> None:
    """It holds the wait for a node and for the image as well."""
    state = hot(busy("a", start_s=30), busy("b"), replicas={"a": 2, "b": 2})
    assert weights(state, landed("a", 240.0)) == pytest.approx([5.0, 2.0])
    assert weights(state, landed("gone", 240.0)) == pytest.approx([2.0, 2.0])


@pytest.mark.parametrize("slow", ["big", "small"])
def test_of_two_pods_alike_the_one_that_starts_sooner_goes(slow: str) -> None:
    """Whatever they are called."""
    quick = {"big": "small", "small": "big"}[slow]
    state = hot(*(busy(name, start_s=600.0 if name == slow else 5.0) for name in ("big", "small")))
    assert moved(planned(state)) == [quick]


def test_a_long_start_is_named_where_it_makes_a_move_too_dear() -> None:
    """With both times, so that somebody can disagree."""
    spec = Spec(gain=Gain(disruption_cost=0.03))
    assert moved(planned(hot(busy("a")), spec)) == ["a"]
    plan = planned(hot(busy("a", start_s=600)), spec)
    assert moved(plan) == []
    assert why(plan, "a").endswith("(Deployment default/a takes 10m to become Ready, gain.startUp is 1m)")


@given(
    start_s=st.one_of(st.just(math.nan), st.floats(min_value=0, max_value=1e9)),
    priority=st.integers(min_value=-(2**31), max_value=2**31 - 1),
    replicas=st.one_of(st.just(float("nan")), st.integers(min_value=0, max_value=10_000)),
    pod_class=st.sampled_from(PodClass),
)
def test_every_weight_is_finite_and_at_least_one(start_s: float, priority: int, replicas: float, pod_class: PodClass) -> None:
    """Whatever is known of the pod."""
    state = cluster(
        nodes=[node("hot")],
        pods=[busy("a", priority=priority, pod_class=pod_class, start_s=start_s), pod("bare", on="hot", workload=None)],
        workloads=[workload("a", replicas=replicas)],
    )
    found = weights(state)
    assert all(1.0 <= weight < 200.0 for weight in found)
