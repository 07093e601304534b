"""The word of every gate and of the plan about one pod, and of the plan about the pods of one node."""

from __future__ import annotations

from dataclasses import replace

from rebalancer.guard.gate import Booked, Candidate, Refusal, Scene, all_gates, first_refusal
from rebalancer.plan.model import Move, Plan, PodRef, RefusedCandidate
from rebalancer.report.explanation import Ruling, Verdict
from rebalancer.state.ledger import on_a_node


def gate_verdicts(*, scene: Scene, pod: int) -> tuple[Verdict, ...]:
    """Every gate asked about moving the pod now, as the first move of a plan; empty when the pod is not on a node."""
    source = int(scene.state.pods.node[pod])
    if source < 0 or not on_a_node(scene.state)[pod]:
        return ()
    first = replace(scene, booked=_nothing_yet(scene, pod))
    candidate = Candidate(pod=pod, source=source)
    verdicts = []
    for gate in all_gates():
        refusal = gate.check(candidate, first)
        verdicts.append(
            Verdict(
                subject=gate.name,
                ruling=Ruling.ALLOWED if refusal is None else Ruling.REFUSED,
                gate=gate.name,
                sentence="" if refusal is None else refusal.reason,
                retryable=None if refusal is None else refusal.retryable,
                rule=gate.describe,
            )
        )
    return tuple(verdicts)


def pod_first_refusal(*, scene: Scene, pod: int) -> Refusal | None:
    """What the gates say first against moving the pod alone; None when nothing."""
    source = int(scene.state.pods.node[pod])
    return first_refusal(Candidate(pod=pod, source=source), replace(scene, booked=_nothing_yet(scene, pod)))


def _nothing_yet(scene: Scene, pod: int) -> Booked:
    """A plan without moves, in which a gang that may move whole is about to."""
    booked, rules = Booked(), scene.gang_rules
    gang = rules.of_pod(pod)
    if gang >= 0 and not rules.spare(gang) and not rules.barred(gang):
        booked.whole_gangs.add(gang)
    return booked


def planned_move(plan: Plan | None, uid: str) -> Move | None:
    return None if plan is None else next((move for move in plan.moves if move.pod.uid == uid), None)


def planned_refusal(plan: Plan | None, uid: str) -> RefusedCandidate | None:
    return None if plan is None else next((refused for refused in plan.refused if refused.pod.uid == uid), None)


def planned_verdicts(plan: Plan | None) -> dict[str, Verdict]:
    """uid -> what the plan says of the pod, for every pod that it speaks of."""
    if plan is None:
        return {}
    words = {refused.pod.uid: refused_verdict(refused, subject=_name(refused.pod)) for refused in plan.refused}
    words.update((move.pod.uid, move_verdict(move, subject=_name(move.pod))) for move in plan.moves)
    return words


def move_verdict(move: Move, *, subject: str, arrives: bool = False) -> Verdict:
    where = f"from {move.source}" if arrives else move.whither
    return Verdict(subject=subject, ruling=Ruling.ARRIVES if arrives else Ruling.MOVES, sentence=f"{where}: {move.reason}")


def refused_verdict(refused: RefusedCandidate, *, subject: str) -> Verdict:
    return Verdict(subject=subject, ruling=Ruling.REFUSED, gate=refused.gate, sentence=refused.reason, retryable=refused.retryable)


def node_verdicts(plan: Plan | None, node: str) -> tuple[Verdict, ...]:
    """What the plan does with the pods of a node: those that leave, those that arrive, those that stay and why."""
    if plan is None:
        return ()
    leaving = [move_verdict(move, subject=_name(move.pod)) for move in plan.moves if move.source == node]
    arriving = [move_verdict(move, subject=_name(move.pod), arrives=True) for move in plan.moves if move.destination == node]
    staying = [refused_verdict(refused, subject=_name(refused.pod)) for refused in plan.refused if refused.source == node]
    return (*leaving, *arriving, *staying)


def _name(pod: PodRef) -> str:
    return f"{pod.namespace}/{pod.name}"
