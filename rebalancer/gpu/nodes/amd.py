"""AMD devices of a node: ``amd.com/gpu`` in its capacity, partitions under their own names, and the labels of AMD's labeller.

Partitions under the plain name are told by the label of the mode. The memory label is that of a GPU, so a partition's memory is not known.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from rebalancer.gpu.asks.amd_partitions import PREFIX, unit_of_type
from rebalancer.gpu.meaning import WHOLE_DEVICE, PlainUnit
from rebalancer.gpu.nodes.clues import NodeClues, NodeContext
from rebalancer.gpu.nodes.told import FoundDevice, Told, countable, health_by_count
from rebalancer.gpu.unreadable import Unreadable, shown
from rebalancer.state.devices import DeviceSource
from rebalancer.state.gpu import GIB, UNKNOWN, Family, Scheme

PRODUCT, MEMORY, MODE = "amd.com/gpu.product-name", "amd.com/gpu.vram", "amd.com/gpu.compute-memory-partition"
OLD_MEMORY = "beta.amd.com/gpu.vram."
_GIB = re.compile(r"([0-9]{1,6})G(?:i?B)?")


def read(node: NodeClues, context: NodeContext) -> Told | None:
    plain = [name for name, family in context.names.plain if family is Family.AMD]
    devices = tuple(
        device
        for resource in node.resources
        if (unit := _unit_of(resource, plain, node.labels)) is not None
        for device in _devices(node, resource, unit)
    )
    return Told(devices=devices, hands_out=Scheme.PLAIN) if devices else None


def plain_unit(labels: Mapping[str, str]) -> PlainUnit:
    """What one of the plain resource is. Raises Unreadable."""
    mode = labels.get(MODE)
    if mode is None:
        return WHOLE_DEVICE
    unit = unit_of_type(mode)
    if unit is None:
        raise Unreadable(f"label {MODE} is {shown(mode)}, which is no mode of partitions")
    return unit


def _unit_of(resource: str, plain: list[str], labels: Mapping[str, str]) -> PlainUnit | None:
    if resource in plain:
        return plain_unit(labels)
    return unit_of_type(resource.removeprefix(PREFIX)) if resource.startswith(PREFIX) else None


def _devices(node: NodeClues, resource: str, unit: PlainUnit) -> Iterator[FoundDevice]:
    count, whole_gpu = countable(resource, node.has(resource)), not unit.profile
    memory = _memory(node.labels) if whole_gpu else UNKNOWN
    labelled = PRODUCT in node.labels or memory == memory
    for index in range(count):
        yield FoundDevice(
            family=Family.AMD,
            scheme=unit.scheme,
            source=DeviceSource.LABELS if labelled else DeviceSource.CAPACITY,
            index=index if whole_gpu else -1,
            model=node.labels.get(PRODUCT, ""),
            mig_profile=unit.profile,
            memory_bytes=memory,
            memory_exact=count == 1,
            health=health_by_count(has=count, gives=node.gives(resource)),
            replicas=1.0,
        )


def _memory(labels: Mapping[str, str]) -> float:
    """Of one GPU; NaN without a label, or with several that differ. Raises Unreadable."""
    text = labels.get(MEMORY)
    if text is None:
        old = [key.removeprefix(OLD_MEMORY) for key in labels if key.startswith(OLD_MEMORY)]
        if len(old) != 1:
            return UNKNOWN
        text = old[0]
    match = _GIB.fullmatch(text)
    if match is None or int(match.group(1)) == 0:
        raise Unreadable(f"label {MEMORY} is {shown(text)}, not an amount such as 64G")
    return int(match.group(1)) * GIB
