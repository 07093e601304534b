"""gpushare: the index of the one device in an annotation, or amounts by container and device in a newer one, which is read first.

The amounts are in the unit of the node. The choice is the scheduler's until the device plugin has set ``ASSIGNED``; an index of -1 is none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import msgspec

from rebalancer.gpu.places.clues import PlaceClues
from rebalancer.gpu.places.held import Held, NodeView
from rebalancer.gpu.unreadable import Unreadable, digits
from rebalancer.state.devices import Confidence
from rebalancer.state.gpu import UNKNOWN, GpuAsk

INDEX, AMOUNT, ASSIGNED = "ALIYUN_COM_GPU_MEM_IDX", "ALIYUN_COM_GPU_MEM_POD", "ALIYUN_COM_GPU_MEM_ASSIGNED"
ALLOCATION = "scheduler.framework.gpushare.allocation"
_LONGEST = 64 * 1024
_decode = msgspec.json.Decoder(dict[str, dict[str, int]]).decode


def read(pod: PlaceClues, node: NodeView, asks: tuple[GpuAsk, ...]) -> Iterator[Held]:
    del asks  # what is written says how much
    assigned = pod.annotations.get(ASSIGNED, "").strip().lower() == "true"
    confidence = Confidence.ALLOCATED if assigned else Confidence.DECLARED
    unit = node.meaning.gpushare_unit_bytes
    for index, amount in sorted(_amounts(pod).items()):
        place = node.at_index(index, where=f"annotation {ALLOCATION if ALLOCATION in pod.annotations else INDEX}")
        yield Held(device=place, confidence=confidence, memory_bytes=amount * unit if amount else UNKNOWN)


def _amounts(pod: PlaceClues) -> dict[int, int]:
    """Index -> units; 0 where how much is not written."""
    text = pod.annotations.get(ALLOCATION)
    if text is not None:
        return _of_allocation(text)
    index = pod.annotations.get(INDEX)
    if index is None or index.strip() in ("", "-1"):
        return {}
    amount = pod.annotations.get(AMOUNT)
    return {digits(f"annotation {INDEX}", index): digits(f"annotation {AMOUNT}", amount) if amount else 0}


def _of_allocation(text: str) -> dict[int, int]:
    try:
        by_container = _decode(text[:_LONGEST].encode())
    except (msgspec.DecodeError, UnicodeError) as error:
        raise Unreadable(f"annotation {ALLOCATION} is no allocation by container and device ({error})") from error
    found: Counter[int] = Counter()
    for of_devices in by_container.values():
        for index, amount in of_devices.items():
            if not 0 <= amount < 1 << 40:
                raise Unreadable(f"annotation {ALLOCATION} holds the amount {amount}")
            found[digits(f"annotation {ALLOCATION}", index)] += amount
    return dict(found)
