"""A pod that is on its way out needs no push."""

from __future__ import annotations

from rebalancer.guard.gate import Candidate, Gate, Refusal, Scene

NAME = "terminating"


def check(candidate: Candidate, scene: Scene) -> Refusal | None:
    if not scene.state.pods.terminating[candidate.pod]:
        return None
    return Refusal(NAME, "it is being deleted already", retryable=False)


GATE = Gate(
    name=NAME,
    order=30,
    describe="Pods that are being deleted already.",
    check=check,
)
