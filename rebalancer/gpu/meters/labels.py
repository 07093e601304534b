"""How the labels of a series name a device and a pod, in all the spellings that exporters have had.

dcgm-exporter: ``UUID`` of the GPU, also for a MIG instance, which is ``GPU_I_ID`` on it; ``Hostname``, later ``hostname``. HAMi:
``device_uuid``, earlier ``deviceuuid``. AMD: ``gpu_id`` of a node, and the partition, which is 0 on a GPU that is not partitioned too: the
mode of compute tells the two apart; a uuid only by choice.

Pod labels: ``exported_*`` are the workload's whenever they are there. The plain ones are the exporter's own or the workload's, by how
Prometheus was told to scrape; they count only for a pod that asks for GPUs, for an idle GPU has no pod and its series would name the
exporter.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass

Labels = Mapping[str, str]
PodKey = tuple[str, str]
NO_POD: PodKey = ("", "")

DEVICE_LABELS = (
    "UUID",
    "uuid",
    "device_uuid",
    "deviceuuid",
    "gpu_uuid",
    "gpu",
    "gpu_id",
    "device_index",
    "deviceidx",
    "GPU_I_ID",
    "GPU_I_PROFILE",
    "gpu_partition_id",
    "gpu_compute_partition_type",
    "modelName",
    "card_model",
    "device_type",
    "devicetype",
)
NODE_LABELS = ("node", "nodeid", "nodename", "Hostname", "hostname", "instance", "namespace", "pod")
POD_LABELS = ("exported_namespace", "exported_pod", "podnamespace", "podname", "vgpu")
HOST_LABELS = ("nodeid", "nodename", "Hostname", "hostname")
"""What names a node where the usual ways do not: in this order."""
NOT_PARTITIONED = ("", "spx", "none", "unknown")
"""Modes of compute in which an AMD GPU is one device."""


@dataclass(frozen=True, slots=True)
class DeviceName:
    """``uuid``: of the GPU; empty for exporters that do not tell it. ``instance``: of a MIG instance or a partition, -1 for a whole GPU."""

    uuid: str
    index: int = -1
    instance: int = -1


def device_name(labels: Labels) -> DeviceName | None:
    """None for a series that names no device."""
    uuid = labels.get("UUID") or labels.get("uuid") or labels.get("device_uuid") or labels.get("deviceuuid") or labels.get("gpu_uuid") or ""
    index = _number(labels.get("gpu") or labels.get("gpu_id") or labels.get("device_index") or labels.get("deviceidx"))
    if not uuid and index < 0:
        return None
    partitioned = labels.get("gpu_compute_partition_type", "").lower() not in NOT_PARTITIONED
    return DeviceName(uuid, index, _number(labels.get("GPU_I_ID") or (labels.get("gpu_partition_id") if partitioned else None)))


def model_of(labels: Labels) -> str:
    return labels.get("modelName") or labels.get("card_model") or ""


def profile_of(labels: Labels) -> str:
    return labels.get("GPU_I_PROFILE", "")


def pod_of(labels: Labels, asking: Container[PodKey]) -> PodKey:
    """The pod whose use the series tells, `NO_POD` for none. ``asking``: pods that ask for GPUs."""
    if labels.get("exported_pod"):
        return labels.get("exported_namespace", ""), labels["exported_pod"]
    if labels.get("podname"):
        return labels.get("podnamespace", ""), labels["podname"]
    key = labels.get("namespace", ""), labels.get("pod", "")
    return key if key[1] and key in asking else NO_POD


def _number(text: str | None) -> int:
    return int(text) if text and text.isdigit() and len(text) < 10 else -1
