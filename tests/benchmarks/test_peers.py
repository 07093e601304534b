"""The peers do what they are documented to do, so that the comparison is fair."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.peers.anomaly import AnomalyCondition, Detector, mark_abnormal, reset
from benchmarks.peers.low_node_load import LowNodeLoad, usage_match
from benchmarks.peers.low_node_utilization import LowNodeUtilization
from benchmarks.peers.marks import PeerMarks
from benchmarks.peers.migration import Job, arbitrate, may_ever_migrate, most_at_once
from benchmarks.peers.reduce_high_load_node import ReduceHighLoadNode
from rebalancer.simulate.forward.strategy import Actions
from rebalancer.state.cluster import ClusterState
from rebalancer.state.tables import Qos
from tests.support.builder import PodSpec, budget, cluster, node, pod, workload

MARKS = PeerMarks(low={"cpu": 40, "memory": 50}, target={"cpu": 55, "memory": 80}, high={"cpu": 65, "memory": 90})
AT_ONCE = AnomalyCondition(abnormalities=1)


def names(state: ClusterState, actions: Actions) -> list[str]:
    return [state.pods.names[row] for row in actions.evictions]


def crowd(on: str, count: int, *, uses: float = 0.5) -> list[PodSpec]:
    """Pods of workloads of their own, so that no limit of a workload is met."""
    return [pod(f"{on}-{number}", on=on, workload=f"{on}-{number}", uses={"cpu": uses, "memory": 1e9}) for number in range(count)]


def loads(*shares: float, pods: int = 4) -> ClusterState:
    """Nodes n0, n1, ... of these CPU loads."""
    nodes = [node(f"n{number}", cpu=10, load={"cpu": share, "memory": 0.1}) for number, share in enumerate(shares)]
    return cluster(nodes=nodes, pods=[each for one in nodes for each in crowd(one.name, pods)])


def nodes_of(state: ClusterState, actions: Actions) -> Counter[str]:
    return Counter(state.nodes.names[state.pods.node[row]] for row in actions.evictions)


# ---- LowNodeUtilization with Prometheus ---------------------------------------------------------------------------------------


def utilization(limit: int | None = None) -> LowNodeUtilization:
    return LowNodeUtilization(low=45, target=65, limit=limit)


@pytest.mark.parametrize(("limit", "expected"), [(None, 1), (1, 1), (3, 3)])
def test_up_to_the_limit_leaves_each_over_utilised_node_without_feedback(limit: int | None, expected: int) -> None:
    """One pod a node and cycle when the limit is unset, N when it is N, however little the node is over."""
    state = loads(0.66, 0.99, 0.2)
    assert nodes_of(state, utilization(limit).decide(state, None)) == {"n0": expected, "n1": expected}


def test_the_node_with_the_highest_usage_is_first() -> None:
    """Nodes by usage, highest first."""
    state = loads(0.7, 0.9, 0.2)
    assert names(state, utilization().decide(state, None)) == ["n1-0", "n0-0"]


@pytest.mark.parametrize("shares", [(0.9, 0.5, 0.5), (0.3, 0.2), (0.6, 0.3)])
def test_nothing_happens_without_both_kinds_of_nodes(shares: Sequence[float]) -> None:
    """No under-utilised node, only such nodes, or no over-utilised one."""
    assert utilization(5).decide(loads(*shares), None) == Actions()


@pytest.mark.parametrize(
    ("hot", "cold", "acts"), [(0.66, 0.45, True), (0.65, 0.45, False), (0.659, 0.45, False), (0.66, 0.459, True), (0.66, 0.46, False)]
)
def test_usage_is_cut_to_whole_percent_low_is_lax_and_high_is_strict(hot: float, cold: float, acts: bool) -> None:
    """At the low threshold a node is under-utilised; at the target it is not over-utilised; 65.9 is 65."""
    assert bool(utilization().decide(loads(hot, cold), None).evictions) is acts


def test_a_cordoned_node_is_no_target() -> None:
    """With its only under-utilised node cordoned, nothing happens."""
    state = cluster(
        nodes=[node("hot", load={"cpu": 0.9}), node("cool", load={"cpu": 0.1}, unschedulable=True), node("fine", load={"cpu": 0.5})],
        pods=crowd("hot", 2),
    )
    assert not utilization().decide(state, None).evictions


def test_a_ready_node_without_a_sample_fails_the_cycle_and_one_that_is_down_does_not() -> None:
    """The plugin says which node has no entry and evicts nobody."""
    state = cluster(
        nodes=[node("hot", load={"cpu": 0.9}), node("cool", load={"cpu": 0.1}), node("mute", unknown={"cpu": "no sample"})],
        pods=crowd("hot", 2),
    )
    assert utilization().decide(state, None) == Actions(undecided="unable to find metric entry for mute")
    down = replace(state, nodes=replace(state.nodes, ready=np.array([True, True, False])))
    assert names(down, utilization().decide(down, None)) == ["hot-0"]


def test_victims_are_chosen_by_priority_and_qos_and_not_by_usage() -> None:
    """Low priority, then BestEffort before Burstable before Guaranteed, then as listed; the busiest pod may stay."""
    pods = [
        pod("busy", on="hot", priority=5, uses={"cpu": 6}),
        pod("guaranteed", on="hot", qos=Qos.GUARANTEED, uses={"cpu": 0.1}),
        pod("burstable", on="hot", uses={"cpu": 0.1}),
        pod("best-effort", on="hot", qos=Qos.BEST_EFFORT, uses={"cpu": 0.1}),
    ]
    state = cluster(nodes=[node("hot", load={"cpu": 0.9}), node("cool", load={"cpu": 0.1})], pods=pods)
    assert names(state, utilization(4).decide(state, None)) == ["best-effort", "burstable", "guaranteed", "busy"]


def test_a_refused_eviction_does_not_count_and_the_next_pod_is_tried() -> None:
    """A disruption budget refuses the first pod; the second one goes."""
    pods = [
        pod("kept", on="hot", workload="a", budgets=["none"]),
        pod("goes", on="hot", workload="b"),
        pod("stays", on="hot", workload="c"),
    ]
    state = cluster(
        nodes=[node("hot", load={"cpu": 0.9}), node("cool", load={"cpu": 0.1})],
        pods=pods,
        budgets=[budget("none", allowed=0)],
    )
    assert names(state, utilization().decide(state, None)) == ["kept", "goes"]


def test_daemons_bare_pods_static_pods_and_critical_pods_are_never_tried() -> None:
    """The default evictor refuses them."""
    daemon = workload("agent", kind="DaemonSet")
    pods = [
        pod("daemon", on="hot", workload=daemon.ref),
        pod("bare", on="hot", workload=None),
        pod("static", on="hot", mirror=True),
        pod("critical", on="hot", priority=2_000_000_000),
        pod("leaving", on="hot", terminating=True),
        pod("goes", on="hot"),
    ]
    state = cluster(nodes=[node("hot", load={"cpu": 0.9}), node("cool", load={"cpu": 0.1})], pods=pods, workloads=[daemon])
    assert names(state, utilization(9).decide(state, None)) == ["goes"]


# ---- LowNodeLoad ----------------------------------------------------------------------------------------------------------------


def rounds_that_act(interval_s: float, count: int) -> list[int]:
    """Rounds in which a node that is always over is called anomalous, under the default condition."""
    found, detector = list[int](), None
    for number in range(count):
        detector = mark_abnormal(detector, AnomalyCondition(), at=number * interval_s)
        if detector.anomalous:
            found.append(number)
    return found


@pytest.mark.parametrize(
    ("interval_s", "expected"),
    [(10, [*range(5, 12), *range(17, 24)]), (30, [5, 6, 7, 13, 14, 15, 21, 22, 23]), (120, [5, 11, 17, 23]), (300, [5, 11, 17, 23])],
)
def test_under_constant_overload_the_detector_opens_and_closes_as_documented(interval_s: float, expected: list[int]) -> None:
    """From the sixth round on: seven rounds of twelve at 10 s, three of eight at 30 s, one of six at 2 and 5 minutes."""
    assert rounds_that_act(interval_s, 24) == expected


def test_abnormal_rounds_need_not_follow_each_other_and_a_reset_in_ok_clears_nothing() -> None:
    """Over every second round is anomalous at the sixth mark; a reset before it changes nothing, one after it starts anew."""
    detector: Detector | None = None
    for number in range(5):
        detector = reset(mark_abnormal(detector, AnomalyCondition(), at=number * 20.0), at=number * 20.0)
    assert detector is not None
    assert (detector.abnormal, detector.anomalous) == (5, False)
    detector = mark_abnormal(detector, AnomalyCondition(), at=100.0)
    assert detector.anomalous
    assert not reset(detector, at=100.0).anomalous


def test_what_was_not_marked_for_the_time_of_the_cache_is_forgotten() -> None:
    """The count begins again."""
    assert mark_abnormal(Detector(marked_at=0.0, abnormal=5), AnomalyCondition(), at=301.0).abnormal == 1


def test_usage_match_prefers_the_smallest_pod_that_covers_and_then_the_biggest() -> None:
    """The documented numbers for an excess of 10."""
    scores = usage_match(np.array([[12.0], [20.0], [8.0], [4.0]]), np.array([10.0]))
    assert scores == pytest.approx([1.8333, 1.5, 0.8, 0.4], abs=1e-3)


def hot_and_cool(*uses: float, cool: float = 0.1, load: float = 0.75) -> ClusterState:
    pods = [pod(f"p{n}", on="hot", workload=f"w{n}", uses={"cpu": use, "memory": 1e9}) for n, use in enumerate(uses)]
    return cluster(nodes=[node("hot", cpu=10, load={"cpu": load, "memory": 0.1}), node("cool", cpu=10, load={"cpu": cool})], pods=pods)


def load_strategy(condition: AnomalyCondition | None = AT_ONCE) -> LowNodeLoad:
    return LowNodeLoad(MARKS, interval_s=120, condition=condition)


@pytest.mark.parametrize(("uses", "expected"), [((0.5, 3.0, 1.2), ["p2"]), ((0.4, 0.7, 0.1), ["p1", "p0"])])
def test_the_smallest_covering_pod_leaves_or_the_biggest_until_the_node_is_no_longer_over(
    uses: tuple[float, ...], expected: list[str]
) -> None:
    """One core too much: 1.2 covers it alone; else 0.7 and then 0.4 do."""
    state = hot_and_cool(*uses)
    assert names(state, load_strategy().decide(state, None)) == expected


def test_nothing_leaves_before_the_sixth_round_over_the_marks() -> None:
    """Five rounds are watched; the node rests again after the timeout."""
    state, strategy, memory, acted = hot_and_cool(0.5, 3.0, 1.2), load_strategy(None), None, list[int]()
    for number in range(7):
        actions = strategy.decide(replace(state, at=state.at + 120 * number), memory)
        memory = actions.memory
        acted += [number] * len(actions.evictions)
    assert acted == [5]


@pytest.mark.parametrize(("cool", "load", "acts"), [(0.40, 0.75, True), (0.41, 0.75, False), (0.40, 0.65, False)])
def test_low_is_lax_and_over_is_strict_for_koordinator_too(cool: float, load: float, acts: bool) -> None:
    """At low a node is low; at high it is not over."""
    state = hot_and_cool(1.2, cool=cool, load=load)
    assert bool(load_strategy().decide(state, None).evictions) is acts


def test_a_pod_that_fits_on_no_low_node_or_is_not_measured_stays() -> None:
    """Too big for the low node's mark, too big for its requests, or unmeasured."""
    pods = [
        pod("too-busy", on="hot", workload="a", uses={"cpu": 6, "memory": 1e9}),
        pod("too-big", on="hot", workload="b", cpu=11, uses={"cpu": 1, "memory": 1e9}),
        pod("unmeasured", on="hot", workload="c"),
    ]
    state = cluster(nodes=[node("hot", cpu=20, load={"cpu": 0.9}), node("cool", cpu=10, load={"cpu": 0.1})], pods=pods)
    assert not load_strategy().decide(state, None).evictions


def test_a_node_with_expired_metrics_is_neither_source_nor_target() -> None:
    """Older than 180 seconds: with the only low node expired, nothing happens."""
    state = hot_and_cool(1.2)
    old = replace(state, nodes=replace(state.nodes, sample_age_s=np.array([[30.0, 30.0], [181.0, 181.0]])))
    assert load_strategy().decide(state, None).evictions
    assert not load_strategy().decide(old, None).evictions


def test_the_share_of_a_workload_is_the_documented_one() -> None:
    """Over ten replicas a tenth, four to ten two, fewer one."""
    assert [most_at_once(replicas) for replicas in (1, 3, 4, 10, 11, 25)] == [1, 1, 2, 2, 1, 2]


@pytest.mark.parametrize(("replicas", "expected"), [(1, False), (2, True), (float("nan"), False)])
def test_a_workload_of_one_replica_never_migrates(replicas: float, expected: bool) -> None:
    """Nor does one whose replicas nobody knows."""
    state = cluster(nodes=[node("n")], pods=[pod("p", on="n")], workloads=[workload("app", replicas=replicas)])
    assert may_ever_migrate(state, 0) is expected


def test_jobs_wait_for_the_limits_of_node_and_workload_and_end_after_five_minutes() -> None:
    """Two a node at once, one of a workload's burst in its time, and a job that is too old is dropped."""
    pods = [pod(name, on="n", workload=owner) for name, owner in (("a1", "a"), ("a2", "a"), ("b", "b"), ("c", "c"), ("old", "d"))]
    state = cluster(nodes=[node("n")], pods=pods, workloads=[workload(name, replicas=5) for name in "abcd"])
    ages = {"old": 300.0}
    jobs = tuple(Job(uid, state.at - ages.get(name, 0.0)) for uid, name in zip(state.pods.uids, state.pods.names, strict=True))
    first = arbitrate(state, jobs, {})
    assert [state.pods.names[row] for row in first.tried] == ["a1", "b"]
    assert [job.uid for job in first.waiting] == [state.pods.uids[1], state.pods.uids[3]]
    soon = replace(state, at=state.at + 120)
    assert [state.pods.names[row] for row in arbitrate(soon, first.waiting, first.buckets).tried] == ["c"]
    later = replace(state, at=state.at + 150)
    assert [state.pods.names[row] for row in arbitrate(later, first.waiting, first.buckets).tried] == ["a2", "c"]


def test_a_job_waits_while_its_workload_has_its_share_unavailable() -> None:
    """Three replicas of which two are ready: nobody else may leave."""
    state = cluster(nodes=[node("n")], pods=[pod("p", on="n")], workloads=[workload("app", replicas=3, ready=2)])
    passed = arbitrate(state, (Job(state.pods.uids[0], state.at),), {})
    assert (passed.tried, len(passed.waiting)) == ((), 1)


# ---- ReduceHighLoadNode ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("load", "expected"), [(0.65, []), (0.66, ["p0", "p1"])])
def test_it_starts_above_the_threshold_and_evicts_until_at_the_target(load: float, expected: list[str]) -> None:
    """Hot above 65: 66 % of ten cores less 0.6 and 0.5 is 55, which is enough; at 65 nothing happens."""
    state = hot_and_cool(0.6, 0.5, 0.4, load=load)
    assert names(state, ReduceHighLoadNode(MARKS).decide(state, None)) == expected


def test_memory_alone_makes_a_node_hot() -> None:
    """CPU *or* memory."""
    nodes = [node("hot", cpu=10, memory=100e9, load={"cpu": 0.1, "memory": 0.95})]
    pods = [pod(f"p{n}", on="hot", workload=f"w{n}", uses={"cpu": 0.1, "memory": 20e9}) for n in range(3)]
    state = cluster(nodes=nodes, pods=pods)
    assert names(state, ReduceHighLoadNode(MARKS).decide(state, None)) == ["p0"]


def test_low_priority_leaves_first_and_no_node_has_to_be_cool() -> None:
    """There is no condition on destinations."""
    pods = [pod("vip", on="hot", workload="a", priority=9, uses={"cpu": 2, "memory": 1e9}), *crowd("hot", 1, uses=2.0)]
    state = cluster(nodes=[node("hot", cpu=10, load={"cpu": 0.7, "memory": 0.1})], pods=pods)
    assert names(state, ReduceHighLoadNode(MARKS).decide(state, None)) == ["hot-0"]


@pytest.mark.parametrize(("replicas", "ready", "expected"), [(4, 3, 1), (4, 2, 0), (6, 6, 3), (float("nan"), 3, 0)])
def test_more_than_half_of_the_replicas_must_be_ready(replicas: float, ready: float, expected: int) -> None:
    """Each pod that leaves in the cycle counts; what is unknown is not enough."""
    pods = [pod(f"p{n}", on="hot", uses={"cpu": 0.1, "memory": 1e9}) for n in range(5)]
    state = cluster(
        nodes=[node("hot", cpu=10, load={"cpu": 0.9, "memory": 0.1})],
        pods=pods,
        workloads=[workload("app", replicas=replicas, ready=ready)],
    )
    assert len(ReduceHighLoadNode(MARKS).decide(state, None).evictions) == expected
