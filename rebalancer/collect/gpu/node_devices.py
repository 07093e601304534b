"""The devices of all nodes, named by whatever names them, as the tables and the places of pods need them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from rebalancer.collect.gpu.memo import Kept
from rebalancer.collect.gpu.node_clues import node_clues
from rebalancer.collect.gpu.objects import objects_by_node, slices_by_node, unhealthy_by_node
from rebalancer.collect.gpu.pod_clues import PodGpu
from rebalancer.gpu.asks.mig import PREFIX, profile_of
from rebalancer.gpu.identities import SeenUuid, named
from rebalancer.gpu.names import GpuNames
from rebalancer.gpu.nodes.clues import NodeClues, NodeContext
from rebalancer.gpu.nodes.hami import is_lost
from rebalancer.gpu.nodes.reading import NodeDevices, devices_of
from rebalancer.gpu.places.held import Misplaced, NodeView
from rebalancer.gpu.places.kai import REPORTED, reserved_place
from rebalancer.gpu.places.kubelet import place_of, uuid_of
from rebalancer.gpu.sightings import SeenDevice, Sightings
from rebalancer.gpu.unreadable import Unreadable
from rebalancer.kube.gpu_sharing import UnhealthyWire
from rebalancer.kube.wire import NodeWire
from rebalancer.kube.wire_devices import NodeDevicesWire, ResourceSliceWire
from rebalancer.state.devices import DeviceFault, FaultReason
from rebalancer.state.gpu import GpuAsk, Scheme

ON_PLUGIN = frozenset((Scheme.PLAIN, Scheme.SHARED, Scheme.TIME_SLICING, Scheme.MPS, Scheme.MIG, Scheme.PARTITION, Scheme.KAI_RESERVATION))
"""Pods whose devices the kubelet knows."""


@dataclass(frozen=True, slots=True)
class _Read:
    """What was read of a node, and from what."""

    wire: NodeWire
    lost: bool
    clues: NodeClues | None
    devices: NodeDevices | None


View: TypeAlias = "tuple[tuple[object, ...], NodeView, tuple[DeviceFault, ...]]"
"""What it was made from beside what the node tells; the view; what is wrong with that."""


@dataclass(slots=True)
class NodeMemo:
    nodes: dict[str, _Read] = field(default_factory=dict)
    views: Kept[View] = field(default_factory=Kept)

    def begin(self) -> None:
        self.views.begin()


def told_devices(
    wires: Sequence[NodeWire],
    *,
    objects: Iterable[NodeDevicesWire],
    slices: Iterable[ResourceSliceWire],
    unhealthy: Iterable[UnhealthyWire],
    names: GpuNames,
    at: float,
    memo: NodeMemo,
) -> Mapping[int, NodeDevices]:
    """Row of a node -> what it tells, of the nodes that tell something. ``names``: the same as in the cycle that the memo is of."""
    by_object, by_slice, by_map = objects_by_node(objects), slices_by_node(slices), unhealthy_by_node(unhealthy)
    before, memo.nodes = memo.nodes, {}
    found: dict[int, NodeDevices] = {}
    for row, wire in enumerate(wires):
        name = wire.metadata.name
        annotations = wire.metadata.annotations
        lost = bool(annotations) and is_lost(annotations or {}, at=at)
        own, sliced, ill, known = by_object.get(name), by_slice.get(name, ()), by_map.get(name, ""), before.get(name)
        if known is None or known.wire is not wire or known.lost != lost or own or sliced or ill or _had_objects(known):
            known = _read(wire, node_clues(wire, objects=own, slices=sliced, unhealthy=ill), known, names=names, lost=lost)
        memo.nodes[name] = known
        if known.devices is not None:
            found[row] = known.devices
    return found


def _had_objects(known: _Read) -> bool:
    return known.clues is not None and bool(known.clues.objects or known.clues.slices or known.clues.unhealthy)


def _read(wire: NodeWire, clues: NodeClues | None, known: _Read | None, *, names: GpuNames, lost: bool) -> _Read:
    """The same devices as before where the node says the same."""
    if known is not None and known.clues == clues and known.lost == lost:
        return _Read(wire, lost, known.clues, known.devices)
    told = None if clues is None else devices_of(clues, NodeContext(names=names, lost=lost))
    return _Read(wire, lost, clues, told if told is not None and (told.devices or told.faults) else None)


@dataclass(slots=True)
class _Marks:
    """What pods and exporters tell of the devices of one node."""

    kubelet: list[SeenUuid] = field(default_factory=list)
    reservations: list[tuple[str, PodGpu]] = field(default_factory=list)
    seen: list[SeenDevice] = field(default_factory=list)
    by_number: bool = False


@dataclass(frozen=True, slots=True)
class PodOnNode:
    """A pod that uses its node, with its asks."""

    name: str
    node: int
    record: PodGpu
    asks: tuple[GpuAsk, ...]


def node_views(
    told: Mapping[int, NodeDevices], pods: Iterable[PodOnNode], *, node_names: Sequence[str], sightings: Sightings, memo: NodeMemo
) -> tuple[Mapping[int, NodeView], list[DeviceFault]]:
    """Row of a node -> its devices with their names. A pod's report that cannot be followed is a fault."""
    marks: dict[int, _Marks] = defaultdict(_Marks)
    for pod in pods:
        if pod.node in told:
            _note(pod, told[pod.node], marks[pod.node])
    rows = {node_names[row]: row for row in told}
    for device in sightings.devices:
        if device.node in rows:
            marks[rows[device.node]].seen.append(device)
    views: dict[int, NodeView] = {}
    faults: list[DeviceFault] = []
    for row, devices in told.items():
        view, own = _view(node_names[row], devices, marks.get(row), memo)
        views[row] = view
        faults.extend(own)
    return views, faults


def _note(pod: PodOnNode, told: NodeDevices, marks: _Marks) -> None:
    schemes = {ask.scheme for ask in pod.asks}
    if not schemes & ON_PLUGIN:
        return
    place = pod.record.place
    for given in place.kubelet:
        uuid = uuid_of(given.id)
        if uuid:
            marks.kubelet.append(SeenUuid(uuid, _profile(given.resource, told), given.healthy))
        marks.by_number |= not uuid and bool(given.id)
    if Scheme.KAI_RESERVATION in schemes:
        marks.reservations.append((pod.name, pod.record))
        marks.by_number |= place.annotations.get(REPORTED, "").strip().isdecimal()


def _profile(resource: str, told: NodeDevices) -> str:
    try:
        return profile_of(resource) if resource.startswith(PREFIX) and not resource.endswith(".shared") else told.meaning.nvidia.profile
    except Unreadable:
        return ""


def _view(name: str, told: NodeDevices, marks: _Marks | None, memo: NodeMemo) -> tuple[NodeView, tuple[DeviceFault, ...]]:
    if marks is None:
        kept = memo.views.find(name, (told,))
        if kept is not None and kept[0] == ():
            return kept[1], kept[2]
        view = NodeView(name, told.devices, told.meaning)
        return memo.views.keep(name, (told,), ((), view, ()))[1:]
    made_from = (
        tuple(sorted(set(marks.kubelet), key=repr)),
        tuple(marks.seen),
        tuple(
            (pod, record.place.annotations.get(REPORTED), record.place.groups, record.place.kubelet) for pod, record in marks.reservations
        ),
        marks.by_number,
    )
    kept = memo.views.find(name, (told,))
    if kept is not None and kept[0] == made_from:
        return kept[1], kept[2]
    found = named(told.devices, kubelet=marks.kubelet, seen=marks.seen, by_number=marks.by_number)
    bare = NodeView(name, found.devices, told.meaning)
    faults = [*_strangers(name, found.strangers, len(told.devices))]
    groups: dict[str, int] = {}
    for pod, record in marks.reservations:
        try:
            place = _reserved(record, bare)
        except Unreadable as error:
            reason = error.reason if isinstance(error, Misplaced) else FaultReason.UNREADABLE_PLACE
            faults.append(DeviceFault(name, pod, Scheme.KAI_RESERVATION, reason, f"pod {pod} on node {name}: {error}"))
            continue
        if place is not None:
            groups.update(dict.fromkeys(record.place.groups, place))
    view = NodeView(name, found.devices, told.meaning, groups) if groups else bare
    return memo.views.keep(name, (told,), (made_from, view, tuple(faults)))[1:]


def _reserved(record: PodGpu, view: NodeView) -> int | None:
    """The device of a reservation pod: what it reports, else what the kubelet says. Raises Unreadable."""
    text = record.place.annotations.get(REPORTED)
    if text:
        return reserved_place(text, view)
    places = (place_of(given, view) for given in record.place.kubelet)
    return next((place for place in places if place is not None), None)


def _strangers(node: str, strangers: Sequence[SeenDevice], told: int) -> Iterator[DeviceFault]:
    if strangers:
        sentence = f"node {node}: exporters see device {strangers[0].uuid}, which is none of the {told} devices that the node tells"
        yield DeviceFault(node, "", Scheme.PLAIN, FaultReason.DEVICES_DISAGREE, sentence)
