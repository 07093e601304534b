"""The columns of pods as they are handed out by `pod_table`, in the order of the state, and how numbers of a larger table become rows.

Values that many pods share (labels, constraints, requests, owners, node names) are numbered in tables that outlive a cycle, so not every
number is in use. The state knows only what some pod refers to, in the order in which pods first refer to it: see `rows_in_use`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from rebalancer.collect.constraints import ConstraintTable
from rebalancer.collect.gangs.marks import GangMark
from rebalancer.collect.gangs.table import MarkedPods
from rebalancer.collect.gpu.assembling import GpuMemo
from rebalancer.collect.gpu.pod_clues import PodGpu
from rebalancer.collect.pod_requests import RequestTable
from rebalancer.collect.samples import PodKey
from rebalancer.kube.wire import OwnerWire
from rebalancer.state.arrays import BoolArray, FloatArray, IntArray
from rebalancer.state.scheduling import LabelSet
from rebalancer.state.tables import PodVolumes


class Number(IntEnum):
    """What is known of a pod as a whole number; -1 where there is none."""

    NODE = 0
    """Of ``node_names``."""
    PHASE = 1
    QOS = 2
    READY = 3
    TERMINATING = 4
    PRIORITY = 5
    OWNER = 6
    """Equal for pods of one controller; those of a node have none."""
    CLASS = 7
    """Of `classes.ALL`, by the pod's own annotation."""
    BAD_CLASS = 8
    """Its annotation names no class."""
    STATIC = 9
    REQUEST = 10
    """Of ``requests``; -1 where a quantity cannot be read."""
    LABELS = 11
    CONSTRAINTS = 12
    """Of ``constraints``, without what its claims add."""
    GPU = 13
    """Of the clues about GPUs in ``gpus``."""
    MARKS = 14
    """Of ``gang_marks``."""
    CALLED = 15
    """Of `pod_facts.CLASSES`: what labels and annotations of other projects call the pod."""


@dataclass(frozen=True, slots=True)
class GpuColumns:
    """Of the pods that say something about GPUs: ``rows``, ascending, and what they say. ``memo``: of what was made of it before."""

    rows: IntArray
    records: tuple[PodGpu, ...]
    memo: GpuMemo


@dataclass(frozen=True, slots=True, kw_only=True)
class PodColumns:
    """Pods whose requests can be read, in order of namespace and name, each uid once. All (pods,) unless they say otherwise."""

    uids: tuple[str, ...]
    keys: tuple[PodKey, ...]
    names: tuple[str, ...]
    namespaces: tuple[str, ...]
    owners: tuple[OwnerWire | None, ...]
    annotations: tuple[Mapping[str, str], ...]
    volumes: tuple[PodVolumes, ...]
    restart_policies: tuple[str, ...]
    groups: tuple[str, ...]
    numbers: Mapping[Number, IntArray]
    created_at: FloatArray
    started_at: FloatArray
    ready_after: FloatArray
    node_names: Sequence[str]
    """By number."""
    label_sets: Sequence[LabelSet]
    """By number."""
    constraints: ConstraintTable
    requests: RequestTable
    gpus: GpuColumns
    gang_marks: Sequence[tuple[GangMark, ...]]
    """By number: the marks by which a pod belongs to others."""
    unreadable: Mapping[PodKey, str]
    """Pods that were left out because a quantity of theirs is none -> the name of their node, empty without one."""

    def flags(self, number: Number) -> BoolArray:
        return np.asarray(self.numbers[number] > 0, dtype=np.bool_)

    def marked(self) -> MarkedPods:
        """Those that belong to others by some mark."""
        rows = np.flatnonzero(self.numbers[Number.MARKS] >= 0)
        return MarkedPods(rows, self.numbers[Number.MARKS][rows], self.gang_marks)

    def places(self) -> Mapping[PodKey, str]:
        """(namespace, name) -> node name, of all pods that are on one."""
        on: list[int] = self.numbers[Number.NODE].tolist()
        placed = {key: self.node_names[number] for key, number in zip(self.keys, on, strict=True) if number >= 0}
        placed.update((key, node) for key, node in self.unreadable.items() if node)
        return placed


@dataclass(frozen=True, slots=True)
class InUse:
    """``rows`` (pods,): rows of what is in use, -1 for none; ``numbers`` and ``first``: for each row its number, and the first pod."""

    rows: IntArray
    numbers: IntArray
    first: IntArray


def rows_in_use(numbers: IntArray, count: int) -> InUse:
    """``numbers`` (pods,): below ``count``, -1 none. Rows are in the order of the first pods."""
    pods = len(numbers)
    first = np.full(count + 1, pods, dtype=np.int64)  # the last is for none
    first[numbers[::-1]] = np.arange(pods - 1, -1, -1)
    used = np.flatnonzero(first[:count] < pods)
    used = used[np.argsort(first[used], kind="stable")]
    row_of = np.full(count + 1, -1, dtype=np.int64)
    row_of[used] = np.arange(len(used))
    return InUse(rows=row_of[numbers], numbers=used, first=first[used])
