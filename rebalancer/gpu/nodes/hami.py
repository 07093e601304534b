"""HAMi's devices of a node, from its register; what the node's capacity counts are virtual GPUs, many a device.

Memory is what is handed out; what a device has is that over the installation's scaling. A heartbeat (``hami.io/node-handshake``) that is
older than five minutes means that HAMi has lost the node, if it says in which time zone it was written.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from rebalancer.gpu.nodes.clues import NodeClues, NodeContext
from rebalancer.gpu.nodes.registers import hami_register
from rebalancer.gpu.nodes.told import FoundDevice, Told
from rebalancer.state.devices import DeviceSource, Health
from rebalancer.state.gpu import Family, Scheme
from rebalancer.units import parse_time

REGISTER = "hami.io/node-nvidia-register"
HANDSHAKE = "hami.io/node-handshake"
CORDON = "hami.io/device-cordon"
LOST_AFTER_S = 300.0
_STAMP = re.compile(r"Reported[ _](\d{4})[-.](\d\d)[-.](\d\d)[ T](\d\d:\d\d:\d\d)(?:\.\d+)? ?(Z|[+-]\d\d:?\d\d)")


def read(node: NodeClues, context: NodeContext) -> Told | None:
    text = node.annotations.get(REGISTER)
    if not text:
        return None
    cordoned = {uuid.strip() for uuid in node.annotations.get(CORDON, "").split(",")}
    devices = tuple(
        FoundDevice(
            family=Family.NVIDIA,
            scheme=Scheme.HAMI,
            source=DeviceSource.HAMI,
            index=each.index,
            uuid=each.uuid,
            model=each.model,
            memory_bytes=each.memory_bytes / context.names.hami_memory_scaling,
            memory_exact=True,
            handed_out_bytes=each.memory_bytes,
            health=Health.HEALTHY if each.healthy and not context.lost else Health.UNHEALTHY,
            cordoned=each.uuid in cordoned,
            replicas=float(each.count),
        )
        for each in hami_register(REGISTER, text)
    )
    return Told(devices=devices, hands_out=Scheme.HAMI if devices else None)


def hands_out_virtual(node: NodeClues) -> bool:
    """Whether the NVIDIA resource of the node counts HAMi's virtual GPUs."""
    return bool(node.annotations.get(REGISTER))


def is_lost(annotations: Mapping[str, str], *, at: float) -> bool:
    """Whether the node's agent has not been heard of at ``at`` (unix seconds); False where nobody can tell."""
    stamp = annotations.get(HANDSHAKE)
    match = _STAMP.search(stamp) if stamp else None
    if match is None:
        return False
    year, month, day, clock, zone = match.groups()
    try:
        written = parse_time(f"{year}-{month}-{day}T{clock}{zone}")
    except (ValueError, OverflowError):
        return False
    return at - written > LOST_AFTER_S
