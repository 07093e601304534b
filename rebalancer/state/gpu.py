"""What a pod asks for of GPUs, in one shape for every way of asking.

It lives in `state` because every layer speaks of it: collectors write it, decisions compare it, an extender answers for it. How an ask is
read from a pod is for `rebalancer.gpu` to say; no name of a resource or an annotation stands here.

Units: compute and memory are shares (0 to 1) or bytes *of one device*, never a sum over devices; ``gpus`` is the one sum. A *device* is one
GPU, or one MIG instance or partition of one, since that is what a pod holds and what is measured. NaN is unknown, in every field.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum

UNKNOWN = math.nan
"""One object, so that equal asks are equal: NaN equals itself only by identity."""
MIB = 1024.0**2
GIB = 1024.0**3


class Family(Enum):
    """Whose devices they are; devices of two families never stand in for each other."""

    NVIDIA = "nvidia"
    AMD = "amd"
    INTEL = "intel"
    HYGON = "hygon"
    CAMBRICON = "cambricon"
    ENFLAME = "enflame"
    METAX = "metax"
    HUAWEI = "huawei"
    OTHER = "other"


class Scheme(Enum):
    """By which agreement a device is handed out. The closed set behind every label that names one."""

    PLAIN = "plain"
    """Whole devices by a device plugin."""
    SHARED = "shared"
    """A replica of a device; the node does not say by which strategy."""
    TIME_SLICING = "time-slicing"
    MPS = "mps"
    MIG = "mig"
    PARTITION = "partition"
    """A partition of an AMD GPU."""
    GPUSHARE = "gpushare"
    HAMI = "hami"
    VOLCANO_VGPU = "volcano-vgpu"
    VOLCANO_GPUSHARE = "volcano-gpushare"
    KOORDINATOR = "koordinator"
    TENCENT = "tencent"
    KAI = "kai"
    """A fraction of a device that a reservation pod holds."""
    KAI_RESERVATION = "kai-reservation"
    """That reservation pod: it holds a device on behalf of others, and is never moved."""
    DRA = "dra"


@dataclass(frozen=True, slots=True)
class ModelConstraint:
    """Which devices will do, apart from what node affinity says anyhow. Empty tuples restrict nothing.

    ``models`` are exact, as node labels give them; ``like`` and ``unlike`` match parts of a model's name without regard to case.
    """

    models: tuple[str, ...] = ()
    like: tuple[str, ...] = ()
    unlike: tuple[str, ...] = ()
    uuids: tuple[str, ...] = ()
    not_uuids: tuple[str, ...] = ()

    def admits(self, *, model: str, uuid: str = "") -> bool | None:
        """Whether such a device will do; None when that hangs on a model or uuid that is not known (empty)."""
        if self.models and model and model not in self.models:
            return False
        plain = model.casefold()
        if plain and ((self.like and not _some_within(self.like, plain)) or _some_within(self.unlike, plain)):
            return False
        if uuid and ((self.uuids and uuid not in self.uuids) or uuid in self.not_uuids):
            return False
        lacks_model = not model and (self.models or self.like or self.unlike)
        lacks_uuid = not uuid and (self.uuids or self.not_uuids)
        return None if lacks_model or lacks_uuid else True


def _some_within(parts: Iterable[str], text: str) -> bool:
    return any(part.casefold() in text for part in parts)


ANY_MODEL = ModelConstraint()


_FIGURES = ("devices", "compute", "memory_bytes", "memory_share", "gpus", "slots", "cap")


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuAsk:
    """One ask of one container, or of the pod as a whole (``container`` empty). A pod may have several."""

    family: Family
    scheme: Scheme
    devices: float
    """How many distinct devices the ask is spread over; NaN where the scheme leaves that open (two replicas may be of one device)."""
    compute: float = UNKNOWN
    """Share of one device's compute that is asked for on each of them, above 0 to 1; NaN: not asked for, or unknown."""
    memory_bytes: float = UNKNOWN
    """Bytes of memory on each of the devices; NaN: asked for as a share, or unknown."""
    memory_share: float = UNKNOWN
    """Share of one device's memory on each of them, above 0 to 1; 1: all of it; NaN: asked for in bytes, or unknown."""
    gpus: float = UNKNOWN
    """The compute of all devices together, in devices of this kind; NaN unknown. Two of four replicas are 0.5, wherever they are."""
    slots: float = UNKNOWN
    """How many units of the resource were asked for (devices, replicas, virtual GPUs); NaN where the scheme has no such unit."""
    cap: float = UNKNOWN
    """Hard cap on the compute of each device, 0 to 1; NaN none stated."""
    mig_profile: str = ""
    """Such as ``1g.10gb+me`` or ``cpx_nps4``: the device is an instance of that profile. Empty for whole GPUs."""
    model: ModelConstraint = field(default=ANY_MODEL)
    container: str = ""

    def __post_init__(self) -> None:
        for name in _FIGURES:
            if getattr(self, name) != getattr(self, name):
                object.__setattr__(self, name, UNKNOWN)

    @property
    def whole(self) -> bool:
        """All of each device, so that nobody else may have a part of it."""
        return self.compute == 1.0 and self.memory_share == 1.0

    def bytes_of(self, device_bytes: float) -> float:
        """Bytes that it asks for on a device with so much memory; NaN where that is not known."""
        return self.memory_bytes if self.memory_bytes == self.memory_bytes else self.memory_share * device_bytes
