"""What a pod holds of the devices of its node, and the node as those look it up who read that."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

from rebalancer.gpu.meaning import PLAIN_MEANING, Meaning
from rebalancer.gpu.nodes.told import FoundDevice
from rebalancer.gpu.places.clues import PlaceClues
from rebalancer.gpu.unreadable import Unreadable, shown
from rebalancer.state.devices import Confidence, FaultReason
from rebalancer.state.gpu import UNKNOWN, GpuAsk


class Misplaced(Unreadable):
    """What is written can be read, and is not so: another node, a device that is not there, an object that is missing."""

    def __init__(self, reason: FaultReason, clause: str) -> None:
        super().__init__(clause)
        self.reason = reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """``device``: its place among those of the node. ``compute`` and ``memory_share`` are shares of it; NaN where nothing is written."""

    device: int
    confidence: Confidence
    compute: float = UNKNOWN
    memory_bytes: float = UNKNOWN
    memory_share: float = UNKNOWN


@dataclass(frozen=True)
class NodeView:
    """The devices of a node by what schemes call them. ``groups``: a group of KAI -> place of the device that is reserved for it."""

    name: str
    devices: tuple[FoundDevice, ...]
    meaning: Meaning = PLAIN_MEANING
    groups: Mapping[str, int] = field(default_factory=dict)

    @cached_property
    def _by_index(self) -> Mapping[int, int]:
        return {device.index: place for place, device in enumerate(self.devices) if device.index >= 0}

    @cached_property
    def _by_uuid(self) -> Mapping[str, int]:
        return {device.uuid: place for place, device in enumerate(self.devices) if device.uuid}

    @cached_property
    def _by_claim(self) -> Mapping[tuple[str, str, str], int]:
        return {device.claimed_as: place for place, device in enumerate(self.devices) if device.claimed_as is not None}

    def at_index(self, index: int, *, where: str) -> int:
        """Raises Misplaced for an index that the node does not have."""
        place = self._by_index.get(index)
        if place is None:
            raise Misplaced(
                FaultReason.NO_SUCH_DEVICE,
                f"{where} names device {index}, and node {self.name} tells {len(self.devices)} devices without it",
            )
        return place

    def of_uuid(self, uuid: str, *, where: str) -> int:
        """Raises Misplaced."""
        place = self._by_uuid.get(uuid)
        if place is None:
            raise Misplaced(FaultReason.NO_SUCH_DEVICE, f"{where} names device {shown(uuid)}, and node {self.name} tells none of that name")
        return place

    def find_uuid(self, uuid: str) -> int | None:
        """None where some device of the node has no name yet, and may be the one. Raises Misplaced where all have another."""
        if uuid not in self._by_uuid and any(not device.uuid for device in self.devices):
            return None
        return self.of_uuid(uuid, where="the kubelet's status")

    def of_claim(self, driver: str, pool: str, device: str, *, where: str) -> int:
        """Raises Misplaced."""
        place = self._by_claim.get((driver, pool, device))
        if place is None:
            raise Misplaced(
                FaultReason.NO_SUCH_DEVICE,
                f"{where} is allocated device {shown(device)}, and no ResourceSlice of node {self.name} tells it",
            )
        return place

    def require_here(self, node: str | None, *, where: str) -> None:
        """Raises Misplaced when a scheme has written the name of another node."""
        if node and node != self.name:
            raise Misplaced(FaultReason.WRONG_NODE, f"{where} is {shown(node)}, and the pod is on node {self.name}")


PlaceReader: TypeAlias = Callable[[PlaceClues, NodeView, tuple[GpuAsk, ...]], Iterable[Held]]
"""Given the pod's asks of the scheme. Raises Unreadable and Misplaced."""
