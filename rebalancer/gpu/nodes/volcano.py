"""Volcano's devices of a node: its register of virtual GPUs, or memory and number in the node's capacity for its older sharing."""

from __future__ import annotations

from rebalancer.gpu.nodes.clues import NodeClues, NodeContext
from rebalancer.gpu.nodes.registers import volcano_register
from rebalancer.gpu.nodes.told import FoundDevice, Told, countable, health_by_count
from rebalancer.gpu.unreadable import Disagreement, digits
from rebalancer.state.devices import DeviceSource, Health
from rebalancer.state.gpu import MIB, UNKNOWN, Family, Scheme

REGISTER = "volcano.sh/node-vgpu-register"
MEMORY, NUMBER = "volcano.sh/gpu-memory", "volcano.sh/gpu-number"
UNHEALTHY = "volcano.sh/gpu-unhealthy-ids"


def read_vgpu(node: NodeClues, context: NodeContext) -> Told | None:
    del context
    text = node.annotations.get(REGISTER)
    if not text:
        return None
    devices = tuple(
        FoundDevice(
            family=Family.NVIDIA,
            scheme=Scheme.VOLCANO_VGPU,
            source=DeviceSource.VOLCANO,
            index=each.index,
            uuid=each.uuid,
            model=each.model,
            memory_bytes=each.memory_bytes,
            memory_exact=True,
            handed_out_bytes=each.memory_bytes,
            health=Health.HEALTHY if each.healthy else Health.UNHEALTHY,
            replicas=float(each.count),
        )
        for each in volcano_register(REGISTER, text)
    )
    return Told(devices=devices, hands_out=Scheme.VOLCANO_VGPU if devices else None)


def read_gpushare(node: NodeClues, context: NodeContext) -> Told | None:
    del context
    count, memory = countable(NUMBER, node.has(NUMBER)), node.has(MEMORY)
    if not count:
        return None
    if memory % count:
        raise Disagreement(f"{MEMORY} is {memory}, which is not the same for each of {count} devices")
    unhealthy = {digits(f"annotation {UNHEALTHY}", part) for part in node.annotations.get(UNHEALTHY, "").split(",") if part.strip()}
    if unhealthy and max(unhealthy) >= count:
        raise Disagreement(f"annotation {UNHEALTHY} names device {max(unhealthy)}, and the node has {count}")
    in_general = health_by_count(has=count, gives=node.gives(NUMBER))
    per_device = memory // count * MIB if memory else UNKNOWN
    devices = tuple(
        FoundDevice(
            family=Family.NVIDIA,
            scheme=Scheme.VOLCANO_GPUSHARE,
            source=DeviceSource.VOLCANO,
            index=index,
            memory_bytes=per_device if count == 1 else UNKNOWN,
            memory_exact=count == 1,
            handed_out_bytes=per_device,
            health=Health.UNHEALTHY if index in unhealthy else in_general,
        )
        for index in range(count)
    )
    return Told(devices=devices, hands_out=Scheme.VOLCANO_GPUSHARE)
