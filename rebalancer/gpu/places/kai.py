"""KAI: a pod with a fraction carries the label of a group; the pod that reserves a device for the group has the same label.

Which device that is, the reservation pod reports by its number or uuid. The group itself is an opaque word.
"""

from __future__ import annotations

from collections.abc import Iterator

from rebalancer.gpu.places.clues import PlaceClues
from rebalancer.gpu.places.held import Held, Misplaced, NodeView
from rebalancer.gpu.unreadable import digits, shown
from rebalancer.state.devices import Confidence, FaultReason
from rebalancer.state.gpu import UNKNOWN, GpuAsk

REPORTED = "run.ai/reserve_for_gpu_index"


def read(pod: PlaceClues, node: NodeView, asks: tuple[GpuAsk, ...]) -> Iterator[Held]:
    ask = asks[0] if len(asks) == 1 else None
    for group in pod.groups:
        place = node.groups.get(group)
        if place is None:
            raise Misplaced(
                FaultReason.MISSING_OBJECT, f"its group {shown(group)} has no reservation pod on node {node.name} that reports a device"
            )
        yield Held(
            device=place,
            confidence=Confidence.ALLOCATED,
            compute=ask.compute if ask is not None else UNKNOWN,
            memory_bytes=ask.memory_bytes if ask is not None else UNKNOWN,
            memory_share=ask.memory_share if ask is not None else UNKNOWN,
        )


def read_reservation(pod: PlaceClues, node: NodeView, asks: tuple[GpuAsk, ...]) -> Iterator[Held]:
    """The reservation pod itself: it holds a device for others and takes nothing of it."""
    del asks
    text = pod.annotations.get(REPORTED)
    if text:
        yield Held(device=reserved_place(text, node), confidence=Confidence.ALLOCATED, compute=0.0, memory_bytes=0.0)


def reserved_place(text: str, node: NodeView) -> int:
    """The device that a reservation pod reports. Raises Unreadable and Misplaced."""
    where = f"annotation {REPORTED}"
    plain = text.strip()
    return node.of_uuid(plain, where=where) if "-" in plain else node.at_index(digits(where, plain), where=where)
