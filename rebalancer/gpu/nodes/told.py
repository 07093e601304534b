"""What a source tells of the devices of a node, before sources are put together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from rebalancer.gpu.nodes.clues import NodeClues, NodeContext
from rebalancer.gpu.unreadable import Disagreement
from rebalancer.state.devices import DeviceSource, Health
from rebalancer.state.gpu import UNKNOWN, Family, Scheme


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundDevice:
    """Fields as in `state.devices.Devices`. ``claimed_as``: (driver, pool, device) by which claims name it."""

    family: Family
    scheme: Scheme
    source: DeviceSource
    index: int = -1
    uuid: str = ""
    parent: str = ""
    instance: int = -1
    model: str = ""
    mig_profile: str = ""
    memory_bytes: float = UNKNOWN
    memory_exact: bool = False
    handed_out_bytes: float = UNKNOWN
    health: Health = Health.UNKNOWN
    cordoned: bool = False
    replicas: float = UNKNOWN
    trusted: bool = True
    claimed_as: tuple[str, str, str] | None = None


@dataclass(frozen=True, slots=True)
class Told:
    """``hands_out``: the source is that of a scheme which gives these devices to pods now, and not only knows of them."""

    devices: tuple[FoundDevice, ...]
    hands_out: Scheme | None = None


MOST_DEVICES = 1024
"""Far more than a node has, replicas and instances not counted."""

Source: TypeAlias = Callable[[NodeClues, NodeContext], Told | None]
"""Raises Unreadable."""


def countable(what: str, count: float) -> int:
    """A number of devices that a node can have. Raises Disagreement for parts of devices, and for more than any node has."""
    if count != int(count) or not 0 <= count <= MOST_DEVICES:
        raise Disagreement(f"{what} make {count:g} devices")
    return int(count)


def health_by_count(*, has: int, gives: int) -> Health:
    """Of every device of a node, by how many of its units it can give away: a device plugin takes away what is unhealthy.

    Where it is some, which of them cannot be told.
    """
    if has <= 0:
        return Health.UNKNOWN
    if gives >= has:
        return Health.HEALTHY
    return Health.UNHEALTHY if gives == 0 else Health.UNKNOWN
