"""Which pods leave a hot node: the smallest set that covers the excess, and never one that does not help."""

from __future__ import annotations

import random

from rebalancer.policy.model import Budgets, Pool, Spec, Threshold
from tests.plan.deciding import moved, planned, refusals, why
from tests.support.builder import budget, cluster, node, pod


def spec(*, target: float = 50, high: float = 60, per_node: int = 20, **fields) -> Spec:
    marks = {"cpu": Threshold(low=30, target=target, high=high)}
    return Spec(pools=(Pool(name="default", signals=marks),), budgets=Budgets(per_node=per_node), **fields)


def loaded(uses: list[float], *, cores: float = 100, residual: float = 0.0, **fields):
    """One node whose pods use what is listed, and two that idle."""
    pods = [
        pod(f"p{i:02d}", on="hot", workload=f"w{i:02d}", cpu=0.1, uses={"cpu": use, "memory": 0}, **fields) for i, use in enumerate(uses)
    ]
    return cluster(
        nodes=[node("hot", cpu=cores, usage={"cpu": sum(uses) + residual}), node("cool", cpu=cores), node("idle", cpu=cores)], pods=pods
    )


def test_v1_the_smallest_pod_that_covers_the_excess_is_chosen() -> None:
    """Excess 10; pods of 4, 8, 12, 20: the pod of 12."""
    state = loaded([4, 8, 12, 20], residual=16)
    plan = planned(state, spec(target=50, high=55))
    assert moved(plan) == ["p02"]
    assert plan.moves[0].reason == "cpu load 60 % > high 55 % in 10 of 10 windows; this pod alone brings it under target 50 %"


def test_v1_when_no_single_pod_covers_it_the_smallest_pair_does() -> None:
    """Excess 10; pods of 4, 5, 7, 9: 4 + 7 = 11 is the least that covers."""
    plan = planned(loaded([4, 5, 7, 9], residual=35), spec(target=50, high=55))
    assert sorted(moved(plan)) == ["p00", "p02"]


def test_v2_a_node_just_over_its_target_loses_exactly_one_small_pod() -> None:
    """Node at 51 %, target 50 %, pods of 2 %: the load is projected and the plan stops under target."""
    plan = planned(loaded([2] * 20, residual=11), spec(target=50, high=50.5))
    assert len(plan.moves) == 1


def test_v3_an_idle_pod_is_never_chosen_to_relieve_cpu() -> None:
    """Two equal pods, one at 0.01 and one at 2 cores: only the busy one can cure anything."""
    plan = planned(loaded([0.01, 2], cores=8, residual=4), spec())
    assert moved(plan) == ["p01"]
    blocked = planned(loaded([0.01, 2], cores=8, residual=4, annotations={"rebalancer.dev/evict": "false"}), spec())
    assert moved(blocked) == []
    only_idle = planned(loaded([0.001], cores=8, residual=6), spec())
    assert refusals(only_idle) == {"p00": "gain-too-small"}
    assert "gain.minRelative is 2 %" in why(only_idle, "p00")


def test_v4_a_pod_without_a_measurement_is_never_a_victim_and_is_listed() -> None:
    """Unknown usage is refused with that reason; the measured pod goes."""
    pods = [pod("blind", on="hot", workload="a"), pod("seen", on="hot", workload="b", uses={"cpu": 3, "memory": 0})]
    plan = planned(cluster(nodes=[node("hot", load={"cpu": 0.9}), node("cool")], pods=pods), spec())
    assert moved(plan) == ["seen"]
    assert refusals(plan) == {"blind": "unknown-usage"}


def test_v6_the_hottest_node_comes_first_whatever_its_memory_bytes_are() -> None:
    """95 of 100 cores with little memory is relieved before 65 of 100 with much; no unlike units are summed."""
    pods = [
        pod("a", on="big", workload="a", uses={"cpu": 20, "memory": 2**30}),
        pod("b", on="small", workload="b", uses={"cpu": 20, "memory": 2**34}),
    ]
    nodes = [node("small", cpu=100, load={"cpu": 0.65}), node("big", cpu=100, load={"cpu": 0.95}), node("cool", cpu=100)]
    assert planned(cluster(nodes=nodes, pods=pods), spec()).moves[0].source == "big"


def test_v7_the_plan_is_byte_identical_for_any_order_of_the_input() -> None:
    """Shuffled a hundred times, one plan."""
    shuffler = random.Random(7)
    nodes = [node(f"hot{i}", cpu=8, load={"cpu": 0.9}) for i in range(3)] + [node(f"cool{i}", cpu=8, load={"cpu": 0.2}) for i in range(5)]
    pods = [
        pod(f"p{i}{j}", on=f"hot{i}", workload=f"w{i}{j}", cpu=0.5, uses={"cpu": 1.0, "memory": 1e9}, budgets=["b"] if j == 0 else ())
        for i in range(3)
        for j in range(6)
    ]
    plans = set()
    for _ in range(100):
        shuffler.shuffle(pods)
        shuffler.shuffle(nodes)
        plan = planned(cluster(nodes=nodes, pods=pods, budgets=[budget("b", allowed=1)]), spec())
        assert plan.moves
        plans.add((repr(plan.moves), repr(plan.refused), repr(sorted(plan.nodes, key=lambda report: report.name))))
    assert len(plans) == 1


def test_v10_fewer_victims_with_the_same_relief_are_preferred() -> None:
    """One pod of 12 beats six of 2."""
    assert moved(planned(loaded([2, 2, 2, 2, 2, 2, 12], residual=36), spec(target=50, high=55))) == ["p06"]


def test_between_pods_alike_the_less_important_one_goes() -> None:
    """Equal use, different priority: the lower priority leaves."""
    pods = [
        pod("gold", on="hot", workload="a", priority=1000, uses={"cpu": 3, "memory": 0}),
        pod("iron", on="hot", workload="b", priority=0, uses={"cpu": 3, "memory": 0}),
    ]
    assert moved(planned(cluster(nodes=[node("hot", load={"cpu": 0.8}), node("cool")], pods=pods), spec())) == ["iron"]


def test_a_node_that_is_cured_keeps_the_rest_of_its_pods_with_the_reason() -> None:
    """What was not needed says so, with the load that was reached."""
    plan = planned(loaded([4, 8, 12, 20], residual=16), spec(target=50, high=55))
    assert set(refusals(plan).values()) == {"not-needed"}
    assert why(plan, "p03") == "hot is under target after 1 move: cpu load 48 %"
