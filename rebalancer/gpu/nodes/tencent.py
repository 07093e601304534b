"""Devices that Tencent's GPU manager hands out: hundredths of devices and blocks of memory in the node's capacity."""

from __future__ import annotations

from rebalancer.gpu.asks.tencent import BLOCK_BYTES, CORE, MEMORY
from rebalancer.gpu.nodes.clues import NodeClues, NodeContext
from rebalancer.gpu.nodes.told import FoundDevice, Told, countable, health_by_count
from rebalancer.state.devices import DeviceSource
from rebalancer.state.gpu import UNKNOWN, Family, Scheme

MODEL = "gaia.tencent.com/gpu-model"


def read(node: NodeClues, context: NodeContext) -> Told | None:
    del context
    hundredths, blocks = node.has(CORE), node.has(MEMORY)
    if not hundredths:
        return None
    count = countable(f"{hundredths} of {CORE}", hundredths / 100)
    memory = blocks * BLOCK_BYTES / count if blocks else UNKNOWN
    devices = tuple(
        FoundDevice(
            family=Family.NVIDIA,
            scheme=Scheme.TENCENT,
            source=DeviceSource.TENCENT,
            index=index,
            model=node.labels.get(MODEL, ""),
            memory_bytes=memory if count == 1 else UNKNOWN,
            memory_exact=count == 1,
            handed_out_bytes=memory,
            health=health_by_count(has=hundredths, gives=node.gives(CORE)),
        )
        for index in range(count)
    )
    return Told(devices=devices, hands_out=Scheme.TENCENT)
