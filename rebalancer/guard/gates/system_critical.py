"""Pods at or above the priority of system-cluster-critical keep the cluster itself alive; no policy opens this."""

from __future__ import annotations

from rebalancer.guard.gate import Candidate, Gate, Refusal, Scene
from rebalancer.guard.priorities import SYSTEM_CRITICAL

NAME = "system-critical"


def check(candidate: Candidate, scene: Scene) -> Refusal | None:
    priority = int(scene.state.pods.priority[candidate.pod])
    if priority < SYSTEM_CRITICAL:
        return None
    return Refusal(NAME, f"its priority {priority} is system-critical ({SYSTEM_CRITICAL} or more)", retryable=False)


GATE = Gate(
    name=NAME,
    order=60,
    describe=(
        "Pods of priority 2,000,000,000 or more, the range of system-cluster-critical and system-node-critical; no policy key changes it."
    ),
    check=check,
)
