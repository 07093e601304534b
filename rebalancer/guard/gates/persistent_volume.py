"""Claims can follow a pod, but detaching and attaching takes time that not every operator wants to spend."""

from __future__ import annotations

from rebalancer.guard.gate import Candidate, Gate, Refusal, Scene

NAME = "persistent-volume"


def check(candidate: Candidate, scene: Scene) -> Refusal | None:
    claims = scene.state.pods.volumes[candidate.pod].claims
    if not claims or scene.spec.victims.persistent_volumes == "allow":
        return None
    what = f"claim {claims[0]}" if len(claims) == 1 else f"claims {', '.join(claims)}"
    return Refusal(NAME, f"it uses persistent volume {what} (policy victims.persistentVolumes)", retryable=False)


GATE = Gate(
    name=NAME,
    order=190,
    describe="Pods with a persistent volume claim, when `victims.persistentVolumes` is `refuse`.",
    check=check,
)
