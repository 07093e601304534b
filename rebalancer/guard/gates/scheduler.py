"""A move is worth what its destination makes of it; where another scheduler decides, the destination cannot be predicted."""

from __future__ import annotations

from rebalancer.guard.gate import Candidate, Gate, Refusal, Scene

NAME = "scheduler"


def check(candidate: Candidate, scene: Scene) -> Refusal | None:
    state = scene.state
    scheduler = state.constraints[int(state.pods.constraints[candidate.pod])].scheduler_name
    known = scene.spec.victims.schedulers
    if scheduler in known:
        return None
    reason = f"its scheduler {scheduler} is not among {', '.join(known)}, so its next node cannot be predicted (policy victims.schedulers)"
    return Refusal(NAME, reason, retryable=False)


GATE = Gate(
    name=NAME,
    order=170,
    describe=(
        "Pods whose `schedulerName` is not among `victims.schedulers`, because the destination of the replacement cannot be predicted."
    ),
    check=check,
)
