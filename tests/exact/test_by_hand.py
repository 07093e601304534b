"""The two questions on clusters whose answers can be seen."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.exact.fewest import fewest_moves, most_cured
from benchmarks.exact.problem import Places, ceilings, pose
from benchmarks.exact.program import Outcome
from benchmarks.exact.worst import lowest_worst
from rebalancer.policy.model import Pool, Spec
from rebalancer.policy.quantities import LabelSelector
from rebalancer.state.cluster import ClusterState
from tests.exact.posing import MARKS, SPEC, WIDE, named, posed
from tests.plan.deciding import decision
from tests.support.builder import NodeSpec, PodSpec, budget, cluster, node, pod


def hundred(name: str, load: float = 0.0, *, memory: float = 0.1, **more: object) -> NodeSpec:
    """A node of 100 cores, so that cores are per cent."""
    return node(name, cpu=100, memory="100Gi", load={"cpu": load, "memory": memory}, **more)  # type: ignore[arg-type]


def using(name: str, cores: float, on: str, **more: object) -> PodSpec:
    return pod(name, on=on, uses={"cpu": cores, "memory": 0.0}, **{"workload": name, **more})  # type: ignore[arg-type]


def test_two_pods_go_where_no_single_one_covers_the_excess() -> None:
    """80 to 50 per cent: 20 and 15 do, no pod alone does, and 5 is of no use."""
    state = cluster(nodes=[hundred("hot", 0.8), hundred("cool")], pods=[using("a", 20, "hot"), using("b", 15, "hot"), using("c", 5, "hot")])
    problem = posed(state)
    result = fewest_moves(problem, ceilings(problem))
    assert (result.outcome, result.proven, result.bound, result.gap) == (Outcome.OPTIMAL, 2, 2, 0)
    assert set(named(state, problem, result.moves)) == {"a", "b"}


def test_a_pod_that_fits_nowhere_is_replaced_by_two() -> None:
    """One pod of 30 would do, but both cool nodes have 40 already and 60 is the limit; the bound of all plans does not know that."""
    pods = [using("big", 30, "hot"), using("a", 15, "hot"), using("b", 15, "hot")]
    state = cluster(nodes=[hundred("hot", 0.8), hundred("one", 0.4), hundred("two", 0.4)], pods=pods)
    problem = posed(state)
    result = fewest_moves(problem, ceilings(problem))
    assert (result.proven, result.bound) == (2, 1)
    assert named(state, problem, result.moves).keys() == {"a", "b"}


def test_a_chain_is_found_when_other_nodes_may_be_left() -> None:
    """The big pod fits once a small one has made room: two moves where nothing else cures the node."""
    pods = [using("big", 35, "hot"), using("small", 10, "cool")]
    state = cluster(nodes=[hundred("hot", 0.8), hundred("cool", 0.3), hundred("third", 0.45)], pods=pods)
    problem = posed(state)
    assert fewest_moves(problem, ceilings(problem)).outcome is Outcome.INFEASIBLE
    result = fewest_moves(problem, ceilings(problem), also_from=np.ones(3, dtype=np.bool_))
    assert named(state, problem, result.moves) == {"big": "cool", "small": "third"}


def test_where_one_node_cannot_be_cured_the_other_is() -> None:
    """A pod of 75 per cent fits under no limit, but alone it is over the target."""
    pods = [using("giant", 75, "stuck"), using("a", 30, "hot")]
    state = cluster(nodes=[hundred("stuck", 0.75), hundred("hot", 0.8), hundred("cool")], pods=pods)
    problem = posed(state)
    assert fewest_moves(problem, ceilings(problem)).outcome is Outcome.INFEASIBLE
    cured = most_cured(problem, ceilings(problem))
    assert (cured.count, cured.proven) == (1, 1)
    assert named(state, problem, fewest_moves(problem, ceilings(problem), uncured=1).moves) == {"a": "cool"}


def test_every_judged_signal_counts() -> None:
    """Hot by CPU and over the target of memory: the pod that takes both goes."""
    pods = [pod("cpu", on="hot", workload="x", uses={"cpu": 30, "memory": 0.0}), pod("both", on="hot", uses={"cpu": 30, "memory": "15Gi"})]
    state = cluster(nodes=[hundred("hot", 0.8, memory=0.8), hundred("cool")], pods=pods)
    problem = posed(state)
    assert set(named(state, problem, fewest_moves(problem, ceilings(problem)).moves)) == {"both"}


def test_one_pod_of_a_workload_goes_unless_limits_are_off() -> None:
    """Two replicas would cover the excess; the guard lets one go at a time, so the node cannot be cured in one plan."""
    state = cluster(
        nodes=[hundred("hot", 0.8), hundred("cool")],
        pods=[using("a", 15, "hot", workload="w"), using("b", 15, "hot", workload="w")],
    )
    bound, free = posed(state), posed(state, limits=False)
    assert fewest_moves(bound, ceilings(bound)).outcome is Outcome.INFEASIBLE
    assert fewest_moves(free, ceilings(free)).proven == 2


def test_a_disruption_budget_chooses_the_other_pod() -> None:
    """Two workloads share a budget that allows one disruption; a third pod has none."""
    pods = [using("a", 20, "hot", budgets=["b"]), using("b", 15, "hot", budgets=["b"]), using("c", 12, "hot")]
    state = cluster(nodes=[hundred("hot", 0.8), hundred("cool")], pods=pods, budgets=[budget("b", allowed=1)])
    problem = posed(state)
    assert set(named(state, problem, fewest_moves(problem, ceilings(problem)).moves)) == {"a", "c"}


@pytest.mark.parametrize(("limit", "count"), [({"per_node": 1}, None), ({"total": 1}, None), ({"per_node": 2}, 2)])
def test_budgets_of_the_policy_bind(limit: dict[str, int], count: int | None) -> None:
    """Two pods have to go; a budget of one is in the way, one of two is not."""
    state = cluster(nodes=[hundred("hot", 0.8), hundred("cool")], pods=[using("a", 20, "hot"), using("b", 15, "hot")])
    problem = posed(state, SPEC.model_copy(update={"budgets": WIDE.model_copy(update=limit)}))
    result = fewest_moves(problem, ceilings(problem))
    assert (None if result.moves is None else len(result.moves)) == count


def test_room_by_request_is_for_all_that_come_together() -> None:
    """Each pod fits into the near node, both do not: one goes further."""
    pods = [using("a", 20, "hot", cpu=60), using("b", 15, "hot", cpu=30), using("there", 0, "near", cpu=35)]
    state = cluster(nodes=[hundred("hot", 0.8), hundred("near"), hundred("far", 0.35)], pods=pods)
    problem = posed(state)
    places = named(state, problem, fewest_moves(problem, ceilings(problem)).moves)
    assert sorted(places.values()) == ["far", "near"]


def unwelcome(kind: str) -> ClusterState:
    other = {
        "unknown": hundred("other", 0.0, unknown={"memory": "no sample"}),
        "cordoned": hundred("other", 0.0, unschedulable=True),
        "pool": hundred("other", 0.0, labels={"pool": "b"}),
        "full": hundred("other", 0.55),
    }[kind]
    return cluster(nodes=[hundred("hot", 0.8), other], pods=[using("a", 30, "hot")])


@pytest.mark.parametrize("kind", ["unknown", "cordoned", "pool", "full"])
def test_nothing_goes_where_it_may_not(kind: str) -> None:
    """An unknown, cordoned, foreign or warm node is no place."""
    pools = (Pool(name="b", signals=MARKS, node_selector=LabelSelector(match_labels={"pool": "b"})), Pool(name="rest", signals=MARKS))
    problem = posed(unwelcome(kind), Spec(pools=pools, budgets=WIDE))
    assert fewest_moves(problem, ceilings(problem)).outcome is Outcome.INFEASIBLE


def test_places_under_target_are_fewer_than_places() -> None:
    """A node at 52 per cent can take 5 more, but was over its target before."""
    state = cluster(nodes=[hundred("hot", 0.72), hundred("warm", 0.52)], pods=[using(f"p{i}", 5, "hot") for i in range(5)])
    free, cool = posed(state), posed(state, places=Places.UNDER_TARGET)
    assert free.open[:, 1].all()
    assert not cool.open.any()


def test_the_predicted_place_is_the_schedulers() -> None:
    """The emptiest node by request is where kube-scheduler puts the pod, so it is the only place."""
    pods = [using("a", 30, "hot"), using("there", 0, "full", cpu=50)]
    state = cluster(nodes=[hundred("hot", 0.8), hundred("full"), hundred("empty")], pods=pods)
    problem = posed(state, places=Places.PREDICTED)
    assert np.flatnonzero(problem.open[problem.pods.tolist().index(0)]).tolist() == [2]


def test_the_lowest_worst_load_spends_moves_where_it_is_worst() -> None:
    """Nodes at 90 and 80, high is 70: one move can only help the first, two help both, and more are of no use."""
    pods = [using("a", 30, "one"), using("b", 30, "two")]
    state = cluster(nodes=[hundred("one", 0.9), hundred("two", 0.8), hundred("c"), hundred("d")], pods=pods)
    problem = posed(state)
    found = [lowest_worst(problem, moves) for moves in (0, 1, 2, 3)]
    assert [one.worst for one in found] == pytest.approx([0.9 / 0.7, 0.8 / 0.7, 0.6 / 0.7, 0.6 / 0.7], rel=1e-3)
    assert [len(one.moves) for one in found] == [0, 1, 2, 2]
    assert all(one.gap <= 1e-3 for one in found)


def test_without_time_the_counts_that_need_no_program_still_hold() -> None:
    """The bound by the largest pods is there when the solver had no time."""
    pods = [using(f"p{i:02d}", 1 + i % 3, "hot") for i in range(24)]
    state = cluster(nodes=[hundred("hot", 0.9), hundred("x", 0.35), hundred("y", 0.35)], pods=pods)
    problem = posed(state)
    result = fewest_moves(problem, ceilings(problem), seconds=0.0)
    assert result.proven >= result.bound == 16
    assert result.gap is None or result.gap <= 1


def test_a_bench_with_bookings_is_refused() -> None:
    """The problem is posed at the start of a plan, not in the middle."""
    state = cluster(nodes=[hundred("hot", 0.8), hundred("cool")], pods=[using("a", 30, "hot")])
    made = decision(state, SPEC)
    assert made.proposal.moves
    with pytest.raises(ValueError, match="booked"):
        pose(made.bench)
