"""Volcano's older sharing: ``volcano.sh/gpu-memory`` MiB of one device, or ``volcano.sh/gpu-number`` devices; limits, of the pod."""

from __future__ import annotations

from collections.abc import Iterator

from rebalancer.gpu.asks.context import Context
from rebalancer.gpu.asks.models import selected_model
from rebalancer.gpu.clues import PodClues
from rebalancer.gpu.unreadable import whole
from rebalancer.state.gpu import MIB, Family, GpuAsk, Scheme

MEMORY, NUMBER = "volcano.sh/gpu-memory", "volcano.sh/gpu-number"


def read(pod: PodClues, context: Context) -> Iterator[GpuAsk]:
    del context  # every name and unit is the scheme's own
    memory, number = _sum(pod, MEMORY), _sum(pod, NUMBER)
    model = selected_model(pod)
    if memory > 0:
        yield GpuAsk(
            family=Family.NVIDIA, scheme=Scheme.VOLCANO_GPUSHARE, devices=1.0, memory_bytes=memory * MIB, slots=float(memory), model=model
        )
    if number > 0:
        yield GpuAsk(
            family=Family.NVIDIA,
            scheme=Scheme.VOLCANO_GPUSHARE,
            devices=float(number),
            compute=1.0,
            memory_share=1.0,
            gpus=float(number),
            slots=float(number),
            model=model,
        )


def _sum(pod: PodClues, name: str) -> int:
    return sum(whole(name, text) for each in pod.asking() if (text := each.limit(name)) is not None)
