"""Everything that is read of a node to know its devices, as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rebalancer.gpu.names import DEFAULT_NAMES, GpuNames
from rebalancer.gpu.unreadable import whole

_NOTHING: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectDevice:
    """A GPU in koordinator's Device object of the node. ``minor`` -1: not told."""

    uuid: str
    minor: int = -1
    healthy: bool | None = None
    resources: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceDevice:
    """A device in a ResourceSlice of the node. ``attributes``: name without domain -> value as text."""

    driver: str
    pool: str
    name: str
    attributes: Mapping[str, str] = field(default_factory=dict)
    memory: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeClues:
    """``capacity`` and ``allocatable``: extended resources alone. ``objects`` None: there is no Device object of the node."""

    name: str
    labels: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    annotations: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    capacity: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    allocatable: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    objects: tuple[ObjectDevice, ...] | None = None
    slices: tuple[SliceDevice, ...] = ()
    unhealthy: str = ""
    """What the device plugin of gpushare calls unhealthy, ``0,2``; empty: nothing, or not told."""

    def has(self, resource: str) -> int:
        """Units of a resource that the node has, healthy or not; 0 without. Raises Unreadable."""
        text = self.capacity.get(resource, self.allocatable.get(resource))
        return 0 if text is None else whole(resource, text)

    def gives(self, resource: str) -> int:
        """Units of a resource that the node can give away; 0 without. Raises Unreadable."""
        text = self.allocatable.get(resource)
        return 0 if text is None else whole(resource, text)

    @property
    def resources(self) -> tuple[str, ...]:
        return tuple(sorted({*self.capacity, *self.allocatable}))


@dataclass(frozen=True, slots=True)
class NodeContext:
    """``lost``: the heartbeat of the node's agent is too old (`hami.is_lost`); the one thing that changes without the node."""

    names: GpuNames = DEFAULT_NAMES
    lost: bool = False
