"""Which devices of its node a pod holds, by whatever says so, ask by ask.

Each ask is placed by its own scheme. What a device plugin hands out is placed by koordinator's annotation or by claims, where those
schemes have taken it over; else by the kubelet; else by an exporter's labels; else by counts. The other schemes choose devices on their
own, so no label and no id of the kubelet places their pods. A text that makes no sense, or devices that are not trusted, leave the pod on
the node: it is on some of its devices, and nothing is guessed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from rebalancer.gpu.places import counting, dra, gpushare, hami, kai, koordinator, kubelet, tencent, volcano
from rebalancer.gpu.places.clues import PlaceClues
from rebalancer.gpu.places.held import Held, Misplaced, NodeView, PlaceReader
from rebalancer.gpu.unreadable import Unreadable
from rebalancer.state.devices import Confidence, FaultReason
from rebalancer.state.gpu import UNKNOWN, GpuAsk, Scheme

READERS: Mapping[Scheme, PlaceReader] = {
    Scheme.GPUSHARE: gpushare.read,
    Scheme.HAMI: hami.read,
    Scheme.VOLCANO_VGPU: volcano.read_vgpu,
    Scheme.VOLCANO_GPUSHARE: volcano.read_gpushare,
    Scheme.KOORDINATOR: koordinator.read,
    Scheme.TENCENT: tencent.read,
    Scheme.KAI: kai.read,
    Scheme.KAI_RESERVATION: kai.read_reservation,
    Scheme.DRA: dra.read,
}
"""Of the schemes that choose devices on their own."""
BY_PLUGIN: Sequence[PlaceReader] = (koordinator.read, dra.read_claimed, kubelet.read)
"""For what a device plugin hands out, the first that says something."""
_WITH_KUBELET = frozenset((Scheme.KAI_RESERVATION,))
_MORE_THAN_ALL = 1 + 1e-9


@dataclass(frozen=True, slots=True)
class PlaceFault:
    scheme: Scheme
    reason: FaultReason
    clause: str


@dataclass(frozen=True, slots=True)
class Placed:
    """``held``: in order of devices, each once. ``complete``: every device that the pod asks for is known."""

    held: tuple[Held, ...] = ()
    complete: bool = False
    faults: tuple[PlaceFault, ...] = ()


def place(pod: PlaceClues, node: NodeView, asks: Sequence[GpuAsk], *, reported: Sequence[int] = ()) -> Placed:
    """``reported``: places of devices that exporters label with the pod. Never raises: what cannot be read is in the answer."""
    by_scheme: dict[Scheme, list[GpuAsk]] = defaultdict(list)
    for ask in asks:
        by_scheme[ask.scheme].append(ask)
    held: list[Held] = []
    faults: list[PlaceFault] = []
    complete = True
    for scheme, of_scheme in by_scheme.items():
        try:
            found = _of_scheme(scheme, tuple(of_scheme), pod, node, reported)
            if scheme is Scheme.KAI_RESERVATION:
                found = tuple(replace(each, compute=0.0, memory_bytes=0.0, memory_share=UNKNOWN) for each in found)
        except Unreadable as error:
            reason = error.reason if isinstance(error, Misplaced) else FaultReason.UNREADABLE_PLACE
            faults.append(PlaceFault(scheme, reason, str(error)))
            found = ()
        complete &= _is_all(found, of_scheme)
        held.extend(found)
    if any(not node.devices[each.device].trusted for each in held):
        return Placed(faults=tuple(faults))
    together = _together(held)
    if any(each.compute > _MORE_THAN_ALL or each.memory_share > _MORE_THAN_ALL for each in together):
        faults.append(PlaceFault(next(iter(by_scheme)), FaultReason.UNREADABLE_PLACE, "it is given more of a device than there is"))
        return Placed(faults=tuple(faults))
    return Placed(held=together, complete=complete, faults=tuple(faults))


def _of_scheme(scheme: Scheme, asks: tuple[GpuAsk, ...], pod: PlaceClues, node: NodeView, reported: Sequence[int]) -> tuple[Held, ...]:
    """Raises Unreadable."""
    own = READERS.get(scheme)
    if own is not None and (found := tuple(own(pod, node, asks))):
        return found
    if own is None or scheme in _WITH_KUBELET:
        for read in BY_PLUGIN:
            if found := tuple(read(pod, node, asks)):
                return found
        if reported:
            return tuple(_as_reported(each, node, asks) for each in dict.fromkeys(reported))
    return tuple(counting.by_count(asks, node.devices))


def _as_reported(device: int, node: NodeView, asks: tuple[GpuAsk, ...]) -> Held:
    """A pod with one ask for devices that it has whole, or in parts of a known size, has so much of each."""
    ask = asks[0] if len(asks) == 1 else None
    alone = node.devices[device].replicas == 1
    part = 1.0 if alone else ask.compute if ask is not None else UNKNOWN
    return Held(
        device=device,
        confidence=Confidence.REPORTED,
        compute=part,
        memory_share=1.0 if alone else ask.memory_share if ask is not None else UNKNOWN,
    )


def _is_all(found: Sequence[Held], asks: Sequence[GpuAsk]) -> bool:
    """Whether these are all devices of the asks. What is open is complete with any."""
    count = len({each.device for each in found})
    whole, parts = [ask.devices for ask in asks if ask.whole], [ask.devices for ask in asks if not ask.whole]
    least = sum(whole) + max(parts, default=0.0)  # parts may be of one device
    return count > 0 if any(value != value for value in (*whole, *parts)) else count >= least


def _together(held: Sequence[Held]) -> tuple[Held, ...]:
    """What containers hold of the same device, added up. Where one part is unknown the sum is; the weakest confidence counts."""
    by_device: dict[int, list[Held]] = defaultdict(list)
    for each in held:
        by_device[each.device].append(each)
    return tuple(
        parts[0]
        if len(parts) == 1
        else Held(
            device=device,
            confidence=min(each.confidence for each in parts),
            compute=sum(each.compute for each in parts),
            memory_bytes=sum(each.memory_bytes for each in parts),
            memory_share=sum(each.memory_share for each in parts),
        )
        for device, parts in sorted(by_device.items())
    )
