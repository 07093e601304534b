"""DRA: the devices that the claims of the pod were allocated, which the ResourceSlices of the node name."""

from __future__ import annotations

from collections.abc import Iterator

from rebalancer.gpu.nodes.slices import DRIVERS
from rebalancer.gpu.places.clues import PlaceClues
from rebalancer.gpu.places.held import Held, Misplaced, NodeView
from rebalancer.gpu.unreadable import shown
from rebalancer.state.devices import Confidence, FaultReason
from rebalancer.state.gpu import UNKNOWN, GpuAsk


def read(pod: PlaceClues, node: NodeView, asks: tuple[GpuAsk, ...]) -> Iterator[Held]:
    """A claim gives a device whole; to pods that share the claim, in parts that nobody counts."""
    if pod.missing_claims:
        raise Misplaced(FaultReason.MISSING_OBJECT, f"its resource claim {shown(pod.missing_claims[0])} is not there or not allocated")
    yield from read_claimed(pod, node, asks)


def read_claimed(pod: PlaceClues, node: NodeView, asks: tuple[GpuAsk, ...]) -> Iterator[Held]:
    """Of claims that were made for resources as well."""
    del asks
    for each in pod.claimed:
        if each.driver in DRIVERS:
            place = node.of_claim(each.driver, each.pool, each.device, where=f"resource claim {each.claim}")
            part = UNKNOWN if each.shared else 1.0
            yield Held(device=place, confidence=Confidence.ALLOCATED, compute=part, memory_share=part)
