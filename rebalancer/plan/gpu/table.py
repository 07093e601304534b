"""The devices of the state as the book of a plan reads them: what does not change while the plan grows.

Devices of one kind are told apart by what is on them alone, so that what an ask says about devices is worked out once a kind. What is
counted as a device's memory is twofold: what its scheme hands out, and what it physically has. Of a node with several devices, a figure
that takes them for equal is not what each of them has; an exporter's is.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from rebalancer.plan.gpu.needs import IN_REPLICAS, Kind
from rebalancer.state.arrays import BoolArray, FloatArray, IntArray
from rebalancer.state.cluster import ClusterState
from rebalancer.state.devices import Devices, Gpus, Health
from rebalancer.state.ledger import on_a_node

LEFT_BYTES = 1024.0**3
LEFT_SHARE, LEFT_SHARE_OF_SMALL = 0.03, 0.1
"""What a device may hold of its memory without anybody on it, since drivers reserve some hundred MiB: so many bytes, or a share of a large
one, and of a small one not more than the larger share."""


class DeviceTable:
    """(devices,) columns, in the order of ``state.gpus.devices``."""

    def __init__(self, state: ClusterState) -> None:
        self.state = state
        self.gpus: Gpus = state.gpus
        self.devices: Devices = state.gpus.devices
        devices, use = self.devices, self.gpus.use
        self.kinds: tuple[Kind, ...]
        self.kinds, self.kind = _kinds(devices)
        self.given: BoolArray = np.asarray((devices.health != int(Health.UNHEALTHY)) & ~devices.cordoned, dtype=np.bool_)
        """Its scheme gives it to pods."""
        self.ill: BoolArray = _said(use.ailments, len(devices))
        self.doubted: BoolArray = _said(use.doubts, len(devices))
        self.sound: BoolArray = devices.trusted & ~self.ill & ~self.doubted
        measured = len(use) > 0
        self.used: FloatArray = np.where(self.doubted, np.nan, use.memory_bytes) if measured else np.full(len(devices), np.nan)
        """Bytes of its memory that are measured to be used; NaN unknown."""
        self.busy: FloatArray = use.busy if measured else np.full(len(devices), np.nan)
        told: FloatArray = np.where(devices.memory_exact, devices.memory_bytes, np.nan)
        self.total: FloatArray = np.fmin(use.total_bytes, told) if measured else told
        """Bytes that it physically has; NaN where nobody tells it of this device."""
        self.handed_out: FloatArray = np.where(np.isnan(devices.handed_out_bytes), devices.memory_bytes, devices.handed_out_bytes)
        """Bytes that its scheme counts with."""
        self.left: FloatArray = np.fmax(np.fmin(LEFT_BYTES, LEFT_SHARE_OF_SMALL * self.total), LEFT_SHARE * self.total)
        self.faulty: BoolArray = _faulty(state)
        """(nodes,) what the node tells of its devices cannot be read, or does not go together."""

    @cached_property
    def ask_of_pod(self) -> dict[int, int]:
        """Row of a pod -> row in ``gpus.asks``, of the pods that ask."""
        return dict(zip(self.gpus.pod.tolist(), self.gpus.ask.tolist(), strict=True))

    @cached_property
    def uuid_rows(self) -> dict[str, int]:
        return {uuid: row for row, uuid in enumerate(self.devices.uuids) if uuid}

    @cached_property
    def on_a_node(self) -> BoolArray:
        """(pods,)."""
        return on_a_node(self.state)

    @cached_property
    def _pairs_by_pod(self) -> tuple[IntArray, IntArray]:
        """Rows in ``gpus.held`` in order of pods, and the pods."""
        order = np.argsort(self.gpus.held.pod, kind="stable")
        return order, self.gpus.held.pod[order]

    def pairs_of(self, pod: int) -> IntArray:
        """Rows in ``gpus.held`` of what the pod holds; none where its devices are not known."""
        order, pods = self._pairs_by_pod
        first, last = np.searchsorted(pods, (pod, pod + 1)).tolist()
        return order[first:last]

    def models_of(self, pod: int) -> frozenset[str]:
        """Models of the devices that the pod is on, the empty one for a device whose model is not known; none for a pod on no node.

        A pod of which it is not known which devices it holds is on any of its node.
        """
        rows = self._may_hold(pod)
        kinds = np.unique(self.kind[rows]).tolist()
        if not kinds and self.on_a_node[pod]:
            return frozenset(("",))
        return frozenset(self.kinds[kind].model for kind in kinds)

    def memory_of(self, pod: int, *, by_request: bool) -> float:
        """Bytes that the pod holds at most of any one device: as measured, else all that is used of a device that it is on, else all that
        the device has, or NaN with ``by_request``. 0 for a pod on no node, which holds nothing; NaN where not even that is known."""
        if not self.on_a_node[pod]:
            return 0.0
        gpus, pairs = self.gpus, self.pairs_of(pod)
        rows = self._may_hold(pod)
        if not len(rows):
            return float("nan")
        bound = self.used[rows] if by_request else np.where(np.isnan(self.used[rows]), self.total[rows], self.used[rows])
        if len(pairs) and len(gpus.held_use):
            own = np.where(gpus.held_use.estimated[pairs], np.nan, gpus.held_use.memory_bytes[pairs])
            if len(pairs) == len(rows):
                bound = np.where(np.isnan(own), bound, own)
        return float(bound.max())

    def busy_of(self, pod: int) -> float:
        """The largest share of a device that the pod keeps busy, be it an estimate; NaN unknown."""
        pairs, use = self.pairs_of(pod), self.gpus.held_use
        return float(np.fmax.reduce(use.busy[pairs], initial=np.nan)) if len(use) else float("nan")

    def _may_hold(self, pod: int) -> IntArray:
        """Devices that the pod holds, or all of its node where that is not known or not known of all of them."""
        position = int(np.searchsorted(self.gpus.unplaced, pod))
        if position < len(self.gpus.unplaced) and self.gpus.unplaced[position] == pod:
            own = self.devices.of_node(int(self.state.pods.node[pod]))
            return np.arange(own.start, own.stop)
        return self.gpus.held.device[self.pairs_of(pod)]


def units_of(table: DeviceTable, pairs: IntArray) -> FloatArray:
    """(pairs,) units of the device's resource that each pair of device and pod stands for, at least one."""
    held, replicas = table.gpus.held, table.devices.replicas
    in_replicas = np.array([kind.scheme in IN_REPLICAS for kind in table.kinds] or [False], dtype=np.bool_)
    devices = held.device[pairs]
    told = np.where(in_replicas[table.kind[devices]], held.compute[pairs] * replicas[devices], 1.0)
    return np.maximum(1.0, np.round(np.nan_to_num(told, nan=1.0)))


def _kinds(devices: Devices) -> tuple[tuple[Kind, ...], IntArray]:
    numbers: dict[tuple[int, int, str, str, float], int] = {}
    kinds: list[Kind] = []
    codes: list[int] = []
    columns = (devices.families, devices.schemes, devices.mig_profiles, devices.models, devices.replicas.tolist())
    for family, scheme, profile, model, replicas in zip(*columns, strict=True):
        # Members of an enumeration are one object each, whose hash would be worked out from their names every time.
        key = (id(family), id(scheme), profile, model, replicas if replicas == replicas else -1.0)
        number = numbers.get(key)
        if number is None:
            number = numbers[key] = len(kinds)
            kinds.append(Kind(family, scheme, profile, model, replicas))
        codes.append(number)
    return tuple(kinds), np.array(codes, dtype=np.int64)


def _said(words: Sequence[str], size: int) -> BoolArray:
    return np.fromiter(map(bool, words), dtype=np.bool_, count=size) if words else np.zeros(size, dtype=np.bool_)


def _faulty(state: ClusterState) -> BoolArray:
    faulty = np.zeros(len(state.nodes.names), dtype=np.bool_)
    for fault in state.gpus.faults:
        if not fault.pod and (row := state.node_index.get(fault.node)) is not None:
            faulty[row] = True
    return faulty
