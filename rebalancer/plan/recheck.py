"""A plan from a file against the cluster as it is now: what still holds, and why the rest does not.

Nothing is planned anew here. A move survives when its pod is still the same one on the same node, the node is still over its target, every
gate still lets the pod go, a replacement would still land on the planned node or on one that the plan named beside it, and that is still
worth an eviction.
"""

from __future__ import annotations

import numpy as np

from rebalancer.guard.gate import Candidate, first_refusal
from rebalancer.plan.booking import book_move
from rebalancer.plan.destination import Landing
from rebalancer.plan.method import Bench, Proposal, ProposedMove
from rebalancer.plan.model import Move, Plan
from rebalancer.plan.reasons import PlanGate


def recheck(plan: Plan, bench: Bench) -> tuple[Proposal, tuple[tuple[Move, str], ...]]:
    """The surviving moves as a proposal on the bench's books, and the dropped ones with a sentence each."""
    kept: list[ProposedMove] = []
    dropped: list[tuple[Move, str]] = []
    for move in plan.moves:
        result = _still(move, bench)
        if isinstance(result, str):
            dropped.append((move, result))
        else:
            kept.append(result)
    outcome = f"{len(kept)} of {len(plan.moves)} planned moves still hold"
    return Proposal(plan.method, tuple(kept), (), outcome), tuple(dropped)


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
