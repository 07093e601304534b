"""Volcano's virtual GPUs: ``volcano.sh/vgpu-number`` with memory, percentage and cores, as HAMi has them; limits only."""

from __future__ import annotations

from collections.abc import Iterator

from rebalancer.gpu.asks.context import Context
from rebalancer.gpu.asks.models import selected_model
from rebalancer.gpu.asks.virtual import virtual_ask
from rebalancer.gpu.clues import PodClues
from rebalancer.gpu.names import VirtualGpuNames
from rebalancer.state.gpu import Family, GpuAsk, Scheme

NUMBER = "volcano.sh/vgpu-number"


def read(pod: PodClues, context: Context) -> Iterator[GpuAsk]:
    names = VirtualGpuNames(
        family=Family.NVIDIA,
        count=NUMBER,
        memory="volcano.sh/vgpu-memory",
        memory_percentage="volcano.sh/vgpu-memory-percentage",
        cores="volcano.sh/vgpu-cores",
        memory_factor=context.names.volcano_memory_factor,
    )
    for container in pod.asking():
        ask = virtual_ask(container.limit, names, scheme=Scheme.VOLCANO_VGPU, container=container.name, model=selected_model(pod))
        if ask is not None:
            yield ask
