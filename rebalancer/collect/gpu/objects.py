"""Claims, slices, Device objects and lists of unhealthy devices by what looks them up: pods by claim, nodes by name."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from rebalancer.collect.gpu.pod_clues import ClaimUse
from rebalancer.gpu.clues import ClaimRequest
from rebalancer.gpu.nodes.clues import ObjectDevice, SliceDevice
from rebalancer.gpu.places.clues import ClaimedDevice
from rebalancer.kube.gpu_sharing import UNHEALTHY_PREFIX, UnhealthyWire
from rebalancer.kube.wire_devices import (
    AttributeWire,
    DeviceClaimWire,
    DeviceRequestWire,
    ExactRequestWire,
    NodeDevicesWire,
    ResourceSliceWire,
    SliceDeviceWire,
)
from rebalancer.state.gpu import UNKNOWN
from rebalancer.units import parse_quantity

_ALL = "All"
_GPU = "gpu"


@dataclass(frozen=True, slots=True)
class Claimed:
    """What the claims of a pod ask for and were given. ``missing``: what the pod calls those that are not there, or not allocated.
    ``extended``: requests of the claim that the scheduler made for what the pod asks of as an extended resource: the same ask once more,
    unless the resource is one that nobody knows to be a GPU."""

    requests: tuple[ClaimRequest, ...] = ()
    extended: tuple[ClaimRequest, ...] = ()
    devices: tuple[ClaimedDevice, ...] = ()
    missing: tuple[str, ...] = ()


NOTHING_CLAIMED = Claimed()


class ClaimBook:
    """All ResourceClaims of one cycle; None: they could not be listed, so nothing is known of any."""

    def __init__(self, claims: Iterable[DeviceClaimWire] | None) -> None:
        self._known = claims is not None
        self._claims = {(wire.metadata.namespace, wire.metadata.name): wire for wire in claims or ()}

    def of_pod(self, namespace: str, uses: Sequence[ClaimUse]) -> Claimed:
        if not uses or not self._known:
            return NOTHING_CLAIMED
        requests: list[ClaimRequest] = []
        extended: list[ClaimRequest] = []
        devices: list[ClaimedDevice] = []
        missing: list[str] = []
        for use in uses:
            claim = self._claims.get((namespace, use.name))
            if use.asks:
                requests.extend(_requests(claim, use) if claim is not None else (_unknown_request(use),) if use.name else ())
            elif claim is not None:
                extended.extend(_requests(claim, use))
            if claim is None or claim.status.allocation is None:
                missing.append(use.claim)
            else:
                devices.extend(_devices(claim))
        return Claimed(tuple(requests), tuple(extended), tuple(devices), tuple(missing))


def _requests(claim: DeviceClaimWire, use: ClaimUse) -> Iterator[ClaimRequest]:
    for request in claim.spec.devices.requests or ():
        choices = _choices(request)
        if not choices or choices[0].admin_access:
            continue
        first, open_choice = choices[0], len(choices) > 1
        count = UNKNOWN if open_choice or first.allocation_mode == _ALL else float(1 if first.count is None else first.count)
        yield ClaimRequest(
            claim=use.claim,
            request=request.name,
            device_class=first.device_class_name,
            count=count,
            memory_bytes=UNKNOWN if open_choice else _memory(first),
            container=use.container,
        )


def _unknown_request(use: ClaimUse) -> ClaimRequest:
    """Of a claim that is not there: it may have been for anything."""
    return ClaimRequest(claim=use.claim, request="", device_class="", count=UNKNOWN, container=use.container)


def _choices(request: DeviceRequestWire) -> Sequence[ExactRequestWire]:
    if request.exactly is not None:
        return (request.exactly,)
    if request.first_available:
        return request.first_available
    if not request.device_class_name:
        return ()
    return (
        ExactRequestWire(
            device_class_name=request.device_class_name,
            count=request.count,
            allocation_mode=request.allocation_mode,
            admin_access=request.admin_access,
            capacity=request.capacity,
        ),
    )


def _memory(request: ExactRequestWire) -> float:
    """The least capacity called memory that is asked for; NaN none, or unreadable."""
    for name, text in ((request.capacity.requests or {}) if request.capacity is not None else {}).items():
        if name.rpartition("/")[2] == "memory":
            try:
                return parse_quantity(text) or UNKNOWN
            except (ValueError, OverflowError):
                return UNKNOWN
    return UNKNOWN


def _devices(claim: DeviceClaimWire) -> Iterator[ClaimedDevice]:
    """Devices that are looked at for administration are left out: they are not held."""
    name = f"{claim.metadata.namespace}/{claim.metadata.name}"
    shared = len(claim.status.reserved_for or ()) > 1
    for result in (claim.status.allocation.devices.results or ()) if claim.status.allocation is not None else ():
        if not result.admin_access:
            yield ClaimedDevice(name, result.driver, result.pool, result.device, shared)


def slices_by_node(slices: Iterable[ResourceSliceWire]) -> Mapping[str, tuple[SliceDevice, ...]]:
    """Only those of the newest generation of each pool; slices that are of no single node have no devices of one."""
    ours = [wire for wire in slices if wire.spec.node_name]
    newest: dict[tuple[str, str], int] = {}
    for wire in ours:
        pool = (wire.spec.driver, wire.spec.pool.name)
        newest[pool] = max(newest.get(pool, 0), wire.spec.pool.generation)
    found: dict[str, list[SliceDevice]] = defaultdict(list)
    for wire in sorted(ours, key=lambda each: each.metadata.name):
        if wire.spec.pool.generation == newest[wire.spec.driver, wire.spec.pool.name]:
            found[wire.spec.node_name or ""].extend(_slice_device(wire, device) for device in wire.spec.devices or ())
    return {node: tuple(devices) for node, devices in found.items()}


def _slice_device(wire: ResourceSliceWire, device: SliceDeviceWire) -> SliceDevice:
    attributes = device.attributes or (device.basic.attributes if device.basic is not None else None) or {}
    capacity = device.capacity or (device.basic.capacity if device.basic is not None else None) or {}
    memory = next((value.value for name, value in sorted(capacity.items()) if name.rpartition("/")[2] == "memory"), "")
    return SliceDevice(
        driver=wire.spec.driver,
        pool=wire.spec.pool.name,
        name=device.name,
        attributes={name.rpartition("/")[2]: _text(value) for name, value in attributes.items()},
        memory=memory,
    )


def _text(value: AttributeWire) -> str:
    for each in (value.string, value.version, value.number, value.flag):
        if each is not None:
            return str(each)
    return ""


def objects_by_node(objects: Iterable[NodeDevicesWire]) -> Mapping[str, tuple[ObjectDevice, ...]]:
    """koordinator's Device objects, each named after its node: the GPUs in them."""
    return {
        wire.metadata.name: tuple(
            ObjectDevice(
                uuid=each.id,
                minor=-1 if each.minor is None else each.minor,
                healthy=each.health,
                resources=each.resources or {},
            )
            for each in wire.spec.devices or ()
            if each.type == _GPU
        )
        for wire in objects
    }


def unhealthy_by_node(maps: Iterable[UnhealthyWire]) -> Mapping[str, str]:
    """What gpushare's device plugin calls unhealthy, of the nodes of which it calls some device so."""
    found = {
        wire.metadata.name.removeprefix(UNHEALTHY_PREFIX): (wire.data.gpus or "").strip()
        for wire in maps
        if wire.data is not None and wire.metadata.name.startswith(UNHEALTHY_PREFIX)
    }
    return {node: text for node, text in found.items() if text}
