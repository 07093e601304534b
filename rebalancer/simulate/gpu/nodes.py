"""Nodes with GPUs: what the device plugin, the gpushare plugin and GPU feature discovery write on them, and the devices behind it.

Three ways of handing devices out: whole, in replicas (time-slicing), and by memory (gpushare). The devices of a node follow from its
labels, so that a node that is read back from the API has the devices that it was made with.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from enum import Enum

from rebalancer.simulate.kinds import Json

PRESENT = "nvidia.com/gpu.present"
COUNT, MEMORY, PRODUCT = "nvidia.com/gpu.count", "nvidia.com/gpu.memory", "nvidia.com/gpu.product"
REPLICAS, STRATEGY = "nvidia.com/gpu.replicas", "nvidia.com/gpu.sharing-strategy"
WHOLE, SHARED_MEMORY, SHARED_COUNT = "nvidia.com/gpu", "aliyun.com/gpu-mem", "aliyun.com/gpu-count"
TAINT: Json = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
TOLERATION: Json = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
RESERVED_MIB = 512
"""What the driver keeps of each device."""


class Sharing(Enum):
    """By what pods ask for the devices of a node."""

    WHOLE = "whole devices"
    REPLICAS = "replicas of a device"
    MEMORY = "a part of a device's memory"


@dataclass(frozen=True, slots=True)
class GpuModel:
    """``product``: as GPU feature discovery writes it."""

    product: str
    memory_mib: int


A100 = GpuModel("NVIDIA-A100-SXM4-80GB", 81920)
L4 = GpuModel("NVIDIA-L4", 24576)


@dataclass(frozen=True, slots=True)
class GpuNodes:
    """A group of equal nodes. ``replicas``: into how many a device is cut, where ``sharing`` is by replicas."""

    name: str
    count: int
    model: GpuModel
    devices: int = 1
    sharing: Sharing = Sharing.WHOLE
    replicas: int = 1
    cores: int = 32
    gib: int = 128


@dataclass(frozen=True, slots=True)
class Device:
    """``shared``: several pods may hold it."""

    node: str
    index: int
    uuid: str
    product: str
    memory_mib: int
    replicas: int
    sharing: Sharing

    @property
    def shared(self) -> bool:
        return self.sharing is not Sharing.WHOLE

    @property
    def usable_mib(self) -> int:
        """Without what the driver keeps."""
        return self.memory_mib - RESERVED_MIB


def gpu_labels(group: GpuNodes) -> dict[str, str]:
    """What GPU feature discovery says of a node of the group."""
    by_replicas = group.sharing is Sharing.REPLICAS
    return {
        PRESENT: "true",
        COUNT: str(group.devices),
        MEMORY: str(group.model.memory_mib),
        PRODUCT: group.model.product + ("-SHARED" if by_replicas else ""),
        REPLICAS: str(group.replicas if by_replicas else 1),
        STRATEGY: "time-slicing" if by_replicas else "none",
    }


def gpu_resources(group: GpuNodes) -> dict[str, str]:
    """The extended resources of a node of the group; gpushare counts whole GiB."""
    if group.sharing is Sharing.MEMORY:
        return {SHARED_MEMORY: str(group.devices * (group.model.memory_mib // 1024)), SHARED_COUNT: str(group.devices)}
    return {WHOLE: str(group.devices * group.replicas)}


def with_gpus(node: Json, group: GpuNodes) -> Json:
    """A node made one of the group: labels, resources, and the taint that keeps other pods away."""
    metadata, status, resources = node["metadata"], node["status"], gpu_resources(group)
    return {
        **node,
        "metadata": {**metadata, "labels": {**metadata["labels"], **gpu_labels(group)}},
        "spec": {**node["spec"], "taints": [TAINT]},
        "status": {**status, **{part: {**status[part], **resources} for part in ("capacity", "allocatable")}},
    }


def devices_of(node: Json) -> tuple[Device, ...]:
    """The devices of a node, by its labels; none for a node without."""
    labels, name = node["metadata"].get("labels") or {}, node["metadata"]["name"]
    if labels.get(PRESENT) != "true":
        return ()
    if SHARED_MEMORY in (node.get("status", {}).get("capacity") or {}):
        sharing = Sharing.MEMORY
    else:
        sharing = Sharing.REPLICAS if labels.get(STRATEGY) == "time-slicing" else Sharing.WHOLE
    return tuple(
        Device(
            node=name,
            index=index,
            uuid=f"GPU-{uuid.uuid5(uuid.NAMESPACE_OID, f'{name}/{index}')}",
            product=labels[PRODUCT].removesuffix("-SHARED"),
            memory_mib=int(labels[MEMORY]),
            replicas=max(1, int(labels.get(REPLICAS, "1"))),
            sharing=sharing,
        )
        for index in range(int(labels[COUNT]))
    )
