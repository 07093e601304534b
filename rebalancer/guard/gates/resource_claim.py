"""A resource claim that a pod names itself, instead of taking it from a template, may be held by others and ties the device to the node."""

from __future__ import annotations

from rebalancer.guard.gate import Candidate, Gate, Refusal, Scene

NAME = "resource-claim"


def check(candidate: Candidate, scene: Scene) -> Refusal | None:
    shared = [claim.name for claim in scene.state.pods.volumes[candidate.pod].resource_claims if claim.shared]
    if not shared:
        return None
    what = f"resource claim {shared[0]} is" if len(shared) == 1 else f"resource claims {', '.join(shared)} are"
    return Refusal(
        NAME, f"{what} named by the pod instead of a template: others may hold the device, and it stays on this node", retryable=False
    )


GATE = Gate(
    name=NAME,
    order=200,
    describe=(
        "Pods that name an existing ResourceClaim, which other pods may hold and which binds the device to its node; "
        "claims from a template pass."
    ),
    check=check,
)
