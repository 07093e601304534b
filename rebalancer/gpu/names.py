"""The names that installations give to resources and classes, with those that the schemes ship with as defaults.

A value of the policy's ``gpu`` section becomes a `GpuNames`; whoever has no policy at hand uses `DEFAULT_NAMES`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from rebalancer.state.gpu import UNKNOWN, Family

PLAIN_RESOURCES = (
    ("nvidia.com/gpu", Family.NVIDIA),
    ("amd.com/gpu", Family.AMD),
    ("gpu.intel.com/i915", Family.INTEL),
    ("gpu.intel.com/xe", Family.INTEL),
    ("dcu.com/gpu", Family.HYGON),
)
DEVICE_CLASSES = (
    ("gpu.nvidia.com", Family.NVIDIA),
    ("mig.nvidia.com", Family.NVIDIA),
    ("vfio.gpu.nvidia.com", Family.NVIDIA),
    ("gpu.amd.com", Family.AMD),
    ("gpu.intel.com", Family.INTEL),
)
HUAWEI_PREFIX = "huawei.com/Ascend"
ENFLAME_PREFIX = "enflame.com/"


GPUSHARE_COUNT = "aliyun.com/gpu-count"


@dataclass(frozen=True, slots=True)
class VirtualGpuNames:
    """The resources of one family that HAMi hands out. An empty name: the family has no such resource, or one whose unit is not known.

    ``memory_factor``: MiB that one unit of ``memory`` is. ``default_memory_mib`` and ``default_cores``: what a container gets that does
    not say; 0 is the whole memory and no limit of compute.
    """

    family: Family
    count: str
    memory: str = ""
    memory_percentage: str = ""
    cores: str = ""
    memory_factor: int = 1
    default_memory_mib: int = 0
    default_cores: int = 0


HAMI_NVIDIA = VirtualGpuNames(
    family=Family.NVIDIA,
    count="nvidia.com/gpu",
    memory="nvidia.com/gpumem",
    memory_percentage="nvidia.com/gpumem-percentage",
    cores="nvidia.com/gpucores",
)
HAMI_OTHERS = (
    VirtualGpuNames(family=Family.HYGON, count="hygon.com/dcunum", memory="hygon.com/dcumem", cores="hygon.com/dcucores"),
    VirtualGpuNames(family=Family.CAMBRICON, count="cambricon.com/vmlu"),
    VirtualGpuNames(family=Family.METAX, count="metax-tech.com/sgpu"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuNames:
    """``plain``: resources that count devices (or what a node makes of one). ``gpushare_unit_bytes``: NaN when each node is asked."""

    plain: tuple[tuple[str, Family], ...] = PLAIN_RESOURCES
    gpushare_memory: str = "aliyun.com/gpu-mem"
    gpushare_count: str = GPUSHARE_COUNT
    gpushare_unit_bytes: float = UNKNOWN
    hami: tuple[VirtualGpuNames, ...] = field(default=(HAMI_NVIDIA, *HAMI_OTHERS))
    hami_memory_scaling: float = 1.0
    """How many times the memory of its devices HAMi hands out."""
    volcano_memory_factor: int = 1
    kai_namespace: str = "kai-resource-reservation"
    device_classes: tuple[tuple[str, Family], ...] = DEVICE_CLASSES

    def family_of_class(self, device_class: str) -> Family | None:
        """None for a class of devices that are no GPUs."""
        return next((family for name, family in self.device_classes if name == device_class), None)


DEFAULT_NAMES = GpuNames()
