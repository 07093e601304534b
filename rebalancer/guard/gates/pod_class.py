"""What a pod is for decides whether it may be evicted, only be marked, or be left alone. A dry run answers as evict mode would."""

from __future__ import annotations

from rebalancer.guard.checkpoints import CHECKPOINTED
from rebalancer.guard.gate import Candidate, Gate, Refusal, Scene
from rebalancer.policy.model import Mode
from rebalancer.state.tables import PodClass

NAME = "pod-class"


_STRICTNESS = ("allow", "annotate", "refuse")


def check(candidate: Candidate, scene: Scene) -> Refusal | None:
    pod_class, classes = scene.state.pods.classes[candidate.pod], scene.spec.victims.classes
    rule: str = getattr(classes, pod_class.value)
    if rule == "allow" and pod_class is not PodClass.UNKNOWN:
        return None
    words, key = f"of class {pod_class.value}", f"victims.classes.{pod_class.value}"
    stricter = _STRICTNESS.index(classes.unknown_gpu) > _STRICTNESS.index(rule)
    if pod_class is PodClass.UNKNOWN and stricter and scene.state.gpus.asks_of(candidate.pod):
        rule, words, key = classes.unknown_gpu, "with GPUs of which nobody says what they are for", "victims.classes.unknownGpu"
    if rule == "allow":
        return None
    if rule == "annotate":
        if scene.mode is Mode.ANNOTATE:
            return None
        if pod_class is PodClass.TRAINING and scene.gang_rules.accepts_restart(candidate.pod):
            return None
        reason = f"pods {words} are only annotated, never evicted (policy {key})"
        if pod_class is PodClass.TRAINING:
            reason += f', unless they are annotated {CHECKPOINTED}: "true"'
            gang = scene.gang_rules.of_pod(candidate.pod)
            if gang >= 0:
                barred = scene.gang_rules.barred(gang)
                reason += f"; this one is a member of {scene.gang_rules.words(gang, candidate.pod)}" + (f", and {barred}" if barred else "")
        return Refusal(NAME, reason, retryable=False)
    return Refusal(NAME, f"pods {words} are not moved (policy {key})", retryable=False)


GATE = Gate(
    name=NAME,
    order=140,
    describe=(
        "Pods of a class that `victims.classes` refuses, and in evict mode and dry runs those of a class that may only be annotated; "
        "`rebalancer.dev/checkpointed` lifts that of training, and so does being surplus of an elastic job."
    ),
    check=check,
)
