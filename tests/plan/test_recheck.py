"""A plan from a file against the cluster as it is now: every reason for which a move is dropped, and budgets over what is kept."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import pytest

from rebalancer.detect.classify import detect
from rebalancer.plan.method import Bench
from rebalancer.plan.model import Move, Plan
from rebalancer.plan.planner import lay_bench
from rebalancer.plan.recheck import recheck
from rebalancer.policy.model import Budgets, Gain, Mode, RebalancePolicy, Spec
from rebalancer.state.cluster import ClusterState
from rebalancer.state.history import NOTHING_HAPPENED, History, PastEviction
from rebalancer.state.tables import WorkloadRef
from tests.plan.deciding import moved, planned
from tests.support.builder import NOW, NodeSpec, PodSpec, budget, cluster, node, pod

GIB = 2.0**30


def nodes(*, hot: float = 0.9, cool: float = 0.2, **fields: Any) -> list[NodeSpec]:
    return [
        node("hot", load={"cpu": hot, "memory": 0.3}, **fields),
        *(node(f"cool-{i}", load={"cpu": cool, "memory": 0.2}) for i in range(3)),
    ]


def heavy(name: str, *, cores: float = 1.5, **fields: Any) -> PodSpec:
    return pod(name, **{"on": "hot", "workload": name.split("-", maxsplit=1)[0], "uses": {"cpu": cores, "memory": GIB}, **fields})


PODS = (heavy("web-1"), heavy("api-1"))


def state(pods: Sequence[PodSpec] = PODS, at: Sequence[NodeSpec] | None = None, **tables: Any) -> ClusterState:
    return cluster(nodes=at if at is not None else nodes(), pods=pods, **tables)


@pytest.fixture
def plan() -> Plan:
    """Two moves off one hot node, of two workloads."""
    made = planned(state())
    assert sorted(moved(made)) == ["api-1", "web-1"]
    return made


def bench(now: ClusterState, spec: Spec | None = None, *, history: History = NOTHING_HAPPENED, mode: Mode = Mode.EVICT) -> Bench:
    policy = RebalancePolicy(spec=spec or Spec())
    return lay_bench(state=now, findings=detect(now, policy.spec), policy=policy, history=history, mode=mode)


def checked(
    plan: Plan, now: ClusterState, spec: Spec | None = None, *, history: History = NOTHING_HAPPENED
) -> tuple[list[str], dict[str, str]]:
    """The pods whose moves hold, and why those of the others do not."""
    proposal, dropped = recheck(plan, bench(now, spec, history=history))
    return [now.pods.names[move.pod] for move in proposal.moves], {move.pod.name: why for move, why in dropped}


def only(plan: Plan, name: str, **changes: Any) -> Plan:
    """The plan with one of its moves."""
    (move,) = [move for move in plan.moves if move.pod.name == name]
    return msgspec.structs.replace(plan, moves=(msgspec.structs.replace(move, **changes),))


def test_in_an_unchanged_cluster_every_move_holds_in_its_order(plan: Plan) -> None:
    """And its reason goes with it."""
    proposal, dropped = recheck(plan, bench(state()))
    assert [state().pods.names[move.pod] for move in proposal.moves] == moved(plan)
    assert [move.reason for move in proposal.moves] == [move.reason for move in plan.moves]
    assert dropped == ()
    assert proposal.outcome == "2 of 2 planned moves still hold"


def test_a_pod_that_is_gone_is_dropped(plan: Plan) -> None:
    """The other move still holds."""
    assert checked(plan, state([heavy("api-1")])) == (["api-1"], {"web-1": "the pod is gone"})


def test_another_pod_of_the_same_name_is_not_the_planned_one(plan: Plan) -> None:
    """A StatefulSet's pod comes back under its name; only the uid tells."""
    kept, dropped = checked(plan, state([heavy("web-1", uid="another"), heavy("api-1")]))
    assert (kept, dropped["web-1"]) == (["api-1"], "the pod is gone")


@pytest.mark.parametrize(("on", "where"), [("cool-1", "cool-1"), (None, "no node")])
def test_a_pod_that_is_elsewhere_is_dropped(on: str | None, where: str, plan: Plan) -> None:
    """It may have been moved by somebody else, or wait for a node."""
    _, dropped = checked(plan, state([heavy("web-1", on=on), heavy("api-1")]))
    assert dropped["web-1"] == f"the pod is on {where} now, not on hot"


def test_a_node_that_has_cooled_keeps_its_pods(plan: Plan) -> None:
    """At or under target nothing has to leave it."""
    assert checked(plan, state(at=nodes(hot=0.55)))[1] == dict.fromkeys(["web-1", "api-1"], "hot is not over its target any more")


def test_a_node_that_is_warm_but_no_longer_hot_is_still_relieved(plan: Plan) -> None:
    """The plan drains to target; being under high is no reason to stop halfway."""
    assert checked(plan, state(at=nodes(hot=0.65)))[0] == moved(plan)[:1]


def test_a_node_whose_load_is_unknown_by_now_keeps_its_pods(plan: Plan) -> None:
    """Unknown is not over target."""
    blind = [node("hot", unknown={"cpu": "no sample", "memory": "no sample"}), *nodes()[1:]]
    assert set(checked(plan, state(at=blind))[1].values()) == {"hot is not over its target any more"}


def test_a_node_that_is_partly_unknown_is_refused_by_a_gate(plan: Plan) -> None:
    """One judged signal is over target, the other one cannot be seen."""
    partly = [node("hot", load={"cpu": 0.9}, unknown={"memory": "no sample"}), *nodes()[1:]]
    kept, dropped = checked(plan, state(at=partly))
    assert kept == []
    assert all(":" in why for why in dropped.values())


@pytest.mark.parametrize(
    ("changed", "gate"),
    [
        ({"annotations": {"rebalancer.dev/evict": "false"}}, "opt-out"),
        ({"terminating": True}, "terminating"),
        ({"uses": {}}, "unknown-usage"),
        ({"workload": None}, "bare-pod"),
        ({"age_s": 60.0}, "minimum-age"),
    ],
)
def test_every_gate_is_asked_again(changed: dict[str, Any], gate: str, plan: Plan) -> None:
    """Whatever came between planning and applying: the refusal has the gate's name and sentence."""
    _, dropped = checked(plan, state([heavy("web-1", **changed), heavy("api-1")]))
    assert dropped["web-1"].startswith(f"{gate}: ")


def test_a_budget_that_is_used_up_by_now_refuses(plan: Plan) -> None:
    """Somebody else's disruption."""
    guarded = [heavy("web-1", budgets=["web"]), heavy("api-1")]
    _, dropped = checked(plan, state(guarded, budgets=[budget("web", allowed=0)]))
    assert dropped["web-1"].startswith("disruption-budget: ")


def test_what_the_controller_evicted_meanwhile_counts(plan: Plan) -> None:
    """Its cooldowns hold for a plan file too."""
    past = PastEviction(
        at=NOW - 60, pod_uid="u", namespace="default", pod="web-0", workload=WorkloadRef("Deployment", "default", "web"),
        controller_uid="", tenant=None, source="elsewhere", destination="cool-0",
    )  # fmt: skip
    kept, dropped = checked(plan, state(), history=History(evictions=(past,)))
    assert kept == ["api-1"]
    assert dropped["web-1"].startswith("cooldown-workload: ")


@pytest.mark.parametrize("budgets", [Budgets(total=1), Budgets(per_node=1), Budgets(per_namespace=1)])
def test_budgets_hold_over_the_moves_of_the_plan(budgets: Budgets, plan: Plan) -> None:
    """The first move is booked before the second one is asked for."""
    kept, dropped = checked(plan, state(), Spec(budgets=budgets))
    assert kept == moved(plan)[:1]
    assert [why.split(":")[0].startswith("budget-") for why in dropped.values()] == [True]


def test_the_same_pod_twice_in_a_file_is_moved_once(plan: Plan) -> None:
    """A file may have been edited."""
    twice = only(plan, "web-1")
    kept, dropped = checked(msgspec.structs.replace(twice, moves=twice.moves * 2), state())
    assert kept == ["web-1"]
    assert dropped["web-1"].startswith("in-flight: ")


def test_the_second_move_is_not_needed_once_the_first_brought_the_node_under_target(plan: Plan) -> None:
    """The node is less hot than it was: what is booked counts."""
    kept, dropped = checked(plan, state(at=nodes(hot=0.71)))
    assert len(kept) == 1
    assert list(dropped.values()) == ["hot is not over its target any more"]


def test_a_replacement_that_would_land_elsewhere_than_planned_is_dropped(plan: Plan) -> None:
    """Neither on the planned node nor on one that the plan named beside it."""
    _, dropped = checked(only(plan, "web-1", destination="cool-9", alternatives=()), state())
    assert dropped["web-1"].startswith("its replacement would now land on cool-")
    assert dropped["web-1"].endswith(", not on cool-9")


def test_a_named_alternative_will_do(plan: Plan) -> None:
    """The scheduler may choose it with equal right."""
    assert checked(only(plan, "web-1", destination="cool-9", alternatives=("cool-2",)), state())[0] == ["web-1"]


def test_no_good_place_any_more_says_why(plan: Plan) -> None:
    """The others have become warm."""
    _, dropped = checked(plan, state(at=nodes(cool=0.6)))
    assert all(why.startswith("no-better-place: ") for why in dropped.values())


def test_a_replacement_that_would_come_back_is_dropped(plan: Plan) -> None:
    """The other nodes were cordoned, so the scheduler would choose the source again."""
    shut = [nodes()[0], *(dataclasses.replace(one, unschedulable=True) for one in nodes()[1:])]
    words = "no-better-place: kube-scheduler's scores would put it back on hot"
    assert checked(plan, state(at=shut)) == ([], {"web-1": words, "api-1": words})


def test_no_feasible_node_any_more_says_why(plan: Plan) -> None:
    """Every node was cordoned."""
    shut = [dataclasses.replace(one, unschedulable=True) for one in nodes()]
    _, dropped = checked(plan, state(at=shut))
    assert all(why.startswith("no-feasible-node: ") for why in dropped.values())


def test_a_move_that_is_not_worth_an_eviction_any_more_is_dropped(plan: Plan) -> None:
    """The policy's cost of a disruption holds when a plan is applied, too."""
    _, dropped = checked(only(plan, "web-1"), state(), Spec(gain=Gain(disruption_cost=5)))
    assert dropped["web-1"].startswith("gain-too-small: moving it to cool-0 would win 0.")
    assert dropped["web-1"].endswith("; gain.disruptionCost 5 times 1.7 for what its eviction disturbs is 8.3333")


def test_an_empty_plan_has_nothing_to_hold() -> None:
    """And says so."""
    proposal, dropped = recheck(planned(state(at=nodes(hot=0.3))), bench(state()))
    assert (proposal.moves, dropped, proposal.outcome) == ((), (), "0 of 0 planned moves still hold")


def test_what_holds_is_booked_on_the_loads_of_both_ends(plan: Plan) -> None:
    """The document that is made of it shows the load afterwards."""
    now = bench(state())
    before = now.loads.load().copy()
    proposal, _ = recheck(plan, now)
    after = now.loads.load()
    source = now.scene.state.node_index["hot"]
    assert after[source, 0] == pytest.approx(before[source, 0] - 2 * 1.5 / 8)
    assert np.nansum(after[:, 0]) == pytest.approx(np.nansum(before[:, 0]))
    assert all(math.isfinite(value) for move in proposal.moves for loads in move.loads for value in loads)


def test_the_move_of_a_plan_needs_nothing_but_its_own_words(plan: Plan) -> None:
    """It survives the way through a file."""
    again = msgspec.json.decode(msgspec.json.encode(plan), type=Plan)
    assert again == plan
    assert isinstance(again.moves[0], Move)
    assert checked(again, state()) == checked(plan, state())
