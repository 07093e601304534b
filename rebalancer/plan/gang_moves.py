"""Moving a gang whole: every member passes the gates and has a place in the same plan, or none moves.

Members are tried one after the other on the books of the plan, so that the second sees what the first has taken, of budgets, of room and
of load alike; when one fails, everything is taken back. What the move wins and what it disturbs is counted for all of them together: most
stand on nodes that are not hot, and begin anew only because the others do; they may come back to their nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rebalancer.guard.gate import Candidate, Refusal, first_refusal
from rebalancer.plan.booking import Mark, book_move, mark, rewind
from rebalancer.plan.destination import Landing
from rebalancer.plan.method import Bench, ProposedMove
from rebalancer.plan.reasons import PlanGate

GATE = "gang"


@dataclass(frozen=True, slots=True)
class GangTry:
    """``gang``: its row; ``pods``: all its members, in the order in which they are tried; ``source``: the node that is to be relieved."""

    gang: int
    pods: tuple[int, ...]
    source: int


def to_move_whole(bench: Bench, pods: Sequence[int], source: int) -> Mapping[int, GangTry]:
    """Pod -> the gang that would have to move for it, of those that may not go alone and whose gang may move. Members on ``source`` come
    first."""
    rules, state = bench.scene.gang_rules, bench.scene.state
    nodes, tries = state.pods.node, dict[int, GangTry]()
    found: dict[int, GangTry] = {}
    for pod in pods:
        gang = rules.of_pod(pod)
        if gang < 0 or rules.spare(gang) > 0 or rules.barred(gang):
            continue
        if gang not in tries:
            members = sorted(rules.members(gang).tolist(), key=lambda row: (int(nodes[row]) != source, state.pod_name(row)))
            tries[gang] = GangTry(gang, tuple(members), source)
        found[pod] = tries[gang]
    return found


def move_whole(
    bench: Bench, trial: GangTry, *, reason: Callable[[int], str], place: Callable[[int, Landing], str] = lambda pod, landing: ""
) -> tuple[ProposedMove, ...] | Refusal:
    """All members booked on the books of the bench, or the refusal of all and nothing booked.

    ``reason``: why each moves. ``place``: what speaks against a landing, in words; empty when nothing does.
    """
    before = mark(bench)
    bench.scene.booked.whole_gangs.add(trial.gang)
    found = _all_placed(bench, trial, before, reason, place)
    if isinstance(found, str):
        rewind(bench, before)
        rules = bench.scene.gang_rules
        return Refusal(GATE, f"it is a member of {rules.words(trial.gang, trial.pods[0])} and moves whole or not at all; {found}", True)
    return found


def _all_placed(
    bench: Bench, trial: GangTry, before: Mark, reason: Callable[[int], str], place: Callable[[int, Landing], str]
) -> tuple[ProposedMove, ...] | str:
    """The moves, or in words why one of the members holds all."""
    state, scene = bench.scene.state, bench.scene
    if before.booked.pods.intersection(trial.pods):
        return "this plan moves one of them already"
    candidates = [Candidate(pod, int(state.pods.node[pod])) for pod in trial.pods]
    for candidate in candidates:  # what can be known without booking anything is asked of all first
        name = state.pod_name(candidate.pod)
        if candidate.source < 0:
            return f"{name} is on no node"
        refusal = first_refusal(candidate, scene, static=True)
        if refusal is not None:
            return f"{name} may not: {refusal.gate}: {refusal.reason}"
    moves: list[ProposedMove] = []
    for candidate in candidates:
        name = f"{state.pod_name(candidate.pod)} on {state.nodes.names[candidate.source]}"
        refusal = first_refusal(candidate, scene, static=False)
        if refusal is not None:
            return f"{name} may not: {refusal.gate}: {refusal.reason}"
        landing = bench.destinations.predict(candidate.pod, candidate.source, may_return=True)
        if not isinstance(landing, Landing):
            return f"{name} has no place: {landing.gate.value}: {landing.reason}"
        if words := place(candidate.pod, landing):
            return f"{name} has no place: {words}"
        moves.append(book_move(bench, candidate, landing, reason=reason(candidate.pod), gang=trial.gang))
    return _not_worth_it(bench, moves) or tuple(moves)


def _not_worth_it(bench: Bench, moves: Sequence[ProposedMove]) -> str:
    """Why all moves together win too little for what they disturb; empty when they are worth it. An unknown gain is not worth anything."""
    cost = bench.scene.spec.gain.disruption_cost
    gain = sum(move.gain for move in moves)
    weight = float(bench.disturbance.weights(np.array([move.pod for move in moves], dtype=np.int64)).sum())
    if gain > cost * weight:
        return ""
    asked = f"gain.disruptionCost {cost:g} times {weight:.1f} for what their evictions disturb is {cost * weight:.4f}"
    return f"{PlanGate.GAIN_TOO_SMALL.value}: all {len(moves)} together would win {gain:.4f}; {asked}"


def together(bench: Bench, trial: GangTry) -> str:
    """What is said before the reason of each of its moves."""
    state, count = bench.scene.state, len(trial.pods)
    whole = f"gang {state.gangs.title(trial.gang)} moves whole, {count} pod{'s' if count != 1 else ''}"
    return f"{whole}, to relieve {state.nodes.names[trial.source]}"
