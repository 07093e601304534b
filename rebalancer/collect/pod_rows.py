"""What other objects make of pods: where they are, who they belong to and are for, what ties them to nodes and to each other.

Begins with what each pod says of itself (`pod_table`). Everything that pods share is looked up once, not once a pod. The load of pods is
added in `assemble`, since it needs the nodes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from rebalancer.collect.claims import Claims
from rebalancer.collect.classes import SYSTEM_PRIORITY, class_from_word
from rebalancer.collect.pod_columns import Number, PodColumns, rows_in_use
from rebalancer.collect.pod_facts import CLASS_ANNOTATION, CLASSES, class_number
from rebalancer.collect.workload_table import Ownership
from rebalancer.state.arrays import BoolArray, FloatArray, IntArray
from rebalancer.state.scheduling import Constraints, LabelSet
from rebalancer.state.tables import Phase, PodClass, Qos

__all__ = ["CLASS_ANNOTATION", "Character", "Standing", "Ties", "character", "standing", "ties"]


@dataclass(frozen=True, slots=True)
class Standing:
    """Where pods are and how they do; all (pods,)."""

    node: IntArray
    lost: BoolArray
    """On a node that is not listed."""
    phase: IntArray
    ready: BoolArray
    terminating: BoolArray
    created_at: FloatArray
    started_at: FloatArray
    ready_after: FloatArray

    @property
    def active(self) -> BoolArray:
        """Bound and not finished: it uses its node."""
        finished = (self.phase == int(Phase.SUCCEEDED)) | (self.phase == int(Phase.FAILED))
        return np.asarray((self.node >= 0) & ~finished, dtype=np.bool_)


def standing(pods: PodColumns, node_index: Mapping[str, int]) -> Standing:
    on = pods.numbers[Number.NODE]
    row_of = np.array([*(node_index.get(name, -1) for name in pods.node_names), -1], dtype=np.int64)  # the last is for none
    node = row_of[on]
    return Standing(
        node=node,
        lost=np.asarray((on >= 0) & (node < 0), dtype=np.bool_),
        phase=pods.numbers[Number.PHASE],
        ready=pods.flags(Number.READY),
        terminating=pods.flags(Number.TERMINATING),
        created_at=pods.created_at,
        started_at=pods.started_at,
        ready_after=pods.ready_after,
    )


@dataclass(frozen=True, slots=True)
class Character:
    """What kind of pod each one is; all (pods,) except ``bad_class_words``."""

    priority: IntArray
    qos: IntArray
    classes: tuple[PodClass, ...]
    mirror: BoolArray
    bad_class_words: int
    """Pods whose class annotation names no class."""


def character(pods: PodColumns, owned: Ownership, requested: BoolArray, *, training: IntArray) -> Character:
    """``requested`` (pods,): the pod requests some cpu or memory, for pods whose QoS class is not in their status. ``training``: rows of
    members of gangs. The order of what says the class: own words, what makes it system, marks of other projects, gangs, owners."""
    priority, qos, mirror = pods.numbers[Number.PRIORITY], pods.numbers[Number.QOS], pods.flags(Number.STATIC)
    words = [class_from_word(root.annotations.get(CLASS_ANNOTATION)) for root in owned.roots]
    of_workloads = np.array([-1 if word is None else class_number(word) for word in words] + [-1], dtype=np.int64)
    by_owners = np.array([class_number(root.owner_class) for root in owned.roots] + [class_number(PodClass.UNKNOWN)], dtype=np.int64)
    system = mirror | (priority >= SYSTEM_PRIORITY)
    number = by_owners[owned.workload]
    number[training] = class_number(PodClass.TRAINING)
    called = pods.numbers[Number.CALLED]
    number = np.where(called >= 0, called, number)
    number = np.where(system | (by_owners[owned.workload] == class_number(PodClass.SYSTEM)), class_number(PodClass.SYSTEM), number)
    for said in (of_workloads[owned.workload], pods.numbers[Number.CLASS]):  # the pod's own word has the last say
        number = np.where(said >= 0, said, number)
    return Character(
        priority=priority,
        qos=np.where(qos >= 0, qos, np.where(requested, int(Qos.BURSTABLE), int(Qos.BEST_EFFORT))),
        classes=tuple(map(CLASSES.__getitem__, number.tolist())),
        mirror=mirror,
        bad_class_words=int(pods.flags(Number.BAD_CLASS).sum()),
    )


@dataclass(frozen=True, slots=True)
class Ties:
    """What ties pods to nodes and to each other; ``labels``, ``constraints`` (pods,): rows of the values beside them."""

    labels: IntArray
    label_sets: tuple[LabelSet, ...]
    constraints: IntArray
    constraint_values: tuple[Constraints, ...]


def ties(pods: PodColumns, claims: Claims) -> Ties:
    labels = rows_in_use(pods.numbers[Number.LABELS], len(pods.label_sets))
    numbers = pods.numbers[Number.CONSTRAINTS].copy()
    for pod, volumes in enumerate(pods.volumes):
        if volumes.claims:
            found = claims.of_pod(pods.namespaces[pod], volumes.claims)
            numbers[pod] = pods.constraints.with_claims(int(numbers[pod]), found)
    constraints = rows_in_use(numbers, len(pods.constraints))
    return Ties(
        labels=labels.rows,
        label_sets=tuple(pods.label_sets[number] for number in labels.numbers.tolist()),
        constraints=constraints.rows,
        constraint_values=tuple(pods.constraints.value(number) for number in constraints.numbers.tolist()),
    )
