"""Where replacements are given their node, the plan chooses it; everywhere else it predicts kube-scheduler as before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from rebalancer.detect.classify import detect
from rebalancer.plan.hinting import ENABLED, NAMESPACE_LABEL
from rebalancer.plan.model import Plan
from rebalancer.plan.planner import decide
from rebalancer.policy.model import Budgets, Mode, Pool, RebalancePolicy, Spec, Steering, Threshold
from rebalancer.state.cluster import ClusterState
from rebalancer.state.history import History
from rebalancer.state.scheduling import Constraints, Taint
from tests.plan.deciding import moved, refusals, why
from tests.support.builder import cluster, node, pod

CPU_ONLY = {"cpu": Threshold(low=30, target=55, high=70)}
SPEC = Spec(pools=(Pool(name="default", signals=CPU_ONLY),), budgets=Budgets(per_node=20), steering=Steering(soft_taint=False))
ASKED = {"default": {NAMESPACE_LABEL: ENABLED}}


def decided(state: ClusterState, *, hints: bool = True, mode: Mode = Mode.EVICT, spec: Spec = SPEC) -> Plan:
    policy = RebalancePolicy(spec=spec)
    findings = detect(state, spec)
    return decide(state=state, findings=findings, policy=policy, history=History(), mode=mode, hints=hints).plan


def misled(*, taints: Sequence[Taint] = (), **fields) -> ClusterState:
    """A hot node that is nearly empty by request, one that is cool and nearly full by it, and a warm one in between. ``taints``: of the
    cool one."""
    nodes = [node("hot", load={"cpu": 0.9}), node("warm", load={"cpu": 0.54}), node("cool", load={"cpu": 0.1}, taints=taints)]
    pods = [
        pod("p", on="hot", workload="p", cpu=0.5, uses={"cpu": 2.4, "memory": 0}, **fields),
        pod("w", on="warm", workload="w", cpu=1.0, uses={"cpu": 0.1, "memory": 0}),
        pod("c", on="cool", workload="c", cpu=6.0, uses={"cpu": 0.1, "memory": 0}),
    ]
    return cluster(nodes=nodes, pods=pods, namespaces=ASKED)


def test_with_a_hint_the_best_node_is_chosen_whatever_the_scores() -> None:
    """By its requests the cool node is the last that the scheduler would take."""
    (move,) = decided(misled()).moves
    assert (move.destination, move.steered_by, move.prediction) == ("cool", "hint", "planned")
    assert move.signals["cpu"].destination_after == 0.4


def test_without_a_hint_the_same_move_is_refused() -> None:
    """The scheduler would put the replacement where it is warm, or back."""
    for plan in (decided(misled(), hints=False), decided(misled(), mode=Mode.ANNOTATE)):
        assert moved(plan) == []
        assert refusals(plan) == {"p": "no-better-place"}


def test_a_namespace_that_does_not_ask_gets_no_hints() -> None:
    """Its pods are not gated, so nobody could give them a node."""
    for labels in ({}, {NAMESPACE_LABEL: "disabled"}):
        state = replace(misled(), namespaces={"default": labels})
        assert refusals(decided(state)) == {"p": "no-better-place"}


def test_a_node_that_would_not_take_the_pod_is_never_chosen() -> None:
    """A hint is tried against the scheduler's filters, so the plan keeps to them."""
    state = misled(constraints=Constraints(node_selector=(("disk", "ssd"),)))
    assert refusals(decided(state)) == {"p": "no-feasible-node"}


def test_when_no_node_is_a_good_place_the_reason_names_the_coolest() -> None:
    """With its numbers, not with what the scheduler would do."""
    nodes = [node("hot", load={"cpu": 0.9}), node("warm", load={"cpu": 0.5}), node("other", load={"cpu": 0.54})]
    state = cluster(nodes=nodes, pods=[pod("p", on="hot", workload="p", cpu=1, uses={"cpu": 2.4, "memory": 0})], namespaces=ASKED)
    plan = decided(state)
    assert refusals(plan) == {"p": "no-better-place"}
    assert why(plan, "p") == (
        "none of 3 nodes that would take it is a good place: on the coolest, warm, cpu load 50 % -> 80 %, "
        "where at most 55 % before and 62 % after is a good place"
    )


def test_several_replacements_are_spread_by_what_they_bring() -> None:
    """Each is booked before the next one is chosen."""
    nodes = [node("hot", load={"cpu": 0.95}), node("a", load={"cpu": 0.3}), node("b", load={"cpu": 0.31})]
    pods = [pod(f"p{n}", on="hot", workload=f"p{n}", cpu=0.1, uses={"cpu": 1.6, "memory": 0}) for n in range(4)]
    plan = decided(cluster(nodes=nodes, pods=pods, namespaces=ASKED))
    assert sorted(move.destination for move in plan.moves) == ["a", "b"]


LED = SPEC.model_copy(update={"steering": Steering(soft_taint=False, extender_weight=5)})


def test_where_the_extender_is_asked_the_best_node_within_its_reach_is_chosen() -> None:
    """No namespace has to ask for that: the scheduler asks for every pod."""
    (move,) = decided(replace(misled(), namespaces={}), spec=LED).moves
    assert (move.destination, move.steered_by, move.prediction) == ("cool", "extender", "planned")


def test_a_node_that_the_scheduler_scores_too_far_behind_is_not_chosen() -> None:
    """A soft taint of somebody else costs it 300 points: more than a weight of 1 can give, less than one of 5."""
    weak = SPEC.model_copy(update={"steering": Steering(soft_taint=False, extender_weight=1)})
    state = replace(misled(taints=[Taint("their/own", "", "PreferNoSchedule")]), namespaces={})
    assert refusals(decided(state, spec=weak)) == {"p": "no-better-place"}
    assert moved(decided(state, spec=LED)) == ["p"]


def test_a_hint_is_preferred_to_the_extender() -> None:
    """It decides whatever the scores."""
    (move,) = decided(misled(), spec=LED).moves
    assert move.steered_by == "hint"


def test_the_extender_leads_no_pod_of_another_scheduler_and_none_that_is_only_marked() -> None:
    """Another scheduler does not ask it, and nothing is reserved for a pod that stays."""
    foreign = decided(replace(misled(constraints=Constraints(scheduler_name="other")), namespaces={}), spec=LED)
    marked = decided(replace(misled(), namespaces={}), spec=LED, mode=Mode.ANNOTATE)
    assert moved(foreign) == moved(marked) == []


@given(
    loads=st.lists(st.floats(0, 1.0), min_size=2, max_size=8),
    uses=st.lists(st.floats(0.1, 3.0), min_size=1, max_size=6),
    asks=st.floats(0.05, 2.0),
)
def test_no_hinted_move_makes_a_destination_hot(loads: list[float], uses: list[float], asks: float) -> None:
    """Every planned node was at or under target, is not the source, and stays under its limit with all moves booked."""
    nodes = [node("hot", load={"cpu": 0.95}), *(node(f"n{row}", load={"cpu": load}) for row, load in enumerate(loads))]
    pods = [pod(f"p{n}", on="hot", workload=f"p{n}", cpu=asks, uses={"cpu": use, "memory": 0}) for n, use in enumerate(uses)]
    state = cluster(nodes=nodes, pods=pods, namespaces=ASKED)
    plan = decided(state)
    limit = 0.55 + (0.70 - 0.55) / 2
    for move in plan.moves:
        assert move.steered_by == "hint"
        assert move.destination != "hot"
        assert move.source == "hot"
    after = {report.name: report.signals["cpu"].load_after for report in plan.nodes}
    assert all(after[move.destination] <= limit + 1e-6 for move in plan.moves)
    assert len({move.pod.uid for move in plan.moves}) == len(plan.moves)
