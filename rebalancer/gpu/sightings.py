"""What exporters of device metrics see of devices and pods: the seam by which their labels reach the tables.

Labels are the last word on nothing. They name devices that the API leaves nameless (uuid, number, memory of each one), and they place pods
of a device plugin that the kubelet does not place. Of pods under schemes that choose devices on their own, labels are wrong, and unused.
"""

from __future__ import annotations

from dataclasses import dataclass

from rebalancer.state.gpu import UNKNOWN


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenDevice:
    """A device as its series name it. ``node``: already resolved to the name of a node. ``uuid``: of the GPU, also for a MIG instance,
    which is told by ``instance`` (``GPU_I_ID``) and ``profile``. ``memory_bytes``: its total; NaN unknown."""

    node: str
    uuid: str
    index: int = -1
    model: str = ""
    memory_bytes: float = UNKNOWN
    instance: int = -1
    profile: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenPod:
    """A pod that labels a device's series; the device as in `SeenDevice`."""

    node: str
    uuid: str
    namespace: str
    pod: str
    instance: int = -1


@dataclass(frozen=True, slots=True)
class Sightings:
    devices: tuple[SeenDevice, ...] = ()
    pods: tuple[SeenPod, ...] = ()


NOTHING_SEEN = Sightings()
