"""Names for devices that the API leaves nameless: uuids that the kubelet gives to pods, and what exporters see.

Labels and capacity count devices; which is which, they do not say. So a uuid that no device of the node has yet goes to one that has none,
by number where both have one, else to any: they differ in nothing else. Two sorts of names that do not mention each other are never joined
so: a device that is known by its number alone gets no uuid without one, and an instance that an exporter has named none from the kubelet.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rebalancer.gpu.nodes.told import FoundDevice
from rebalancer.gpu.sightings import SeenDevice
from rebalancer.state.devices import Health


@dataclass(frozen=True, slots=True)
class SeenUuid:
    """Of a pod's device by the kubelet. ``profile``: of the resource that it was given for; ``healthy`` None: not told."""

    uuid: str
    profile: str = ""
    healthy: bool | None = None


@dataclass(frozen=True, slots=True)
class Named:
    """``strangers``: what exporters see on the node and nobody tells of."""

    devices: tuple[FoundDevice, ...]
    strangers: tuple[SeenDevice, ...] = ()


def named(devices: Sequence[FoundDevice], *, kubelet: Sequence[SeenUuid], seen: Sequence[SeenDevice], by_number: bool) -> Named:
    """The devices of one node with what is seen of them. ``by_number``: pods of the node are placed by the numbers of its devices, which
    uuids without a number must not take from them."""
    found = list(devices)
    strangers = [each for each in sorted(seen, key=lambda one: (one.uuid, one.instance)) if not _take_sighting(found, each)]
    taken = [_take_uuid(found, each, by_number=by_number) for each in sorted(set(kubelet), key=lambda one: one.uuid)]
    if any(taken):  # the numbers of the others were counted with those of these, and are theirs no more
        found = [each if each.uuid else replace(each, index=-1) for each in found]
    return Named(tuple(found), tuple(strangers))


def _take_sighting(found: list[FoundDevice], seen: SeenDevice) -> bool:
    place = _place_of_instance(found, seen) if seen.instance >= 0 else _place_of_gpu(found, seen)
    if place is None:
        return False
    device = found[place]
    use_memory = seen.memory_bytes > 0 and not (device.memory_exact and device.memory_bytes == device.memory_bytes)
    names = {"parent": seen.uuid, "instance": seen.instance} if seen.instance >= 0 else {"uuid": seen.uuid}
    found[place] = replace(
        device,
        **names,
        index=seen.index if device.index < 0 and seen.instance < 0 else device.index,
        model=device.model or seen.model,
        memory_bytes=seen.memory_bytes if use_memory else device.memory_bytes,
        memory_exact=use_memory or device.memory_exact,
    )
    return True


def _place_of_gpu(found: Sequence[FoundDevice], seen: SeenDevice) -> int | None:
    """By uuid, else by number, else any that has neither."""
    nameless = [place for place, each in enumerate(found) if not each.uuid and not each.mig_profile]
    for place, device in enumerate(found):
        if device.uuid == seen.uuid:
            return place
    for place in nameless:
        if found[place].index == seen.index >= 0:
            return place
    return next((place for place in nameless if found[place].index < 0), None)


def _place_of_instance(found: Sequence[FoundDevice], seen: SeenDevice) -> int | None:
    nameless = [place for place, each in enumerate(found) if each.mig_profile == seen.profile != "" and each.instance < 0]
    for place, device in enumerate(found):
        if (device.parent, device.instance) == (seen.uuid, seen.instance):
            return place
    return next((place for place in nameless if not found[place].uuid and found[place].parent in ("", seen.uuid)), None)


def _take_uuid(found: list[FoundDevice], seen: SeenUuid, *, by_number: bool) -> bool:
    """Whether a device has got its name by it."""
    alike = [place for place, each in enumerate(found) if each.mig_profile == seen.profile]
    place = next((place for place in alike if found[place].uuid == seen.uuid), None)
    if place is None and not by_number and all(found[other].instance < 0 for other in alike):
        place = next((place for place in alike if not found[place].uuid), None)
    if place is None:
        return False
    device = found[place]
    found[place] = replace(
        device,
        uuid=seen.uuid,
        index=device.index if device.uuid else -1,  # the number was that of some device, not of this one
        health=Health.UNHEALTHY if seen.healthy is False else device.health,
    )
    return not device.uuid
