"""Which group of pods a pod is scheduled with, by the marks of the schedulers and queues that do such a thing.

The mark names the group; whether the group dies with one of its pods is for the object behind it to say, so no more is claimed.
"""

from __future__ import annotations

from collections.abc import Mapping

from rebalancer.kube.wire_pods import PodWire

_ANNOTATIONS = (
    "scheduling.k8s.io/group-name",
    "scheduling.volcano.sh/group-name",
    "gang.scheduling.koordinator.sh/name",
    "pod-group-name",
)
_LABELS = (
    "pod-group.scheduling.sigs.k8s.io",
    "pod-group.scheduling.sigs.k8s.io/name",
    "scheduling.x-k8s.io/pod-group",
    "kueue.x-k8s.io/pod-group-name",
)
_LABEL_KEYS = frozenset(_LABELS)


def scheduling_group(pod: PodWire, annotations: Mapping[str, str]) -> str:
    """The name of the pod's group, or an empty string. The field of the API comes first, then annotations, then labels."""
    group = pod.spec.scheduling_group
    if group is not None and group.pod_group_name:
        return group.pod_group_name
    if annotations:
        for key in _ANNOTATIONS:
            if annotations.get(key):
                return annotations[key]
    labels = pod.metadata.labels
    if labels and not _LABEL_KEYS.isdisjoint(labels):
        for key in _LABELS:
            if labels.get(key):
                return labels[key]
    return ""
