"""The head of a Ray cluster keeps what the cluster knows; without fault tolerance, losing it loses the whole job."""

from __future__ import annotations

from rebalancer.guard.gate import Candidate, Gate, Refusal, Scene

NAME = "ray-head"
_TOLERANT = "ray.io/ft-enabled"


def check(candidate: Candidate, scene: Scene) -> Refusal | None:
    labels = scene.label_marks.of(candidate.pod)
    if labels.get("ray.io/node-type") != "head":
        return None
    if "true" in (labels.get(_TOLERANT), scene.state.pods.annotations[candidate.pod].get(_TOLERANT)):
        return None
    cluster = labels.get("ray.io/cluster") or "its cluster"
    return Refusal(NAME, f"it is the head of Ray cluster {cluster}, which has no fault tolerance ({_TOLERANT})", retryable=False)


GATE = Gate(
    name=NAME,
    order=160,
    describe='Heads of Ray clusters without fault tolerance (`ray.io/ft-enabled: "true"`): what the cluster has computed goes with them.',
    check=check,
)
