"""What an eviction disturbs: more for work that is lost, for small workloads, for high priorities."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalancer.plan.disturbance import disturbance
from rebalancer.policy.model import ClassRules, Gain, Spec, Victims
from rebalancer.state.cluster import ClusterState
from rebalancer.state.tables import PodClass
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


def busy(name: str, *, cpu: float = 2.6, priority: int = 0, pod_class: PodClass = PodClass.SERVING) -> PodSpec:
    return pod(name, on="hot", workload=name, cpu=0.5, uses={"cpu": cpu, "memory": GIB}, priority=priority, pod_class=pod_class)


def weights(state: ClusterState) -> list[float]:
    return disturbance(state, np.arange(len(state.pods.names))).tolist()


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


@given(
    priority=st.integers(min_value=-(2**31), max_value=2**31 - 1),
    replicas=st.one_of(st.just(float("nan")), st.integers(min_value=0, max_value=10_000)),
    pod_class=st.sampled_from(PodClass),
)
def test_every_weight_is_finite_and_at_least_one(priority: int, replicas: float, pod_class: PodClass) -> None:
    """Whatever is known of the pod."""
    state = cluster(
        nodes=[node("hot")],
        pods=[busy("a", priority=priority, pod_class=pod_class), pod("bare", on="hot", workload=None)],
        workloads=[workload("a", replicas=replicas)],
    )
    found = weights(state)
    assert all(1.0 <= weight < 100.0 for weight in found)
