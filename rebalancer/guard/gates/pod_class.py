"""What a pod is for decides whether it may be evicted, only be marked, or be left alone. A dry run answers as evict mode would."""

from __future__ import annotations

from rebalancer.guard.gate import Candidate, Gate, Refusal, Scene
from rebalancer.policy.model import Mode

NAME = "pod-class"


def check(candidate: Candidate, scene: Scene) -> Refusal | None:
    pod_class = scene.state.pods.classes[candidate.pod].value
    rule: str = getattr(scene.spec.victims.classes, pod_class)
    if rule == "allow":
        return None
    if rule == "annotate":
        if scene.mode is Mode.ANNOTATE:
            return None
        reason = f"pods of class {pod_class} are only annotated, never evicted (policy victims.classes.{pod_class})"
        return Refusal(NAME, reason, retryable=False)
    return Refusal(NAME, f"pods of class {pod_class} are not moved (policy victims.classes.{pod_class})", retryable=False)


GATE = Gate(
    name=NAME,
    order=120,
    describe=(
        "Pods of a class that `victims.classes` refuses, and in evict mode and dry runs those of a class that may only be annotated."
    ),
    check=check,
)
