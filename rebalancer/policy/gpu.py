"""What an installation calls its GPUs: names of resources and classes, units and factors that its device plugins were given.

Only what cannot be read from the cluster itself. `rebalancer.gpu.naming` turns it into what the rules of GPUs read by.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from rebalancer.policy.gpu_holders import Idle, Overuse
from rebalancer.policy.gpu_metrics import GpuMetrics
from rebalancer.policy.quantities import MisplacedValue, Strict

_RESOURCE = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_LONGEST = 317


def _resource(value: str) -> str:
    if _RESOURCE.fullmatch(value) is None or len(value) > _LONGEST:
        raise ValueError(f"{value[:60]!r} is not the name of an extended resource, such as nvidia.com/gpu; write it as nodes do")
    return value


ExtendedResource = Annotated[
    str, AfterValidator(_resource), Field(json_schema_extra={"pattern": f"^{_RESOURCE.pattern}$", "maxLength": _LONGEST})
]
"""``domain/name``."""
Vendor = Literal["nvidia", "amd", "intel", "hygon", "other"]
"""Whose devices a resource counts."""


class Gpushare(Strict):
    """GPUs that pods share by memory, as the gpushare scheduler extender and device plugin do it."""

    memory: ExtendedResource = "aliyun.com/gpu-mem"
    """The resource that counts memory."""
    count: ExtendedResource = "aliyun.com/gpu-count"
    """The resource of nodes that counts devices."""
    unit: Literal["auto", "MiB", "GiB"] = "auto"
    """What one of memory is. ``auto``: MiB on nodes with more than 100 of it for each device, GiB on the others."""


class Hami(Strict):
    """Virtual GPUs of HAMi, with the names and values of its Helm chart."""

    count: ExtendedResource = "nvidia.com/gpu"
    """The resource that counts virtual GPUs."""
    memory: ExtendedResource = "nvidia.com/gpumem"
    """The resource that counts memory of each."""
    memory_percentage: ExtendedResource = "nvidia.com/gpumem-percentage"
    """The resource that counts percent of the memory of each device."""
    cores: ExtendedResource = "nvidia.com/gpucores"
    """The resource that counts percent of the compute of each device."""
    memory_factor: int = Field(default=1, ge=1, le=1_048_576)
    """MiB that one of memory is; the chart's ``memoryFactor``."""
    default_memory: int = Field(default=0, ge=0)
    """What of memory a container gets that does not say; 0: all of each device."""
    default_cores: int = Field(default=0, ge=0, le=100)
    """Percent of compute that a container gets that does not say; 0: no limit."""
    device_memory_scaling: float = Field(default=1.0, gt=0, le=100, allow_inf_nan=False)
    """How many times the memory of its devices HAMi hands out; the chart's ``deviceMemoryScaling``."""


class Gpu(Strict):
    """What GPUs are called here. The names that device plugins, HAMi, Volcano, koordinator, KAI and the others ship with are known."""

    resources: dict[ExtendedResource, Vendor] = Field(default_factory=dict)
    """Further resources that count devices (or replicas, by the node's labels): ``nvidia.com/a100: nvidia``."""
    gpushare: Gpushare = Gpushare()
    """GPUs shared by memory."""
    hami: Hami = Hami()
    """Virtual GPUs of HAMi."""
    volcano_memory_factor: int = Field(default=1, ge=1, le=1_048_576)
    """MiB that one of ``volcano.sh/vgpu-memory`` is; the plugin's ``gpu-memory-factor``."""
    kai_reservation_namespace: str = Field(default="kai-resource-reservation", min_length=1, max_length=63)
    """Where the pods are by which KAI reserves devices; they are never moved."""
    device_classes: dict[str, Vendor] = Field(default_factory=dict)
    """Further DeviceClasses whose devices are GPUs."""
    metrics: GpuMetrics = GpuMetrics()
    """What is asked of exporters of GPU metrics."""
    idle: Idle = Idle()
    """Pods that hold GPUs and do not use them."""
    overuse: Overuse = Overuse()
    """Pods that use more memory of a shared GPU than they asked for."""
    same_model: bool = True
    """A pod that names no model stays on the model of GPU that it runs on. Without it, any device of the kind that it asks for will do."""
    unmeasured: Literal["refuse", "by-request"] = "refuse"
    """A device whose memory no exporter measures takes no pod that is moved, or takes one by what was asked for alone: ``by-request``."""

    @model_validator(mode="after")
    def _names_differ(self) -> Gpu:
        called = {"gpushare.memory": self.gpushare.memory, "gpushare.count": self.gpushare.count}
        called |= {f"hami.{key}": getattr(self.hami, key) for key in ("memory", "memory_percentage", "cores")}
        for place, name in called.items():
            others = [other for other, same in called.items() if same == name and other != place]
            if others or name in self.resources:
                raise MisplacedValue(
                    f"{name} means two things here; give each resource one meaning",
                    at=tuple(place.split(".")) if others else ("resources", name),
                )
        return self
