"""The devices of NVIDIA's device plugin: by labels, by the node's capacity, and by MIG resources of their own.

Where labels say how many devices there are and how each is cut, capacity has to be their product; where nobody says, a unit is a device, as
the plugin does by default. MIG instances have no number by which anybody calls them.
"""

from __future__ import annotations

from collections.abc import Iterator

from rebalancer.gpu.asks.mig import PREFIX, profile_of
from rebalancer.gpu.asks.shared import SUFFIX
from rebalancer.gpu.nodes.clues import NodeClues, NodeContext
from rebalancer.gpu.nodes.hami import hands_out_virtual
from rebalancer.gpu.nodes.nvidia_labels import NO_LABELS, STRATEGY, NvidiaLabels, number_of, read_labels, sharing_unit
from rebalancer.gpu.nodes.told import FoundDevice, Told, countable, health_by_count
from rebalancer.gpu.unreadable import Disagreement
from rebalancer.state.devices import DeviceSource
from rebalancer.state.gpu import MIB, UNKNOWN, Family, Scheme


def read(node: NodeClues, context: NodeContext) -> Told | None:
    labels = read_labels(node.labels)
    plain = [name for name, family in context.names.plain if family is Family.NVIDIA]
    units = [*plain, *(f"{name}{SUFFIX}" for name in plain)]
    has, gives = (0, 0) if hands_out_virtual(node) else (sum(map(node.has, units)), sum(map(node.gives, units)))
    instances = tuple(_instances(node, labels))
    if not has and not labels.count and not instances:
        return None
    devices = (*_devices(labels, has=has, gives=gives), *instances)
    handed_out = has > 0 or bool(instances)
    return Told(devices=devices, hands_out=Scheme.PLAIN if handed_out and devices else None)


def _devices(labels: NvidiaLabels, *, has: int, gives: int) -> Iterator[FoundDevice]:
    unit, cut = labels.unit, labels.unit.replicas
    counted = countable(f"{has} units of its GPU resource of {cut:g} replicas each", has / cut) if has and cut == cut else None
    # With instances under their own names the label counts what they are cut from as well.
    told = None if labels.mixed else labels.count
    if counted is None and told is None:
        if has and not labels.mixed:
            raise Disagreement(f"the node has {has} units of its GPU resource and does not say how many replicas a device has")
        return
    if counted is not None and told is not None and counted != told:
        raise Disagreement(f"labels tell {told} devices of {cut:g} units each, and the node has {has} units")
    count = countable("labels", told) if told is not None else counted or 0
    numbered = not unit.profile and not labels.mixed
    for index in range(count):
        yield FoundDevice(
            family=Family.NVIDIA,
            scheme=unit.scheme,
            source=DeviceSource.LABELS if labels is not NO_LABELS else DeviceSource.CAPACITY,
            index=index if numbered else -1,
            model=labels.model,
            mig_profile=unit.profile,
            memory_bytes=labels.memory_bytes,
            memory_exact=count == 1 or bool(unit.profile),
            health=health_by_count(has=has, gives=gives),
            replicas=cut,
        )


def _instances(node: NodeClues, labels: NvidiaLabels) -> Iterator[FoundDevice]:
    """MIG instances by the resources of strategy ``mixed``, replicas of them included."""
    for resource in node.resources:
        if not resource.startswith(PREFIX):
            continue
        stem = resource.removesuffix(SUFFIX)
        profile = profile_of(stem)
        unit = sharing_unit(
            strategy=node.labels.get(f"{stem}.sharing-strategy", node.labels.get(STRATEGY, "")),
            replicas=number_of(node.labels, f"{stem}.replicas"),
            profile=profile,
            names=f"{stem}.sharing-strategy",
        )
        has, told, memory = node.has(resource), number_of(node.labels, f"{stem}.count"), number_of(node.labels, f"{stem}.memory")
        if unit.replicas != unit.replicas or (resource.endswith(SUFFIX) and unit.replicas == 1):
            raise Disagreement(f"the node has {resource} and does not say how many replicas an instance has")
        count = countable(f"{has} units of {resource} of {unit.replicas:g} replicas each", has / unit.replicas)
        if told is not None and has and told != count:
            raise Disagreement(f"labels tell {told} instances of {profile}, and the node has {has} units of {resource}")
        for _ in range(count):
            yield FoundDevice(
                family=Family.NVIDIA,
                scheme=unit.scheme,
                source=DeviceSource.LABELS if told is not None else DeviceSource.CAPACITY,
                model=labels.model,
                mig_profile=profile,
                memory_bytes=memory * MIB if memory else UNKNOWN,
                memory_exact=True,
                health=health_by_count(has=has, gives=node.gives(resource)),
                replicas=unit.replicas,
            )
