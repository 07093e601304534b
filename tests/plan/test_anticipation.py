"""What a plan makes of yesterday: it waits for a peak that passes, and fills no node that will be hot by itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from rebalancer.policy.model import Anticipation, Pool, Spec, Steering, Threshold
from rebalancer.state.cluster import ClusterState, Yesterday
from tests.plan.deciding import moved, planned, refusals, why
from tests.support.builder import cluster, node, pod

SPEC = Spec(
    pools=(Pool(name="default", signals={"cpu": Threshold(low=30, target=55, high=65)}),),
    anticipation=Anticipation(horizon=1800),
    steering=Steering(soft_taint=False),
)
AHEAD = np.arange(-600.0, 3601.0, 300.0)
WEEK_S = 7 * 86400.0


def state(*, cool_cpu: float = 8) -> ClusterState:
    """A hot node with two pods that can leave, a cool one, and one that is a little less so; everything is a week old."""
    return cluster(
        nodes=[
            node("hot", load={"cpu": 0.8}),
            node("cool", cpu=cool_cpu, load={"cpu": 0.1}),
            node("next", cpu=8, load={"cpu": 0.2}),
        ],
        pods=[
            *(pod(f"p{row}", on="hot", workload=f"p{row}", uses={"cpu": 2.6, "memory": 0}, age_s=WEEK_S) for row in range(2)),
            pod("q", on="next", workload="q", cpu=2, uses={"cpu": 1.6, "memory": 0}, age_s=WEEK_S),
        ],
    )


def after(now: ClusterState, **courses: Mapping[float, float]) -> ClusterState:
    """``courses``: node -> load from a number of seconds on; nothing is known of other nodes."""
    load = np.full((len(now.nodes.names), len(now.signals), len(AHEAD)), np.nan)
    for name, course in courses.items():
        for begins, value in course.items():
            load[now.node_index[name], 0, begins <= AHEAD] = value
    return replace(now, yesterday=Yesterday(ahead_s=AHEAD, load=load))


def test_a_node_whose_peak_passes_is_left_alone_with_the_reason_in_the_plan() -> None:
    """Every pod of it has its refusal, and the node its sentence."""
    plan = planned(after(state(), hot={-600: 0.8, 900: 0.4}), SPEC)
    assert moved(plan) == []
    assert refusals(plan) == {"p0": "passing-peak", "p1": "passing-peak"}
    words = "cpu load 80 % as yesterday at this time (80 %), when it was under 60 % within 15m and stayed there"
    assert why(plan, "p0") == f"the peak of its node passes by itself: {words}"
    assert plan.nodes[0].reason.endswith(f"; its peak passes by itself: {words}")


def test_a_node_is_relieved_when_yesterday_says_nothing_or_something_else() -> None:
    """As without anticipation."""
    expected = moved(planned(state(), SPEC))
    assert len(expected) == 1
    for yesterday in (after(state()), after(state(), hot={-600: 0.8}), after(state(), hot={-600: 0.2})):
        assert moved(planned(yesterday, SPEC)) == expected


def test_a_node_that_will_be_hot_by_itself_takes_no_pod() -> None:
    """With the load of now and of then; the next best is no destination, since the scheduler would not choose it."""
    assert planned(after(state()), SPEC).moves[0].destination == "cool"
    plan = planned(after(state(), cool={-600: 0.1, 1200: 0.5}), SPEC)
    assert moved(plan) == []
    assert "put it on cool: cpu load 10 % now, which yesterday says will be 82 % within 30m, over high 65 %" in why(plan, "p0")


def test_a_node_that_rises_but_stays_under_high_with_the_pod_is_a_destination() -> None:
    """Ten points more, and the pod's third."""
    assert planned(after(state(), cool={-600: 0.1, 1200: 0.2}), SPEC).moves[0].destination == "cool"
