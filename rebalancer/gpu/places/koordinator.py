"""koordinator: its scheduler writes the minor of each device and what it books of it; the Device object names the device of a minor."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from rebalancer.gpu.places.clues import PlaceClues
from rebalancer.gpu.places.held import Held, NodeView
from rebalancer.gpu.unreadable import Unreadable, quantity
from rebalancer.state.devices import Confidence
from rebalancer.state.gpu import UNKNOWN, GpuAsk

ANNOTATION = "scheduling.koordinator.sh/device-allocated"
CORE, MEMORY, RATIO = "koordinator.sh/gpu-core", "koordinator.sh/gpu-memory", "koordinator.sh/gpu-memory-ratio"
_LONGEST = 64 * 1024


class _Entry(msgspec.Struct, frozen=True):
    minor: int
    resources: dict[str, str | int] = {}


class _Allocation(msgspec.Struct, frozen=True):
    gpu: list[_Entry] | None = None


_decode = msgspec.json.Decoder(_Allocation).decode


def read(pod: PlaceClues, node: NodeView, asks: tuple[GpuAsk, ...]) -> Iterator[Held]:
    del asks  # what is written says how much
    text = pod.annotations.get(ANNOTATION)
    if not text:
        return
    try:
        found = _decode(text[:_LONGEST].encode()).gpu or []
    except (msgspec.DecodeError, UnicodeError) as error:
        raise Unreadable(f"annotation {ANNOTATION} is no allocation of devices ({error})") from error
    for entry in found:
        memory = _amount(entry.resources, MEMORY)
        yield Held(
            device=node.at_index(entry.minor, where=f"annotation {ANNOTATION}"),
            confidence=Confidence.DECLARED,
            compute=_share(entry.resources, CORE),
            memory_bytes=memory,
            memory_share=UNKNOWN if memory == memory else _share(entry.resources, RATIO),
        )


def _amount(resources: Mapping[str, str | int], name: str) -> float:
    text = resources.get(name)
    return UNKNOWN if text is None else quantity(f"{name} in annotation {ANNOTATION}", str(text)) or UNKNOWN


def _share(resources: Mapping[str, str | int], name: str) -> float:
    hundredths = _amount(resources, name)
    if hundredths > 100:
        raise Unreadable(f"annotation {ANNOTATION} gives {hundredths:g} % of {name} of one device")
    return hundredths / 100
