"""What the same resource means on one node and on another: a device, a replica of one, a MIG instance, a virtual GPU.

The node's labels and annotations decide (`nodes.meaning`); here is only what they decide. A pod that is on no node yet asks with the
meaning that all nodes agree on, and with `UNDECIDED` where they do not.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from rebalancer.state.gpu import UNKNOWN, Scheme


@dataclass(frozen=True, slots=True)
class PlainUnit:
    """One unit of a vendor's resource. ``replicas``: how many units a device is cut into; 1: the device itself; NaN unknown.

    ``profile``: the device is a MIG instance or partition of that profile; empty for whole GPUs.
    """

    scheme: Scheme = Scheme.PLAIN
    replicas: float = 1.0
    profile: str = ""


WHOLE_DEVICE = PlainUnit()
UNKNOWN_UNIT = PlainUnit(replicas=UNKNOWN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Meaning:
    """What asks mean on a node. ``hami``: its NVIDIA resource counts virtual GPUs. ``replicas_of``: resource of replicas -> how many units
    a device is cut into, for names that are replicas whatever the node (``nvidia.com/gpu.shared``)."""

    nvidia: PlainUnit = WHOLE_DEVICE
    amd: PlainUnit = WHOLE_DEVICE
    hami: bool = False
    shared: tuple[tuple[str, PlainUnit], ...] = ()
    gpushare_unit_bytes: float = UNKNOWN

    def shared_unit(self, resource: str, profile: str) -> PlainUnit:
        """Of a resource that is renamed to say that it counts replicas."""
        for name, unit in self.shared:
            if name == resource:
                return unit
        return PlainUnit(scheme=Scheme.SHARED, replicas=UNKNOWN, profile=profile)


PLAIN_MEANING = Meaning()
UNDECIDED = Meaning(nvidia=UNKNOWN_UNIT, amd=UNKNOWN_UNIT)


def common_meaning(meanings: Iterable[Meaning]) -> Meaning:
    """What holds on every one of these nodes. Where they differ it is unknown; none at all are `UNDECIDED`."""
    found = list(dict.fromkeys(meanings))
    if not found:
        return UNDECIDED
    first, several = found[0], len(found) > 1
    if not several:
        return first
    return Meaning(
        nvidia=_common([each.nvidia for each in found], agree=len({each.hami for each in found}) == 1),
        amd=_common([each.amd for each in found]),
        hami=all(each.hami for each in found),
        shared=first.shared if len({each.shared for each in found}) == 1 else (),
        gpushare_unit_bytes=_common_number([each.gpushare_unit_bytes for each in found]),
    )


def _common(units: list[PlainUnit], *, agree: bool = True) -> PlainUnit:
    return units[0] if agree and len(set(units)) == 1 else UNKNOWN_UNIT


def _common_number(values: list[float]) -> float:
    known = {value for value in values if value == value}
    return known.pop() if len(known) == 1 else UNKNOWN
