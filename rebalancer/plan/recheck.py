"""A plan from a file against the cluster as it is now: what still holds, and why the rest does not.

Nothing is planned anew here. A move survives when its pod is still the same one on the same node, the node is still over its target, every
gate still lets the pod go, a replacement would still land on the planned node or on one that the plan named beside it, and that is still
worth an eviction.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from rebalancer.guard.gate import Candidate, book, first_refusal
from rebalancer.plan.booking import book_move
from rebalancer.plan.destination import Landing
from rebalancer.plan.method import Bench, Proposal, ProposedMove
from rebalancer.plan.model import Move, Plan
from rebalancer.plan.reasons import PlanGate
from rebalancer.plan.room import where_it_fits, without


def recheck(plan: Plan, bench: Bench) -> tuple[Proposal, tuple[tuple[Move, str], ...]]:
    """The surviving moves as a proposal on the bench's books, and the dropped ones with a sentence each."""
    kept: list[ProposedMove] = []
    dropped: list[tuple[Move, str]] = []
    for group in _groups(plan):
        room = still_makes_room(group, bench)
        if isinstance(room, str):
            dropped.extend((move, room) for move in group)
        else:
            kept.extend(room)
    for move in plan.moves:
        if move.makes_room_for is not None:
            continue
        result = _still(move, bench)
        if isinstance(result, str):
            dropped.append((move, result))
        else:
            kept.append(result)
    outcome = f"{len(kept)} of {len(plan.moves)} planned moves still hold"
    return Proposal(plan.method, tuple(kept), (), outcome), tuple(dropped)


def _groups(plan: Plan) -> list[list[Move]]:
    """Moves that make room, by the pod that waits for it."""
    groups: dict[str, list[Move]] = {}
    for move in plan.moves:
        if move.makes_room_for is not None:
            groups.setdefault(move.makes_room_for.uid, []).append(move)
    return list(groups.values())


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


def _still(move: Move, bench: Bench) -> ProposedMove | str:
    state = bench.scene.state
    pod = state.pod_index.get(move.pod.uid, -1)
    if pod < 0:
        return "the pod is gone"
    node = int(state.pods.node[pod])
    if node < 0 or state.nodes.names[node] != move.source:
        where = "no node" if node < 0 else state.nodes.names[node]
        return f"the pod is on {where} now, not on {move.source}"
    if not _over_target(bench, node):
        return f"{move.source} is not over its target any more"
    candidate = Candidate(pod, node)
    refusal = first_refusal(candidate, bench.scene, static=True) or first_refusal(candidate, bench.scene, static=False)
    if refusal is not None:
        return f"{refusal.gate}: {refusal.reason}"
    landing = bench.destinations.predict(pod, node)
    if not isinstance(landing, Landing):
        return f"{landing.gate.value}: {landing.reason}"
    likely = {state.nodes.names[node] for node in (landing.destination, *landing.alternatives)}
    if not likely & {move.destination, *move.alternatives}:
        return f"its replacement would now land on {state.nodes.names[landing.destination]}, not on {move.destination}"
    reason = bench.disturbance.not_worth_it(pod, landing)
    if reason:
        return f"{PlanGate.GAIN_TOO_SMALL.value}: {reason}"
    return book_move(bench, candidate, landing, reason=move.reason)


def _over_target(bench: Bench, node: int) -> bool:
    reach, findings = bench.loads.reach(np.array([node]))[0], bench.findings
    with np.errstate(invalid="ignore"):
        return bool((findings.judged[node] & (reach > findings.target[node])).any())
