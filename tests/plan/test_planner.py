"""The whole decision: methods in their order, the nodes that would be steered away from, the same answer twice."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from rebalancer.detect.classify import detect
from rebalancer.plan.balance import Balance
from rebalancer.plan.grades import HOT_TAINT, keys_of
from rebalancer.plan.method import Bench, Proposal
from rebalancer.plan.planner import METHODS, Decision, decide, lay_bench
from rebalancer.plan.steering import graded, soft_tainted, taints_then, warm_nodes
from rebalancer.policy.model import DEFAULT_SIGNALS, Mode, Pool, RebalancePolicy, Spec, Steering
from rebalancer.state.cluster import ClusterState
from rebalancer.state.history import NOTHING_HAPPENED
from tests.plan.deciding import moved, planned
from tests.support.builder import cluster, node, pod

GIB = 2.0**30


@dataclass
class Idle:
    """A method that never finds anything, and remembers what it was given."""

    name: str
    benches: list[Bench] = field(default_factory=list)

    def propose(self, bench: Bench) -> Proposal:
        self.benches.append(bench)
        return Proposal(self.name, (), (), f"{self.name} has nothing to do")


@dataclass
class Meddling(Idle):
    """Books something and then proposes nothing."""

    def propose(self, bench: Bench) -> Proposal:
        bench.loads.usage[:] = 0.0
        return Idle.propose(self, bench)


def state(**loads: float) -> ClusterState:
    """A hot node with one pod that cures it, and a cool one; other nodes by name and load."""
    nodes = [node(name, load={"cpu": load, "memory": 0.2}) for name, load in {"hot": 0.8, "cool": 0.2, **loads}.items()]
    return cluster(nodes=nodes, pods=[pod("web-1", on="hot", workload="web", uses={"cpu": 2.0, "memory": GIB})])


def decided(now: ClusterState, *methods: Any, spec: Spec | None = None) -> Decision:
    policy = RebalancePolicy(spec=spec or Spec())
    return decide(
        state=now,
        findings=detect(now, policy.spec),
        policy=policy,
        history=NOTHING_HAPPENED,
        mode=Mode.EVICT,
        mode_source="a test",
        methods=methods or METHODS,
    )


def test_the_first_method_with_moves_is_the_plan_and_the_rest_are_not_asked() -> None:
    """One cycle pursues one aim."""
    first, last = Idle("reclaim"), Idle("defragment")
    plan = decided(state(), first, Balance(), last).plan
    assert (plan.method, moved(plan)) == ("balance", ["web-1"])
    assert (len(first.benches), len(last.benches)) == (1, 0)


def test_without_moves_the_last_method_says_why_nothing_is_done() -> None:
    """After what those before it had to say."""
    plan = decided(state(), Idle("reclaim"), Idle("defragment")).plan
    assert (plan.method, plan.moves) == ("defragment", ())
    assert plan.outcome == "reclaim has nothing to do; defragment has nothing to do"


def test_each_method_begins_with_fresh_books() -> None:
    """What the one before booked and gave up must not be seen."""
    assert moved(decided(state(), Meddling("reclaim"), Balance()).plan) == ["web-1"]


def test_no_method_at_all_is_a_defect_and_not_an_empty_plan() -> None:
    """An empty plan would look like a balanced cluster."""
    policy = RebalancePolicy()
    with pytest.raises(ValueError, match="no method"):
        decide(state=state(), findings=detect(state(), policy.spec), policy=policy, history=NOTHING_HAPPENED, mode=Mode.EVICT, methods=())


def test_the_decision_holds_the_rows_that_the_document_was_made_from() -> None:
    """For whoever acts on it or explains it."""
    decision = decided(state())
    assert [decision.bench.scene.state.pods.names[move.pod] for move in decision.proposal.moves] == moved(decision.plan)
    assert decision.plan.mode_source == "a test"


def test_t8_the_same_input_gives_the_same_plan_and_changes_nothing_in_the_input() -> None:
    """Deciding twice on one state is the same decision."""
    now = state(other=0.3)
    assert decided(now).plan == decided(now).plan


def tainted(now: ClusterState, spec: Spec | None = None, **steering: Any) -> set[str]:
    found = soft_tainted(detect(now, spec or Spec()), Steering(**steering))
    return {name for name, marked in zip(now.nodes.names, found.tolist(), strict=True) if marked}


def kept(now: ClusterState, **steering: Any) -> set[str]:
    """Nodes that keep a taint if they carry it."""
    found = warm_nodes(detect(now, Spec()), Steering(**steering))
    return {name for name, marked in zip(now.nodes.names, found.tolist(), strict=True) if marked}


COOLER = {f"cooler-{i}": 0.1 + i / 100 for i in range(10)}


def test_every_node_above_target_of_a_pool_with_a_hot_node_is_steered_away_from() -> None:
    """The warm ones as well: a replacement there would be the next thing to move."""
    assert tainted(state(warm=0.6, at_target=0.55), taint_above=100) == {"hot", "warm"}


def test_so_is_every_node_above_the_share_of_target() -> None:
    """Three quarters of 55 % are 41 %: a node at 45 % has less room than the ten that idle."""
    assert tainted(state(warm=0.6, nearly=0.45, fine=0.4, **COOLER)) == {"hot", "warm", "nearly"}


def test_a_fifth_of_the_pool_stays_untainted() -> None:
    """Of ten nodes eight at the most, the warmest: where nearly all repel, a taint tells nothing."""
    warm = {f"warm-{i}": 0.45 + i / 100 for i in range(8)}
    assert tainted(state(**warm)) == {"hot", *(name for name in warm if name not in ("warm-0",))}


def test_a_signal_that_is_hot_nowhere_widens_nothing() -> None:
    """Memory at 60 % is over three quarters of its target; nobody is moved for memory."""
    nodes = [node("hot", load={"cpu": 0.8, "memory": 0.2}), node("full", load={"cpu": 0.2, "memory": 0.6})]
    nodes += [node(f"cool-{i}", load={"cpu": 0.2, "memory": 0.2}) for i in range(8)]
    assert tainted(cluster(nodes=nodes)) == {"hot"}


def test_a_taint_is_kept_above_target_and_while_it_would_be_put_anew() -> None:
    """Between three quarters and the whole of target only as long as the pool has a hot node."""
    assert kept(state(warm=0.6, nearly=0.45, **COOLER)) == {"hot", "warm", "nearly"}
    assert kept(state(hot=0.5, warm=0.6, nearly=0.45, **COOLER)) == {"warm"}
    assert kept(state(warm=0.6, **COOLER), soft_taint=False) == set()


def grades(now: ClusterState, **steering: Any) -> dict[str, tuple[str, ...]]:
    """The last words of the keys that are right for each warm node."""
    found, wanted = detect(now, Spec()), Steering(**steering)
    rows = graded(found, wanted, warm_nodes(found, wanted)).tolist()
    return {name: tuple(key.split("/")[1] for key in keys_of(row)) for name, row in zip(now.nodes.names, rows, strict=True) if any(row)}


def test_with_two_grades_hot_nodes_carry_both_taints_and_warm_ones_one() -> None:
    """Hot is what is over high, confirmed or not; at high itself a node is warm."""
    now = state(hot=0.8, rising=0.71, at_high=0.7, warm=0.6, nearly=0.45, **COOLER)
    both, one = ("hot", "warm"), ("warm",)
    assert grades(now, grades=2) == {"hot": both, "rising": both, "at_high": one, "warm": one, "nearly": one}


def test_with_one_grade_every_warm_node_carries_the_same_taint() -> None:
    """The one that earlier versions know too."""
    assert grades(state(warm=0.6, nearly=0.45, **COOLER), grades=1) == dict.fromkeys(("hot", "warm", "nearly"), ("hot",))


def then(now: ClusterState, *failed: str, **steering: Any) -> dict[str, tuple[str, ...]]:
    """The last words of the keys that each node will carry when the first pod leaves; nodes with none are left out."""
    found, wanted = detect(now, Spec()), Steering(**steering)
    rows = taints_then(
        now,
        found,
        wanted=soft_tainted(found, wanted),
        right=graded(found, wanted, warm_nodes(found, wanted)),
        failed=np.array([name in failed for name in now.nodes.names]),
    )
    return {
        name: tuple(key.split("/")[1] for key in keys_of(row)) for name, row in zip(now.nodes.names, rows.tolist(), strict=True) if any(row)
    }


OLDER = {"hot": 0.8, "warm": 0.6, "cool": 0.1, "cooler": 0.1}


def older(**loads: float) -> ClusterState:
    """Every node carries the one taint of an earlier version."""
    return cluster(nodes=[node(name, load={"cpu": load, "memory": 0.2}, taints=[HOT_TAINT]) for name, load in {**OLDER, **loads}.items()])


def test_nodes_that_an_earlier_version_tainted_are_judged_like_our_own() -> None:
    """What is hot gets the second taint, what is warm another, what is cool loses what it has."""
    assert then(older(), grades=2) == {"hot": ("hot", "warm"), "warm": ("warm",)}
    assert then(older(), grades=1) == {"hot": ("hot",), "warm": ("hot",)}
    assert then(older(hot=0.6), grades=2) == {"hot": ("warm",), "warm": ("warm",)}


def test_a_node_that_cannot_be_changed_counts_with_what_it_carries() -> None:
    """The prediction is of the taints that are there, not of those that were wished for."""
    assert then(older(), "warm", "cool", grades=2) == {"hot": ("hot", "warm"), "warm": ("hot",), "cool": ("hot",)}


def test_the_plan_of_a_failed_patch_is_predicted_without_its_taint() -> None:
    """The hot node is the emptiest by request: without the taint the replacement would come straight back."""
    nodes = [node("hot", load={"cpu": 0.95, "memory": 0.2}), node("full", load={"cpu": 0.1, "memory": 0.2})]
    filler = pod("filler", on="full", cpu=7, uses={"cpu": 0.2, "memory": GIB})
    now = cluster(nodes=nodes, pods=[pod("web-1", on="hot", cpu=0.1, workload="web", uses={"cpu": 3.0, "memory": GIB}), filler])
    policy = RebalancePolicy(spec=Spec(steering=Steering(grades=2)))
    found = detect(now, policy.spec)
    benches = [
        lay_bench(state=now, findings=found, policy=policy, history=NOTHING_HAPPENED, mode=Mode.EVICT, untainted=names)
        for names in ((), ("hot",))
    ]
    row = now.pods.names.index("web-1")
    landings = [bench.destinations.predict(row, now.node_index["hot"]) for bench in benches]
    assert [type(landing).__name__ for landing in landings] == ["Landing", "NoLanding"]


def test_a_pool_that_is_warm_throughout_keeps_no_taint() -> None:
    """If all repel, none does; a node that nobody can see does not count as a cool one."""
    blind = node("blind", unknown={"cpu": "no sample", "memory": "no sample"})
    warm = [node("a", load={"cpu": 0.6, "memory": 0.2}), node("b", load={"cpu": 0.9, "memory": 0.2})]
    assert kept(cluster(nodes=[*warm, blind])) == set()


def test_no_hot_node_no_taint() -> None:
    """Warm alone is no reason to act."""
    assert tainted(state(hot=0.6, warm=0.65)) == set()


def test_a_pool_that_is_warm_throughout_is_not_steered_in() -> None:
    """If all repel, none does."""
    assert tainted(state(cool=0.56, warm=0.6)) == set()


def test_an_unknown_node_is_not_steered_and_is_no_cool_one() -> None:
    """Nobody knows whether it is warm, so it can neither be marked nor be counted on."""
    blind = node("blind", unknown={"cpu": "no sample", "memory": "no sample"})
    hot, cool = node("hot", load={"cpu": 0.8, "memory": 0.2}), node("cool", load={"cpu": 0.2, "memory": 0.2})
    assert tainted(cluster(nodes=[hot, cool, blind])) == {"hot"}
    assert tainted(cluster(nodes=[hot, node("warm", load={"cpu": 0.6, "memory": 0.2}), blind])) == set()


def test_pools_are_steered_each_for_itself() -> None:
    """A hot node of one pool marks nobody in another."""
    pools = tuple(Pool(name=name, node_selector={"matchLabels": {"pool": name}}, signals=DEFAULT_SIGNALS) for name in ("a", "b"))
    nodes = [
        node(f"{pool}-{kind}", labels={"pool": pool}, load={"cpu": load, "memory": 0.2})
        for pool, kind, load in (("a", "hot", 0.8), ("a", "cool", 0.2), ("b", "warm", 0.6), ("b", "cool", 0.2))
    ]
    assert tainted(cluster(nodes=nodes), Spec(pools=pools)) == {"a-hot"}


def test_steering_that_is_switched_off_marks_nobody() -> None:
    """By the policy, or since annotate mode evicts nothing."""
    now = state()
    assert tainted(now, soft_taint=False) == set()
    off = RebalancePolicy(spec=Spec(steering=Steering(soft_taint=False)))
    for policy, mode in ((off, Mode.EVICT), (RebalancePolicy(), Mode.ANNOTATE)):
        bench = lay_bench(state=now, findings=detect(now, policy.spec), policy=policy, history=NOTHING_HAPPENED, mode=mode)
        assert not bench.soft_tainted.any()


def test_a_dry_run_plans_what_evict_mode_would_do() -> None:
    """With the same taints in mind; only the name of the mode differs."""
    dry, real = planned(state(), mode=Mode.DRY_RUN), planned(state(), mode=Mode.EVICT)
    assert dry.moves == real.moves
    assert dry.soft_taints == real.soft_taints
