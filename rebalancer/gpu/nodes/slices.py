"""Devices that DRA drivers publish in ResourceSlices: GPUs and MIG instances, each with its uuid, model and memory.

A device that is offered as a whole for a virtual machine (type ``vfio``) is the same GPU once more and is left out.
"""

from __future__ import annotations

from rebalancer.gpu.nodes.clues import NodeClues, NodeContext, SliceDevice
from rebalancer.gpu.nodes.told import FoundDevice, Told
from rebalancer.gpu.unreadable import Disagreement, quantity
from rebalancer.state.devices import DeviceSource
from rebalancer.state.gpu import UNKNOWN, Family, Scheme

DRIVERS = {"gpu.nvidia.com": Family.NVIDIA, "gpu.amd.com": Family.AMD, "gpu.intel.com": Family.INTEL}
_WHOLE, _INSTANCE = ("", "gpu", "amdgpu"), ("mig", "partition")


def read(node: NodeClues, context: NodeContext) -> Told | None:
    del context
    devices = tuple(
        _device(each, DRIVERS[each.driver])
        for each in node.slices
        if each.driver in DRIVERS and each.attributes.get("type", "") in (*_WHOLE, *_INSTANCE)
    )
    named = [each.uuid for each in devices if each.uuid]
    if len(set(named)) < len(named):
        raise Disagreement("its ResourceSlices hold one uuid twice")
    return Told(devices=devices, hands_out=Scheme.DRA) if devices else None


def _device(device: SliceDevice, family: Family) -> FoundDevice:
    attributes = device.attributes
    index = attributes.get("index", attributes.get("minor", ""))
    instance = attributes.get("type", "") in _INSTANCE
    memory = quantity(f"memory of device {device.name} in its ResourceSlice", device.memory) or UNKNOWN if device.memory else UNKNOWN
    return FoundDevice(
        family=family,
        scheme=Scheme.DRA,
        source=DeviceSource.RESOURCE_SLICE,
        index=int(index) if index.isascii() and index.isdecimal() and len(index) < 5 and not instance else -1,
        uuid=attributes.get("uuid", ""),
        parent=attributes.get("parentUUID", attributes.get("parentUuid", "")) if instance else "",
        model=attributes.get("productName", ""),
        mig_profile=attributes.get("profile", "") if instance else "",
        memory_bytes=memory,
        memory_exact=True,
        replicas=1.0,
        claimed_as=(device.driver, device.pool, device.name),
    )
