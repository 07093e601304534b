"""Tencent: for each container, by its place in the pod, the indices of its devices; the GPU manager confirms with ``gpu-assigned``.

How much is not written, so it is what the pod asks for, where a single ask leaves no doubt.
"""

from __future__ import annotations

from collections.abc import Iterator

from rebalancer.gpu.places.clues import TENCENT_CONTAINERS, TENCENT_INDEX, PlaceClues
from rebalancer.gpu.places.held import Held, NodeView
from rebalancer.gpu.places.indices import indices
from rebalancer.state.devices import Confidence
from rebalancer.state.gpu import UNKNOWN, GpuAsk

ASSIGNED = "tencent.com/gpu-assigned"


def read(pod: PlaceClues, node: NodeView, asks: tuple[GpuAsk, ...]) -> Iterator[Held]:
    confirmed = pod.annotations.get(ASSIGNED, "").strip().lower() == "true"
    ask = asks[0] if len(asks) == 1 else None
    for container in range(TENCENT_CONTAINERS):
        name = f"{TENCENT_INDEX}{container}"
        text = pod.annotations.get(name)
        for index in indices(f"annotation {name}", text) if text else ():
            yield Held(
                device=node.at_index(index, where=f"annotation {name}"),
                confidence=Confidence.ALLOCATED if confirmed else Confidence.DECLARED,
                compute=ask.compute if ask is not None else UNKNOWN,
                memory_bytes=ask.memory_bytes if ask is not None else UNKNOWN,
                memory_share=ask.memory_share if ask is not None else UNKNOWN,
            )
