"""Faults of measuring, carried through to the plan: what is unknown, strange or short-lived changes nothing for the rest."""

from __future__ import annotations

import pytest

from rebalancer.errors import MetricsMissing
from rebalancer.plan.model import Plan
from rebalancer.policy.model import Pool, Spec, Threshold
from rebalancer.runtime.observe import require_coverage
from rebalancer.state.cluster import ClusterState
from tests.plan.deciding import moved, planned
from tests.support.builder import CPU, NodeSpec, cluster, node, pod

ABSOLUTE = {"cpu": Threshold(low=40, target=55, high=70)}
DEVIATION = {"cpu": Threshold(low=10, target=5, high=25)}
LOADS = (0.9, 0.2, 0.3, 0.25, 0.3, 0.35, 0.25, 0.3, 0.3)
SPIKE = [0.4, 0.95, 0.4, 0.4, 0.4, 0.4, 0.4, 0.4, 0.4, 0.4]


def spec(thresholds: str = "absolute") -> Spec:
    marks = DEVIATION if thresholds == "deviation" else ABSOLUTE
    return Spec(pools=(Pool(name="default", thresholds=thresholds, signals=marks),))


def nine(*more: NodeSpec, uses: float = 1.2) -> ClusterState:
    """One hot node with a pod that may go, eight others."""
    nodes = [node(f"n{i}", load={"cpu": load}) for i, load in enumerate(LOADS)]
    return cluster(nodes=[*nodes, *more], pods=[pod("p", on="n0", cpu=0.5, uses={"cpu": uses, "memory": 0})])


def without(plan: Plan, name: str) -> list[object]:
    return [report for report in plan.nodes if report.name != name]


@pytest.mark.parametrize("thresholds", ["absolute", "deviation"])
def test_m8_one_nan_among_ten_leaves_the_plan_of_the_other_nine_as_it_was(thresholds: str) -> None:
    """Classes, marks, loads and moves equal those of a cluster without it; it is unknown, neither source nor destination."""
    clear = planned(nine(), spec(thresholds))
    clouded = planned(nine(node("blind", cpu=2, unknown={"cpu": "its newest sample is no possible amount (nan)"})), spec(thresholds))
    assert moved(clear) == ["p"]
    assert clouded.moves == clear.moves
    assert without(clouded, "blind") == list(clear.nodes)
    assert [report.node_class for report in clouded.nodes if report.name == "blind"] == ["unknown"]


def test_m9_a_load_above_one_of_our_own_node_is_legal() -> None:
    """CPU of a node may be used beyond what is allocatable: it is hot at 105 %, not a reason to fail."""
    plan = planned(
        cluster(nodes=[node("a", load={"cpu": 1.05}), node("b")], pods=[pod("p", on="a", uses={"cpu": 4.0, "memory": 0})]), spec()
    )
    assert [(move.pod.name, move.signals["cpu"].source_before) for move in plan.moves] == [("p", 1.05)]
    assert plan.moves[0].reason.startswith("cpu load 105 % > high 70 %")


@pytest.mark.parametrize(("windows", "moves"), [(SPIKE, []), ([*SPIKE[2:], 0.95, 0.95], []), ([0.95] * 7 + [0.4] * 2 + [0.95], ["p"])])
def test_m7_a_spike_evicts_nobody_and_k_of_n_windows_do(windows: list[float], moves: list[str]) -> None:
    """40, 95, 40 .. 40: nothing. 95 just now, twice: nothing yet. Over high in eight of ten: the pod goes."""
    hot = node("hot", load={"cpu": windows[-1]}, history={"cpu": windows})
    plan = planned(cluster(nodes=[hot, node("cool")], pods=[pod("p", on="hot", uses={"cpu": 4.0, "memory": 0})]), spec())
    assert moved(plan) == moves


def test_m14_every_decision_shows_packing_and_load_side_by_side() -> None:
    """Requests 33 %, usage 94 %: hot, and the report of each node has both figures."""
    state = cluster(
        nodes=[node("a", cpu=9, load={"cpu": 0.94}), node("b", cpu=9)], pods=[pod("p", on="a", cpu=3, uses={"cpu": 4, "memory": 0})]
    )
    plan = planned(state, spec())
    assert moved(plan) == ["p"]
    shown = plan.nodes[0].signals["cpu"]
    assert (plan.nodes[0].node_class, plan.nodes[0].quadrant) == ("hot", "low-packing/high-load")
    assert (shown.packing, shown.load) == (pytest.approx(1 / 3, abs=1e-6), 0.94)


def test_m2_a_pod_of_a_fifth_has_left_and_nothing_more_is_planned() -> None:
    """Node at 85 %, high 75 %, one pod of 20 % evicted: with the node's series unchanged it is at 65 % by the ledger."""
    marks = {"cpu": Threshold(low=30, target=70, high=75)}
    left = node("a", cpu=10, load={"cpu": 0.85}, departed={"cpu": 2.0}, history={"cpu": [0.85] * 10})
    still = node("a", cpu=10, load={"cpu": 0.85}, history={"cpu": [0.85] * 10})
    pods = [pod("p", on="a", uses={"cpu": 2.0, "memory": 0})]
    rules = Spec(pools=(Pool(name="default", signals=marks),))
    assert moved(planned(cluster(nodes=[still, node("b")], pods=pods), rules)) == ["p"]
    after = planned(cluster(nodes=[left, node("b")], pods=pods), rules)
    assert after.moves == ()
    assert after.nodes[0].signals["cpu"].load == pytest.approx(0.65)


def test_c5_a_snapshot_that_lacks_a_judged_signal_is_an_error_by_name() -> None:
    """The state was read by another policy: what it has not measured cannot be judged, and nothing is guessed."""
    with pytest.raises(MetricsMissing, match="signal memory is judged by the policy and was not read; read were cpu"):
        require_coverage(cluster(nodes=[node("a", load={"cpu": 0.9})], signals=(CPU,)), Spec())


def test_coverage_of_a_cluster_without_nodes_is_whole() -> None:
    """There is nothing to know, and a pod that waits for a node is no gap."""
    require_coverage(cluster(nodes=[], pods=[pod("p")]), Spec())
