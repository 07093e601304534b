"""The lists of virtual GPUs that HAMi and Volcano write on pods: ``uuid,type,memMiB,cores%`` ended by ``:``, a container ended by ``;``.

A container without devices is just ``;``. An older form puts a MIG instance in brackets behind the uuid of its GPU; it is the GPU that is
told.
"""

from __future__ import annotations

from collections.abc import Iterator

from rebalancer.gpu.places.held import Held, NodeView
from rebalancer.gpu.unreadable import Unreadable, digits, shown
from rebalancer.state.devices import Confidence
from rebalancer.state.gpu import MIB, UNKNOWN

_LONGEST = 256 * 1024


def held_by_list(name: str, text: str, node: NodeView, *, confidence: Confidence) -> Iterator[Held]:
    """Raises Unreadable and Misplaced that name the annotation ``name``."""
    where = f"annotation {name}"
    for container in text[:_LONGEST].split(";"):
        for entry in container.split(":"):
            if entry.strip():
                yield _held(where, entry.strip(), node, confidence)


def _held(where: str, entry: str, node: NodeView, confidence: Confidence) -> Held:
    parts = [part.strip() for part in entry.split(",")]
    if len(parts) != 4:
        raise Unreadable(f"{where} holds an entry of {len(parts)} parts: {shown(entry)}")
    uuid, _, memory, cores = parts
    percent = digits(where, cores)
    if percent > 100:
        raise Unreadable(f"{where} gives {percent} % of a device")
    mib = digits(where, memory)
    return Held(
        device=node.of_uuid(uuid.partition("[")[0], where=where),
        confidence=confidence,
        compute=percent / 100 if percent else UNKNOWN,
        memory_bytes=mib * MIB if mib else UNKNOWN,
    )
