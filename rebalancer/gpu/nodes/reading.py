"""The devices of a node, from all that tells of them.

The first source in the order below that tells devices of a family is believed about which there are, since it names them best: by uuid
before by index, by index before by number. Sources after it fill what it leaves unknown, where they count as many. What does not go
together is a fault: the devices stay, as ones that nobody may decide on.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from rebalancer.gpu.meaning import Meaning
from rebalancer.gpu.nodes import amd, gpushare, hami, koordinator, nvidia, slices, tencent, volcano
from rebalancer.gpu.nodes.clues import NodeClues, NodeContext
from rebalancer.gpu.nodes.meaning import meaning_of
from rebalancer.gpu.nodes.told import FoundDevice, Source, Told
from rebalancer.gpu.unreadable import Disagreement, Unreadable
from rebalancer.state.devices import FaultReason, Health
from rebalancer.state.gpu import UNKNOWN, Family, Scheme

SOURCES: tuple[tuple[Scheme, Source], ...] = (
    (Scheme.DRA, slices.read),
    (Scheme.HAMI, hami.read),
    (Scheme.VOLCANO_VGPU, volcano.read_vgpu),
    (Scheme.KOORDINATOR, koordinator.read),
    (Scheme.GPUSHARE, gpushare.read),
    (Scheme.VOLCANO_GPUSHARE, volcano.read_gpushare),
    (Scheme.TENCENT, tencent.read),
    (Scheme.PLAIN, nvidia.read),
    (Scheme.PARTITION, amd.read),
)
"""In order of precedence."""
_GO_TOGETHER = frozenset((Scheme.PLAIN, Scheme.KOORDINATOR))
"""koordinator books what pods ask of the vendor's resource as well."""
_SCALING = frozenset((Scheme.HAMI, Scheme.VOLCANO_VGPU))
"""Schemes that may hand out more memory than a device has."""
_ROUNDED = 0.1
"""How far two figures of a device's memory may be apart: some are rounded to GiB, some leave out what the driver keeps."""


@dataclass(frozen=True, slots=True)
class NodeFault:
    scheme: Scheme
    reason: FaultReason
    clause: str


@dataclass(frozen=True, slots=True)
class NodeDevices:
    """``devices``: in the order in which they are told."""

    devices: tuple[FoundDevice, ...]
    meaning: Meaning
    faults: tuple[NodeFault, ...] = ()


def devices_of(node: NodeClues, context: NodeContext) -> NodeDevices:
    """What the node has. Never raises: what cannot be read is in the answer."""
    faults: list[NodeFault] = []
    told: list[tuple[Scheme, Told]] = []
    for scheme, read in SOURCES:
        try:
            found = read(node, context)
        except Unreadable as error:
            disagree = isinstance(error, Disagreement)
            faults.append(NodeFault(scheme, FaultReason.DEVICES_DISAGREE if disagree else FaultReason.UNREADABLE_NODE, str(error)))
            continue
        if found is not None and found.devices:
            told.append((scheme, found))
    devices: list[FoundDevice] = []
    for family in dict.fromkeys(device.family for _, each in told for device in each.devices):
        devices.extend(_of_family(family, told, faults))
    return NodeDevices(devices=tuple(devices), meaning=meaning_of(node, context), faults=tuple(faults))


def _of_family(family: Family, told: list[tuple[Scheme, Told]], faults: list[NodeFault]) -> tuple[FoundDevice, ...]:
    by_source = [(scheme, each, tuple(d for d in each.devices if d.family is family)) for scheme, each in told]
    by_source = [(scheme, each, devices) for scheme, each, devices in by_source if devices]
    first, _, devices = by_source[0]
    handing_out = dict.fromkeys(each.hands_out for _, each, _ in by_source if each.hands_out is not None)
    if len(handing_out) > 1 and not _GO_TOGETHER.issuperset(handing_out):
        words = " and ".join(scheme.value for scheme in handing_out)
        faults.append(NodeFault(first, FaultReason.TWO_SCHEMES, f"its {family.value} devices are handed out by {words} at once"))
        return tuple(replace(each, trusted=False, replicas=UNKNOWN, handed_out_bytes=UNKNOWN) for each in devices)
    for scheme, _, others in by_source[1:]:
        clause = _contradiction(first, devices, scheme, others)
        if clause:
            faults.append(NodeFault(scheme, FaultReason.DEVICES_DISAGREE, clause))
            return tuple(replace(each, trusted=False) for each in devices)
        devices = tuple(_filled(one, other) for one, other in zip(devices, _in_step(devices, others), strict=True))
    return devices


def _in_step(devices: tuple[FoundDevice, ...], others: tuple[FoundDevice, ...]) -> tuple[FoundDevice, ...]:
    """The others in the order of the first, by uuid or index where all have them; they are equal anyway where they have neither."""
    for key in ("uuid", "index"):
        wanted, known = [getattr(each, key) for each in devices], {getattr(each, key): each for each in others}
        if len(known) == len(others) and set(wanted) == set(known):
            return tuple(known[each] for each in wanted)
    return others


def _contradiction(first: Scheme, devices: tuple[FoundDevice, ...], scheme: Scheme, others: tuple[FoundDevice, ...]) -> str:
    """Why the two cannot both be true; empty when they can."""
    if len(devices) != len(others):
        return f"{first.value} tells {len(devices)} devices of the node, {scheme.value} tells {len(others)}"
    for one, other in zip(devices, _in_step(devices, others), strict=True):
        small, large = sorted((one.memory_bytes, other.memory_bytes))
        if large - small > _ROUNDED * large and not _is_scaled(one, other):
            return f"{first.value} tells {one.memory_bytes:.0f} bytes of memory of a device, {scheme.value} tells {other.memory_bytes:.0f}"
    return ""


def _filled(device: FoundDevice, other: FoundDevice) -> FoundDevice:
    """What the first source leaves unknown. Of memory the figure that was told of the very device counts, else the finer one of labels."""
    known = other.memory_bytes == other.memory_bytes
    use_other = known and (not device.memory_exact or device.memory_bytes != device.memory_bytes or _is_scaled(device, other))
    return replace(
        device,
        uuid=device.uuid or other.uuid,
        model=device.model or other.model,
        mig_profile=device.mig_profile or other.mig_profile,
        memory_bytes=other.memory_bytes if use_other else device.memory_bytes,
        memory_exact=other.memory_exact if use_other else device.memory_exact,
        health=min(device.health, other.health) if Health.UNKNOWN not in (device.health, other.health) else _known(device, other),
        replicas=device.replicas,
    )


def _is_scaled(device: FoundDevice, other: FoundDevice) -> bool:
    """Whether the one hands out more memory than the other says that there is."""
    return device.scheme in _SCALING and other.memory_bytes < device.memory_bytes


def _known(device: FoundDevice, other: FoundDevice) -> Health:
    return device.health if other.health is Health.UNKNOWN else other.health
