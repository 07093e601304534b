"""Volcano: a list of virtual GPUs as HAMi's under other names, or for its older sharing the indices of devices."""

from __future__ import annotations

from collections.abc import Iterator

from rebalancer.gpu.places.clues import PlaceClues
from rebalancer.gpu.places.held import Held, NodeView
from rebalancer.gpu.places.indices import indices
from rebalancer.gpu.places.lists import held_by_list
from rebalancer.state.devices import Confidence
from rebalancer.state.gpu import UNKNOWN, GpuAsk

ALLOCATED, PLANNED = "volcano.sh/vgpu-ids-new", "volcano.sh/devices-to-allocate"
NODE, PHASE, INDEX = "volcano.sh/vgpu-node", "volcano.sh/bind-phase", "volcano.sh/gpu-index"
_DONE, _FAILED = "success", "failed"


def read_vgpu(pod: PlaceClues, node: NodeView, asks: tuple[GpuAsk, ...]) -> Iterator[Held]:
    del asks  # what is written says how much
    name = ALLOCATED if pod.annotations.get(ALLOCATED) else PLANNED
    text, phase = pod.annotations.get(name), pod.annotations.get(PHASE, "")
    if not text or phase == _FAILED:
        return
    node.require_here(pod.annotations.get(NODE), where=f"annotation {NODE}")
    confirmed = name == ALLOCATED and phase == _DONE
    yield from held_by_list(name, text, node, confidence=Confidence.ALLOCATED if confirmed else Confidence.DECLARED)


def read_gpushare(pod: PlaceClues, node: NodeView, asks: tuple[GpuAsk, ...]) -> Iterator[Held]:
    """A pod that asks for memory is on one device with all of it; one that asks for devices has each of them whole."""
    text = pod.annotations.get(INDEX)
    if not text:
        return
    found = indices(f"annotation {INDEX}", text)
    ask = asks[0] if len(asks) == 1 else None
    for index in found:
        yield Held(
            device=node.at_index(index, where=f"annotation {INDEX}"),
            confidence=Confidence.DECLARED,
            compute=ask.compute if ask is not None else UNKNOWN,
            memory_bytes=ask.memory_bytes if ask is not None and len(found) == 1 else UNKNOWN,
            memory_share=ask.memory_share if ask is not None else UNKNOWN,
        )
