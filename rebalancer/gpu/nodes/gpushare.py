"""gpushare's devices of a node: total memory over the number of devices, in a unit that each node's plugin chooses.

The unit is the policy's, or that of the protocol's own tools: more than 100 of it per device are MiB, fewer are GiB. The plugin counts
every device as large as its first, so on a node of several the figure says what is handed out of each, and not what each has. Which devices
are unhealthy it writes into a ConfigMap of the node's name.
"""

from __future__ import annotations

from rebalancer.gpu.names import GpuNames
from rebalancer.gpu.nodes.clues import NodeClues, NodeContext
from rebalancer.gpu.nodes.told import FoundDevice, Told, countable, health_by_count
from rebalancer.gpu.unreadable import Disagreement, digits
from rebalancer.state.devices import DeviceSource, Health
from rebalancer.state.gpu import GIB, MIB, UNKNOWN, Family, Scheme

MOST_GIB = 100


def read(node: NodeClues, context: NodeContext) -> Told | None:
    names = context.names
    count, total = countable(names.gpushare_count, node.has(names.gpushare_count)), node.has(names.gpushare_memory)
    if not count or not total:
        return None
    per_device = units_per_device(count, total, names)
    memory = per_device * unit_bytes(per_device, names)
    health = health_by_count(has=total, gives=node.gives(names.gpushare_memory))
    unhealthy = _unhealthy(node.unhealthy, count)
    devices = tuple(
        FoundDevice(
            family=Family.NVIDIA,
            scheme=Scheme.GPUSHARE,
            source=DeviceSource.GPUSHARE,
            index=index,
            memory_bytes=memory if count == 1 else UNKNOWN,
            memory_exact=count == 1,
            handed_out_bytes=memory,
            health=Health.UNHEALTHY if index in unhealthy else health,
        )
        for index in range(count)
    )
    return Told(devices=devices, hands_out=Scheme.GPUSHARE)


def units_per_device(count: int, total: int, names: GpuNames) -> int:
    """Raises Disagreement where the total is not the same for each."""
    if total % count:
        raise Disagreement(f"{names.gpushare_memory} is {total}, which is not the same for each of {count} devices")
    return total // count


def unit_bytes(per_device: int, names: GpuNames) -> float:
    if names.gpushare_unit_bytes == names.gpushare_unit_bytes:
        return names.gpushare_unit_bytes
    return MIB if per_device > MOST_GIB else GIB


def node_unit_bytes(node: NodeClues, context: NodeContext) -> float:
    """The unit of asks on the node; NaN on one that does not share. Raises Unreadable."""
    names = context.names
    count, total = node.has(names.gpushare_count), node.has(names.gpushare_memory)
    if count and total:
        return unit_bytes(units_per_device(count, total, names), names)
    return names.gpushare_unit_bytes if total else UNKNOWN


def _unhealthy(text: str, count: int) -> frozenset[int]:
    """Raises Unreadable, and Disagreement for a device that the node does not have."""
    found = frozenset(digits("the ConfigMap of unhealthy devices", part) for part in text.split(",") if part.strip())
    if found and max(found) >= count:
        raise Disagreement(f"the ConfigMap of unhealthy devices names device {max(found)}, and the node has {count}")
    return found
