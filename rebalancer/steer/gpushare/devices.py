"""What a node offers, and what a pod asks for: whole numbers of the unit that the device plugin of the cluster uses, GiB or MiB.

The protocol knows the memory of a node and the number of its devices, and takes the devices for equal: on a node with unequal ones the
figures are wrong, and no figure in the protocol could say so. A pod is placed on one device, by the sum of the limits of its containers.
The device plugin tells pods apart by that sum, but is asked for each container by itself: a second container that asks can never be
served.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rebalancer.state.requests import amount

GPU_MEMORY = "aliyun.com/gpu-mem"
GPU_COUNT = "aliyun.com/gpu-count"
MOST_DEVICES = 1024
"""More than any machine has; a larger number is a mistake of whoever wrote it."""
_UNIT_BYTES = (2.0**30, 2.0**20)
_LARGEST_GIB = 100
_WHOLE = re.compile(r"[+-]?\d{1,18}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Devices:
    """``memory``: of all devices of the node together. They are numbered from 0."""

    count: int
    memory: int

    @property
    def each(self) -> int:
        """Memory of one device, rounded down."""
        return self.memory // self.count

    @property
    def each_bytes(self) -> float:
        """The same in bytes, by the rule of the protocol's own tools: more than 100 a device are MiB, fewer are GiB."""
        return self.each * (_UNIT_BYTES[1] if self.each > _LARGEST_GIB else _UNIT_BYTES[0])


def devices_of(capacity: Mapping[str, str], allocatable: Mapping[str, str] | None = None) -> Devices | None:
    """The devices of a node by its status; None if it shares none.

    Its capacity speaks first: what is allocatable shrinks with the health of devices, and would make each of them look smaller.
    """
    found = {name: capacity.get(name) or (allocatable or {}).get(name) for name in (GPU_MEMORY, GPU_COUNT)}
    try:
        memory, count = (amount(name, text or "0") for name, text in found.items())
    except (ValueError, OverflowError):
        return None
    return Devices(count=count, memory=memory) if memory > 0 and 0 < count <= MOST_DEVICES else None


@dataclass(frozen=True, slots=True)
class GpuAsk:
    """``memory``: what all containers ask for. ``containers``: how many of them ask. ``early``: an init container asks."""

    memory: int = 0
    containers: int = 0
    early: bool = False

    @property
    def asks(self) -> bool:
        return self.memory > 0 or self.early

    @property
    def obstacle(self) -> str:
        """Why no device plugin could serve it, as the end of a sentence; empty when it could."""
        if self.early:
            return f"asks for {GPU_MEMORY} in an init container, which the device plugin cannot serve; let one container ask"
        if self.containers > 1:
            return f"asks for {GPU_MEMORY} in {self.containers} containers, of which the device plugin can serve one; let one container ask"
        return ""


def ask_of(containers: Iterable[Mapping[str, str] | None], init_containers: Iterable[Mapping[str, str] | None] = ()) -> GpuAsk:
    """What a pod asks for by the limits of its containers: requests alone do not count in this protocol. Raises ValueError."""
    asked = [_memory(limits) for limits in containers]
    return GpuAsk(
        memory=sum(asked), containers=sum(each > 0 for each in asked), early=any(_memory(limits) > 0 for limits in init_containers)
    )


def _memory(limits: Mapping[str, str] | None) -> int:
    text = (limits or {}).get(GPU_MEMORY)
    return 0 if text is None else max(0, amount(GPU_MEMORY, text))


def whole_number(text: str | None) -> int | None:
    """A decimal number as Go reads one; None for everything else."""
    return int(text) if text is not None and _WHOLE.fullmatch(text) else None


def read_unhealthy(text: str | None) -> tuple[frozenset[int], str]:
    """The devices in the key ``gpus`` of a ConfigMap, ``"0,2"``; and what in it is no device, for a message."""
    parts = [part.strip() for part in (text or "").split(",") if part.strip()]
    numbers = {part: whole_number(part) for part in parts}
    odd = [part for part, number in numbers.items() if number is None or number < 0]
    return frozenset(number for number in numbers.values() if number is not None and number >= 0), ", ".join(odd)[:100]
