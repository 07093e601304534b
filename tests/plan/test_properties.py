"""What no plan ever does, on random clusters: the rules that hold whatever the numbers are."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from rebalancer.detect.classify import detect
from rebalancer.guard.disruption import disruption_cost
from rebalancer.guard.gate import Booked, Candidate, Scene, first_refusal
from rebalancer.plan.feasibility import Feasibility
from rebalancer.plan.ledger import Placements
from rebalancer.policy.model import Budgets, Cooldown, Mode, Pool, Spec, Threshold
from rebalancer.policy.quantities import limit_of
from rebalancer.state.cluster import ClusterState
from rebalancer.state.history import NOTHING_HAPPENED
from rebalancer.state.ledger import node_load
from tests.plan.deciding import decision
from tests.support.strategies import clusters

MARKS = {"cpu": Threshold(low=30, target=50, high=65), "memory": Threshold(low=50, target=70, high=85)}
SPEC = Spec(
    pools=(Pool(name="default", signals=MARKS),),
    budgets=Budgets(total=6, per_node=3, per_namespace=5, per_workload=2),
    cooldown=Cooldown(node=0),
)
PROFILE = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


def decided(state: ClusterState, spec: Spec = SPEC):
    made = decision(state, spec)
    event(f"{min(len(made.plan.moves), 3)} moves or more")
    return made


@PROFILE
@given(clusters())
def test_no_plan_breaks_a_disruption_budget(state: ClusterState) -> None:
    """What a plan takes from a budget never exceeds what it allows, and no pod of two budgets moves."""
    taken: Counter[int] = Counter()
    for move in decided(state).proposal.moves:
        budgets = state.pods.budgets[move.pod]
        assert len(budgets) <= 1
        for row in budgets:
            taken[row] += disruption_cost(state, move.pod, row)
    for row, count in taken.items():
        assert count <= state.budgets[row].allowed


@PROFILE
@given(clusters())
def test_no_plan_breaks_a_gate_or_a_limit(state: ClusterState) -> None:
    """Every moved pod passes every static gate, and the counts stay within the policy's budgets."""
    moves = decided(state).proposal.moves
    scene = Scene(state=state, spec=SPEC, history=NOTHING_HAPPENED, booked=Booked(), mode=Mode.EVICT)
    for move in moves:
        assert first_refusal(Candidate(move.pod, move.source), scene, static=True) is None
    assert len(moves) <= 6
    assert all(count <= 3 for count in Counter(move.source for move in moves).values())
    assert all(count <= 5 for count in Counter(state.pods.namespaces[move.pod] for move in moves).values())
    assert all(count <= limit_of(2, 0) for count in Counter(state.workload_of(move.pod) for move in moves).values())


@PROFILE
@given(clusters())
def test_no_plan_makes_a_destination_hot(state: ClusterState) -> None:
    """After all moves, no destination is over high on a judged signal, and the worst load is no worse unless it is far from high."""
    made = decided(state)
    after, findings = made.bench.loads.load(), detect(state, SPEC)
    for move in made.proposal.moves:
        judged = findings.judged[move.destination]
        assert (after[move.destination][judged] <= findings.high[move.destination][judged] + 1e-9).all()
    for column, marks in enumerate(MARKS.values()):
        known = ~np.isnan(findings.load[:, column])
        if known.any():
            worst = max(float(findings.load[known, column].max()), (marks.target + marks.high) / 200)
            assert after[known, column].max() <= worst + 1e-9


@PROFILE
@given(clusters())
def test_every_destination_and_alternative_is_feasible_and_known(state: ClusterState) -> None:
    """Replayed move by move with the scheduler's filters: each pod has its node, which is another one than its source."""
    placements = Placements(state)
    feasibility, findings = Feasibility(state, placements), detect(state, SPEC)
    for move in decided(state).proposal.moves:
        allowed = feasibility.allowed(move.pod)
        for node in (move.destination, *move.alternatives):
            assert allowed[node]
            assert node != move.source
            assert not np.isnan(findings.load[node][findings.judged[node]]).any()
        placements.book(move.pod, move.destination)


@PROFILE
@given(clusters(), st.data())
def test_nan_anywhere_never_causes_a_move(state: ClusterState, data: st.DataObject) -> None:
    """Blinding a node takes it out as source and destination; blinding a pod keeps it where it is."""
    column = data.draw(st.integers(0, len(state.signals) - 1))
    node = data.draw(st.integers(0, len(state.nodes.names) - 1))
    usage = state.nodes.usage.copy()
    usage[node, column] = np.nan
    measured, known = state.pods.measured.copy(), state.pods.usage.copy()
    blind = set()
    if len(state.pods.names):
        pod = data.draw(st.integers(0, len(state.pods.names) - 1))
        measured[pod, column] = known[pod, column] = np.nan
        blind.add(pod)
    dark = replace(state, nodes=replace(state.nodes, usage=usage), pods=replace(state.pods, measured=measured, usage=known))
    for move in decided(dark).proposal.moves:
        assert node not in (move.source, move.destination, *move.alternatives)
        assert move.pod not in blind


@PROFILE
@given(clusters())
def test_planning_is_deterministic(state: ClusterState) -> None:
    """The same input gives the same plan, to the letter."""
    assert decision(state, SPEC).plan == decision(state, SPEC).plan


@PROFILE
@given(clusters())
def test_every_pod_of_a_hot_node_has_a_move_or_a_refusal_with_a_sentence(state: ClusterState) -> None:
    """Nothing is passed over in silence, and nothing is both moved and refused."""
    made = decided(state)
    findings = detect(state, SPEC)
    hot = {row for row in range(len(state.nodes.names)) if findings.node_class[row] == 3}
    finished = {2, 3}
    here = {p for p in range(len(state.pods.names)) if int(state.pods.node[p]) in hot and int(state.pods.phase[p]) not in finished}
    moved = [move.pod for move in made.proposal.moves]
    refused = [pod for pod, _ in made.proposal.refused]
    assert sorted([*moved, *refused]) == sorted(here)
    assert all(refusal.reason for _, refusal in made.proposal.refused)


@PROFILE
@given(clusters())
def test_t8_planning_again_after_a_cured_plan_was_carried_out_plans_nothing_for_the_cured_nodes(state: ClusterState) -> None:
    """Carry the plan out on the columns: a node that was brought under target is no source again, and no pod moves twice."""
    made = decided(state)
    if not made.proposal.moves:
        return
    node_of = state.pods.node.copy()
    usage = state.nodes.usage.copy()
    for move in made.proposal.moves:
        used = np.where(np.isnan(state.pods.usage[move.pod]), 0.0, state.pods.usage[move.pod])  # an unjudged signal nobody measured
        usage[move.source] -= used
        usage[move.destination] += used
        node_of[move.pod] = move.destination
    moved_state = replace(state, nodes=replace(state.nodes, usage=np.maximum(usage, 0.0)), pods=replace(state.pods, node=node_of))
    after = node_load(moved_state)
    again = decided(moved_state).proposal.moves
    findings = detect(state, SPEC)
    sources = {move.source for move in again}
    moved = {move.pod for move in made.proposal.moves}
    assert not moved & {move.pod for move in again}
    for node in {move.source for move in made.proposal.moves}:
        under = (after[node][findings.judged[node]] <= findings.target[node][findings.judged[node]] + 1e-9).all()
        assert not (under and node in sources)
