"""The GPUs of the cluster and who is on them: tables beside those of nodes and pods, sparse, since most pods ask for none.

A *device* is one GPU, or one MIG instance or partition of one: what a pod holds and what is measured. These tables say what is allocated;
what was measured is in `state.device_use`. They are empty where the cluster has no GPU, and every row number points into `nodes`, `pods`
or here.

What cannot be known is said so: NaN, an empty uuid, index -1, `Health.UNKNOWN`, a pod in ``unplaced``. What does not go together is a
`DeviceFault`, and the devices it touches are not ``trusted``: they take part in nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, IntEnum

import numpy as np

from rebalancer.state.arrays import BoolArray, FloatArray, IntArray
from rebalancer.state.device_use import NO_DEVICE_USE, NO_HELD_USE, DeviceUse, HeldUse
from rebalancer.state.gpu import Family, GpuAsk, Scheme


class Confidence(IntEnum):
    """How it is known that a pod is on a device; a larger one has the say over a smaller one."""

    UNKNOWN = 0
    INFERRED = 1
    """It follows from counts: the node has one device, or the pod asks for all that it has."""
    REPORTED = 2
    """An exporter labels the device's series with the pod."""
    DECLARED = 3
    """A scheduler has written down its choice; the node has not confirmed it."""
    ALLOCATED = 4
    """The node's agent, the kubelet or the claim's allocation says so."""


class Health(IntEnum):
    UNKNOWN = -1
    UNHEALTHY = 0
    HEALTHY = 1


class DeviceSource(Enum):
    """What told of a device."""

    RESOURCE_SLICE = "resource-slice"
    HAMI = "hami"
    VOLCANO = "volcano"
    KOORDINATOR = "koordinator"
    GPUSHARE = "gpushare"
    TENCENT = "tencent"
    LABELS = "labels"
    """Labels of the vendor's feature discovery, or of a cloud."""
    CAPACITY = "capacity"
    """Nothing but the node's capacity: that a unit is a whole device is the default of device plugins, and not said."""


class FaultReason(Enum):
    """The closed set behind ``rebalancer_gpu_faults{reason}``."""

    UNREADABLE_ASK = "unreadable-ask"
    """What a pod asks for cannot be read."""
    MIXED_ASK = "mixed-ask"
    """A pod asks for devices in two ways that do not go together."""
    UNREADABLE_NODE = "unreadable-node"
    """What a node says of its devices cannot be read."""
    DEVICES_DISAGREE = "devices-disagree"
    """Two sources tell different devices of one node."""
    TWO_SCHEMES = "two-schemes"
    """Two schemes hand out the devices of one node."""
    UNREADABLE_PLACE = "unreadable-place"
    """Which device a pod is on cannot be read."""
    NO_SUCH_DEVICE = "no-such-device"
    """A pod is said to be on a device that its node does not have."""
    WRONG_NODE = "wrong-node"
    """A pod's devices are said to be of another node than the one it is on."""
    MISSING_OBJECT = "missing-object"
    """A pod names a claim or a reservation that is not there."""


@dataclass(frozen=True, slots=True)
class DeviceFault:
    """``node``: its name, empty where none is concerned; ``pod``: ``namespace/name``, or empty. ``sentence`` names thing and place."""

    node: str
    pod: str
    scheme: Scheme
    reason: FaultReason
    sentence: str


def _floats() -> FloatArray:
    return np.zeros(0, dtype=np.float64)


def _ints() -> IntArray:
    return np.zeros(0, dtype=np.int64)


def _bools() -> BoolArray:
    return np.zeros(0, dtype=np.bool_)


@dataclass(frozen=True, slots=True)
class Devices:
    """In order of nodes; of one node in the order in which it tells them. All (devices,)."""

    node: IntArray = field(default_factory=_ints)
    """Row in nodes."""
    index: IntArray = field(default_factory=_ints)
    """The number that the node's agents call it by; -1 unknown."""
    uuids: tuple[str, ...] = ()
    """Empty: unknown. Of a MIG instance, its own."""
    parents: tuple[str, ...] = ()
    """uuid of the GPU that an instance is a part of; empty: unknown, or a whole GPU."""
    instances: IntArray = field(default_factory=_ints)
    """GPU instance id of a MIG instance on its parent; -1: unknown, or a whole GPU."""
    models: tuple[str, ...] = ()
    """Without what sharing adds to a product's name; empty: unknown."""
    families: tuple[Family, ...] = ()
    mig_profiles: tuple[str, ...] = ()
    """Empty for whole GPUs."""
    memory_bytes: FloatArray = field(default_factory=_floats)
    """What it physically has; NaN unknown."""
    memory_exact: BoolArray = field(default_factory=_bools)
    """``memory_bytes`` was told of this device. Else it follows from a statement about the node that takes its devices to be equal."""
    handed_out_bytes: FloatArray = field(default_factory=_floats)
    """Memory that the scheme hands out of it, which may be more than it has; NaN where the scheme does not count memory."""
    health: IntArray = field(default_factory=_ints)
    """`Health`."""
    cordoned: BoolArray = field(default_factory=_bools)
    """Its scheme gives it to nobody for now."""
    replicas: FloatArray = field(default_factory=_floats)
    """How many pods may share it by the scheme's count; 1: one alone; NaN unknown, or limited by other things."""
    schemes: tuple[Scheme, ...] = ()
    """By which agreement it is handed out."""
    sources: tuple[DeviceSource, ...] = ()
    trusted: BoolArray = field(default_factory=_bools)
    """Everything that was told of it goes together. Else it is neither source nor destination of anything."""

    def __len__(self) -> int:
        return len(self.node)

    def of_node(self, node: int) -> slice:
        """Rows of the devices of a node; an empty slice for a node without."""
        first, last = np.searchsorted(self.node, (node, node + 1)).tolist()
        return slice(first, last)

    def name(self, device: int) -> str:
        """How people tell it from the others of its node: ``0``, ``GPU-1a2b…``, ``1g.5gb``, or a question mark."""
        if self.index[device] >= 0:
            return str(int(self.index[device]))
        return self.uuids[device] or self.mig_profiles[device] or "?"


@dataclass(frozen=True, slots=True)
class DevicePods:
    """Which pod holds what of which device; pairs in order of device, then pod, each pair once. All (pairs,)."""

    device: IntArray = field(default_factory=_ints)
    pod: IntArray = field(default_factory=_ints)
    compute: FloatArray = field(default_factory=_floats)
    """Share of the device's compute that it was given, 0 to 1; NaN: not limited, or unknown."""
    memory_bytes: FloatArray = field(default_factory=_floats)
    """Bytes that it was given; NaN: not limited, or unknown."""
    exclusive: BoolArray = field(default_factory=_bools)
    """It holds the whole device."""
    confidence: IntArray = field(default_factory=_ints)
    """`Confidence`, above UNKNOWN."""

    def __len__(self) -> int:
        return len(self.device)

    def of_device(self, device: int) -> slice:
        """Rows of the pairs of a device."""
        first, last = np.searchsorted(self.device, (device, device + 1)).tolist()
        return slice(first, last)

    def of_pod(self, pod: int) -> IntArray:
        """Rows of the pairs of a pod."""
        return np.flatnonzero(self.pod == pod)


@dataclass(frozen=True, slots=True)
class Gpus:
    """Everything about GPUs in a state. ``pod`` and ``ask`` (asking pods,): rows in pods, ascending, and in ``asks``."""

    asks: tuple[tuple[GpuAsk, ...], ...] = ()
    """Distinct asks of pods, by row; several of one pod for several containers or kinds."""
    pod: IntArray = field(default_factory=_ints)
    ask: IntArray = field(default_factory=_ints)
    addresses: tuple[str, ...] = ()
    """(asking pods,): the IP of each, by which people know containers; empty: none, or withheld. All of it may be empty."""
    devices: Devices = field(default_factory=Devices)
    held: DevicePods = field(default_factory=DevicePods)
    unplaced: IntArray = field(default_factory=_ints)
    """Rows of pods, ascending, that are on a node and hold GPUs of it, while it is not known which, or not of all of them."""
    faults: tuple[DeviceFault, ...] = ()
    use: DeviceUse = NO_DEVICE_USE
    """What was measured, by row of ``devices``; empty where no exporter was asked."""
    held_use: HeldUse = NO_HELD_USE
    """The same by row of ``held``."""

    def asks_of(self, pod: int) -> tuple[GpuAsk, ...]:
        """What the pod asks for; nothing for a pod without GPUs."""
        if not len(self.pod):
            return ()
        row = int(np.searchsorted(self.pod, pod))
        return self.asks[int(self.ask[row])] if row < len(self.pod) and self.pod[row] == pod else ()

    def asking(self, pods: int) -> BoolArray:
        """(pods,): whether each of so many pods asks for a GPU."""
        mask = np.zeros(pods, dtype=np.bool_)
        mask[self.pod] = True
        return mask


NO_GPUS = Gpus()
"""Of a cluster without. Its arrays are empty, so that nothing can be changed through them."""
