"""A pod that no controller would recreate is gone for good when it is evicted; so is one whose owner cannot be found."""

from __future__ import annotations

from rebalancer.guard.gate import Candidate, Gate, Refusal, Scene

NAME = "bare-pod"


def check(candidate: Candidate, scene: Scene) -> Refusal | None:
    pods = scene.state.pods
    if pods.controller[candidate.pod] < 0:
        return Refusal(NAME, "it has no controller, so nothing would recreate it", retryable=False)
    if pods.workload[candidate.pod] < 0:
        return Refusal(NAME, "its owner is not known, so nothing is known to recreate it", retryable=False)
    return None


GATE = Gate(
    name=NAME,
    order=90,
    describe=(
        "Pods without a controller, which nothing would recreate, and pods whose owner is not known (`victims.barePods` "
        "has no other value)."
    ),
    check=check,
)
