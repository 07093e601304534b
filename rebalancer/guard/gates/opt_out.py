"""Whoever owns a pod has the last word: annotations of this project, the descheduler, autoscalers and schedulers that say stay."""

from __future__ import annotations

from rebalancer.guard.annotations import marker_objection, read_consent
from rebalancer.guard.gate import Candidate, Gate, Refusal, Scene

NAME = "opt-out"


def check(candidate: Candidate, scene: Scene) -> Refusal | None:
    own, labels = scene.state.pods.annotations[candidate.pod], scene.label_marks.of(candidate.pod)
    protection = read_consent(scene.state, candidate.pod).protection or marker_objection(own, labels)
    return Refusal(NAME, protection, retryable=False) if protection else None


GATE = Gate(
    name=NAME,
    order=110,
    describe=(
        "Pods that an annotation protects, on the pod or on its workload: `rebalancer.dev/evict` or "
        '`descheduler.alpha.kubernetes.io/evict` with any value but `"true"`, '
        '`descheduler.alpha.kubernetes.io/prefer-no-eviction`, `cluster-autoscaler.kubernetes.io/safe-to-evict: "false"`, '
        '`karpenter.sh/do-not-disrupt`, `do-not-evict` or `do-not-consolidate: "true"`, '
        '`scheduling.koordinator.sh/eviction-cost: "2147483647"`; `"false"` means false in each. And those whose labels or annotations '
        'say so to a scheduler: `volcano.sh/preemptable: "false"`, `kai.scheduler/preemptibility: non-preemptible`, '
        '`quota.scheduling.koordinator.sh/preemptible: "false"`, `koordinator.sh/eviction-enabled: "false"`.'
    ),
    check=check,
)
