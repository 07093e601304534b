"""The marks by which a pod says that it belongs to others: of schedulers, of queues, of those who make jobs. One table, read one way.

Whether a mark stands in a label or in an annotation depends on the system and on its version, so each key is looked for in both. A mark
names a group; whether that is a gang, and of how many, `table` finds out. Marks are kept once for all pods that carry the same ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from rebalancer.kube.wire import OwnerWire
from rebalancer.kube.wire_pods import PodWire
from rebalancer.state.gangs import TRAINING_KINDS, GangSystem


@dataclass(frozen=True, slots=True)
class GangMark:
    """``minimum``: how many members it takes, by the pod's own word; 0 where it does not say. ``odd``: what cannot be read of it."""

    system: GangSystem
    namespace: str
    name: str
    minimum: int = 0
    odd: str = ""
    kind: str = ""
    """Of the job that made the pods, where it is one of distributed training."""


@dataclass(frozen=True, slots=True)
class _Form:
    """``name``, ``minimum``: keys, the first that is there counts. ``index``: what tells several groups of one name apart."""

    system: GangSystem
    name: tuple[str, ...]
    minimum: tuple[str, ...] = ()
    index: str = ""


_FORMS = (
    _Form(GangSystem.VOLCANO, ("scheduling.k8s.io/group-name", "scheduling.volcano.sh/group-name")),
    _Form(GangSystem.KOORDINATOR, ("gang.scheduling.koordinator.sh/name",), ("gang.scheduling.koordinator.sh/min-available",)),
    _Form(GangSystem.KAI, ("pod-group-name",)),
    _Form(
        GangSystem.COSCHEDULING,
        ("scheduling.x-k8s.io/pod-group", "pod-group.scheduling.sigs.k8s.io", "pod-group.scheduling.sigs.k8s.io/name"),
        ("pod-group.scheduling.sigs.k8s.io/min-available",),
    ),
    _Form(GangSystem.KUEUE, ("kueue.x-k8s.io/pod-group-name",), ("kueue.x-k8s.io/pod-group-total-count",)),
    _Form(
        GangSystem.LEADER_WORKER_SET,
        ("leaderworkerset.sigs.k8s.io/name",),
        ("leaderworkerset.sigs.k8s.io/size",),
        "leaderworkerset.sigs.k8s.io/group-index",
    ),
    _Form(GangSystem.JOB_SET, ("jobset.sigs.k8s.io/jobset-name",)),
    _Form(GangSystem.TRAINING, ("training.kubeflow.org/job-name",)),
    _Form(GangSystem.VOLCANO, ("volcano.sh/job-name",)),
)
_JOB_NAMES = ("batch.kubernetes.io/job-name", "job-name")
_JOB_INDEX = "batch.kubernetes.io/job-completion-index"
_KEYS = frozenset((*(key for form in _FORMS for key in form.name), _JOB_INDEX))
_SCHEDULERS = frozenset(
    (GangSystem.KUBERNETES, GangSystem.VOLCANO, GangSystem.KOORDINATOR, GangSystem.KAI, GangSystem.COSCHEDULING, GangSystem.KUEUE)
)
_OWNER_SYSTEMS = {
    **dict.fromkeys(TRAINING_KINDS, GangSystem.TRAINING),
    "JobSet": GangSystem.JOB_SET,
    "LeaderWorkerSet": GangSystem.LEADER_WORKER_SET,
}
_MOST = 1_000_000
"""More members than this are a mistake."""
NO_MARKS: tuple[GangMark, ...] = ()


def gang_marks(pod: PodWire, annotations: Mapping[str, str], owner: OwnerWire | None) -> tuple[GangMark, ...]:
    """At most one of each system, the scheduler's before those of who made the pod; nothing for nearly all pods."""
    spec, labels = pod.spec, pod.metadata.labels or {}
    said = bool(annotations) and not _KEYS.isdisjoint(annotations)
    labelled = bool(labels) and not _KEYS.isdisjoint(labels)
    of_owner = _OWNER_SYSTEMS.get(owner.kind) if owner is not None else None
    if not said and not labelled and of_owner is None and spec.scheduling_group is None and spec.workload_ref is None:
        return NO_MARKS
    found: dict[GangSystem, GangMark] = {}
    for mark in (*_native(pod), *_by_keys(pod.metadata.namespace, annotations, labels)):
        found.setdefault(mark.system, mark)
    if of_owner is not None and owner is not None:
        own = found.get(of_owner)
        name = own.name if own is not None else owner.name
        kind = owner.kind if of_owner is GangSystem.TRAINING else ""
        if own is None or kind:
            found[of_owner] = GangMark(of_owner, pod.metadata.namespace, name, kind=kind)
    return tuple(found.values())


def scheduling_group(marks: tuple[GangMark, ...]) -> str:
    """The name of the group that the pod is scheduled with, or an empty string."""
    return next((mark.name for mark in marks if mark.system in _SCHEDULERS), "")


def _native(pod: PodWire) -> Iterator[GangMark]:
    group, ref = pod.spec.scheduling_group, pod.spec.workload_ref
    if group is not None and group.pod_group_name:
        yield GangMark(GangSystem.KUBERNETES, pod.metadata.namespace, group.pod_group_name)
    if ref is not None and ref.name:
        replica = f"/{ref.pod_group_replica_key}" if ref.pod_group_replica_key else ""
        yield GangMark(GangSystem.KUBERNETES, pod.metadata.namespace, f"{ref.name}/{ref.pod_group}{replica}")


def _by_keys(namespace: str, annotations: Mapping[str, str], labels: Mapping[str, str]) -> Iterator[GangMark]:
    for form in _FORMS:
        name = _first(form.name, annotations, labels)
        if name:
            index = _first((form.index,), annotations, labels) if form.index else ""
            key = next((key for key in form.minimum if key in annotations or key in labels), "")
            minimum, odd = _count(key, _first((key,), annotations, labels)) if key else (0, "")
            yield GangMark(form.system, namespace, f"{name}-{index}" if index else name, minimum, odd)
    if _JOB_INDEX in annotations or _JOB_INDEX in labels:
        job = _first(_JOB_NAMES, annotations, labels)
        if job:
            yield GangMark(GangSystem.INDEXED_JOB, namespace, job)


def _first(keys: tuple[str, ...], annotations: Mapping[str, str], labels: Mapping[str, str]) -> str:
    for key in keys:
        value = annotations.get(key) or labels.get(key)
        if value:
            return value
    return ""


def _count(key: str, text: str) -> tuple[int, str]:
    """The number, and what is wrong with it: a gang whose number cannot be read needs all of its members."""
    if text.isascii() and text.isdigit() and 0 < len(text) <= 7 and 0 < int(text) <= _MOST:
        return int(text), ""
    return 0, f'{key} is "{text[:40]}", which is no number of pods'
