"""Where a move goes: where kube-scheduler would put it, and only if that is a good place by load."""

from __future__ import annotations

import pytest

from rebalancer.policy.model import Budgets, Mode, Pool, Spec, Steering, Threshold
from rebalancer.policy.quantities import LabelSelector
from rebalancer.state.scheduling import Constraints, PodTerm, Requirement, Selector, Taint, Toleration
from tests.plan.deciding import moved, planned, refusals, why
from tests.support.builder import budget, cluster, node, pod

CPU_ONLY = {"cpu": Threshold(low=30, target=55, high=70)}


def spec(**fields) -> Spec:
    return Spec(pools=fields.pop("pools", (Pool(name="default", signals=CPU_ONLY),)), budgets=Budgets(per_node=20), **fields)


def busy(name: str = "p", *, on: str = "hot", use: float = 3, cpu: float = 1, workload: str | None = None, **fields):
    return pod(name, on=on, workload=workload or name, cpu=cpu, uses={"cpu": use, "memory": 0}, **fields)


def test_e5_each_move_carries_source_destination_and_the_gain_of_both_ends() -> None:
    """Predicted loads before and after, of source and destination."""
    plan = planned(cluster(nodes=[node("hot", load={"cpu": 0.9}), node("cool", load={"cpu": 0.1})], pods=[busy(use=3.2)]), spec())
    move = plan.moves[0]
    assert (move.source, move.destination) == ("hot", "cool")
    cpu = move.signals["cpu"]
    assert (cpu.source_before, cpu.source_after, cpu.destination_before, cpu.destination_after) == (0.9, 0.5, 0.1, 0.5)
    assert move.gain > 0.1


def test_d1_the_only_node_that_fits_is_above_target_so_the_move_is_refused() -> None:
    """Fit counts only for nodes that stay under their marks."""
    state = cluster(
        nodes=[node("hot", load={"cpu": 0.9}), node("warm", load={"cpu": 0.6}), node("cool", cpu=0.5, load={"cpu": 0.1})],
        pods=[busy(use=2)],
    )
    plan = planned(state, spec())
    assert moved(plan) == []
    assert refusals(plan) == {"p": "no-better-place"}
    assert "warm" in why(plan, "p")


def test_d2_ten_candidates_and_one_free_slot_make_one_move() -> None:
    """Each booked move reduces the slot."""
    pods = [busy(f"p{i}", cpu=8, use=6, on="hot") for i in range(10)]
    marks = {"cpu": Threshold(low=30, target=75, high=90)}
    nodes = [node("hot", cpu=80, load={"cpu": 0.95}), node("cool", cpu=9, load={"cpu": 0.0})]
    plan = planned(cluster(nodes=nodes, pods=pods), spec(pools=(Pool(name="default", signals=marks),)))
    assert len(plan.moves) == 1
    assert list(refusals(plan).values()) == ["no-feasible-node"] * 9


def test_d3_a_pod_whose_anti_affinity_leaves_only_its_own_node_stays_and_another_goes() -> None:
    """The required anti-affinity excludes every other node: refused, and the next pod is tried."""
    term = PodTerm("kubernetes.io/hostname", Selector((Requirement("app", "In", ("db",)),)))
    apart = Constraints(anti_affinity=(term,))
    pods = [
        busy("db-0", workload="db", use=3, constraints=apart),
        busy("db-1", workload="db", on="cool", use=0.1, constraints=apart),
        busy("web", use=2),
    ]
    plan = planned(cluster(nodes=[node("hot", load={"cpu": 0.9}), node("cool", load={"cpu": 0.1})], pods=pods), spec())
    assert moved(plan) == ["web"]


def test_d4_the_emptiest_node_by_request_is_the_hottest_so_without_steering_the_move_is_refused() -> None:
    """kube-scheduler would choose it again; the prediction says so before anything is evicted."""
    nodes = [node("hot", load={"cpu": 0.95}), node("full", load={"cpu": 0.1})]
    pods = [busy(use=3, cpu=0.1), busy("filler", on="full", cpu=7, use=0.2)]
    blind = planned(cluster(nodes=nodes, pods=pods), spec(steering=Steering(soft_taint=False)))
    assert moved(blind) == []
    assert why(blind, "p") == "kube-scheduler's scores would put it back on hot"
    steered = planned(cluster(nodes=nodes, pods=pods), spec())
    assert [(m.pod.name, m.destination, m.prediction) for m in steered.moves] == [("p", "full", "soft-taint")]
    assert steered.soft_taints == ("hot",)


@pytest.mark.parametrize(("equal", "chance"), [(1, 1.0), (6, 1.0), (12, 0.5)])
def test_a_move_says_how_much_of_the_likely_places_it_names(equal: int, chance: float) -> None:
    """Of nodes that score alike six are named at the most: of twelve, every other replacement lands on another one, and that is no miss."""
    nodes = [node("hot", load={"cpu": 0.95}), *(node(f"cool-{i:02}", load={"cpu": 0.1}) for i in range(equal))]
    (move,) = planned(cluster(nodes=nodes, pods=[busy(use=3)]), spec()).moves
    assert (len(move.alternatives), move.chance) == (min(equal, 6) - 1, chance)


OURS = Taint("rebalancer.dev/hot", "true", "PreferNoSchedule")


@pytest.mark.parametrize(
    ("load", "destinations"), [(0.4, ["cooled"]), (0.6, ["full"])], ids=["it loses the taint before the move", "it keeps the taint"]
)
def test_a_taint_of_before_counts_only_if_its_node_keeps_it(load: float, destinations: list[str]) -> None:
    """A node that has cooled is about to lose it, and is then what the scheduler likes best; a warm one keeps repelling."""
    nodes = [node("hot", load={"cpu": 0.9}), node("cooled", load={"cpu": load}, taints=[OURS]), node("full", load={"cpu": 0.2})]
    pods = [busy(use=0.4, cpu=0.1), busy("filler", on="full", cpu=5, use=0.2), busy("other", on="hot", cpu=6, use=0.2)]
    plan = planned(cluster(nodes=nodes, pods=pods), spec())
    assert [move.destination for move in plan.moves if move.pod.name == "p"] == destinations


def test_d9_with_no_destination_every_candidate_says_so_and_so_does_the_plan() -> None:
    """No node at or under target: the plan ends with one sentence."""
    plan = planned(cluster(nodes=[node("hot", load={"cpu": 0.95}), node("warm", load={"cpu": 0.68})], pods=[busy()]), spec())
    assert plan.outcome == "1 hot node, but no destination: no node of the pool is at or under target"
    assert refusals(plan) == {"p": "no-better-place"}


def test_d10_a_hot_node_is_relieved_although_no_other_node_is_cold() -> None:
    """One node at 98 %, the rest at 60 %, low 30: it needs no cold node, only one that ends cooler."""
    marks = {"cpu": Threshold(low=30, target=65, high=85)}
    nodes = [node("hot", cpu=64, load={"cpu": 0.98}), *(node(f"n{i}", cpu=64, load={"cpu": 0.6}) for i in range(4))]
    pods = [busy(f"p{i}", use=3, cpu=1) for i in range(20)]
    plan = planned(cluster(nodes=nodes, pods=pods), spec(pools=(Pool(name="default", signals=marks),)))
    assert plan.moves
    assert all(move.signals["cpu"].destination_after < move.signals["cpu"].source_after for move in plan.moves[:3])


def test_d11_each_pool_is_judged_by_its_own_marks_and_no_move_crosses_pools() -> None:
    """60 % is hot in the strict pool, fine in the other; the strict pool's pod may not leave it."""
    strict = Pool(
        name="strict", node_selector=LabelSelector(match_labels={"kind": "s"}), signals={"cpu": Threshold(low=10, target=30, high=50)}
    )
    pools = (strict, Pool(name="default", signals=CPU_ONLY))
    nodes = [
        node("s-hot", labels={"kind": "s"}, load={"cpu": 0.6}),
        node("s-full", labels={"kind": "s"}, cpu=8, load={"cpu": 0.1}),
        node("d-warm", load={"cpu": 0.6}),
        node("d-idle", cpu=64),
    ]
    free = planned(cluster(nodes=nodes, pods=[busy(on="s-hot", use=2)]), spec(pools=pools))
    assert free.moves == ()
    assert "another pool" in why(free, "p")
    held = busy(on="s-hot", use=2, constraints=Constraints(node_selector=(("kind", "s"),)))
    assert [m.destination for m in planned(cluster(nodes=nodes, pods=[held]), spec(pools=pools)).moves] == ["s-full"]


def test_d13_one_exists_toleration_without_a_key_tolerates_any_number_of_taints() -> None:
    """Two taints, one blanket toleration: the node is a destination."""
    taints = [Taint("a"), Taint("b", "x", "NoExecute")]
    tolerant = busy(use=3, constraints=Constraints(tolerations=(Toleration(operator="Exists"),)))
    nodes = [node("hot", load={"cpu": 0.9}), node("cool", taints=taints)]
    assert moved(planned(cluster(nodes=nodes, pods=[tolerant]), spec(steering=Steering(soft_taint=False)))) == ["p"]
    intolerant = planned(cluster(nodes=nodes, pods=[busy(use=3)]), spec())
    assert moved(intolerant) == []


def test_m13_a_move_for_memory_never_makes_another_signal_hot() -> None:
    """Hot on memory; the destination has memory but no CPU left: refused with CPU's numbers."""
    marks = {"cpu": Threshold(low=30, target=55, high=70), "memory": Threshold(low=30, target=60, high=80)}
    nodes = [
        node("hot", load={"cpu": 0.3, "memory": 0.9}, memory="10Gi"),
        node("warm", load={"cpu": 0.54, "memory": 0.1}, memory="10Gi"),
    ]
    hungry = pod("p", on="hot", workload="p", uses={"cpu": 2, "memory": 4 * 2**30})
    plan = planned(cluster(nodes=nodes, pods=[hungry]), spec(pools=(Pool(name="default", signals=marks),)))
    assert moved(plan) == []
    assert "cpu load 54 % -> 79 %" in why(plan, "p")


def test_a_node_with_an_unknown_load_is_never_a_destination() -> None:
    """The scheduler would choose it; nobody knows what it carries."""
    nodes = [node("hot", load={"cpu": 0.9}), node("blind", cpu=64, unknown={"cpu": "no sample"}), node("cool", cpu=8)]
    plan = planned(cluster(nodes=nodes, pods=[busy(use=3, cpu=4)]), spec())
    assert moved(plan) == []
    assert "blind, whose load is unknown" in why(plan, "p")


def test_t7_a_node_that_pods_were_just_bound_to_is_not_the_best_destination_any_more() -> None:
    """Ten unmeasured young pods count with their estimates."""
    young = [busy(f"y{i}", on="a", use=0.5, cpu=0.5, workload="young", estimated=["cpu"], age_s=20) for i in range(10)]
    nodes = [node("hot", load={"cpu": 0.9}), node("a", load={"cpu": 0.05}), node("b", load={"cpu": 0.2})]
    plan = planned(cluster(nodes=nodes, pods=[busy(use=3, cpu=0.5), *young]), spec())
    assert [move.destination for move in plan.moves] == ["b"]


def test_p4_two_candidates_under_one_budget_make_one_move() -> None:
    """The second is refused by the plan's own consumption."""
    pods = [busy(f"p{i}", use=1, cpu=0.2, workload=f"w{i}", budgets=["web"]) for i in range(2)]
    nodes = [node("hot", load={"cpu": 0.95}), node("cool", cpu=16)]
    plan = planned(cluster(nodes=nodes, pods=pods, budgets=[budget("web", allowed=1)]), spec())
    assert len(plan.moves) == 1
    assert list(refusals(plan).values()) == ["disruption-budget"]


def test_e1_dry_run_refuses_what_a_budget_blocks_and_names_the_budget() -> None:
    """The dry run is the same decision."""
    state = cluster(
        nodes=[node("hot", load={"cpu": 0.95}), node("cool", cpu=16)],
        pods=[busy(budgets=["web"])],
        budgets=[budget("web", allowed=0, healthy=3, desired=3)],
    )
    plan = planned(state, spec(), mode=Mode.DRY_RUN)
    assert refusals(plan) == {"p": "disruption-budget"}
    assert "web" in why(plan, "p")


def test_dry_run_and_evict_mode_decide_the_same_moves() -> None:
    """One pure code: only the word for the mode differs."""
    state = cluster(nodes=[node("hot", load={"cpu": 0.9}), node("cool")], pods=[busy(), busy("q", use=1)])
    dry, wet = planned(state, spec(), mode=Mode.DRY_RUN), planned(state, spec(), mode=Mode.EVICT)
    assert dry.moves == wet.moves
    assert dry.refused == wet.refused


def test_no_soft_taint_is_wanted_when_every_node_of_the_pool_is_warm() -> None:
    """If all repel, none does."""
    plan = planned(cluster(nodes=[node("hot", load={"cpu": 0.95}), node("warm", load={"cpu": 0.6})], pods=[busy()]), spec())
    assert not any(report.steered for report in plan.nodes)


def test_an_unchanged_balanced_cluster_gives_an_empty_plan_with_a_sentence() -> None:
    """Nothing hot, nothing done, and why."""
    plan = planned(cluster(nodes=[node(f"n{i}", load={"cpu": 0.5}) for i in range(4)], pods=[busy(on="n0")]), spec())
    assert (plan.moves, plan.refused) == ((), ())
    assert plan.outcome == "nothing to do: none of 4 nodes with a known load is hot"
