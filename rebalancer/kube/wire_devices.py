"""Objects that tell of devices: resource claims and slices, and koordinator's Device. See `wire` for what is named here and why.

Of the claims API two versions are read: what v1beta1 has in a device request itself or under ``basic``, v1 has under ``exactly`` or itself.
"""

from __future__ import annotations

import msgspec

from rebalancer.kube.wire import MetaWire


class CapacityWire(msgspec.Struct, frozen=True, gc=False):
    requests: dict[str, str] | None = None


class ExactRequestWire(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    device_class_name: str = ""
    count: int | None = None
    allocation_mode: str | None = None
    admin_access: bool | None = None
    capacity: CapacityWire | None = None


class DeviceRequestWire(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    name: str = ""
    exactly: ExactRequestWire | None = None
    first_available: tuple[ExactRequestWire, ...] | None = None
    device_class_name: str = ""
    count: int | None = None
    allocation_mode: str | None = None
    admin_access: bool | None = None
    capacity: CapacityWire | None = None


class DeviceRequestsWire(msgspec.Struct, frozen=True, gc=False):
    requests: tuple[DeviceRequestWire, ...] | None = None


class ClaimedDevicesWire(msgspec.Struct, frozen=True, gc=False):
    devices: DeviceRequestsWire = DeviceRequestsWire()


class ResultWire(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool | None = None


class ResultsWire(msgspec.Struct, frozen=True, gc=False):
    results: tuple[ResultWire, ...] | None = None


class AllocationWire(msgspec.Struct, frozen=True, gc=False):
    devices: ResultsWire = ResultsWire()


class ConsumerWire(msgspec.Struct, frozen=True, gc=False):
    uid: str = ""


class DeviceClaimStatusWire(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    allocation: AllocationWire | None = None
    reserved_for: tuple[ConsumerWire, ...] | None = None


class DeviceClaimWire(msgspec.Struct, frozen=True, gc=False):
    """A ResourceClaim."""

    metadata: MetaWire
    spec: ClaimedDevicesWire = ClaimedDevicesWire()
    status: DeviceClaimStatusWire = DeviceClaimStatusWire()


class AttributeWire(msgspec.Struct, frozen=True, gc=False):
    string: str | None = None
    version: str | None = None
    number: int | None = msgspec.field(default=None, name="int")
    flag: bool | None = msgspec.field(default=None, name="bool")


class ValueWire(msgspec.Struct, frozen=True, gc=False):
    value: str = ""


class BasicDeviceWire(msgspec.Struct, frozen=True, gc=False):
    attributes: dict[str, AttributeWire] | None = None
    capacity: dict[str, ValueWire] | None = None


class SliceDeviceWire(msgspec.Struct, frozen=True, gc=False):
    name: str
    basic: BasicDeviceWire | None = None
    attributes: dict[str, AttributeWire] | None = None
    capacity: dict[str, ValueWire] | None = None


class PoolWire(msgspec.Struct, frozen=True, gc=False):
    name: str = ""
    generation: int = 0


class SliceSpecWire(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    driver: str = ""
    node_name: str | None = None
    pool: PoolWire = PoolWire()
    devices: tuple[SliceDeviceWire, ...] | None = None


class ResourceSliceWire(msgspec.Struct, frozen=True, gc=False):
    metadata: MetaWire
    spec: SliceSpecWire = SliceSpecWire()


class NodeDeviceWire(msgspec.Struct, frozen=True, gc=False):
    type: str = ""
    id: str = ""
    minor: int | None = None
    health: bool | None = None
    resources: dict[str, str] | None = None


class NodeDevicesSpecWire(msgspec.Struct, frozen=True, gc=False):
    devices: tuple[NodeDeviceWire, ...] | None = None


class NodeDevicesWire(msgspec.Struct, frozen=True, gc=False):
    """koordinator's Device: all devices of the node that it is named after."""

    metadata: MetaWire
    spec: NodeDevicesSpecWire = NodeDevicesSpecWire()
