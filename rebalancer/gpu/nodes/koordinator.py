"""koordinator's devices of a node: its Device object, else the node's capacity, in hundredths of a device."""

from __future__ import annotations

from collections.abc import Iterator

from rebalancer.gpu.nodes.clues import NodeClues, NodeContext, ObjectDevice
from rebalancer.gpu.nodes.told import FoundDevice, Told, countable, health_by_count
from rebalancer.gpu.unreadable import Disagreement, quantity, whole
from rebalancer.state.devices import DeviceSource, Health
from rebalancer.state.gpu import UNKNOWN, Family, Scheme

CORE, MEMORY = "koordinator.sh/gpu-core", "koordinator.sh/gpu-memory"
MODEL, VENDOR = "node.koordinator.sh/gpu-model", "node.koordinator.sh/gpu-vendor"
_VENDORS = {"": Family.NVIDIA, "nvidia": Family.NVIDIA, "amd": Family.AMD, "huawei": Family.HUAWEI}


def read(node: NodeClues, context: NodeContext) -> Told | None:
    del context
    family = _VENDORS.get(node.labels.get(VENDOR, "").lower(), Family.OTHER)
    if node.objects:
        devices = tuple(_of_object(each, model=node.labels.get(MODEL, ""), family=family) for each in node.objects)
        if len({each.uuid for each in devices if each.uuid}) < len([each for each in devices if each.uuid]):
            raise Disagreement("its Device object holds one uuid twice")
    else:
        devices = tuple(_of_capacity(node, family))
    return Told(devices=devices, hands_out=Scheme.KOORDINATOR) if devices else None


def _of_object(device: ObjectDevice, *, model: str, family: Family) -> FoundDevice:
    text = device.resources.get(MEMORY)
    memory = quantity(f"{MEMORY} of device {device.minor} in its Device object", text) or UNKNOWN if text is not None else UNKNOWN
    return FoundDevice(
        family=family,
        scheme=Scheme.KOORDINATOR,
        source=DeviceSource.KOORDINATOR,
        index=device.minor,
        uuid=device.uuid,
        model=model,
        memory_bytes=memory,
        memory_exact=True,
        handed_out_bytes=memory,
        health=Health.UNKNOWN if device.healthy is None else Health.HEALTHY if device.healthy else Health.UNHEALTHY,
    )


def _of_capacity(node: NodeClues, family: Family) -> Iterator[FoundDevice]:
    hundredths = node.has(CORE)
    count = countable(f"{hundredths} of {CORE}", hundredths / 100)
    text = node.capacity.get(MEMORY, node.allocatable.get(MEMORY))
    memory = whole(MEMORY, text) / count if text is not None and count else 0
    for index in range(count):
        yield FoundDevice(
            family=family,
            scheme=Scheme.KOORDINATOR,
            source=DeviceSource.CAPACITY,
            index=index,
            model=node.labels.get(MODEL, ""),
            memory_bytes=memory or UNKNOWN if count == 1 else UNKNOWN,
            memory_exact=count == 1,
            handed_out_bytes=memory or UNKNOWN,
            health=health_by_count(has=hundredths, gives=node.gives(CORE)),
        )
