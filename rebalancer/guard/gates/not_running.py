"""A pod that does not run yet, or whose kubelet is silent, has no load that could be moved. Finished pods are another gate's."""

from __future__ import annotations

from rebalancer.guard.gate import Candidate, Gate, Refusal, Scene
from rebalancer.state.tables import Phase

NAME = "not-running"
IDLE = {int(phase): phase.name.capitalize() for phase in (Phase.PENDING, Phase.UNKNOWN)}


def check(candidate: Candidate, scene: Scene) -> Refusal | None:
    pods = scene.state.pods
    phase = int(pods.phase[candidate.pod])
    if pods.node[candidate.pod] < 0:
        return Refusal(NAME, "it is not bound to a node yet", retryable=True)
    if phase in IDLE:
        return Refusal(NAME, f"it does not run (phase {IDLE[phase]})", retryable=True)
    return None


GATE = Gate(
    name=NAME,
    order=50,
    describe="Pods that do not run: pending, not bound to a node, or in phase Unknown.",
    check=check,
)
