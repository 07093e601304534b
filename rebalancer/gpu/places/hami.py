"""HAMi: the list of what it has allocated, on the node that it has written beside it.

The list of what is still to be allocated can stay behind after binding, so it counts only where there is no list of what was.
"""

from __future__ import annotations

from collections.abc import Iterator

from rebalancer.gpu.places.clues import PlaceClues
from rebalancer.gpu.places.held import Held, NodeView
from rebalancer.gpu.places.lists import held_by_list
from rebalancer.state.devices import Confidence
from rebalancer.state.gpu import GpuAsk

ALLOCATED, PLANNED = "hami.io/vgpu-devices-allocated", "hami.io/vgpu-devices-to-allocate"
NODE, PHASE = "hami.io/vgpu-node", "hami.io/bind-phase"
_DONE, _FAILED = "success", "failed"


def read(pod: PlaceClues, node: NodeView, asks: tuple[GpuAsk, ...]) -> Iterator[Held]:
    del asks  # what is written says how much
    name = ALLOCATED if pod.annotations.get(ALLOCATED) else PLANNED
    text, phase = pod.annotations.get(name), pod.annotations.get(PHASE, "")
    if not text or phase == _FAILED:
        return
    node.require_here(pod.annotations.get(NODE), where=f"annotation {NODE}")
    confirmed = name == ALLOCATED and phase in (_DONE, "")
    yield from held_by_list(name, text, node, confidence=Confidence.ALLOCATED if confirmed else Confidence.DECLARED)
