"""Gangs in a plan: whole with a place for every member, the surplus one by one, or not at all."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from rebalancer.detect.classify import detect
from rebalancer.detect.tenants.accounts import in_force
from rebalancer.detect.tenants.membership import with_tenants
from rebalancer.plan.model import Plan
from rebalancer.plan.planner import decide, lay_bench
from rebalancer.plan.recheck import recheck
from rebalancer.policy.model import (
    Budgets,
    ClassRules,
    Cooldown,
    Gain,
    Mode,
    Pool,
    RebalancePolicy,
    Spec,
    Threshold,
    Victims,
)
from rebalancer.policy.reclaim import Reclaim
from rebalancer.policy.tenants import Members, Tenant, TenantSpec
from rebalancer.state.cluster import ClusterState
from rebalancer.state.history import NOTHING_HAPPENED
from rebalancer.state.tables import Phase, PodClass, WorkloadRef
from tests.plan.deciding import moved, planned, refusals, why
from tests.support.builder import NodeSpec, PodSpec, budget, cluster, node, pod
from tests.support.gangs import GangSpec, gang

GIB = 2.0**30
SAFE = {"rebalancer.dev/checkpointed": "true"}
ROOMY = Budgets(total=100, per_node=50, per_namespace=100, per_workload=1)
SPEC = Spec(budgets=ROOMY, cooldown=Cooldown(node=0))
PROFILE = settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


def member(name: str, *, on: str | None, cores: float = 1.5, **fields: Any) -> PodSpec:
    """``llm-3`` is a member of gang llm, of PyTorchJob llm, and accepts to begin anew."""
    of = name.rpartition("-")[0]
    given = {
        "gang": of,
        "workload": WorkloadRef("PyTorchJob", "default", of),
        "pod_class": PodClass.TRAINING,
        "annotations": SAFE,
        "uses": {"cpu": cores, "memory": GIB},
        **fields,
    }
    return pod(name, on=on, **given)


def heavy(name: str, *, on: str = "hot", cores: float = 3.0, **fields: Any) -> PodSpec:
    return pod(name, on=on, workload=name, uses={"cpu": cores, "memory": GIB}, **fields)


def nodes(*, hot: float = 0.9, warm: float = 0.6, cool: int = 4, **fields: Any) -> list[NodeSpec]:
    return [
        node("hot", load={"cpu": hot, "memory": 0.3}),
        node("warm", load={"cpu": warm, "memory": 0.3}),
        *(node(f"cool-{i}", load={"cpu": 0.1, "memory": 0.2}, **fields) for i in range(cool)),
    ]


def fleet(pods: Sequence[PodSpec], *gangs: GangSpec, at: Sequence[NodeSpec] | None = None, **tables: Any) -> ClusterState:
    return cluster(nodes=nodes() if at is None else at, pods=pods, gangs=gangs, **tables)


LLM = (member("llm-0", on="hot"), member("llm-1", on="hot"), member("llm-2", on="warm"), member("llm-3", on="warm"))


def test_a_gang_moves_whole_with_a_place_for_every_member() -> None:
    """Those on the node that is relieved and those elsewhere, marked as one gang, for one reason."""
    plan = planned(fleet(LLM), SPEC)
    assert sorted(moved(plan)) == ["llm-0", "llm-1", "llm-2", "llm-3"]
    assert {move.gang for move in plan.moves} == {"job-set default/llm"}
    assert {move.pod_class for move in plan.moves} == {"training"}
    assert {move.destination for move in plan.moves} <= {f"cool-{i}" for i in range(4)}
    assert plan.refused == ()
    assert plan.outcome == "4 moves from 1 of 1 hot node"
    assert {move.reason for move in plan.moves} == {
        "gang job-set default/llm moves whole, 4 pods, to relieve hot: cpu load 90 % > high 70 % in 10 of 10 windows; "
        "its 2 pods there bring it under target 55 %"
    }


def test_a_pod_that_may_go_alone_goes_before_any_gang() -> None:
    """One eviction is less than four."""
    plan = planned(fleet([*LLM, heavy("web")]), SPEC)
    assert moved(plan) == ["web"]
    assert set(refusals(plan).values()) == {"not-needed"}
    assert [move.gang for move in plan.moves] == [""]


def test_n8_if_one_member_has_no_place_none_moves() -> None:
    """Room for two of four: the books are as before, and all on the hot node get the same refusal."""
    crowded = nodes(cool=1, cpu=8)
    wide = [dataclasses.replace(each, cpu=4.0, uses=each.uses if each.on == "hot" else {"cpu": 0.1, "memory": GIB}) for each in LLM]
    plan = planned(fleet(wide, at=crowded), SPEC)
    assert plan.moves == ()
    assert refusals(plan) == {"llm-0": "gang", "llm-1": "gang"}
    assert "moves whole or not at all; default/llm-2 on warm has no place: no-feasible-node" in why(plan, "llm-0")
    assert why(plan, "llm-0") == why(plan, "llm-1")
    assert all(report.signals["cpu"].load == report.signals["cpu"].load_after for report in plan.nodes)


def test_what_a_failed_gang_had_booked_is_free_for_the_next_pod() -> None:
    """The place that one of its members would have taken goes to a pod that is tried later, for the other hot node."""
    hot_too = node("hot-too", load={"cpu": 0.75, "memory": 0.3})
    at = [node("hot", load={"cpu": 0.9, "memory": 0.3}), hot_too, node("cool", cpu=8, load={"cpu": 0.1, "memory": 0.2})]
    gang_pods = [member("llm-0", on="hot", cpu=4.0), member("llm-1", on="hot", cpu=5.0)]
    plan = planned(fleet([*gang_pods, heavy("web", on="hot-too", cores=2.0, cpu=7.5)], at=at), SPEC)
    assert moved(plan) == ["web"]
    assert set(refusals(plan)) == {"llm-0", "llm-1"}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"annotations": {}}, "default/llm-3 is not annotated rebalancer.dev/checkpointed"),
        ({"annotations": {**SAFE, "rebalancer.dev/evict": "false"}}, "default/llm-3 may not: opt-out"),
        ({"terminating": True}, "default/llm-3 may not: terminating"),
        ({"on": None}, "default/llm-3 is on no node"),
        ({"uses": {}}, "default/llm-3 may not: unknown-usage"),
        ({"priority": 2_000_000_000}, "default/llm-3 may not: system-critical"),
        ({"age_s": 60.0}, "default/llm-3 may not: minimum-age"),
        ({"budgets": ["tight"]}, "default/llm-3 on warm may not: disruption-budget"),
    ],
)
def test_what_one_member_may_not_none_may(changes: Mapping[str, Any], words: str) -> None:
    """Every gate is asked of every member, wherever it is."""
    pods = [*LLM[:3], dataclasses.replace(LLM[3], **changes)]
    plan = planned(fleet(pods, budgets=[budget("tight", allowed=0)]), SPEC)
    assert plan.moves == ()
    assert words in why(plan, "llm-0")


@pytest.mark.parametrize(
    ("limits", "gate"),
    [({"total": 3}, "budget-total"), ({"per_node": 1}, "budget-node"), ({"per_namespace": 3}, "budget-namespace")],
)
def test_budgets_count_every_member(limits: Mapping[str, int], gate: str) -> None:
    """One too few for the last is one too few for all; the budget of the workload counts the gang once."""
    spec = SPEC.model_copy(update={"budgets": ROOMY.model_copy(update=limits)})
    plan = planned(fleet(LLM), spec)
    assert plan.moves == ()
    assert f"may not: {gate}" in why(plan, "llm-0")


def test_a_disruption_budget_is_charged_by_all_members() -> None:
    """Three disruptions for four members are too few, four are enough."""
    pods = [dataclasses.replace(each, budgets=["llm"]) for each in LLM]
    assert planned(fleet(pods, budgets=[budget("llm", allowed=3)]), SPEC).moves == ()
    assert len(planned(fleet(pods, budgets=[budget("llm", allowed=4)]), SPEC).moves) == 4


def test_a_gang_has_to_win_what_all_its_evictions_disturb() -> None:
    """Thirty workers begin anew for one that is a little too much: not worth it, and the sum says so."""
    others = [member(f"llm-{i}", on="warm", cores=0.05, cpu=0.1) for i in range(1, 30)]
    plan = planned(fleet([member("llm-0", on="hot", cores=0.9), *others], at=nodes(hot=0.72)), SPEC)
    assert plan.moves == ()
    assert "gain-too-small: all 30 together would win" in why(plan, "llm-0")


def test_n1_relief_takes_whole_gangs_and_never_one_of_each() -> None:
    """Ten gangs of eight with one member each on the hot node, of which two have to leave: two whole gangs, sixteen evictions."""
    places = [f"farm-{i}" for i in range(10)]
    pods = [
        member(f"job{g}-{i}", on="hot" if i == 0 else places[(g + i) % 10], cores=1.4 if i == 0 else 0.2)
        for g in range(10)
        for i in range(8)
    ]
    at = [
        node("hot", cpu=32, load={"cpu": 0.62, "memory": 0.3}),
        *(node(name, cpu=32, load={"cpu": 0.2, "memory": 0.2}) for name in places),
    ]
    marks = {"cpu": Threshold(low=30, target=55, high=60), "memory": Threshold(low=50, target=70, high=85)}
    pools = (Pool(name="default", signals=marks),)
    spec = Spec(pools=pools, budgets=ROOMY, cooldown=Cooldown(node=0), gain=Gain(disruption_cost=0))
    plan = planned(fleet(pods, at=at), spec)
    counts = Counter(move.pod.name.rpartition("-")[0] for move in plan.moves)
    assert counts, "the node is relieved"
    assert set(counts.values()) == {8}
    assert len(counts) == 2


def test_n1_surplus_is_taken_rather_than_a_gang() -> None:
    """Where the class may move, what is above the minimum goes alone; what is not, stays."""
    pods = [member(f"llm-{i}", on="hot" if i < 3 else "warm", annotations={}) for i in range(6)]
    spec = SPEC.model_copy(update={"victims": Victims(classes=ClassRules(training="allow"))})
    plan = planned(fleet(pods, gang("llm", minimum=5)), spec)
    assert len(plan.moves) == 1
    assert plan.moves[0].gang == ""
    assert set(refusals(plan).values()) == {"gang-minimum"}


def test_the_surplus_of_an_elastic_job_goes_without_a_word_of_its_owner() -> None:
    """Its own policy says that it goes on."""
    pods = [member(f"llm-{i}", on="hot", annotations={}, cores=3.0) for i in range(2)]
    assert len(planned(fleet(pods, gang("llm", minimum=1, elastic=True)), SPEC).moves) == 1
    assert planned(fleet(pods, gang("llm", minimum=1)), SPEC).moves == ()


def test_a_gang_of_one_moves_as_a_gang() -> None:
    """A single worker needs its owner's word like any other."""
    alone = member("llm-0", on="hot", cores=3.0)
    assert [move.gang for move in planned(fleet([alone]), SPEC).moves] == ["job-set default/llm"]
    assert planned(fleet([dataclasses.replace(alone, annotations={})]), SPEC).moves == ()


def test_a_gang_over_two_hot_nodes_relieves_both_and_is_told_once() -> None:
    """Its members on the second node are not tried again, and none of them is refused as well."""
    at = [*nodes(), node("hot-too", load={"cpu": 0.8, "memory": 0.3})]
    pods = [member("llm-0", on="hot", cores=3.0), member("llm-1", on="hot-too", cores=2.5)]
    plan = planned(fleet(pods, at=at), SPEC)
    assert sorted(moved(plan)) == ["llm-0", "llm-1"]
    assert plan.refused == ()
    assert plan.summary.hot_nodes_after == 0


def test_members_on_nodes_that_are_not_hot_may_come_back_to_them() -> None:
    """They begin anew for the sake of the others; coming back wins and costs nothing. Those on the hot node have to leave it."""
    at = [node("hot", load={"cpu": 0.9, "memory": 0.3}), node("cool", cpu=16, load={"cpu": 0.1, "memory": 0.2})]
    plan = planned(fleet([member("llm-0", on="hot", cores=3.0), member("llm-1", on="cool", cores=0.5)], at=at), SPEC)
    assert {move.pod.name: (move.source, move.destination) for move in plan.moves} == {"llm-0": ("hot", "cool"), "llm-1": ("cool", "cool")}
    assert {move.pod.name: move.gain for move in plan.moves}["llm-1"] == 0
    alone = fleet([member("llm-0", on="hot", cores=3.0), member("llm-1", on="hot", cores=0.5)], at=[at[0]])
    assert planned(alone, SPEC).moves == ()


def borrowed(*gangs: GangSpec) -> ClusterState:
    """A tenant waits for what it is guaranteed, on a node full of another's gang."""
    gang_pods = [member(f"llm-{i}", on="n1", cpu=2.0, cores=1.0, namespace="big") for i in range(4)]
    claim = pod("claim", namespace="small", workload="claim", cpu=2.0, phase=Phase.PENDING, age_s=600.0)
    return fleet([*gang_pods, claim], *gangs, at=[node("n1", cpu=8)])


def test_n1_reclaim_takes_surplus_of_a_gang_and_never_a_member_that_it_needs() -> None:
    """Whatever its owner says: what is given back is one pod, and a gang of three that needs four has ended."""
    leaf = {name: Tenant(name=name, members=(Members(namespaces=(name,)),), guaranteed={"cpu": 4}) for name in ("big", "small")}
    quotas = TenantSpec(tenants=tuple(leaf.values()))
    spec = SPEC.model_copy(update={"reclaim": Reclaim(enabled=True, after=60)})

    def reclaimed(state: ClusterState) -> Plan:
        own, policy = with_tenants(state, quotas), RebalancePolicy(spec=spec)
        findings = detect(own, spec)
        return decide(
            state=own, findings=findings, policy=policy, history=NOTHING_HAPPENED, mode=Mode.EVICT, tenants=in_force(own, quotas)
        ).plan

    assert reclaimed(borrowed(gang("llm", namespace="big"))).moves == ()
    assert set(refusals(reclaimed(borrowed(gang("llm", namespace="big")))).values()) == {"gang-minimum"}
    taken = reclaimed(borrowed(gang("llm", namespace="big", minimum=3, elastic=True)))
    assert (taken.method, len(taken.moves)) == ("reclaim", 1)


# ---- a plan from a file ---------------------------------------------------------------------------------------------------


def checked(plan: Plan, now: ClusterState, spec: Spec = SPEC) -> tuple[list[str], dict[str, str]]:
    policy = RebalancePolicy(spec=spec)
    bench = lay_bench(state=now, findings=detect(now, spec), policy=policy, history=NOTHING_HAPPENED, mode=Mode.EVICT)
    proposal, dropped = recheck(plan, bench)
    return [now.pods.names[move.pod] for move in proposal.moves], {move.pod.name: why for move, why in dropped}


def test_the_moves_of_a_gang_survive_together() -> None:
    """Nothing has changed: all, in their order."""
    plan = planned(fleet(LLM), SPEC)
    assert checked(plan, fleet(LLM)) == (moved(plan), {})


@pytest.mark.parametrize(
    ("now", "words"),
    [
        (fleet(LLM[:3]), "has lost a member since"),
        (fleet([*LLM, member("llm-4", on="warm")]), "has 5 members now, 4 are planned to move"),
        (
            fleet([*LLM[:3], dataclasses.replace(LLM[3], on="cool-0")]),
            "default/llm-3 has to move together with the others, and the pod is on cool-0",
        ),
        (fleet([*LLM[:3], dataclasses.replace(LLM[3], terminating=True)]), "default/llm-3 may not: terminating"),
        (fleet([*LLM[:3], dataclasses.replace(LLM[3], annotations={})]), "may not move whole any more"),
        (fleet(LLM, at=nodes(hot=0.5, warm=0.5)), "no node of gang"),
        (fleet(LLM, at=nodes(unschedulable=True)), "has no place"),
    ],
)
def test_n8_when_one_move_of_a_gang_does_not_hold_all_are_dropped(now: ClusterState, words: str) -> None:
    """And the sentence is the same for all."""
    kept, dropped = checked(planned(fleet(LLM), SPEC), now)
    assert kept == []
    assert set(dropped) == {"llm-0", "llm-1", "llm-2", "llm-3"}
    assert len(set(dropped.values())) == 1
    assert words in dropped["llm-0"]


def test_a_plan_with_a_part_of_a_gang_is_not_carried_out() -> None:
    """Whoever edits the file cannot split it."""
    plan = planned(fleet(LLM), SPEC)
    kept, dropped = checked(msgspec.structs.replace(plan, moves=plan.moves[:2]), fleet(LLM))
    assert kept == []
    assert "has 4 members now, 2 are planned to move" in next(iter(dropped.values()))


# ---- whatever the fleet ---------------------------------------------------------------------------------------------------


@st.composite
def fleets(draw: st.DrawFn) -> ClusterState:
    """Hot and cool nodes, pods that stand alone, and gangs over all of them: with and without surplus, checkpointed or not."""
    hot, cool = [f"hot{i}" for i in range(draw(st.integers(1, 3)))], [f"cool{i}" for i in range(draw(st.integers(1, 6)))]
    at = [node(name, load={"cpu": draw(st.floats(0.71, 1.1)), "memory": 0.3}) for name in hot]
    at += [node(name, load={"cpu": draw(st.floats(0.0, 0.5)), "memory": 0.2}) for name in cool]
    places = st.sampled_from([*hot, *hot, *cool])
    pods: list[PodSpec] = [
        pod(f"web{i}", on=draw(places), workload=f"web{i}", cpu=0.5, uses={"cpu": draw(st.floats(0.1, 3.0)), "memory": GIB})
        for i in range(draw(st.integers(0, 4)))
    ]
    gangs = []
    for number in range(draw(st.integers(1, 4))):
        size = draw(st.integers(1, 6))
        safe = draw(st.sampled_from(["all", "all", "all", "none", "some"]))
        needed = draw(st.integers(1, size))
        gangs.append(gang(f"g{number}", minimum=draw(st.sampled_from([None, needed])), elastic=draw(st.booleans())))
        for i in range(size):
            word = SAFE if safe == "all" or (safe == "some" and i) else {}
            on = draw(st.sampled_from([*hot, *hot, *cool, *cool, None])) if draw(st.integers(0, 9)) == 0 else draw(places)
            cores = draw(st.floats(0.1, 3.0))
            pods.append(member(f"g{number}-{i}", on=on, cores=cores, cpu=draw(st.sampled_from([0.5, 1.0, 3.0])), annotations=word))
    return fleet(draw(st.permutations(pods)), *gangs, at=at)


@st.composite
def policies(draw: st.DrawFn) -> Spec:
    victims = Victims(
        gangs=draw(st.sampled_from(["refuse", "checkpointed", "checkpointed", "whole"])),
        classes=ClassRules(training=draw(st.sampled_from(["annotate", "allow"]))),
    )
    budgets = Budgets(total=draw(st.sampled_from([4, 100])), per_node=draw(st.sampled_from([2, 50])), per_namespace=100)
    return Spec(budgets=budgets, cooldown=Cooldown(node=0), victims=victims)


def broken(state: ClusterState, uids: set[str]) -> list[str]:
    """Gangs of which some members are in the plan, and more than are above its minimum."""
    gangs, found = state.gangs, []
    for number in range(len(gangs)):
        members = gangs.members(number).tolist()
        taken = sum(state.pods.uids[pod] in uids for pod in members)
        working = sum(bool(state.pods.ready[pod]) for pod in members)
        if 0 < taken < len(members) and working - taken < gangs.minimum[number]:
            found.append(f"{gangs.title(number)}: {taken} of {len(members)}")
    return found


@PROFILE
@given(fleets(), policies())
def test_n8_no_plan_splits_a_gang(state: ClusterState, spec: Spec) -> None:
    """Every gang moves with all its members, keeps its minimum, or is left alone; where the policy refuses gangs, all are."""
    plan = planned(state, spec)
    taken = {move.pod.uid for move in plan.moves}
    whole = [move for move in plan.moves if move.gang]
    event(f"gangs moved: {len({move.gang for move in whole})}")
    assert broken(state, taken) == []
    assert not taken & {refused.pod.uid for refused in plan.refused}
    if spec.victims.gangs == "refuse":
        assert not any(state.gangs.of_pod(state.pod_index[uid]) >= 0 for uid in taken)
    places = [move.destination for move in whole]
    assert all(places), "every member has its place"


@PROFILE
@given(fleets(), policies())
def test_n8_what_is_left_of_a_plan_after_a_recheck_splits_no_gang(state: ClusterState, spec: Spec) -> None:
    """Whatever has changed in between: here half of the pods are opted out."""
    plan = planned(state, spec)
    words = tuple({**said, "rebalancer.dev/evict": "false"} if row % 2 else said for row, said in enumerate(state.pods.annotations))
    now = dataclasses.replace(state, pods=dataclasses.replace(state.pods, annotations=words))
    kept, _ = checked(plan, now, spec)
    assert broken(state, {f"uid-default-{name}" for name in kept}) == []


@PROFILE
@given(fleets(), st.randoms(use_true_random=False))
def test_v7_plans_with_gangs_do_not_depend_on_the_order_of_the_pods(state: ClusterState, random: Any) -> None:
    """The same fleet in another order: the same moves and refusals."""
    order = list(range(len(state.pods.names)))
    random.shuffle(order)
    assert msgspec.json.encode(planned(shuffled(state, order), SPEC)) == msgspec.json.encode(planned(state, SPEC))


def shuffled(state: ClusterState, order: list[int]) -> ClusterState:
    """The state with its pods in another order."""
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    columns: dict[str, Any] = {}
    for each in dataclasses.fields(state.pods):
        column = getattr(state.pods, each.name)
        columns[each.name] = column[order] if isinstance(column, np.ndarray) else tuple(column[row] for row in order)
    members = place[state.gangs.pod]
    again = np.argsort(members)
    gangs = dataclasses.replace(state.gangs, pod=members[again], gang=state.gangs.gang[again])
    return dataclasses.replace(state, pods=dataclasses.replace(state.pods, **columns), gangs=gangs)
