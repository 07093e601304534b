"""What each pod says of itself, as columns: identity, place, phase, class, labels, constraints, requests, volumes.

Everything that pods of one workload share is looked up, not built again. The load of pods is added in `assemble`, since it needs the nodes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rebalancer.collect.alike import Alike, same_constraints, same_labels, same_requests
from rebalancer.collect.claims import Claims
from rebalancer.collect.classes import class_from_word, pod_class
from rebalancer.collect.constraints import ConstraintTable
from rebalancer.collect.owners import annotations_of
from rebalancer.collect.pod_requests import RequestTable
from rebalancer.collect.pod_volumes import pod_volumes
from rebalancer.collect.workload_table import Ownership
from rebalancer.kube.wire_pods import PodWire
from rebalancer.state.arrays import BoolArray, FloatArray, IntArray
from rebalancer.state.scheduling import Constraints, LabelSet
from rebalancer.state.tables import Phase, PodClass, PodVolumes, Qos

CLASS_ANNOTATION = "rebalancer.dev/class"
_MIRROR = "kubernetes.io/config.mirror"
_SOURCE = "kubernetes.io/config.source"
_FROM_API = "api"
_PHASES = {"Pending": Phase.PENDING, "Running": Phase.RUNNING, "Succeeded": Phase.SUCCEEDED, "Failed": Phase.FAILED}
_QOS = {"BestEffort": Qos.BEST_EFFORT, "Burstable": Qos.BURSTABLE, "Guaranteed": Qos.GUARANTEED}


@dataclass(frozen=True, slots=True)
class ReadablePods:
    """Pods in order of namespace and name, each uid once, whose requests can be read; ``requests`` (pods,): rows of ``table``."""

    pods: tuple[PodWire, ...]
    requests: IntArray
    table: RequestTable
    unreadable: tuple[str, ...]
    """Names of pods that were left out because a quantity of theirs is none."""


def readable_pods(wires: Sequence[PodWire]) -> ReadablePods:
    by_uid = {wire.metadata.uid or f"{wire.metadata.namespace}/{wire.metadata.name}": wire for wire in wires}
    table = RequestTable()
    pods: list[PodWire] = []
    rows: list[int] = []
    unreadable: list[str] = []
    alike = Alike(same_requests)
    for wire in sorted(by_uid.values(), key=lambda wire: (wire.metadata.namespace, wire.metadata.name, wire.metadata.uid)):
        try:
            rows.append(alike.row(wire, table.row))
        except ValueError:
            unreadable.append(f"{wire.metadata.namespace}/{wire.metadata.name}")
        else:
            pods.append(wire)
    return ReadablePods(pods=tuple(pods), requests=np.array(rows, dtype=np.int64), table=table, unreadable=tuple(unreadable))


@dataclass(frozen=True, slots=True)
class Standing:
    """Where pods are and how they do; all (pods,)."""

    node: IntArray
    phase: IntArray
    ready: BoolArray
    terminating: BoolArray
    created_at: FloatArray
    started_at: FloatArray

    @property
    def active(self) -> BoolArray:
        """Bound and not finished: it uses its node."""
        finished = (self.phase == int(Phase.SUCCEEDED)) | (self.phase == int(Phase.FAILED))
        return np.asarray((self.node >= 0) & ~finished, dtype=np.bool_)


def standing(pods: Sequence[PodWire], node_index: Mapping[str, int]) -> Standing:
    count = len(pods)
    return Standing(
        node=np.fromiter((node_index.get(pod.spec.node_name or "", -1) for pod in pods), dtype=np.int64, count=count),
        phase=np.fromiter((int(_PHASES.get(pod.status.phase or "", Phase.UNKNOWN)) for pod in pods), dtype=np.int64, count=count),
        ready=np.fromiter((_is_ready(pod) for pod in pods), dtype=np.bool_, count=count),
        terminating=np.fromiter((pod.metadata.deletion_timestamp is not None for pod in pods), dtype=np.bool_, count=count),
        created_at=np.fromiter(
            (np.nan if (t := pod.metadata.creation_timestamp) is None else t.timestamp() for pod in pods), dtype=np.float64, count=count
        ),
        started_at=np.fromiter(
            (np.nan if (t := pod.status.start_time) is None else t.timestamp() for pod in pods), dtype=np.float64, count=count
        ),
    )


def _is_ready(pod: PodWire) -> bool:
    for condition in pod.status.conditions or ():
        if condition.type == "Ready":
            return condition.status == "True"
    return False


@dataclass(frozen=True, slots=True)
class Character:
    """What kind of pod each one is; all (pods,) except ``bad_class_words``."""

    priority: IntArray
    qos: IntArray
    classes: tuple[PodClass, ...]
    mirror: BoolArray
    annotations: tuple[Mapping[str, str], ...]
    bad_class_words: int
    """Pods whose class annotation names no class."""


def character(pods: Sequence[PodWire], owned: Ownership, requested: BoolArray) -> Character:
    """``requested`` (pods,): the pod requests some cpu or memory, for pods whose QoS class is not in their status."""
    annotations = tuple(annotations_of(pod.metadata.annotations) for pod in pods)
    classes: list[PodClass] = []
    mirrors: list[bool] = []
    bad = 0
    workload: list[int] = owned.workload.tolist()
    for row, pod in enumerate(pods):
        own = annotations[row]
        root = owned.roots[workload[row]] if workload[row] >= 0 else None
        word = own.get(CLASS_ANNOTATION)
        bad += word is not None and class_from_word(word) is None
        mirror = _is_static(pod, own)
        mirrors.append(mirror)
        classes.append(
            pod_class(
                words=(word, root.annotations.get(CLASS_ANNOTATION) if root is not None else None),
                by_owner=root.owner_class if root is not None else PodClass.UNKNOWN,
                priority=pod.spec.priority or 0,
                mirror=mirror,
            )
        )
    fallback = np.where(requested, int(Qos.BURSTABLE), int(Qos.BEST_EFFORT)).tolist()
    return Character(
        priority=np.array([pod.spec.priority or 0 for pod in pods], dtype=np.int64),
        qos=np.array([int(_QOS.get(pod.status.qos_class or "", fallback[row])) for row, pod in enumerate(pods)], dtype=np.int64),
        classes=tuple(classes),
        mirror=np.array(mirrors, dtype=np.bool_),
        annotations=annotations,
        bad_class_words=bad,
    )


def _is_static(pod: PodWire, annotations: Mapping[str, str]) -> bool:
    """A static pod or its mirror: marked so, read from somewhere else than the API server, or owned by a node."""
    if annotations and (_MIRROR in annotations or annotations.get(_SOURCE, _FROM_API) != _FROM_API):
        return True
    return any(owner.kind == "Node" for owner in pod.metadata.owner_references or ())


@dataclass(frozen=True, slots=True)
class Ties:
    """What ties pods to nodes and to each other; ``labels``, ``constraints`` (pods,): rows of the values beside them."""

    labels: IntArray
    label_sets: tuple[LabelSet, ...]
    constraints: IntArray
    constraint_values: tuple[Constraints, ...]
    volumes: tuple[PodVolumes, ...]


def ties(pods: Sequence[PodWire], claims: Claims) -> Ties:
    label_sets: dict[LabelSet, int] = {}
    table = ConstraintTable()

    def label_row(pod: PodWire) -> int:
        return label_sets.setdefault(LabelSet(pod.metadata.namespace, tuple(sorted((pod.metadata.labels or {}).items()))), len(label_sets))

    alike_labels, alike_constraints = Alike(same_labels), Alike(same_constraints)
    label_rows: list[int] = []
    constraint_rows: list[int] = []
    volumes: list[PodVolumes] = []
    for pod in pods:
        label_rows.append(alike_labels.row(pod, label_row))
        own = pod_volumes(pod)
        volumes.append(own)
        if own.claims:
            constraint_rows.append(table.row(pod.spec, claims.of_pod(pod.metadata.namespace, own.claims)))
        else:
            constraint_rows.append(alike_constraints.row(pod, lambda each: table.row(each.spec)))
    return Ties(
        labels=np.array(label_rows, dtype=np.int64),
        label_sets=tuple(label_sets),
        constraints=np.array(constraint_rows, dtype=np.int64),
        constraint_values=table.values,
        volumes=tuple(volumes),
    )
