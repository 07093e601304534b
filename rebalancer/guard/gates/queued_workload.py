"""What a queue has admitted as a whole is moved as a whole: by its Workload, never by its pods.

Kueue charges the quota of an admitted Workload, not of its pods. Evicting one frees no quota, and pods of a plain group never come back.
"""

from __future__ import annotations

from rebalancer.guard.gate import Candidate, Gate, Refusal, Scene

NAME = "queued-workload"
_MANAGED = "kueue.x-k8s.io/managed"
_GROUP = "kueue.x-k8s.io/pod-group-name"
_QUEUES = ("kueue.x-k8s.io/queue-name", "kueue.x-k8s.io/local-queue-name", "kueue.x-k8s.io/cluster-queue-name")


def check(candidate: Candidate, scene: Scene) -> Refusal | None:
    labels, annotations = scene.label_marks.of(candidate.pod), scene.state.pods.annotations[candidate.pod]
    if not labels and not annotations:
        return None
    queue = next((value for key in _QUEUES if (value := labels.get(key))), "")
    group = labels.get(_GROUP) or annotations.get(_GROUP, "")
    if not queue and not group and labels.get(_MANAGED) != "true":
        return None
    by = f"Kueue's queue {queue}" if queue else "Kueue"
    if group:
        reason = f"{by} admitted it in the plain group {group}, whose pods nobody makes anew; such a group is never moved"
    else:
        reason = (
            f"{by} admitted it as a part of a Workload, whose quota stays charged when a pod is evicted; the Workload is what moves: "
            "spec.active false stops all of it, true queues it again"
        )
    return Refusal(NAME, reason, retryable=False)


GATE = Gate(
    name=NAME,
    order=150,
    describe="Pods that Kueue has admitted, by its labels on them: their Workload is what is stopped and queued again, never a pod of it.",
    check=check,
)
