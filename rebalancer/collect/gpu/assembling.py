"""All tables of GPUs, from pods that ask for them and nodes that have them.

The order follows what needs what: what nodes tell, what asks mean there, names of devices that pods and exporters tell, and then who is
where. Work is done once a distinct case; what a memo holds from the cycle before is not done again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from rebalancer.collect.gpu.exporters import NO_GPU_SAMPLES, GpuSamples
from rebalancer.collect.gpu.measuring import PodPlaces, measured_gpus
from rebalancer.collect.gpu.memo import Kept
from rebalancer.collect.gpu.node_devices import NodeMemo, PodOnNode, node_views, told_devices
from rebalancer.collect.gpu.objects import ClaimBook
from rebalancer.collect.gpu.placing import AskedPods, GpuPods, PlacedPods, asked_by, placed_by
from rebalancer.collect.gpu.tables import device_table, gpus_of
from rebalancer.gpu.asks.reading import Asked
from rebalancer.gpu.meters.devices import NO_BELIEFS, Beliefs
from rebalancer.gpu.names import DEFAULT_NAMES, GpuNames
from rebalancer.gpu.nodes.reading import NodeDevices
from rebalancer.gpu.places.held import NodeView
from rebalancer.gpu.places.reading import Placed
from rebalancer.gpu.sightings import NOTHING_SEEN, Sightings
from rebalancer.kube.gpu_sharing import UnhealthyWire
from rebalancer.kube.wire import NodeWire
from rebalancer.kube.wire_devices import DeviceClaimWire, NodeDevicesWire, ResourceSliceWire
from rebalancer.state.devices import NO_GPUS, DeviceFault, Devices, FaultReason, Gpus

__all__ = ["NO_WORDS", "GpuMemo", "GpuObjects", "GpuPods", "GpuWords", "assemble_gpus"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuWords:
    """What is told beside the API objects: names by the policy, sightings by exporters."""

    names: GpuNames = DEFAULT_NAMES
    sightings: Sightings = NOTHING_SEEN
    samples: GpuSamples = NO_GPU_SAMPLES
    beliefs: Beliefs = NO_BELIEFS
    notes: tuple[str, ...] = ()
    """Sentences about the exporters."""


NO_WORDS = GpuWords()


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuObjects:
    """API objects that only GPUs need. Empty where the API has none of the kind; claims are None where they may not be listed."""

    claims: Sequence[DeviceClaimWire] | None = ()
    slices: Sequence[ResourceSliceWire] = ()
    devices: Sequence[NodeDevicesWire] = ()
    unhealthy: Sequence[UnhealthyWire] = ()


def may_have_gpus(nodes: Sequence[NodeWire], *, asking: int) -> bool:
    """Whether it is worth asking exporters: a pod asks for GPUs (``asking`` do), or a node has some resource beside those of every node."""
    return asking > 0 or any("/" in name for wire in nodes for name in (*(wire.status.capacity or ()), *(wire.status.allocatable or ())))


@dataclass(slots=True)
class GpuMemo:
    """Lives as long as the columns of pods that it is kept with, whose clues it knows by number."""

    names: GpuNames = DEFAULT_NAMES
    nodes: NodeMemo = field(default_factory=NodeMemo)
    asked: Kept[Asked] = field(default_factory=Kept)
    placed: Kept[Placed] = field(default_factory=Kept)
    table: tuple[tuple[NodeView, ...], Devices] = ((), NO_GPUS.devices)
    """The devices of the last cycle, and the views that they were made from."""

    def begin(self, names: GpuNames) -> None:
        """A cycle begins. Nothing that was read by other names is good any more."""
        if names != self.names:
            self.names, self.nodes, self.asked, self.placed = names, NodeMemo(), Kept(), Kept()
        self.nodes.begin()
        self.asked.begin()
        self.placed.begin()


def assemble_gpus(pods: GpuPods, nodes: Sequence[NodeWire], objects: GpuObjects, *, words: GpuWords, at: float, memo: GpuMemo) -> Gpus:
    """``nodes``: in the order of their rows. `NO_GPUS` where no node tells of a device and no pod of GPUs."""
    memo.begin(words.names)
    told = told_devices(
        nodes,
        objects=objects.devices,
        slices=objects.slices,
        unhealthy=objects.unhealthy,
        names=memo.names,
        at=at,
        memo=memo.nodes,
    )
    if not told and not len(pods.rows):
        return NO_GPUS
    book = ClaimBook(objects.claims)
    claimed = {pod: book.of_pod(pods.keys[pod][0], record.uses) for pod, record in enumerate(pods.records) if record.uses}
    asked = asked_by(pods, told, claimed, names=memo.names, memo=memo.asked)
    names = [wire.metadata.name for wire in nodes]
    views, faults = node_views(told, _on_nodes(pods, asked), node_names=names, sightings=words.sightings, memo=memo.nodes)
    placed = placed_by(pods, asked, views, claimed, sightings=words.sightings, memo=memo.placed)
    faults.extend(_node_faults(told, names))
    faults.extend(_pod_faults(pods, asked, placed, names))
    tables = gpus_of(pods, asked, placed, devices=_devices(views, memo), views=views, faults=faults)
    return measured_gpus(tables, words.samples, nodes=names, beliefs=words.beliefs, pods=PodPlaces.of(pods))


def _on_nodes(pods: GpuPods, asked: AskedPods) -> Iterator[PodOnNode]:
    """Pods that use a node and may name its devices."""
    for pod, (record, node, active) in enumerate(zip(pods.records, pods.node.tolist(), pods.active.tolist(), strict=True)):
        if active and record.names:
            yield PodOnNode("/".join(pods.keys[pod]), node, record, asked.asked[asked.number[pod]].asks)


def _devices(views: Mapping[int, NodeView], memo: GpuMemo) -> Devices:
    """The table of the last cycle, where it would be the same: rows of nodes included."""
    made_from = tuple(views.values())
    before, devices = memo.table
    same_rows = len(devices) == 0 or np.array_equal(np.unique(devices.node), [row for row, view in views.items() if view.devices])
    if len(before) != len(made_from) or not same_rows or any(one is not other for one, other in zip(before, made_from, strict=True)):
        devices = device_table(views)
        memo.table = (made_from, devices)
    return devices


def _node_faults(told: Mapping[int, NodeDevices], names: Sequence[str]) -> Iterator[DeviceFault]:
    for row, devices in told.items():
        for fault in devices.faults:
            yield DeviceFault(names[row], "", fault.scheme, fault.reason, f"node {names[row]}: {fault.clause}")


def _pod_faults(pods: GpuPods, asked: AskedPods, placed: PlacedPods, names: Sequence[str]) -> Iterator[DeviceFault]:
    odd = np.array([bool(each.unreadable or each.mixed) for each in asked.asked], dtype=np.bool_)[asked.number]
    odd |= np.array([bool(each.faults) for each in placed.placed], dtype=np.bool_)[placed.number]
    for pod in np.flatnonzero(odd).tolist():
        node = int(pods.node[pod])
        yield from _faults_of(
            "/".join(pods.keys[pod]), names[node] if node >= 0 else "", asked.asked[asked.number[pod]], placed.placed[placed.number[pod]]
        )


def _faults_of(name: str, node: str, asked: Asked, placed: Placed) -> Iterator[DeviceFault]:
    where = f"pod {name} on node {node}" if node else f"pod {name}"
    for trouble in asked.unreadable:
        yield DeviceFault(node, name, trouble.scheme, FaultReason.UNREADABLE_ASK, f"{where}: {trouble.clause}")
    if asked.mixed:
        words = " and ".join(scheme.value for scheme in asked.mixed)
        yield DeviceFault(node, name, asked.mixed[0], FaultReason.MIXED_ASK, f"{where} asks for devices by {words} at once")
    for fault in placed.faults:
        yield DeviceFault(node, name, fault.scheme, fault.reason, f"{where}: {fault.clause}")
