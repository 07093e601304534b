"""The metrics of the exporters that are known, by what they mean: one table, so that no metric's name stands anywhere else.

Units are not to be trusted to names: ``hami_host_gpu_utilization_ratio`` is a percentage, ``DCGM_FI_PROF_GR_ENGINE_ACTIVE`` is a ratio, and
what dcgm-exporter calls memory utilisation is the bus. Whatever is above ``most``, in the metric's own unit, is no possible value.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from rebalancer.state.gpu import MIB

MOST_MEMORY_MIB = 2.0**22
"""4 TiB on one device."""


class Exporter(Enum):
    DCGM = "dcgm-exporter"
    HAMI = "HAMi"
    AMD = "AMD device-metrics-exporter"


class Quantity(Enum):
    """Of a device, unless it says otherwise."""

    BUSY = "busy"
    """Share of time with any kernel."""
    ENGINE = "engine"
    """Share of time in which its engine worked: the second opinion, and the only one on a MIG instance."""
    USED = "memory used"
    FREE = "memory free"
    RESERVED = "memory reserved"
    TOTAL = "memory"
    XID = "last XID error"
    TEMPERATURE = "temperature"
    POD_BUSY = "busy by a container"
    POD_MEMORY = "memory used by a container"
    POD_KERNEL_AGE = "time since a container's last kernel"


OF_PODS = frozenset({Quantity.POD_BUSY, Quantity.POD_MEMORY, Quantity.POD_KERNEL_AGE})


@dataclass(frozen=True, slots=True)
class Meter:
    """``scale``: from its own unit to a share, bytes, a number, degrees or seconds."""

    name: str
    exporter: Exporter
    quantity: Quantity
    scale: float = 1.0
    most: float = float("inf")


def _percent(name: str, exporter: Exporter, quantity: Quantity) -> Meter:
    return Meter(name, exporter, quantity, scale=0.01, most=100.0)


def _mib(name: str, exporter: Exporter, quantity: Quantity) -> Meter:
    return Meter(name, exporter, quantity, scale=MIB, most=MOST_MEMORY_MIB)


def _bytes(name: str, exporter: Exporter, quantity: Quantity) -> Meter:
    return Meter(name, exporter, quantity, most=MOST_MEMORY_MIB * MIB)


METERS: tuple[Meter, ...] = (
    _percent("DCGM_FI_DEV_GPU_UTIL", Exporter.DCGM, Quantity.BUSY),
    Meter("DCGM_FI_PROF_GR_ENGINE_ACTIVE", Exporter.DCGM, Quantity.ENGINE, most=1.0),
    _mib("DCGM_FI_DEV_FB_USED", Exporter.DCGM, Quantity.USED),
    _mib("DCGM_FI_DEV_FB_FREE", Exporter.DCGM, Quantity.FREE),
    _mib("DCGM_FI_DEV_FB_RESERVED", Exporter.DCGM, Quantity.RESERVED),
    Meter("DCGM_FI_DEV_XID_ERRORS", Exporter.DCGM, Quantity.XID, most=1e6),
    Meter("DCGM_FI_DEV_GPU_TEMP", Exporter.DCGM, Quantity.TEMPERATURE, most=1000.0),
    _percent("hami_host_gpu_utilization_ratio", Exporter.HAMI, Quantity.BUSY),
    _bytes("hami_host_gpu_memory_used_bytes", Exporter.HAMI, Quantity.USED),
    _percent("hami_container_device_utilization_ratio", Exporter.HAMI, Quantity.POD_BUSY),
    _bytes("hami_vgpu_memory_used_bytes", Exporter.HAMI, Quantity.POD_MEMORY),
    Meter("hami_container_last_kernel_elapsed_seconds", Exporter.HAMI, Quantity.POD_KERNEL_AGE),
    _percent("HostCoreUtilization", Exporter.HAMI, Quantity.BUSY),
    _bytes("HostGPUMemoryUsage", Exporter.HAMI, Quantity.USED),
    _percent("Device_utilization_desc_of_container", Exporter.HAMI, Quantity.POD_BUSY),
    _bytes("vGPU_device_memory_usage_in_bytes", Exporter.HAMI, Quantity.POD_MEMORY),
    Meter("Device_last_kernel_of_container", Exporter.HAMI, Quantity.POD_KERNEL_AGE),
    _percent("gpu_gfx_activity", Exporter.AMD, Quantity.BUSY),
    _mib("gpu_used_vram", Exporter.AMD, Quantity.USED),
    _mib("gpu_free_vram", Exporter.AMD, Quantity.FREE),
    _mib("gpu_total_vram", Exporter.AMD, Quantity.TOTAL),
)
"""In the order of trust, where two exporters measure one device."""

NEEDED = frozenset({Quantity.BUSY, Quantity.ENGINE, Quantity.USED})
"""By their samples the age of a device's measurements is told."""
