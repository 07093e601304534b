"""Who holds what on the devices of one node, and what is free on each: the one arithmetic behind filter, bind and inspect.

What a pod holds on a device that nobody can name counts on every device. Whichever it is, none is then filled beyond its memory; refusing
the whole node would be as safe, and would keep pods from devices that have room even so.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from rebalancer.steer.gpushare.allocations import Share
from rebalancer.steer.gpushare.devices import Devices

NOT_SHARED = -1
"""The most that is free on one device of a node that shares none."""


@dataclass(frozen=True, slots=True)
class Holder:
    """A pod that holds memory of a device, or is about to."""

    uid: str
    namespace: str
    name: str
    share: Share


@dataclass(frozen=True, slots=True)
class NodeLedger:
    """``used`` (devices,): what is known to be held on each. ``somewhere``: what is held on devices that are not known."""

    node: str
    devices: Devices
    unhealthy: frozenset[int]
    holders: tuple[Holder, ...]
    used: tuple[int, ...]
    somewhere: int

    def free(self, device: int) -> int:
        """What a new pod may count on there; below zero when it is overfilled already."""
        return self.devices.each - self.used[device] - self.somewhere

    @property
    def healthy(self) -> tuple[int, ...]:
        return tuple(device for device in range(self.devices.count) if device not in self.unhealthy)

    @property
    def most_free(self) -> int:
        """The largest request that one healthy device can take, 0 at least."""
        return max((0, *(self.free(device) for device in self.healthy)))

    @property
    def oddities(self) -> tuple[str, ...]:
        """What is odd, a sentence each."""
        found = []
        for holder in self.holders:
            share = holder.share
            if share.oddity:
                counted = f"; its {share.somewhere} count on every device of {self.node}" if share.somewhere else ""
                found.append(f"pod {holder.namespace}/{holder.name} {share.oddity}{counted}")
        return tuple(found)


def node_ledger(node: str, devices: Devices, holders: Iterable[Holder], *, unhealthy: frozenset[int] = frozenset()) -> NodeLedger:
    """The ledger of a node. ``holders``: pods on it that have not ended, and those that are being bound to it, in any order."""
    kept = sorted(holders, key=lambda holder: (holder.namespace, holder.name, holder.uid))
    placed = tuple(Holder(each.uid, each.namespace, each.name, each.share.on(devices.count)) for each in kept)
    used = [0] * devices.count
    for holder in placed:
        for device, held in holder.share.of_device:
            used[device] += held
    return NodeLedger(
        node=node,
        devices=devices,
        unhealthy=unhealthy,
        holders=placed,
        used=tuple(used),
        somewhere=sum(holder.share.somewhere for holder in placed),
    )
