"""The names that a policy gives, as the rules of GPUs read them."""

from __future__ import annotations

from collections.abc import Mapping

from rebalancer.gpu.names import DEVICE_CLASSES, HAMI_OTHERS, PLAIN_RESOURCES, GpuNames, VirtualGpuNames
from rebalancer.policy.gpu import Gpu
from rebalancer.state.gpu import GIB, MIB, UNKNOWN, Family

_UNITS = {"auto": UNKNOWN, "MiB": MIB, "GiB": GIB}


def names_of(gpu: Gpu) -> GpuNames:
    """Equal for equal sections."""
    hami = VirtualGpuNames(
        family=Family.NVIDIA,
        count=gpu.hami.count,
        memory=gpu.hami.memory,
        memory_percentage=gpu.hami.memory_percentage,
        cores=gpu.hami.cores,
        memory_factor=gpu.hami.memory_factor,
        default_memory_mib=gpu.hami.default_memory,
        default_cores=gpu.hami.default_cores,
    )
    return GpuNames(
        plain=_with(PLAIN_RESOURCES, gpu.resources),
        gpushare_memory=gpu.gpushare.memory,
        gpushare_count=gpu.gpushare.count,
        gpushare_unit_bytes=_UNITS[gpu.gpushare.unit],
        hami=(hami, *HAMI_OTHERS),
        hami_memory_scaling=gpu.hami.device_memory_scaling,
        volcano_memory_factor=gpu.volcano_memory_factor,
        kai_namespace=gpu.kai_reservation_namespace,
        device_classes=_with(DEVICE_CLASSES, gpu.device_classes),
    )


def _with(known: tuple[tuple[str, Family], ...], more: Mapping[str, str]) -> tuple[tuple[str, Family], ...]:
    """What the policy says of a known name counts."""
    return tuple({**dict(known), **{name: Family(vendor) for name, vendor in sorted(more.items())}}.items())
