"""What each pod says of itself, as columns, and kept from one read to the next: a pod that has not changed is not read again.

A pod is the same as before when its uid and its resourceVersion are. Whoever lists the cluster afresh each time begins with an empty table,
and then every pod is new. Rows are slots here, which a pod keeps for life; the order of the state (namespace, name, uid) is taken when
the columns are handed out. Nothing of other objects is in here: what their owners, nodes and claims make of pods is for `pod_rows` to say.

Wire structs are read and let go, so that a list may take the place of what was watched without both being in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from operator import itemgetter
from typing import Any

import numpy as np

from rebalancer.collect.alike import Alike, same_constraints, same_labels, same_requests
from rebalancer.collect.annotations import annotations_of
from rebalancer.collect.constraints import ConstraintTable
from rebalancer.collect.gangs.marks import GangMark, gang_marks, scheduling_group
from rebalancer.collect.gpu.assembling import GpuMemo
from rebalancer.collect.gpu.clue_table import ClueTable
from rebalancer.collect.gpu.pod_clues import PodGpu, pod_gpu, without_gpu_annotations
from rebalancer.collect.pod_columns import GpuColumns, Number, PodColumns
from rebalancer.collect.pod_facts import (
    called_number,
    class_of_annotations,
    is_ready,
    is_static,
    phase_number,
    qos_number,
    ready_after,
    seconds,
)
from rebalancer.collect.pod_requests import RequestTable
from rebalancer.collect.pod_volumes import pod_volumes
from rebalancer.collect.samples import PodKey
from rebalancer.kube.wire import OwnerWire
from rebalancer.kube.wire_pods import PodWire
from rebalancer.state.arrays import BoolArray, IntArray
from rebalancer.state.scheduling import LabelSet
from rebalancer.state.tables import PodVolumes

_NODE_OWNER = "Node"
"""The owner kind of mirror pods: a kubelet, not a workload."""
_AT_ONCE = 4_096
"""Pods whose numbers are objects at the same time, before they are columns."""
_SPARE, _TIMES = 1_000, 2
"""The table is begun anew when a list of shared values is so many times as long as what is in use of it, and some more."""

Take = Callable[[list[Any]], tuple[Any, ...]]


class PodTable:
    """`read` is called by one thread at a time."""

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._slot_of: dict[str, int] = {}
        self._free: list[int] = []
        self._versions: list[str] = []
        self._uids: list[str] = []
        self._keys: list[PodKey] = []
        self._names: list[str] = []
        self._namespaces: list[str] = []
        self._owners: list[OwnerWire | None] = []
        self._annotations: list[Mapping[str, str]] = []
        self._volumes: list[PodVolumes] = []
        self._restart_policies: list[str] = []
        self._groups: list[str] = []
        self._numbers = np.zeros((len(Number), 0), dtype=np.int32)
        self._times = np.zeros((3, 0), dtype=np.float64)
        """Created at, started at, Ready after."""
        self._order: list[int] = []
        self._alive: BoolArray = np.zeros(0, dtype=np.bool_)
        self._take: tuple[IntArray, Take] | None = None
        self._namespace_words: dict[str, str] = {}
        self._nodes: dict[str, int] = {}
        self._owner_numbers: dict[str, int] = {}
        self._label_sets: dict[LabelSet, int] = {}
        self._constraints = ConstraintTable()
        self._requests = RequestTable()
        self._gpus: list[PodGpu | None] = []
        self._clues = ClueTable()
        self._marks: dict[tuple[GangMark, ...], int] = {}
        self._memo = GpuMemo()

    def read(self, pods: Sequence[PodWire]) -> PodColumns:
        """The columns of exactly these pods. Of two with one uid the last counts."""
        if self._outgrown():
            self._begin()
        slots, changed = self._compare(pods)
        self._write(changed)
        self._arrange(slots)
        return self._columns()

    def _outgrown(self) -> bool:
        """Whether most of what was ever shared is in use no more."""
        order = np.array(self._order, dtype=np.int64)
        for number, table in (
            (Number.NODE, self._nodes),
            (Number.OWNER, self._owner_numbers),
            (Number.LABELS, self._label_sets),
            (Number.CONSTRAINTS, self._constraints),
            (Number.REQUEST, self._requests),
            (Number.GPU, self._clues),
            (Number.MARKS, self._marks),
        ):
            if len(table) > _SPARE and len(table) > _TIMES * len(np.unique(self._numbers[number, order])) + _SPARE:
                return True
        return False

    # ---- reading ------------------------------------------------------------------------------------------------------

    def _compare(self, pods: Sequence[PodWire]) -> tuple[IntArray, dict[int, PodWire]]:
        """The slot of each pod, and the pods that are new or have changed, by slot."""
        find, versions, uids = self._slot_of.get, self._versions, self._uids
        slots: list[int] = []
        changed: dict[int, PodWire] = {}
        for pod in pods:
            meta = pod.metadata
            slot = find(meta.uid or f"{meta.namespace}/{meta.name}", -1)
            if slot < 0:
                slot = self._new_slot(pod)
                changed[slot] = pod
            elif versions[slot] != meta.resource_version or not meta.resource_version:
                changed[slot] = pod
                versions[slot] = meta.resource_version
            elif uids[slot] is not meta.uid:  # listed again: the words of the older list need not be kept
                uids[slot], self._names[slot], versions[slot] = meta.uid, meta.name, meta.resource_version
                self._keys[slot] = self._namespaces[slot], meta.name
            slots.append(slot)
        return np.array(slots, dtype=np.int64), changed

    def _new_slot(self, pod: PodWire) -> int:
        meta = pod.metadata
        slot = self._free.pop() if self._free else len(self._uids)
        if slot == len(self._uids):
            for column in self._objects:
                column.append(None)
        self._slot_of[meta.uid or f"{meta.namespace}/{meta.name}"] = slot
        self._versions[slot] = meta.resource_version
        return slot

    @property
    def _objects(self) -> tuple[list[Any], ...]:
        return (
            self._versions,
            self._uids,
            self._keys,
            self._names,
            self._namespaces,
            self._owners,
            self._annotations,
            self._volumes,
            self._restart_policies,
            self._groups,
            self._gpus,
        )

    def _write(self, changed: Mapping[int, PodWire]) -> None:
        if len(self._uids) > self._numbers.shape[1]:
            more = max(len(self._uids) - self._numbers.shape[1], self._numbers.shape[1] // 8)
            self._numbers = np.hstack((self._numbers, np.full((len(Number), more), -1, dtype=np.int32)))
            self._times = np.hstack((self._times, np.full((3, more), np.nan)))
            self._alive = np.append(self._alive, np.zeros(more, dtype=np.bool_))
        reading = _Reading(self._requests, self._constraints, self._label_sets)
        entries = iter(changed.items())
        while some := list(islice(entries, _AT_ONCE)):
            self._write_some(some, reading)

    def _write_some(self, changed: Sequence[tuple[int, PodWire]], reading: _Reading) -> None:
        numbers: list[tuple[int, ...]] = []
        times: list[tuple[float, float, float]] = []
        for slot, pod in changed:
            meta, said = pod.metadata, annotations_of(pod.metadata.annotations)
            own = without_gpu_annotations(said)
            if meta.name != self._names[slot] or meta.namespace != self._namespaces[slot]:
                self._alive[slot] = False  # it has another place in the order
            controller = meta.controller
            owner = controller if controller is not None and controller.kind != _NODE_OWNER else None
            namespace = self._namespace_words.setdefault(meta.namespace, meta.namespace)
            self._uids[slot], self._names[slot], self._namespaces[slot] = meta.uid, meta.name, namespace
            self._keys[slot] = namespace, meta.name
            self._owners[slot], self._annotations[slot], self._volumes[slot] = owner, own, pod_volumes(pod)
            self._restart_policies[slot] = pod.spec.restart_policy or "Always"
            marks = gang_marks(pod, own, owner)
            self._groups[slot] = scheduling_group(marks)
            request, mark = reading.request(pod), self._marks.setdefault(marks, len(self._marks)) if marks else -1
            numbers.append(self._numbers_of(pod, own, owner, reading, request, self._gpu_number(slot, pod, said, request), mark))
            times.append((seconds(meta.creation_timestamp), seconds(pod.status.start_time), ready_after(pod)))
        slots = [slot for slot, _ in changed]
        self._numbers[:, slots] = np.array(numbers, dtype=np.int32).T
        self._times[:, slots] = np.array(times, dtype=np.float64).T

    def _numbers_of(
        self, pod: PodWire, own: Mapping[str, str], owner: OwnerWire | None, reading: _Reading, request: int, gpu: int, mark: int
    ) -> tuple[int, ...]:
        """In the order of `Number`."""
        node, word = pod.spec.node_name, class_of_annotations(own)
        return (
            self._nodes.setdefault(node, len(self._nodes)) if node else -1,
            phase_number(pod),
            qos_number(pod),
            is_ready(pod),
            pod.metadata.deletion_timestamp is not None,
            pod.spec.priority or 0,
            self._owner_numbers.setdefault(owner.uid, len(self._owner_numbers)) if owner is not None else -1,
            word.number,
            word.is_bad,
            is_static(pod, own),
            request,
            reading.labels(pod),
            reading.constraints(pod),
            gpu,
            mark,
            called_number(own, pod.metadata.labels),
        )

    def _gpu_number(self, slot: int, pod: PodWire, annotations: Mapping[str, str], request: int) -> int:
        """Of what the pod says about GPUs, which is kept with it; -1 for nothing."""
        gpu = self._gpus[slot] = pod_gpu(pod, annotations, self._requests.extended[request] if request >= 0 else ())
        return -1 if gpu is None else self._clues.number(gpu.clues)

    # ---- handing out --------------------------------------------------------------------------------------------------

    def _arrange(self, slots: IntArray) -> None:
        """Take in who is there, and put the slots in order. Who was there before is in order already."""
        alive = np.zeros(self._numbers.shape[1], dtype=np.bool_)
        alive[slots] = True
        if np.array_equal(alive, self._alive):
            return
        before = np.array(self._order, dtype=np.int64)
        stayed = before[alive[before] & self._alive[before]]
        came = alive.copy()
        came[stayed] = False
        for slot in before[~alive[before]].tolist():
            self._slot_of.pop(self._uids[slot] or f"{self._namespaces[slot]}/{self._names[slot]}", None)
            for column in self._objects:
                column[slot] = None
            self._free.append(slot)
        namespaces, names, uids = self._namespaces, self._names, self._uids
        self._order = sorted(
            (*stayed.tolist(), *np.flatnonzero(came).tolist()), key=lambda slot: (namespaces[slot], names[slot], uids[slot])
        )
        self._alive, self._take = alive, None

    def _columns(self) -> PodColumns:
        order = np.array(self._order, dtype=np.int64)
        bad = self._numbers[Number.REQUEST, order] < 0
        unreadable = {self._keys[slot]: self._node_name(slot) for slot in order[bad].tolist()}
        if self._take is None or len(self._take[0]) != len(order) - len(unreadable) or unreadable:
            order = order[~bad]
            self._take = order, _taking(order.tolist() if unreadable else self._order)
        order, take = self._take
        return PodColumns(
            uids=take(self._uids),
            keys=take(self._keys),
            names=take(self._names),
            namespaces=take(self._namespaces),
            owners=take(self._owners),
            annotations=take(self._annotations),
            volumes=take(self._volumes),
            restart_policies=take(self._restart_policies),
            groups=take(self._groups),
            numbers={number: self._numbers[number, order].astype(np.int64) for number in Number},
            created_at=self._times[0, order],
            started_at=self._times[1, order],
            ready_after=self._times[2, order],
            node_names=tuple(self._nodes),
            label_sets=tuple(self._label_sets),
            constraints=self._constraints,
            requests=self._requests,
            gpus=self._gpu_columns(order),
            gang_marks=tuple(self._marks),
            unreadable=unreadable,
        )

    def _gpu_columns(self, order: IntArray) -> GpuColumns:
        rows = np.flatnonzero(self._numbers[Number.GPU, order] >= 0)
        records = (self._gpus[slot] for slot in order[rows].tolist())
        return GpuColumns(rows=rows, records=tuple(each for each in records if each is not None), memo=self._memo)

    def _node_name(self, slot: int) -> str:
        number = int(self._numbers[Number.NODE, slot])
        return tuple(self._nodes)[number] if number >= 0 else ""


class _Reading:
    """Reads what pods of one controller nearly always share, for as long as one read lasts: the pods it compares with are let go then."""

    def __init__(self, requests: RequestTable, constraints: ConstraintTable, label_sets: dict[LabelSet, int]) -> None:
        self._requests, self._constraints, self._label_sets = requests, constraints, label_sets
        self._alike_requests, self._alike_labels = Alike(same_requests), Alike(same_labels)
        self._alike_constraints = Alike(same_constraints)

    def request(self, pod: PodWire) -> int:
        try:
            return self._alike_requests.row(pod, self._requests.row)
        except ValueError:
            return -1

    def labels(self, pod: PodWire) -> int:
        return self._alike_labels.row(pod, self._label_row)

    def constraints(self, pod: PodWire) -> int:
        return self._alike_constraints.row(pod, lambda each: self._constraints.row(each.spec))

    def _label_row(self, pod: PodWire) -> int:
        labels = LabelSet(pod.metadata.namespace, tuple(sorted((pod.metadata.labels or {}).items())))
        return self._label_sets.setdefault(labels, len(self._label_sets))


def _taking(order: list[int]) -> Take:
    """A function that picks these places of a list."""
    if len(order) < 2:
        return lambda column: tuple(column[slot] for slot in order)
    return itemgetter(*order)
