"""Tencent's GPU manager: ``vcuda-core`` in hundredths of a GPU, ``vcuda-memory`` in blocks of 256 MiB.

Below 100 it is a part of one device, else whole devices, of which the memory is not asked for apart.
"""

from __future__ import annotations

from collections.abc import Iterator

from rebalancer.gpu.asks.context import Context
from rebalancer.gpu.asks.models import selected_model
from rebalancer.gpu.clues import ContainerClues, PodClues
from rebalancer.gpu.unreadable import Unreadable, decimal, shown, whole
from rebalancer.state.gpu import MIB, UNKNOWN, Family, GpuAsk, Scheme

CORE, MEMORY = "tencent.com/vcuda-core", "tencent.com/vcuda-memory"
CAP = "tencent.com/vcuda-core-limit"
BLOCK_BYTES = 256 * MIB


def read(pod: PodClues, context: Context) -> Iterator[GpuAsk]:
    del context  # every name and unit is the scheme's own
    for container in pod.asking():
        core, blocks = _number(container, CORE), _number(container, MEMORY)
        if not core and not blocks:
            continue
        if core > 100 and core % 100:
            raise Unreadable(f"{CORE} is {core}, above 100 and no multiple of it")
        whole_devices = core // 100
        devices = max(1, whole_devices)
        compute = 1.0 if whole_devices else core / 100 or UNKNOWN
        yield GpuAsk(
            family=Family.NVIDIA,
            scheme=Scheme.TENCENT,
            devices=float(devices),
            compute=compute,
            memory_bytes=blocks * BLOCK_BYTES if blocks and not whole_devices else UNKNOWN,
            memory_share=1.0 if whole_devices else UNKNOWN,
            gpus=devices * compute,
            slots=float(core) if core else UNKNOWN,
            cap=_cap(pod),
            model=selected_model(pod),
            container=container.name,
        )


def _number(container: ContainerClues, name: str) -> int:
    text = container.asked(name)
    return 0 if text is None else whole(name, text)


def _cap(pod: PodClues) -> float:
    text = pod.annotation(CAP)
    if text is None:
        return UNKNOWN
    percent = decimal(f"annotation {CAP}", text)
    if not 0 < percent <= 100:
        raise Unreadable(f"annotation {CAP} is {shown(text)}, not a percentage above 0")
    return percent / 100
