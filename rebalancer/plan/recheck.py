"""A plan from a file against the cluster as it is now: what still holds, and why the rest does not.

Nothing is planned anew here. A move survives when its pod is still the same one on the same node, the node is still over its target, every
gate still lets the pod go, a replacement would still land on the planned node or on one that the plan named beside it, and that is still
worth an eviction. Moves that belong together survive together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rebalancer.guard.gate import Candidate, Refusal, book, first_refusal
from rebalancer.plan.booking import book_move, mark, rewind
from rebalancer.plan.defragment import Defragment, move_aside
from rebalancer.plan.destination import Landing
from rebalancer.plan.gang_moves import move_whole, to_move_whole
from rebalancer.plan.method import Bench, Proposal, ProposedMove
from rebalancer.plan.model import Move, Plan
from rebalancer.plan.reasons import PlanGate
from rebalancer.plan.relieve import Relieve, not_a_source, still_crowds
from rebalancer.plan.room import where_it_fits, without
from rebalancer.state.cluster import ClusterState


def recheck(plan: Plan, bench: Bench) -> tuple[Proposal, tuple[tuple[Move, str], ...]]:
    """The surviving moves as a proposal on the bench's books, and the dropped ones with a sentence each."""
    kept: list[ProposedMove] = []
    dropped: list[tuple[Move, str]] = []
    for group in _groups(plan):
        result = _still_together(group, plan.method, bench)
        if isinstance(result, str):
            dropped.extend((move, result) for move in group)
        else:
            kept.extend(result)
    outcome = f"{len(kept)} of {len(plan.moves)} planned moves still hold"
    return Proposal(plan.method, tuple(kept), (), outcome), tuple(dropped)


def _groups(plan: Plan) -> list[list[Move]]:
    """Moves that belong together, each in the place of its first; those that make room before all others."""
    groups: dict[str, list[Move]] = {}
    for place, move in enumerate(plan.moves):
        groups.setdefault(move.bond or f"alone {place}", []).append(move)
    return sorted(groups.values(), key=lambda group: group[0].makes_room_for is None)


def _still_together(group: list[Move], method: str, bench: Bench) -> Sequence[ProposedMove] | str:
    if method == Defragment.name:
        return still_makes_way(group, bench)
    if group[0].makes_room_for is not None:
        return still_makes_room(group, bench)
    if group[0].gang:
        return still_moves_whole(group, bench)
    result = _still(group[0], method, bench)
    return result if isinstance(result, str) else (result,)


def still_moves_whole(moves: list[Move], bench: Bench) -> Sequence[ProposedMove] | str:
    """All moves of a gang on the books of the bench, or in words why none: the gang has the same members where they were, one of their
    nodes is still over its target, all pass the gates, and each would land on a planned node."""
    state, title = bench.scene.state, moves[0].gang
    by_pod = {state.pod_index.get(move.pod.uid, -1): move for move in moves}
    gangs = {bench.scene.gang_rules.of_pod(pod) if pod >= 0 else -1 for pod in by_pod}
    gang = gangs.pop()
    if gangs or gang < 0 or state.gangs.title(gang) != title:
        return f"gang {title} has lost a member since, or is none any more"
    for move in moves:
        if where := _elsewhere(move, state):
            return f"{move.pod.namespace}/{move.pod.name} has to move together with the others, and {where}"
    sources = dict.fromkeys(state.node_index[move.source] for move in moves)
    relieved = next((node for node in sources if _over_target(bench, node)), -1)
    if relieved < 0:
        return f"no node of gang {title} is over its target any more"
    trial = to_move_whole(bench, list(by_pod), relieved).get(next(iter(by_pod)))
    if trial is None:
        return f"gang {title} may not move whole any more"
    if set(trial.pods) != set(by_pod):
        return f"gang {title} has {len(trial.pods)} members now, {len(moves)} are planned to move"
    found = move_whole(
        bench,
        trial,
        reason=lambda pod: by_pod[pod].reason,
        place=lambda pod, landing: _other_place(by_pod[pod], landing, state),
    )
    return found.reason if isinstance(found, Refusal) else found


def still_makes_room(moves: list[Move], bench: Bench) -> list[ProposedMove] | str:
    """All of them on the books of the bench, or in words why none: the pod that waited must still wait, every victim must be where it was
    and pass the gates, and the pod must fit on the node without them."""
    state, scene = bench.scene.state, replace(bench.scene, reclaiming=True)
    waits = moves[0].makes_room_for
    waiting = -1 if waits is None else state.pod_index.get(waits.uid, -1)
    if waiting < 0 or state.pods.node[waiting] >= 0:
        return "the pod that waited for the room is gone" if waiting < 0 else "the pod that waited for the room has found a node"
    before, kept = scene.booked.copy(), list[ProposedMove]()
    node = state.node_index.get(moves[0].source, -1)
    for move in moves:
        pod = state.pod_index.get(move.pod.uid, -1)
        name = f"{move.pod.namespace}/{move.pod.name}"
        refusal = None
        if pod >= 0 and node >= 0 and state.pods.node[pod] == node:
            candidate = Candidate(pod, node)
            refusal = first_refusal(candidate, scene, static=True) or first_refusal(candidate, scene, static=False)
        if pod < 0 or node < 0 or state.pods.node[pod] != node or refusal is not None:
            scene.booked.become(before)
            why = f"{refusal.gate}: {refusal.reason}" if refusal is not None else f"it is not on {move.source} any more"
            return f"{name} has to leave together with the others, and {why}"
        book(Candidate(pod, node), scene)
        kept.append(
            ProposedMove(
                pod=pod,
                source=node,
                destination=-1,
                alternatives=(),
                chance=math.nan,
                gain=0.0,
                reason=move.reason,
                loads=(),
                makes_room_for=waiting,
            )
        )
    if not where_it_fits(without(state, [move.pod for move in kept]), waiting, gpu=scene.spec.gpu)[node]:
        scene.booked.become(before)
        return f"without them {state.pod_name(waiting)} would not fit on {moves[0].source} any more"
    return kept


def still_makes_way(moves: list[Move], bench: Bench) -> Sequence[ProposedMove] | str:
    """All of them on the books of the bench, or in words why none: the pod that waited still waits, every pod that makes way is where it
    was, passes the gates and would land on a planned node, and then the pod fits."""
    state, waits = bench.scene.state, moves[0].makes_room_for
    waiting = -1 if waits is None else state.pod_index.get(waits.uid, -1)
    if waiting < 0 or state.pods.node[waiting] >= 0:
        return "the pod that waited for the room is gone" if waiting < 0 else "the pod that waited for the room has found a node"
    for move in moves:
        if where := _elsewhere(move, state):
            return f"{move.pod.namespace}/{move.pod.name} has to make way together with the others, and {where}"
    pods = tuple(state.pod_index[move.pod.uid] for move in moves)
    before = mark(bench)
    found = move_aside(bench, pods, waiting, state.node_index[moves[0].source], reason=moves[0].reason)
    if isinstance(found, str):
        return found
    for move, now in zip(moves, found, strict=True):
        planned = {move.destination, *move.alternatives}
        if not planned & {state.nodes.names[node] for node in (now.destination, *now.alternatives)}:
            rewind(bench, before)
            return f"the replacement of {move.pod.name} would now land on {state.nodes.names[now.destination]}, not on {move.destination}"
    return found


def _still(move: Move, method: str, bench: Bench) -> ProposedMove | str:
    state = bench.scene.state
    pod = state.pod_index.get(move.pod.uid, -1)
    if where := _elsewhere(move, state):
        return where
    node = int(state.pods.node[pod])
    if words := _not_needed(method, bench, pod, node):
        return words
    candidate = Candidate(pod, node)
    refusal = first_refusal(candidate, bench.scene, static=True) or first_refusal(candidate, bench.scene, static=False)
    if refusal is not None:
        return f"{refusal.gate}: {refusal.reason}"
    landing = bench.destinations.predict(pod, node)
    if not isinstance(landing, Landing):
        return f"{landing.gate.value}: {landing.reason}"
    if where := _other_place(move, landing, state):
        return where
    reason = "" if method == Relieve.name else bench.disturbance.not_worth_it(pod, landing)
    if reason:
        return f"{PlanGate.GAIN_TOO_SMALL.value}: {reason}"
    return book_move(bench, candidate, landing, reason=move.reason)


def _not_needed(method: str, bench: Bench, pod: int, node: int) -> str:
    """Why what the plan was after does not ask for the move any more, in words."""
    if method == Relieve.name:
        return not_a_source(bench, node) or still_crowds(bench, pod)
    return "" if _over_target(bench, node) else f"{bench.scene.state.nodes.names[node]} is not over its target any more"


def _elsewhere(move: Move, state: ClusterState) -> str:
    """Where the pod is now, if not on the source of its move."""
    pod = state.pod_index.get(move.pod.uid, -1)
    if pod < 0:
        return "the pod is gone"
    node = int(state.pods.node[pod])
    if node >= 0 and state.nodes.names[node] == move.source:
        return ""
    return f"the pod is on {'no node' if node < 0 else state.nodes.names[node]} now, not on {move.source}"


def _other_place(move: Move, landing: Landing, state: ClusterState) -> str:
    """Where the replacement would land now, if on none of the nodes that the plan names."""
    likely = {state.nodes.names[node] for node in (landing.destination, *landing.alternatives)}
    if likely & {move.destination, *move.alternatives}:
        return ""
    return f"its replacement would now land on {state.nodes.names[landing.destination]}, not on {move.destination}"


def _over_target(bench: Bench, node: int) -> bool:
    reach, findings = bench.loads.reach(np.array([node]))[0], bench.findings
    with np.errstate(invalid="ignore"):
        return bool((findings.judged[node] & (reach > findings.target[node])).any())
