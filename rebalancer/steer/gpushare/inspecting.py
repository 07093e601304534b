"""The verb inspect: every node, device and pod as JSON, in the keys and the order of the protocol.

``usedGPU`` of a device is what is known to be held there. What pods hold on devices that nobody can name is in ``usedGPU`` of their node
alone, and ``error`` says so: on such a node less is free than the figures of its devices tell.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from rebalancer.steer.gpushare.ledger import NodeLedger


class PodView(msgspec.Struct, frozen=True, gc=False):
    name: str
    namespace: str
    usedGPU: int  # noqa: N815 - the name on the wire


class DeviceView(msgspec.Struct, frozen=True, gc=False):
    id: int
    totalGPU: int  # noqa: N815
    usedGPU: int  # noqa: N815
    pods: list[PodView]


class NodeView(msgspec.Struct, frozen=True, gc=False):
    name: str
    totalGPU: int  # noqa: N815
    usedGPU: int  # noqa: N815
    devs: list[DeviceView]


class ClusterView(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    nodes: list[NodeView]
    error: str = ""


_encode = msgspec.json.Encoder().encode


def inspect(ledgers: Iterable[NodeLedger], *, also: Sequence[str] = ()) -> bytes:
    """The answer for these nodes. ``also``: what else belongs into ``error``, a sentence each."""
    ordered = sorted(ledgers, key=lambda ledger: ledger.node)
    sentences = [*also, *(sentence for ledger in ordered for sentence in ledger.oddities)]
    return _encode(ClusterView([_node(ledger) for ledger in ordered], "; ".join(sentences)))


def _node(ledger: NodeLedger) -> NodeView:
    pods: list[list[PodView]] = [[] for _ in range(ledger.devices.count)]
    for holder in ledger.holders:
        for device, held in holder.share.of_device:
            pods[device].append(PodView(holder.name, holder.namespace, held))
    devices = [DeviceView(device, ledger.devices.each, ledger.used[device], pods[device]) for device in range(ledger.devices.count)]
    return NodeView(ledger.node, ledger.devices.memory, sum(ledger.used) + ledger.somewhere, devices)
